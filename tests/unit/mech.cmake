# Against the programs of both machines, so with the generated arrays themselves.
cm_unit_test(seccomp DEPS seccomp)
target_link_libraries(test_seccomp PRIVATE PkgConfig::LIBSECCOMP)
add_dependencies(test_seccomp cm_seccomp_programs)
target_include_directories(test_seccomp PRIVATE "${PROJECT_BINARY_DIR}")

# Against the kernel: really loaded, with a control run for every refusal.
cm_unit_test(seccomp_load DEPS seccomp)
cm_unit_test(seccomp_unix DEPS seccomp)
cm_unit_test(caps DEPS mech)
