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
cm_run_test(shell 120 root plain)
cm_run_test(streams 600 root plain)
cm_run_test(environment 60 root plain)
cm_run_test(results 60 root plain)
cm_run_test(workspace 90 root plain)
cm_run_test(git 90 root plain)
cm_run_test(limits 120 root plain)
cm_run_test(session 120 root plain)
cm_run_test(exec 120 root plain sub)
cm_run_test(sessions 240 root plain sub)
cm_run_test(stop 180 root plain sub)
cm_run_test(repo 240 root plain)
cm_run_test(setup 240 root plain)
cm_run_test(existing 180 root plain)
cm_run_test(remote 300 root plain sub)
cm_run_test(recheckout 600 root plain)
cm_run_test(credential 240 root plain)
cm_run_test(hostgit 400 root plain)
cm_run_test(hostgit-ssh 400 root plain)
cm_run_test(ssh 300 root plain)
cm_run_test(submodules 300 root plain)
cm_run_test(hostile 600 root plain)
cm_run_test(refuse 120 root plain)
cm_run_test(faults 300 root plain)
cm_run_test(walk 600 root plain)
cm_run_test(reboot 180 root plain)
cm_run_test(full 120 root plain)
cm_run_test(files 300 root plain sub)
cm_run_test(cp 300 root plain)
cm_run_test(skeleton 120 root plain)

if(TARGET casemate)
	add_executable(keeper_client "${PROJECT_SOURCE_DIR}/tests/helpers/keeper_client.c"
		"${PROJECT_SOURCE_DIR}/tests/helpers/keeper_client_bad.c"
		"${PROJECT_SOURCE_DIR}/tests/helpers/keeper_client_many.c")
	target_link_libraries(keeper_client PRIVATE cm_local)
	foreach(who root plain)
		add_test(NAME integration.run.keeper.${who} COMMAND bash
			"${CMAKE_CURRENT_SOURCE_DIR}/t-run-keeper.sh" $<TARGET_FILE_DIR:casemate> ${who}
			$<TARGET_FILE:keeper_client>)
		add_test(NAME integration.run.who.${who} COMMAND bash
			"${CMAKE_CURRENT_SOURCE_DIR}/t-run-who.sh" $<TARGET_FILE_DIR:casemate> ${who}
			$<TARGET_FILE:keeper_client>)
		set_tests_properties(integration.run.keeper.${who} integration.run.who.${who}
			PROPERTIES LABELS integration TIMEOUT 180)
		# bad_git_server is servers.cmake's
		add_test(NAME integration.run.bad-server.${who} COMMAND bash
			"${CMAKE_CURRENT_SOURCE_DIR}/t-run-bad-server.sh" $<TARGET_FILE_DIR:casemate>
			${who} $<TARGET_FILE:bad_git_server>)
		set_tests_properties(integration.run.bad-server.${who} PROPERTIES LABELS
			integration TIMEOUT 600)
		add_test(NAME integration.run.core.${who} COMMAND bash
			"${CMAKE_CURRENT_SOURCE_DIR}/t-run-core.sh" $<TARGET_FILE_DIR:casemate> ${who}
			$<TARGET_FILE:bad_git_server>)
		set_tests_properties(integration.run.core.${who} PROPERTIES LABELS integration
			TIMEOUT 120)
	endforeach()
endif()
