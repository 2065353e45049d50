/* SPDX-License-Identifier: Apache-2.0 */
/* casemate create, start, restart: a session made where there is none; no command runs. */
#include "providers/local/local.h"
#include "runtime/base/clock.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/request.h"
#include "runtime/cli/run.h"
#include "runtime/cli/sessions.h"

enum what {
	CREATE,
	START,
	RESTART,
};

static int check(const struct cm_spec *spec, const char *name, struct cm_error *err)
{
	if (spec->argv.n == 0 && !spec->is_detached)
		return CM_OK;
	(void)cm_error_set(err, CM_E_INVALID, 0, "'%s' runs no command", name);
	cm_error_hint(err, "casemate exec %s -- COMMAND does, afterwards", spec->session_id);
	return CM_E_INVALID;
}

/* What the start would refuse is refused while the session still runs. */
static int check_agrees(struct cm_cli *cli, const struct cm_spec *spec, struct cm_error *err)
{
	const struct cm_local_events silent = { NULL };
	struct cm_error why = CM_ERROR_INIT;
	struct cm_local l;
	int r;

	cm_local_init(&l);
	l.must_exist = true;
	r = cm_local_open(&l, spec, &cli->config, &silent, &why);
	if (r == CM_OK)
		r = cm_local_session(&l, &why);
	cm_local_close(&l);
	if (r != CM_E_EXISTS)
		return CM_OK;
	*err = why;
	return r;
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
			r = cm_cli_stop_session(cli, &s, err);
		cm_store_session_close(&s);
	}
	cm_store_close(&store);
	return r;
}

static int carry_out(struct cm_cli *cli, const struct cm_spec *spec, const char *name,
		     enum what what)
{
	struct cm_error err = CM_ERROR_INIT;
	int r = check(spec, name, &err);

	if (r == CM_OK && what == RESTART)
		r = check_agrees(cli, spec, &err);
	if (r == CM_OK && what == RESTART)
		r = stop(cli, spec, &err);
	if (r < 0)
		return cm_cli_run_refused(spec, cli, &err);
	return what == CREATE ? cm_cli_create(spec, cli) : cm_cli_start(spec, cli);
}

static int start(struct cm_cli *cli, int argc, char **argv, enum what what)
{
	const char *name = argv[-1];
	struct cm_error err = CM_ERROR_INIT;
	const char *id = NULL;
	struct cm_spec spec;
	int status;
	int r = cm_request_read_session(cli, argc, argv, &spec, &id, &err);

	if (r != CM_OK)
		return cm_cli_fail(cli, &err);
	r = cm_request_check_session(&spec, id, &err);
	status = r < 0 ? cm_cli_run_refused(&spec, cli, &err) : carry_out(cli, &spec, name, what);
	cm_spec_clear(&spec);
	return status;
}

int cm_cmd_create(struct cm_cli *cli, int argc, char **argv)
{
	return start(cli, argc - 1, argv + 1, CREATE);
}

int cm_cmd_start(struct cm_cli *cli, int argc, char **argv)
{
	return start(cli, argc - 1, argv + 1, START);
}

int cm_cmd_restart(struct cm_cli *cli, int argc, char **argv)
{
	return start(cli, argc - 1, argv + 1, RESTART);
}
