# casemate-remote: the command line for sessions of other providers. Dynamic, for libcurl's sake.
add_executable(casemate-remote main.c commands.c cmd_exec.c cmd_file.c cmd_run.c
	remote/away.c remote/away_asked.c remote/away_command.c remote/away_relay.c remote/away_run.c
	remote/cmd_absent.c remote/cmd_commands.c remote/cmd_logs.c remote/cmd_ps.c
	remote/cmd_sessions.c
	remote/cmd_start.c remote/cmd_templates.c remote/cmd_trees.c remote/ending.c remote/exec_follow.c
	remote/exec_shown.c remote/file_away.c remote/recall.c
	remote/session_shown.c remote/unsaved.c
	${PROJECT_SOURCE_DIR}/providers/registry_remote.c)
target_link_libraries(casemate-remote PRIVATE cm_cli_back cm_cli_front cm_e2b cm_platform
	cm_remote_shared cm_http cm_provider cm_local cm_spec cm_json cm_base)
set_target_properties(casemate-remote PROPERTIES
	RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
install(TARGETS casemate-remote RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/casemate)
