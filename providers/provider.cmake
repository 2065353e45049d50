# The vtable's users; and which provider it is, which the command line itself decides.
cm_component(selection SOURCES selection.c DEPS base)
cm_component(provider SOURCES caps.c provider.c provider_exec.c provider_files.c provider_tools.c registry.c
	DEPS spec base)
# what a new provider is copied from
cm_component(skeleton SOURCES skeleton/skeleton.c DEPS provider)
