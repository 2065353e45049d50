# every table there is
cm_unit_test(provider_tables DEPS skeleton local_ops e2b platform remote_shared http provider selection)
target_sources(test_provider_tables PRIVATE ${PROJECT_SOURCE_DIR}/providers/registry_all.c)
