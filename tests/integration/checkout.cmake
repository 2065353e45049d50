# casemate-checkout, driven directly; the jail around it is tested elsewhere
if(TARGET casemate-checkout)
	add_test(NAME integration.checkout COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/t-checkout.sh"
		$<TARGET_FILE:casemate-checkout>)
	set_tests_properties(integration.checkout PROPERTIES LABELS integration TIMEOUT 900)
	add_test(NAME integration.checkout-modules COMMAND bash
		"${CMAKE_CURRENT_SOURCE_DIR}/t-checkout-modules.sh" $<TARGET_FILE:casemate-checkout>)
	set_tests_properties(integration.checkout-modules PROPERTIES LABELS integration TIMEOUT 120)
	add_test(NAME integration.checkout-update COMMAND bash
		"${CMAKE_CURRENT_SOURCE_DIR}/t-checkout-update.sh" $<TARGET_FILE:casemate-checkout>)
	set_tests_properties(integration.checkout-update PROPERTIES LABELS integration TIMEOUT 600)
endif()
