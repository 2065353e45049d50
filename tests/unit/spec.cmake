cm_unit_test(spec_keys DEPS spec)
cm_unit_test(spec_flags DEPS spec)
cm_unit_test(spec_json DEPS spec)
target_compile_definitions(test_spec_keys PRIVATE
	CM_SCHEMA_FILE="${PROJECT_SOURCE_DIR}/runtime/share/config.schema.json")
cm_unit_test(spec_merge DEPS spec)
cm_unit_test(spec_config DEPS spec)
cm_unit_test(spec_repo DEPS spec)
cm_unit_test(spec_ssh DEPS spec)
# with stand-ins for the commands that need a jail
cm_unit_test(spec_cli DEPS cli_front)
cm_unit_test(selection DEPS selection)
cm_unit_test(provider DEPS provider)
target_sources(test_spec_cli PRIVATE
	${PROJECT_SOURCE_DIR}/runtime/cli/commands.c
	${PROJECT_SOURCE_DIR}/runtime/cli/cmd_checkout.c ${PROJECT_SOURCE_DIR}/runtime/cli/cmd_exec.c
	${PROJECT_SOURCE_DIR}/runtime/cli/cmd_run.c)
target_compile_definitions(test_spec_cli PRIVATE CM_TEST_VERSION="${PROJECT_VERSION}")
