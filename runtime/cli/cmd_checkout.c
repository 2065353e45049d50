/* SPDX-License-Identifier: Apache-2.0 */
/* casemate checkout: a session with its repository, before anything runs in it, or brought up to date. */
#include <string.h>

#include "runtime/cli/commands.h"
#include "runtime/cli/request.h"
#include "runtime/cli/run.h"

static int refuse(const char *what, const char *hint, struct cm_error *err)
{
	cm_error_set(err, CM_E_INVALID, 0, "%s", what);
	cm_error_hint(err, "%s", hint);
	return CM_E_INVALID;
}

/* What of run's options would have no effect here is an error, so that nobody waits for it. */
static int check(const struct cm_spec *spec, const char *id, struct cm_error *err)
{
	int r = cm_request_check_session(spec, id, err);

	if (r < 0)
		return r;
	if (spec->argv.n > 0)
		return refuse("a checkout runs no command",
			      "give it to 'casemate run --session ID'", err);
	if (spec->setup.n > 0)
		return refuse("a checkout runs no setup",
			      "give --setup to the first 'casemate run --session ID'", err);
	return CM_OK;
}

/* The one option that only this command has: found, and taken out of the line. */
static bool take_unshallow(int *argc, char **argv)
{
	int n = 0;

	for (int i = 0; i < *argc; i++) {
		if (strcmp(argv[i], "--unshallow") != 0)
			argv[n++] = argv[i];
	}
	if (n == *argc)
		return false;
	argv[n] = NULL;
	*argc = n;
	return true;
}

int cm_cmd_checkout(struct cm_cli *cli, int argc, char **argv)
{
	struct cm_error err = CM_ERROR_INIT;
	bool is_unshallow = take_unshallow(&argc, argv);
	const char *id = NULL;
	struct cm_spec spec;
	int status;

	cli->config.is_of_session = true;
	if (cm_request_read_session(cli, argc - 1, argv + 1, &spec, &id, &err) != CM_OK)
		return cm_cli_fail(cli, &err);
	status = check(&spec, id, &err) == CM_OK ? cm_cli_checkout(&spec, is_unshallow, cli)
						 : cm_cli_run_refused(&spec, cli, &err);
	cm_spec_clear(&spec);
	return status;
}
