# What providers of remote sessions share; in the dynamic flavour alone, as libarchive and they are.
add_library(cm_remote_shared STATIC
	background.c background_exec.c background_list.c background_scripts.c prepare.c prepare_check.c
	prepare_env.c prepare_error.c prepare_git.c prepare_record.c prepare_setup.c prepare_teardown.c record.c shell.c shell_end.c
	shell_files.c shell_list.c shell_names.c shell_read.c shell_watch.c shell_watch_poll.c
	shell_write.c sorted.c tree_get.c tree_put.c tree_sink.c tree_walk.c)
target_link_libraries(cm_remote_shared PUBLIC cm_provider cm_proto cm_store cm_spec cm_json cm_base
	PRIVATE PkgConfig::LIBARCHIVE)
