cm_unit_test(spec_keys DEPS spec)
cm_unit_test(spec_flags DEPS spec)
cm_unit_test(spec_json DEPS spec)
target_compile_definitions(test_spec_keys PRIVATE
	CM_SCHEMA_FILE="${PROJECT_SOURCE_DIR}/runtime/share/config.schema.json")
