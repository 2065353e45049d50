# casemate doctor: texts from facts
cm_unit_test(doctor DEPS cli_back)
cm_unit_test(cli_progress DEPS cli_back)
cm_unit_test(exec_target DEPS cli_back)
target_sources(test_exec_target PRIVATE ${PROJECT_SOURCE_DIR}/runtime/cli/local_command.c)
