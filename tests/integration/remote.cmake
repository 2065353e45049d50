# The command line over sessions that are elsewhere, with a stand-in of the service.
if(TARGET casemate AND TARGET casemate-remote)
	foreach(test cli faults)
		foreach(who root plain)
			add_test(NAME integration.remote.${test}.${who} COMMAND bash
				"${CMAKE_CURRENT_SOURCE_DIR}/t-remote-${test}.sh"
				$<TARGET_FILE_DIR:casemate> ${who})
			set_tests_properties(integration.remote.${test}.${who} PROPERTIES LABELS integration
				TIMEOUT 300)
		endforeach()
	endforeach()
endif()
