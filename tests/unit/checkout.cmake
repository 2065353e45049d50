# the parts of casemate-checkout that need no libgit2
if(TARGET casemate-checkout)
	cm_unit_test(checkout_credential DEPS base)
	target_sources(test_checkout_credential PRIVATE
		"${PROJECT_SOURCE_DIR}/isolation/checkout/credential.c")
	cm_unit_test(checkout_names DEPS base)
	target_sources(test_checkout_names PRIVATE
		"${PROJECT_SOURCE_DIR}/isolation/checkout/names.c")
	cm_unit_test(checkout_peers DEPS base)
	target_sources(test_checkout_peers PRIVATE
		"${PROJECT_SOURCE_DIR}/isolation/checkout/peers.c")
	cm_unit_test(checkout_ssh DEPS json base)
	foreach(part answer known log)
		target_sources(test_checkout_ssh PRIVATE
			"${PROJECT_SOURCE_DIR}/isolation/checkout/ssh_${part}.c")
	endforeach()
endif()
