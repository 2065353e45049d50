/* SPDX-License-Identifier: Apache-2.0 */
/* casemate exec, shell: a command in a session that exists. */
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/request.h"
#include "runtime/cli/run.h"

const enum cm_key cm_exec_keys[] = {
	CM_KEY_ENV,	CM_KEY_ENV_FILE, CM_KEY_PASS_ENV, CM_KEY_WORKDIR,      CM_KEY_TIMEOUT,
	CM_KEY_OUTPUT,	CM_KEY_USER,	 CM_KEY_TTY,	  CM_KEY_INTERACTIVE,  CM_KEY_DETACH,
	CM_KEY_COMMAND, CM_KEY_JSON,	 CM_KEY_RESULT,	  CM_KEY_FAILURE_EXIT, CM_KEY_QUIET,
	CM_KEY_VERBOSE, CM_KEY_ROOT,	 CM_KEY_PROVIDER, CM_KEY_COUNT,
};

const struct cm_key_help cm_exec_key_helps[] = {
	{ CM_KEY_TTY, "give the command a terminal (default: none; 'shell' gives one)" },
	{ CM_KEY_INTERACTIVE, "relay standard input; a terminal (-t) is an input, too" },
	{ CM_KEY_USER, "user: not as root in a session of --user root (default: who the "
		       "session's commands are)" },
	{ CM_KEY_COUNT, NULL },
};

/* Both want to be typed at: what is better than sh is taken where it is. */
static const char *const shell_argv[] = {
	"/bin/sh",
	"-c",
	"for s in \"$SHELL\" bash sh; do command -v \"$s\" >/dev/null 2>&1 && exec \"$s\" -i; done",
};

static int refuse(struct cm_cli *cli, int argc, char **argv, const struct cm_error *err)
{
	struct cm_spec outputs;
	int status;

	cm_request_outputs(cli, argc, argv, &outputs);
	status = cm_cli_run_refused(&outputs, cli, err);
	cm_spec_clear(&outputs);
	return status;
}

/* The session's user is root or not; a command of it may be less. */
static void take_user(struct cm_spec *spec)
{
	if (!cm_key_is_asked(CM_KEY_USER, spec) || spec->user != CM_USER_USER)
		return;
	spec->asked &= ~(UINT64_C(1) << CM_KEY_USER);
	spec->is_as_user = true;
}

static int check_command(const struct cm_spec *spec, struct cm_error *err)
{
	if (spec->argv.n > 0)
		return CM_OK;
	(void)cm_error_set(err, CM_E_INVALID, 0, "no command given");
	cm_error_hint(err, "write casemate exec ID [OPTION...] -- COMMAND [ARG...], or -c TEXT; "
			   "'casemate shell ID' for a shell");
	return CM_E_INVALID;
}

static int make_shell(struct cm_spec *spec, struct cm_error *err)
{
	if (spec->argv.n > 0 || spec->is_detached) {
		(void)cm_error_set(err, CM_E_INVALID, 0, "a shell takes no command");
		cm_error_hint(err, "casemate exec %s -- COMMAND", spec->session_id);
		return CM_E_INVALID;
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(shell_argv); i++) {
		if (cm_strv_add(&spec->argv, shell_argv[i]) < 0)
			return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the command line");
	}
	if (spec->tty == CM_AUTO)
		spec->tty = CM_YES;
	return CM_OK;
}

static int execute(struct cm_cli *cli, int argc, char **argv, bool is_shell)
{
	struct cm_error err = CM_ERROR_INIT;
	const char *id = NULL;
	struct cm_spec spec;
	int status;
	int r = cm_request_read_session(cli, argc, argv, &spec, &id, &err);

	if (r != CM_OK)
		return refuse(cli, argc, argv, &err);
	r = cm_request_check_session(&spec, id, &err);
	if (r == CM_OK)
		r = cm_request_check_keys(&spec, cm_exec_keys, &err);
	take_user(&spec);
	if (r == CM_OK)
		r = is_shell ? make_shell(&spec, &err) : check_command(&spec, &err);
	status = r < 0 ? cm_cli_run_refused(&spec, cli, &err) : cm_cli_exec(&spec, cli);
	cm_spec_clear(&spec);
	return status;
}

int cm_cmd_exec(struct cm_cli *cli, int argc, char **argv)
{
	return execute(cli, argc - 1, argv + 1, false);
}

int cm_cmd_shell(struct cm_cli *cli, int argc, char **argv)
{
	return execute(cli, argc - 1, argv + 1, true);
}
