# the HTTP layer; the server is tests/helpers/http_server.py
cm_unit_test(http_text DEPS http)
foreach(name http http_again http_stream http_tls)
	cm_unit_test(${name} DEPS http json)
	target_compile_definitions(test_${name} PRIVATE
		CM_TEST_HELPERS="${PROJECT_SOURCE_DIR}/tests/helpers")
	cm_slow_unit_tests(180 ${name})
endforeach()
