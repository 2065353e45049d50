# casemate run and the commands on sessions, with real jails.  One ctest a file and caller: root, a
# user without and one with subordinate ids.
function(cm_run_test name timeout)
	if(NOT TARGET casemate)
		return()
	endif()
	foreach(who IN LISTS ARGN)
		set(test integration.run.${name}.${who})
		add_test(NAME ${test} COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/t-run-${name}.sh"
			$<TARGET_FILE_DIR:casemate> ${who})
		set_tests_properties(${test} PROPERTIES LABELS integration TIMEOUT ${timeout})
	endforeach()
endfunction()

cm_run_test(wrapper 120 root plain sub)
cm_run_test(signals 120 root plain sub)
cm_run_test(tty 120 root plain)
cm_run_test(environment 60 root plain)
cm_run_test(results 60 root plain)
cm_run_test(workspace 90 root plain)
cm_run_test(git 90 root plain)
cm_run_test(limits 120 root plain)
cm_run_test(session 120 root plain)
