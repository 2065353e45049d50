# The git servers and repositories that tests check out from, seen by git, curl and ssh; as whoever
# runs the tests.
if(TARGET casemate)
	add_test(NAME integration.repositories COMMAND bash
		"${CMAKE_CURRENT_SOURCE_DIR}/t-repositories.sh" $<TARGET_FILE_DIR:casemate> plain)
	set_tests_properties(integration.repositories PROPERTIES LABELS integration TIMEOUT 300)
	add_executable(bad_git_server "${PROJECT_SOURCE_DIR}/tests/helpers/bad_git_server.c"
		"${PROJECT_SOURCE_DIR}/tests/helpers/bad_git_modes.c")
	foreach(who root plain)
		add_test(NAME integration.servers.${who} COMMAND bash
			"${CMAKE_CURRENT_SOURCE_DIR}/t-servers.sh" $<TARGET_FILE_DIR:casemate> ${who}
			$<TARGET_FILE:bad_git_server>)
		set_tests_properties(integration.servers.${who} PROPERTIES LABELS integration
			TIMEOUT 300)
	endforeach()
endif()
