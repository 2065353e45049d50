/* SPDX-License-Identifier: Apache-2.0 */
/* casemate run: from the command line and the configuration to a spec. */
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/text.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/request.h"
#include "runtime/cli/run.h"

/* A program that asked for a result learns from it, too, that there will be no run. */
static int refuse(struct cm_cli *cli, int argc, char **argv, const struct cm_error *err)
{
	struct cm_spec outputs;
	int status;

	cm_request_outputs(cli, argc, argv, &outputs);
	status = cm_cli_run_refused(&outputs, cli, err);
	cm_spec_clear(&outputs);
	return status;
}

/* Of a named session the jail may be there already. What a command has after its name counts, too:
 * then only the time is lost that is saved otherwise. */
static bool names_session(int argc, char **argv)
{
	for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (cm_text_has_prefix(argv[i], "--session"))
			return true;
	}
	return false;
}

static int check(const struct cm_spec *spec, struct cm_error *err)
{
	if (spec->argv.n == 0) {
		cm_error_set(err, CM_E_INVALID, 0, "no command given");
		cm_error_hint(err, "write casemate run [OPTION...] -- COMMAND [ARG...], "
				   "or -c TEXT");
		return CM_E_INVALID;
	}
	if (spec->is_detached && !spec->session_id) {
		cm_error_set(err, CM_E_INVALID, 0, "--detach needs a session that stays");
		cm_error_hint(err, "casemate run --session ID --detach -- COMMAND");
		return CM_E_INVALID;
	}
	return CM_OK;
}

int cm_cmd_run(struct cm_cli *cli, int argc, char **argv)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_spec spec;
	int status;

	if (!names_session(argc - 1, argv + 1))
		cm_cli_run_begin();
	if (cm_request_read(cli, argc - 1, argv + 1, &spec, NULL, &err) != CM_OK)
		return refuse(cli, argc - 1, argv + 1, &err);
	cm_cli_hide_passwords(argc - 1, argv + 1);
	status = check(&spec, &err) == CM_OK ? cm_cli_run(&spec, cli)
					     : cm_cli_run_refused(&spec, cli, &err);
	cm_spec_clear(&spec);
	return status;
}
