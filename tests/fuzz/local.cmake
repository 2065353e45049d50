# texts of the host that the local provider reads
cm_fuzz_target(known_hosts SOURCES fuzz_known_hosts.c DEPS local)
cm_fuzz_target(ssh_config SOURCES fuzz_ssh_config.c DEPS local)
