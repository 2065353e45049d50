# texts of the host
cm_fuzz_target(host_cgroup SOURCES fuzz_host_cgroup.c DEPS host_cgroup)
