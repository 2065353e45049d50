/* SPDX-License-Identifier: Apache-2.0 */
/* run, exec, start, create for sessions that are elsewhere: from a spec to a command's end. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "providers/remote/prepare.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"
#include "runtime/cli/relay.h"
#include "runtime/cli/remote/away.h"
#include "runtime/cli/remote/away_asked.h"
#include "runtime/cli/result.h"
#include "runtime/cli/run.h"
#include "runtime/cli/terminal.h"

#define EXIT_NOT_FOUND 127

enum kind {
	KIND_RUN = 1,
	KIND_EXEC,
	KIND_START,
	KIND_CREATE,
};

struct away_run {
	enum kind kind;
	struct cm_cli *cli;
	const struct cm_spec *spec;
	struct cm_away away;
	struct cm_away_relay relay;
	struct cm_result result;
	struct cm_result_target target;
	bool has_target;
	/* it was there, and did not run */
	bool was_stopped;
	/* the session ends with this run */
	bool is_temporary;
	/* where commands start, if that is not the provider's own place */
	char *cwd;
	char name[CM_EXEC_NAME_SIZE];
};

static void on_phase(void *data, const char *name, uint64_t duration_us)
{
	struct away_run *run = data;
	struct cm_result_phase *phase = &run->result.phases[run->result.n_phases];
	char took[32];

	if (run->result.n_phases < CM_RESULT_PHASES_MAX) {
		(void)snprintf(phase->name, sizeof(phase->name), "%s", name);
		phase->duration_us = duration_us;
		run->result.n_phases++;
	}
	/* then comes setup, if anything does */
	if (strcmp(name, "checkout") == 0)
		run->result.phase = "setup";
	/* what may take long is always told */
	if (!run->spec->is_verbose && !cm_text_has_prefix(name, "checkout") &&
	    !cm_text_has_prefix(name, "setup"))
		return;
	cm_format_duration(duration_us / 1000, took, sizeof(took));
	cm_cli_note(run->cli, "%s: %s", name, took);
}

/* What setup prints is no output of the command's. */
static void on_setup_output(void *data, const void *bytes, size_t len)
{
	const struct away_run *run = data;

	if (!run->cli->is_quiet)
		(void)cm_write_all(STDERR_FILENO, bytes, len);
}

/* --- the caller's end ------------------------------------------------------------------------ */

static bool has_cap(const struct away_run *run, uint32_t cap)
{
	return (run->away.provider->caps & cap) != 0;
}

static bool wants_tty(const struct away_run *run)
{
	const struct cm_spec *spec = run->spec;

	if (spec->tty != CM_AUTO)
		return spec->tty == CM_YES;
	return run->kind == KIND_RUN && !spec->is_json && cm_terminal_is_there() &&
	       has_cap(run, CM_CAP_TTY) && has_cap(run, CM_CAP_STDIN);
}

static bool wants_input(const struct away_run *run)
{
	const struct cm_spec *spec = run->spec;

	if (!cm_relay_has_stdin())
		return false;
	if (spec->is_interactive || wants_tty(run))
		return true;
	if (run->kind != KIND_RUN)
		return false;
	if (!has_cap(run, CM_CAP_STDIN) && !isatty(STDIN_FILENO))
		cm_cli_note(run->cli,
			    "provider '%s' passes no standard input on: the command has none",
			    cm_away_provider_name());
	return has_cap(run, CM_CAP_STDIN);
}

/* --- the command ----------------------------------------------------------------------------- */

/* A relative one is below the checkout, or where the session's commands start. NULL: there. */
static int find_cwd(const struct away_run *run, char **ret, struct cm_error *err)
{
	const char *asked = run->spec->workdir;

	if (!asked && !run->cwd)
		return CM_OK;
	if (asked && asked[0] != '/' && run->cwd)
		*ret = cm_asprintf("%s/%s", run->cwd, asked);
	else
		*ret = cm_strdup(asked ? asked : run->cwd);
	return *ret ? CM_OK : cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

static int start_command(struct away_run *run, struct cm_exec **ret, struct cm_error *err)
{
	const struct cm_spec *spec = run->spec;
	const struct cm_limit *timeout = &spec->limits.timeout;
	CM_AUTO_STRV struct cm_strv env = { 0 };
	struct cm_exec_request request = {
		.argv = spec->argv.v,
		.wants_tty = wants_tty(run),
		.is_detached = spec->is_detached,
		.is_root = spec->user == CM_USER_ROOT && !spec->is_as_user,
		.grace_ms = CM_CLI_GRACE_MS,
	};
	CM_AUTO_FREE char *cwd = NULL;
	int r = cm_away_asked_env(spec, &run->cli->config.env, &env, err);

	if (r == CM_OK)
		r = find_cwd(run, &cwd, err);
	if (r < 0)
		return r;
	request.env = env.v;
	request.cwd = cwd;
	if (timeout->is_set && timeout->value != CM_UNLIMITED &&
	    (!timeout->is_optional || has_cap(run, CM_CAP_EXEC_TIMEOUT)))
		request.timeout_ms = timeout->value;
	request.has_input = spec->is_detached ? spec->is_interactive : wants_input(run);
	if (request.wants_tty)
		cm_terminal_size(&request.rows, &request.cols);
	run->relay.wants_tty = request.wants_tty;
	run->relay.has_input = request.has_input;
	return cm_exec_start(run->away.session, &request, &run->away.call, ret, err);
}

static int wait_started(struct away_run *run, struct cm_exec *exec, struct cm_error *err)
{
	struct cm_exec_event event = { 0 };
	int r = cm_exec_next(exec, NULL, &run->away.call, &event, err);

	if (r < 0)
		return r;
	if (event.kind == CM_EXEC_HAS_ENDED) {
		run->relay.end = event.end;
		return 1;
	}
	run->result.is_detached = true;
	(void)snprintf(run->name, sizeof(run->name), "%s", exec->name);
	run->result.exec_name = run->name;
	return CM_OK;
}

static enum cm_end_kind kind_of(const struct cm_exec_end *end)
{
	switch (end->kind) {
	case CM_EXEC_EXITED:
		return CM_END_EXIT;
	case CM_EXEC_SIGNALLED:
		return CM_END_SIGNAL;
	case CM_EXEC_TIMED_OUT:
		return CM_END_TIMEOUT;
	case CM_EXEC_OUT_OF_MEMORY:
		return CM_END_MEMORY;
	case CM_EXEC_NOT_EXECUTED:
		return CM_END_NOT_EXECUTED;
	case CM_EXEC_KILLED:
	case CM_EXEC_LOST:
		break;
	}
	return CM_END_KILLED;
}

static void tell_limit(struct away_run *run)
{
	struct cm_error *err = &run->result.error;
	char max[32];

	cm_format_size(run->relay.output_max, max, sizeof(max));
	(void)cm_error_set(err, CM_E_LIMIT, 0, "command ended by the output limit (%s)", max);
	cm_error_hint(err, "give it more with --output SIZE");
	cm_cli_print_error(run->cli, err);
}

static void tell_lost_output(struct away_run *run)
{
	struct cm_error *err = &run->result.error;

	(void)cm_error_set(err, CM_E_SYS, run->relay.lost_errno, "cannot write to standard %s",
			   run->relay.lost_fd == STDERR_FILENO ? "error" : "output");
	cm_error_hint(err, "the command has run; its exit status is not this one");
	cm_cli_print_error(run->cli, err);
}

static void tell_not_executed(struct away_run *run)
{
	struct cm_error *err = &run->result.error;
	const char *name = run->spec->argv.v[0];

	if (run->relay.end.exit_code == EXIT_NOT_FOUND) {
		(void)cm_error_set(err, CM_E_NOT_FOUND, 0, "cannot find '%s' in the sandbox", name);
		cm_error_hint(err, "its template has not got it: --setup installs what is missing, "
				   "--template names another one");
	} else {
		(void)cm_error_set(err, CM_E_DENIED, 0, "cannot execute '%s' in the sandbox", name);
	}
	cm_cli_print_error(run->cli, err);
}

static int status_of(struct away_run *run)
{
	const struct cm_away_relay *relay = &run->relay;

	if (relay->end.kind == CM_EXEC_LOST) {
		int status = cm_away_lost(&run->away, &relay->end, &run->result.error);

		return relay->signal != 0 ? 128 + relay->signal : status;
	}
	if (relay->is_over_output) {
		tell_limit(run);
		return 128 + SIGKILL;
	}
	if (relay->lost_errno != 0 && relay->signal == 0) {
		tell_lost_output(run);
		return run->cli->failure_exit;
	}
	if (relay->signal != 0 &&
	    (relay->end.kind == CM_EXEC_KILLED || relay->end.kind == CM_EXEC_SIGNALLED))
		return 128 + relay->signal;
	if (relay->end.kind == CM_EXEC_NOT_EXECUTED)
		tell_not_executed(run);
	return cm_away_exit_of(&run->away, &relay->end);
}

static void take_end(struct away_run *run)
{
	const struct cm_exec_end *end = &run->relay.end;
	struct cm_rec_end *rec = &run->result.end;

	run->result.has_end = true;
	run->result.is_unmeasured = true;
	run->result.is_lost = end->kind == CM_EXEC_LOST;
	rec->kind = kind_of(end);
	rec->status = end->kind == CM_EXEC_SIGNALLED ? end->signal : end->exit_code;
	rec->wall_us = end->wall_ms * 1000;
	if (end->kind == CM_EXEC_TIMED_OUT)
		rec->flags |= CM_ENDF_TIMED_OUT | CM_ENDF_KILLED;
	if (end->kind == CM_EXEC_KILLED)
		rec->flags |= CM_ENDF_KILLED;
	if (end->kind == CM_EXEC_OUT_OF_MEMORY)
		rec->flags |= CM_ENDF_MEMORY_LIMIT;
	run->result.is_over_output = run->relay.is_over_output;
	run->result.output_bytes = run->relay.output_seen;
	run->result.exit_code = status_of(run);
}

static int run_command(struct away_run *run, struct cm_error *err)
{
	const struct cm_limit *output = &run->spec->limits.output;
	struct cm_exec *exec = NULL;
	int r;

	run->result.phase = "run";
	r = start_command(run, &exec, err);
	if (r < 0)
		return r;
	run->relay.away = &run->away;
	run->relay.exec = exec;
	run->relay.relays_signals = true;
	run->relay.is_captured = run->spec->is_json;
	run->relay.output_max = output->is_set ? output->value : UINT64_MAX;
	r = run->spec->is_detached ? wait_started(run, exec, err)
				   : cm_away_relay_run(&run->relay, err);
	if (!run->is_temporary && exec->name[0] != '\0') {
		(void)snprintf(run->name, sizeof(run->name), "%s", exec->name);
		run->result.exec_name = run->name;
	}
	if (r >= 0 && !run->result.is_detached)
		take_end(run);
	cm_exec_release(exec);
	return r < 0 ? r : CM_OK;
}

static int check_input(const struct away_run *run, struct cm_error *err)
{
	bool has_none = run->kind != KIND_RUN || run->spec->argv.n == 0 || run->spec->is_detached;

	return has_none || has_cap(run, CM_CAP_STDIN) ? CM_OK : cm_away_asked_check_no_input(err);
}

/* --- from a spec to a session ------------------------------------------------------------------ */

/* create leaves what was there as it was. */
static void look_before(struct away_run *run)
{
	struct cm_session_info info = { 0 };
	struct cm_session *s = NULL;

	if (cm_session_attach(run->away.provider, run->spec->session_id, &run->away.call, &s,
			      NULL) < 0)
		return;
	run->was_stopped = cm_session_info(s, &run->away.call, &info, NULL) == CM_OK &&
			   info.state == CM_SESSION_STOPPED;
	cm_session_info_clear(&info);
	cm_session_release(s);
}

static int make_session(struct away_run *run, struct cm_error *err)
{
	int r;

	if (run->kind == KIND_CREATE)
		look_before(run);
	r = run->kind == KIND_EXEC ? cm_session_attach(run->away.provider, run->spec->session_id,
						       &run->away.call, &run->away.session, err)
				   : cm_session_create(run->away.provider, run->spec,
						       &run->away.call, &run->away.session, err);

	if (r == CM_OK && run->kind == KIND_EXEC)
		r = cm_session_start(run->away.session, &run->away.call, err);
	if (r < 0)
		return r;
	(void)snprintf(run->result.session, sizeof(run->result.session), "%s",
		       run->away.session->id);
	return CM_OK;
}

static struct cm_prepare prepare_of(struct away_run *run)
{
	return (struct cm_prepare){
		.spec = run->spec,
		.config = &run->cli->config,
		.output = on_setup_output,
		.data = run,
	};
}

/* What it was asked for is not there, and somebody pays for it. */
static void tell_left(const struct away_run *run)
{
	const char *id = run->away.session->id;
	const char *provider = cm_away_provider_name();

	cm_cli_note(run->cli,
		    "session '%s' was left running: casemate stop --provider %s %s, or casemate rm "
		    "--files --force --provider %s %s",
		    id, provider, id, provider, id);
}

static int prepare_session(struct away_run *run, struct cm_error *err)
{
	const struct cm_prepare prepare = prepare_of(run);
	struct cm_call call;
	int r;

	run->result.phase = run->spec->workspace_kind == CM_WORKSPACE_REPO ? "checkout" : "setup";
	r = cm_prepare_session(run->away.session, &prepare, &run->away.call, &run->cwd, err);
	if (r == CM_E_SETUP)
		run->result.phase = "setup";
	/* of a temporary one all of that comes with its end */
	if (r == CM_OK || run->is_temporary)
		return r;
	call = cm_away_cleanup_call();
	if (r == CM_E_SETUP && run->spec->teardown.n > 0)
		cm_prepare_teardown(run->away.session, &prepare, &call);
	if (run->away.session->is_new)
		tell_left(run);
	return r;
}

/* One that is not to run yet; one that ran already goes on. */
static int put_down(struct away_run *run, struct cm_error *err)
{
	struct cm_session *s = run->away.session;
	struct cm_error why = CM_ERROR_INIT;
	struct cm_call call;
	int r = s->is_new || run->was_stopped ? cm_session_stop(s, &run->away.call, err) : CM_OK;

	if (r == CM_OK)
		return CM_OK;
	call = cm_away_cleanup_call();
	if (s->is_new && cm_session_destroy(s, &call, &why) == CM_OK) {
		cm_prepare_forget(&run->cli->config, s);
		return r;
	}
	if (why.code != 0)
		cm_cli_print_error(run->cli, &why);
	tell_left(run);
	return r;
}

/* What is found out before anything is asked of the provider. */
static int check(const struct away_run *run, struct cm_error *err)
{
	int r = cm_away_asked_check(run->spec, err);

	return r == CM_OK && run->kind == KIND_CREATE ? cm_away_asked_check_create(run->spec, err)
						      : r;
}

static int carry_out_all(struct away_run *run, struct cm_error *err)
{
	const struct cm_spec *spec = run->spec;
	const struct cm_prepare prepare = prepare_of(run);
	int r = spec->result ? cm_result_open(spec->result, &run->target, err) : CM_OK;

	run->has_target = spec->result && r == CM_OK;
	if (r == CM_OK)
		r = check(run, err);
	if (r == CM_OK)
		r = cm_away_open(&run->away, run->cli, err);
	run->away.phase = on_phase;
	run->away.data = run;
	if (r == CM_OK)
		r = check_input(run, err);
	if (r == CM_OK && run->kind != KIND_EXEC)
		r = cm_prepare_check(run->away.provider, &prepare, err);
	if (r == CM_OK) {
		cm_away_asked_note_limits(&run->away, spec, run->kind == KIND_EXEC);
		r = make_session(run, err);
	}
	if (r == CM_OK && run->kind == KIND_CREATE)
		return put_down(run, err);
	if (r == CM_OK)
		r = prepare_session(run, err);
	return r == CM_OK && spec->argv.n > 0 ? run_command(run, err) : r;
}

/* A sandbox that nobody will come back to costs money. */
static void take_away(struct away_run *run)
{
	const struct cm_prepare prepare = prepare_of(run);
	struct cm_call call = cm_away_cleanup_call();
	struct cm_error err = CM_ERROR_INIT;

	if (!run->away.session)
		return;
	if (!run->is_temporary) {
		if (run->spec->is_kept)
			cm_cli_note(run->cli, "kept as session '%s'", run->away.session->id);
		return;
	}
	if (run->spec->teardown.n > 0)
		cm_prepare_teardown(run->away.session, &prepare, &call);
	call = cm_away_cleanup_call();
	if (cm_session_destroy(run->away.session, &call, &err) == CM_OK)
		return;
	cm_cli_print_error(run->cli, &err);
	cm_cli_note(run->cli, "session '%s' was left: casemate rm --files --force --provider %s %s",
		    run->away.session->id, cm_away_provider_name(), run->away.session->id);
}

/* The result where it was asked for; the exit status. */
static int deliver(struct away_run *run)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_relay captured = { .in_fd = -1 };
	int status = run->result.exit_code;

	cm_buf_init(&text, 4 * CM_RELAY_CAPTURE_MAX);
	captured.out = run->relay.out;
	captured.err = run->relay.err;
	if (run->spec->is_json) {
		cm_result_write(&run->result, &captured, &text);
		if (cm_cli_print(run->cli, text.data ? text.data : "", text.len) != 0)
			status = run->cli->failure_exit;
		cm_buf_clear(&text);
	} else if (run->result.is_detached) {
		cm_buf_printf(&text, "%s\n", run->name);
		if (cm_cli_print(run->cli, text.data ? text.data : "", text.len) != 0)
			status = run->cli->failure_exit;
		cm_buf_clear(&text);
	}
	if (!run->has_target)
		return status;
	cm_result_write(&run->result, NULL, &text);
	if (cm_result_deliver(&run->target, &text, &err) < 0)
		status = cm_cli_fail(run->cli, &err);
	cm_result_close(&run->target);
	return status;
}

static int carry_out(enum kind kind, const struct cm_spec *spec, struct cm_cli *cli)
{
	static struct away_run the_run;
	struct away_run *run = &the_run;
	struct cm_error err = CM_ERROR_INIT;
	int status;
	int r;

	*run = (struct away_run){ .kind = kind, .cli = cli, .spec = spec };
	run->away = (struct cm_away){ .cli = cli, .signal_fd = -1 };
	run->is_temporary = kind == KIND_RUN && !spec->session_id && !spec->is_kept;
	run->result.phase = "start";
	r = carry_out_all(run, &err);
	if (r < 0) {
		run->result.error = err;
		run->result.reason = cm_reason_find(run->result.phase, err.code, "", "");
		run->result.exit_code = cm_away_fail(&run->away, &err);
	}
	take_away(run);
	status = deliver(run);
	cm_away_close(&run->away);
	cm_away_relay_clear(&run->relay);
	cm_ptr_free(&run->cwd);
	return status;
}

int cm_cli_run(const struct cm_spec *spec, struct cm_cli *cli)
{
	return carry_out(KIND_RUN, spec, cli);
}

int cm_cli_exec(const struct cm_spec *spec, struct cm_cli *cli)
{
	return carry_out(KIND_EXEC, spec, cli);
}

/* What --pass-env names is in the environment of all commands of the session. */
static int with_environment(enum kind kind, const struct cm_spec *spec, struct cm_cli *cli)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_spec full;
	int status;

	if (cm_away_asked_copy(spec, &cli->config.env, &full, &err) < 0)
		return cm_cli_run_refused(spec, cli, &err);
	status = carry_out(kind, &full, cli);
	cm_spec_clear(&full);
	return status;
}

int cm_cli_start(const struct cm_spec *spec, struct cm_cli *cli)
{
	return with_environment(KIND_START, spec, cli);
}

int cm_cli_create(const struct cm_spec *spec, struct cm_cli *cli)
{
	return with_environment(KIND_CREATE, spec, cli);
}

void cm_cli_run_begin(void)
{
	/* nothing here can be begun before it is known what for */
}

int cm_cli_run_refused(const struct cm_spec *spec, struct cm_cli *cli, const struct cm_error *err)
{
	static struct away_run the_run;
	struct away_run *run = &the_run;
	struct cm_error target_err = CM_ERROR_INIT;

	*run = (struct away_run){ .kind = KIND_RUN, .cli = cli, .spec = spec };
	run->result.phase = "start";
	run->result.error = *err;
	run->result.exit_code = cm_cli_fail(cli, err);
	if (spec->result && cm_result_open(spec->result, &run->target, &target_err) < 0)
		cm_cli_print_error(cli, &target_err);
	run->has_target = spec->result && target_err.code == 0;
	return deliver(run);
}
