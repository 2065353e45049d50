# Local sessions as a provider.
cm_component(local_ops SOURCES
	vtable.c vtable_attach.c vtable_call.c vtable_end.c vtable_exec.c vtable_execs.c vtable_files.c
	vtable_input.c vtable_kept.c vtable_list.c vtable_start.c
	DEPS local provider)
