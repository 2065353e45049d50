/* SPDX-License-Identifier: Apache-2.0 */
/* casemate-remote's half of the choice between providers. */
#include "providers/selection.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/remote/away.h"

static const char *provider_name = "";

const char *cm_away_provider_name(void)
{
	return provider_name;
}

int cm_cli_run_command(struct cm_cli *cli, const struct cm_command *command,
		       const struct cm_selection *selection, int argc, char **argv)
{
	struct cm_error err = CM_ERROR_INIT;

	if (selection->kind == CM_PROVIDER_LOCAL) {
		cm_error_set(&err, CM_E_INVALID, 0,
			     "sessions of this host are not casemate-remote's");
		cm_error_hint(&err, "call casemate, which calls this program where it has to");
		return cm_cli_fail(cli, &err);
	}
	provider_name = cm_provider_kind_name(selection->kind);
	return command->run(cli, argc, argv);
}
