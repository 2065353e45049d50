# The commands that need a jail or the store.
cm_component(cli_back SOURCES
	attach_output.c cmd_attach.c cmd_df.c cmd_events.c cmd_inspect.c cmd_kill.c cmd_logs.c
	cmd_ls.c cmd_prune.c cmd_ps.c cmd_rm.c cmd_setup.c cmd_stats.c cmd_stdin.c cmd_stop.c cmd_wait.c
	copy_line.c copy_stream.c exec_names.c exec_target.c exec_view.c file_access.c file_line.c file_place.c file_session.c
	file_show.c file_sink.c file_source.c
	live_screen.c not_found.c outcome.c outlet.c progress.c reason.c
	redact.c relay.c relay_input.c relay_open.c relay_signals.c result.c run.c run_session.c run_tell.c
	session_format.c session_info.c session_use.c session_view.c sessions.c setup.c shown_text.c shown_time.c
	signal_names.c terminal.c tty_end.c
	DEPS cli_front local provider)
include(doctor.cmake OPTIONAL)
