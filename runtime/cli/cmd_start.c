/* SPDX-License-Identifier: Apache-2.0 */
/* casemate start, restart: a session made where there is none, started and set up; nothing runs. */
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/request.h"
#include "runtime/cli/run.h"
#include "runtime/cli/sessions.h"

static int check(const struct cm_spec *spec, struct cm_error *err)
{
	if (spec->argv.n == 0 && !spec->is_detached)
		return CM_OK;
	(void)cm_error_set(err, CM_E_INVALID, 0, "'start' runs no command");
	cm_error_hint(err, "start the session, then casemate exec %s -- COMMAND", spec->session_id);
	return CM_E_INVALID;
}

static int stop(struct cm_cli *cli, const struct cm_spec *spec, struct cm_error *err)
{
	struct cm_store store;
	struct cm_store_session s;
	int r = cm_cli_store_open(cli, spec->root, &store, err);

	if (r < 0)
		return r;
	r = cm_store_session_open_as(&store, spec->session_id, CM_STORE_CHANGE,
				     cm_clock_mono_ms() + CM_CLI_LOCK_MS, &s, err);
	if (r == CM_OK) {
		if (cm_store_keeper_alive(&s))
			r = cm_cli_stop_session(cli, &store, &s, err);
		cm_store_session_close(&s);
	}
	cm_store_close(&store);
	return r;
}

static int start(struct cm_cli *cli, int argc, char **argv, bool is_again)
{
	struct cm_error err = CM_ERROR_INIT;
	char **line = NULL;
	int n = 0;
	struct cm_spec spec;
	int status;
	int r = cm_request_session_line(argc, argv, &line, &n, &err);

	if (r == CM_OK)
		r = cm_request_read(cli, n, line, &spec, NULL, &err);
	free(line);
	if (r < 0)
		return cm_cli_fail(cli, &err);
	cm_cli_hide_passwords(argc, argv);
	r = check(&spec, &err);
	if (r == CM_OK && is_again)
		r = stop(cli, &spec, &err);
	status = r < 0 ? cm_cli_run_refused(&spec, cli, &err) : cm_cli_start(&spec, cli);
	cm_spec_clear(&spec);
	return status;
}

int cm_cmd_start(struct cm_cli *cli, int argc, char **argv)
{
	return start(cli, argc - 1, argv + 1, false);
}

int cm_cmd_restart(struct cm_cli *cli, int argc, char **argv)
{
	return start(cli, argc - 1, argv + 1, true);
}
