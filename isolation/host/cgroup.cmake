# where control groups can be made
cm_component(host_cgroup SOURCES cgroup.c cgroup_parse.c DEPS plan base)
