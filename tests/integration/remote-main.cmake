# The main job in sandboxes that are elsewhere, by the command line, with stand-ins of the services.
if(TARGET casemate AND TARGET casemate-remote)
	foreach(provider e2b platform)
		foreach(who root plain)
			add_test(NAME integration.remote.main.${provider}.${who} COMMAND bash
				"${CMAKE_CURRENT_SOURCE_DIR}/t-remote-main.sh"
				$<TARGET_FILE_DIR:casemate> ${who} ${provider})
			set_tests_properties(integration.remote.main.${provider}.${who} PROPERTIES
				LABELS integration TIMEOUT 300)
		endforeach()
	endforeach()
endif()
