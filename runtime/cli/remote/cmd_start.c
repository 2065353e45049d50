/* SPDX-License-Identifier: Apache-2.0 */
/* casemate create, start, restart of sessions that are elsewhere. */
#include "runtime/cli/commands.h"
#include "runtime/cli/remote/away.h"
#include "runtime/cli/remote/away_asked.h"
#include "runtime/cli/remote/ending.h"
#include "runtime/cli/request.h"
#include "runtime/cli/run.h"

static int check(const struct cm_spec *spec, const char *name, struct cm_error *err)
{
	if (spec->argv.n == 0 && !spec->is_detached)
		return CM_OK;
	(void)cm_error_set(err, CM_E_INVALID, 0, "'%s' runs no command", name);
	cm_error_hint(err, "casemate exec %s -- COMMAND does, afterwards", spec->session_id);
	return CM_E_INVALID;
}

/* As of a session of this host, nothing that runs in it outlives that. */
static int stop(struct cm_cli *cli, const char *id, struct cm_error *err)
{
	struct cm_away away;
	int r = cm_away_attach(&away, cli, id, err);

	if (r == CM_OK) {
		cm_away_tear_down(&away);
		r = cm_away_kill_commands(&away, err);
	}
	if (r == CM_OK)
		r = cm_session_stop(away.session, &away.call, err);
	cm_away_close(&away);
	return r;
}

static int with_spec(struct cm_cli *cli, int argc, char **argv,
		     int (*act)(const struct cm_spec *spec, struct cm_cli *cli), bool stops)
{
	const char *name = argv[0];
	struct cm_error err = CM_ERROR_INIT;
	const char *id = NULL;
	struct cm_spec spec;
	int status;
	int r = cm_request_read_session(cli, argc - 1, argv + 1, &spec, &id, &err);

	if (r < 0)
		return cm_cli_fail(cli, &err);
	r = cm_request_check_session(&spec, id, &err);
	if (r == CM_OK)
		r = check(&spec, name, &err);
	if (r == CM_OK)
		r = cm_away_asked_check(&spec, &err);
	if (r == CM_OK && stops)
		r = stop(cli, id, &err);
	status = r < 0 ? cm_cli_run_refused(&spec, cli, &err) : act(&spec, cli);
	cm_spec_clear(&spec);
	return status;
}

int cm_cmd_create(struct cm_cli *cli, int argc, char **argv)
{
	return with_spec(cli, argc, argv, cm_cli_create, false);
}

int cm_cmd_start(struct cm_cli *cli, int argc, char **argv)
{
	return with_spec(cli, argc, argv, cm_cli_start, false);
}

int cm_cmd_restart(struct cm_cli *cli, int argc, char **argv)
{
	return with_spec(cli, argc, argv, cm_cli_start, true);
}
