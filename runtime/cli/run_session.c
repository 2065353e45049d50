/* SPDX-License-Identifier: Apache-2.0 */
/* What sessions are asked for beside a command: to be made, brought up to date, torn down. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/cli/run.h"
#include "runtime/cli/run_internal.h"
#include "runtime/spec/keys.h"

int cm_cli_create(const struct cm_spec *spec, struct cm_cli *cli)
{
	struct run *run = cm_run_begin(RUN_START, spec, cli);
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_run_prepare_caller(run, &err);

	run->local.keeps_env = true;
	if (r == CM_OK)
		r = cm_run_prepare_session(run, &err);
	if (r == CM_OK)
		cm_local_keep(&run->local);
	return cm_run_finish(run, r, &err);
}

/* What a file says is for sessions yet to be made. */
static struct cm_local_update asked_update(const struct cm_spec *spec, bool is_unshallow)
{
	return (struct cm_local_update){
		.ref = cm_key_is_asked(CM_KEY_REF, spec) ? spec->ref : NULL,
		.pr = cm_key_is_asked(CM_KEY_PR, spec) ? spec->pr : 0,
		.branch = cm_key_is_asked(CM_KEY_BRANCH, spec) ? spec->branch : NULL,
		.base = cm_key_is_asked(CM_KEY_FROM, spec) ? spec->base : NULL,
		.is_unshallow = is_unshallow,
	};
}

int cm_cli_checkout(const struct cm_spec *spec, bool is_unshallow, struct cm_cli *cli)
{
	const struct cm_local_update update = asked_update(spec, is_unshallow);
	struct run *run = cm_run_begin(RUN_COMMAND, spec, cli);
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *path = NULL;
	int r = cm_run_prepare_caller(run, &err);

	run->local.update = &update;
	if (r == CM_OK)
		r = cm_run_prepare_files(run, &err);
	if (r == CM_OK) {
		cm_local_keep(&run->local);
		run->result.is_held = run->local.is_held;
		path = cm_asprintf("%s\n", run->local.session.record.checkout);
		if (!path)
			r = cm_error_set(&err, CM_E_NOMEM, 0, "no memory for the path");
	}
	r = cm_run_finish(run, r, &err);
	return r == 0 && path && !spec->is_json ? cm_cli_print(cli, path, strlen(path)) : r;
}

/* It has not to be started for that: who stopped it meanwhile has torn it down. */
static int tear_down(struct run *run, struct cm_error *err)
{
	int r = cm_run_prepare_caller(run, err);

	if (r == CM_OK)
		r = cm_run_prepare_files(run, err);
	if (r < 0 || !run->local.is_running)
		return r;
	r = cm_local_start(&run->local, err);
	/* whose keeper died in that moment is started anew */
	if (r == CM_OK)
		r = cm_run_wait_up(run, err);
	cm_local_unlock(&run->local);
	run->setup = (struct cm_setup){
		.cli = run->cli, .local = &run->local, .relay = &run->relay, .log.fd = -1
	};
	cm_redact_init(&run->setup.redact_out, &run->cli->config.setup_secrets);
	cm_redact_init(&run->setup.redact_err, &run->cli->config.setup_secrets);
	if (r == CM_OK)
		r = cm_cli_teardown_run(&run->setup, err);
	cm_redact_clear(&run->setup.redact_out);
	cm_redact_clear(&run->setup.redact_err);
	return r;
}

int cm_cli_teardown(const struct cm_spec *spec, struct cm_cli *cli)
{
	struct run *run = cm_run_begin(RUN_COMMAND, spec, cli);
	struct cm_error err = CM_ERROR_INIT;
	sigset_t before;
	int sig;
	int r;

	(void)sigprocmask(SIG_BLOCK, NULL, &before);
	r = tear_down(run, &err);
	sig = r < 0 ? cm_run_signal(run, &err) : 0;
	cm_local_close(&run->local);
	if (run->end_fd > 0)
		(void)close(run->end_fd);
	cm_relay_close(&run->relay);
	if (r < 0)
		cm_cli_note(cli, "teardown of session '%s' came to no end: %s", spec->session_id,
			    err.msg);
	/* what comes next waits for locks and keepers, and can be interrupted */
	cm_relay_restore_signals(&before);
	return sig != 0 ? 128 + sig : 0;
}
