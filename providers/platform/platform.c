/* SPDX-License-Identifier: Apache-2.0 */
/* The platform's table. */
#include "providers/platform/platform.h"

#include "providers/platform/platform_internal.h"
#include "providers/platform/sessions.h"
#include "providers/remote/background.h"
#include "providers/remote/shell_files.h"

/*
 * What is not here: the platform's isolation lets a sandbox reach all of the internet and nothing of the
 * provider's own network, so that NETWORK_INTERNET is had, and NETWORK_NONE is not. Its protocols have no
 * standard input and no terminal. The sizes of a sandbox are its template's. Labels are in the record that
 * this host has of a session, as is what finds the session at all.
 *
 * SIGNAL and EXEC_TIMEOUT hold on each way to a command: see exec_wrap.c for those that have no signal of
 * their own. On the last of them (a proxy without leases) a command has ended when its start is told, so
 * that what can be done until then is to give the call up, which ends the command.
 */
const struct cm_provider_ops cm_platform_ops = {
	.abi = CM_PROVIDER_ABI,
	.name = "platform",
	.caps = CM_CAP_NETWORK_INTERNET | CM_CAP_EXEC_TIMEOUT | CM_CAP_SIGNAL | CM_CAP_DETACH |
		CM_CAP_FILES | CM_CAP_WATCH | CM_CAP_LABELS | CM_CAP_CHECKOUT | CM_CAP_TEARDOWN |
		CM_CAP_SNAPSHOT | CM_CAP_CLONE | CM_CAP_TEMPLATE,
	.open = cm_platform_open,
	.close = cm_platform_close,
	.probe = cm_platform_probe,
	.session_create = cm_platform_create,
	.session_attach = cm_platform_attach,
	.session_start = cm_platform_start,
	.session_stop = cm_platform_stop,
	.session_destroy = cm_platform_destroy,
	.session_release = cm_platform_release,
	.session_info = cm_platform_info,
	.session_list = cm_platform_list,
	.exec_start = cm_platform_exec_start,
	.exec_attach = cm_background_attach,
	.exec_list = cm_background_list,
	.file_read = cm_shell_read,
	.file_write = cm_shell_write,
	.file_list = cm_shell_list,
	.file_stat = cm_shell_stat,
	.file_mkdir = cm_shell_mkdir,
	.file_move = cm_shell_move,
	.file_remove = cm_shell_remove,
	.file_watch = cm_shell_watch,
	.snapshot = cm_platform_snapshot,
	.clone = cm_platform_clone,
	.template_build = cm_platform_template_build,
	.template_list = cm_platform_template_list,
	.template_remove = cm_platform_template_remove,
};
