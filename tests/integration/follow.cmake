# The commands that follow commands: ps, wait, kill, stdin, attach, stats.
if(TARGET casemate)
	foreach(who root plain)
		add_test(NAME integration.follow.${who} COMMAND bash
			"${CMAKE_CURRENT_SOURCE_DIR}/t-follow.sh" $<TARGET_FILE_DIR:casemate> ${who})
		add_test(NAME integration.follow.tty.${who} COMMAND bash
			"${CMAKE_CURRENT_SOURCE_DIR}/t-follow-tty.sh" $<TARGET_FILE_DIR:casemate> ${who})
		set_tests_properties(integration.follow.${who} integration.follow.tty.${who} PROPERTIES
			LABELS integration TIMEOUT 180)
	endforeach()
endif()
