# The planner: client side only, knows the spec.
cm_component(plan_build SOURCES
	build.c build_etc.c build_level.c build_limits.c build_names.c build_root.c build_show.c
	build_work.c env.c skeleton.c
	DEPS plan spec base)
