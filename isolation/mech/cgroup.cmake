# the session's control group
cm_component(mech_cgroup SOURCES
	cgroup.c cgroup_file.c cgroup_group.c cgroup_now.c cgroup_v1.c cgroup_v2.c DEPS plan base)
