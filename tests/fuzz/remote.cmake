# what a sandbox prints where a shell in it does the work
cm_fuzz_target(remote_shell SOURCES fuzz_remote_shell.c DEPS remote_shared)
