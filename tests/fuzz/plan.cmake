# texts that repositories, homes and images bring
cm_fuzz_target(gitconfig SOURCES fuzz_gitconfig.c DEPS host plan base)
