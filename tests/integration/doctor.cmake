# casemate doctor on this host, and in surroundings that forbid a jail
if(TARGET casemate AND TARGET casemate-keeper)
	add_test(NAME integration.doctor COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/t-doctor.sh"
		$<TARGET_FILE:casemate> $<TARGET_FILE:casemate-keeper>)
	set_tests_properties(integration.doctor PROPERTIES LABELS integration TIMEOUT 300)
endif()
