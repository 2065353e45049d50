# casemate-checkout, driven directly; the jail around it is tested elsewhere
if(TARGET casemate-checkout)
	add_test(NAME integration.checkout COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/t-checkout.sh"
		$<TARGET_FILE:casemate-checkout>)
	set_tests_properties(integration.checkout PROPERTIES LABELS integration TIMEOUT 900)
endif()
