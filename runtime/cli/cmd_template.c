/* SPDX-License-Identifier: Apache-2.0 */
/* casemate template, of sessions of this host: there is none. */
#include "runtime/cli/commands.h"

int cm_cmd_template(struct cm_cli *cli, int argc, char **argv)
{
	struct cm_error err = CM_ERROR_INIT;

	(void)argc;
	(void)argv;
	(void)cm_error_set(&err, CM_E_UNSUPPORTED, 0,
			   "sessions of this host have no templates yet");
	cm_error_hint(&err, "--provider e2b has; here --setup COMMAND prepares a session, and "
			    "--rootfs DIR takes another root file system");
	return cm_cli_fail(cli, &err);
}
