# Other kernels, a real cgroup v2, and systemd: what is built here runs in a virtual machine. Each
# boots once, 50 times slower than this host, so the time-outs are generous.
function(cm_vm_test name guest)
	if(NOT TARGET casemate)
		return()
	endif()
	add_test(NAME vm.${name} COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/vm/host.sh"
		"${PROJECT_BINARY_DIR}" ${guest} ${ARGN})
	set_tests_properties(vm.${name} PROPERTIES LABELS vm TIMEOUT 600 RUN_SERIAL ON
		SKIP_RETURN_CODE 77)
endfunction()

cm_vm_test(6.1 guest-kernel.sh 6.1)
cm_vm_test(6.12 guest-kernel.sh 6.12)
cm_vm_test(systemd guest-systemd.sh 6.1 -s)
