# casemate logs and events, with journals of a program that stands in for a keeper.
if(TARGET casemate)
	add_executable(journal_writer "${PROJECT_SOURCE_DIR}/tests/helpers/journal_writer.c")
	target_link_libraries(journal_writer PRIVATE cm_store_journal)
	foreach(who root plain)
		add_test(NAME integration.logs.${who} COMMAND bash
			"${CMAKE_CURRENT_SOURCE_DIR}/t-logs.sh" $<TARGET_FILE_DIR:casemate> ${who}
			$<TARGET_FILE:journal_writer>)
		set_tests_properties(integration.logs.${who} PROPERTIES LABELS integration
			TIMEOUT 180)
	endforeach()
endif()
