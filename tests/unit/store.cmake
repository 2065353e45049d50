# Sessions on disk.
foreach(area events fault flat interleave journal kill mirror paths record session setup_log skeleton skeleton_fault skeleton_kill
	slots status)
	cm_unit_test(store_${area} DEPS store)
endforeach()
# hundreds of processes, each with sanitizers' start where those are in
cm_slow_unit_tests(240 store_interleave store_kill store_skeleton_kill)

# The commands on them; stopping one is a stand-in's business.
cm_unit_test(store_commands DEPS host store cli_front)
target_sources(test_store_commands PRIVATE
	${PROJECT_SOURCE_DIR}/providers/local/prune.c
	${PROJECT_SOURCE_DIR}/runtime/cli/cmd_df.c
	${PROJECT_SOURCE_DIR}/runtime/cli/cmd_inspect.c
	${PROJECT_SOURCE_DIR}/runtime/cli/cmd_ls.c
	${PROJECT_SOURCE_DIR}/runtime/cli/cmd_prune.c
	${PROJECT_SOURCE_DIR}/runtime/cli/cmd_rm.c
	${PROJECT_SOURCE_DIR}/runtime/cli/cmd_stop.c
	${PROJECT_SOURCE_DIR}/runtime/cli/session_format.c
	${PROJECT_SOURCE_DIR}/runtime/cli/session_view.c
	${PROJECT_SOURCE_DIR}/runtime/cli/session_info.c
	${PROJECT_SOURCE_DIR}/runtime/cli/session_use.c
	${PROJECT_SOURCE_DIR}/runtime/cli/sessions.c
	${PROJECT_SOURCE_DIR}/runtime/cli/shown_time.c)

cm_unit_test(redact DEPS base)
target_sources(test_redact PRIVATE ${PROJECT_SOURCE_DIR}/runtime/cli/redact.c)
cm_unit_test(reason DEPS base)
target_sources(test_reason PRIVATE ${PROJECT_SOURCE_DIR}/runtime/cli/reason.c)
cm_unit_test(shown_text DEPS base)
target_sources(test_shown_text PRIVATE ${PROJECT_SOURCE_DIR}/runtime/cli/shown_text.c)
cm_unit_test(signal_names DEPS base)
target_sources(test_signal_names PRIVATE ${PROJECT_SOURCE_DIR}/runtime/cli/signal_names.c)
