# Real toolchains in real jails, as root and as a user without subordinate ids.  Some fetch packages
# from where the machine gets its own and are skipped where there is nothing to be had.
function(cm_tools_test name timeout)
	if(NOT TARGET casemate)
		return()
	endif()
	foreach(who root plain)
		set(test tools.${name}.${who})
		add_test(NAME ${test} COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/t-tools-${name}.sh"
			$<TARGET_FILE_DIR:casemate> ${who})
		set_tests_properties(${test} PROPERTIES LABELS tools TIMEOUT ${timeout})
	endforeach()
endfunction()

cm_tools_test(c 300)
cm_tools_test(git 120)
cm_tools_test(homes 120)
cm_tools_test(java 120)
cm_tools_test(node 300)
cm_tools_test(python 300)
cm_tools_test(rust 120)
cm_tools_test(session 900)
cm_tools_test(system 120)
