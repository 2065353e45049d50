# The filters are compiled by libseccomp while building, so that nothing that runs links it.
add_executable(gen_seccomp gen_seccomp.c gen_join.c gen_split.c gen_verify.c)
target_link_libraries(gen_seccomp PRIVATE PkgConfig::LIBSECCOMP)

# One rule for both flavours of the component: two would race under make.
set(cm_seccomp_programs "${PROJECT_BINARY_DIR}/isolation/mech/seccomp_programs.h")
add_custom_command(OUTPUT "${cm_seccomp_programs}"
	COMMAND gen_seccomp "${cm_seccomp_programs}"
	DEPENDS gen_seccomp
	COMMENT "compiling the system-call filters" VERBATIM)
add_custom_target(cm_seccomp_programs DEPENDS "${cm_seccomp_programs}")

cm_component(seccomp SOURCES seccomp.c DEPS base plan)
foreach(flavour cm_seccomp cm_seccomp_st)
	add_dependencies(${flavour} cm_seccomp_programs)
	target_include_directories(${flavour} PRIVATE "${PROJECT_BINARY_DIR}")
endforeach()
