/* SPDX-License-Identifier: Apache-2.0 */
/* casemate run: a session, its checkout and setup, one command relayed, and how it ended. */
#include "runtime/cli/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "providers/local/jail.h"
#include "providers/local/local.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"
#include "runtime/cli/not_found.h"
#include "runtime/cli/progress.h"
#include "runtime/cli/relay.h"
#include "runtime/cli/result.h"
#include "runtime/cli/setup.h"
#include "runtime/cli/terminal.h"

#define GRACE_MS 2000
#define EXIT_TIMEOUT 124
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127

struct run {
	struct cm_cli *cli;
	const struct cm_spec *spec;
	struct cm_local local;
	struct cm_relay relay;
	struct cm_result result;
	struct cm_setup setup;
	int64_t start_us;
	struct cm_progress progress;
	/* --result was given and can be written to */
	bool has_target;
	struct cm_result_target target;
	/* cm_relay_watch_end's; 0: none yet */
	int end_fd;
};

static void on_note(void *data, const char *text)
{
	struct run *run = data;

	cm_progress_clear(&run->progress);
	cm_cli_note(run->cli, "%s", text);
}

static void on_progress(void *data, const char *stage, uint64_t received, uint64_t total,
			uint64_t bytes)
{
	struct run *run = data;

	cm_progress_tell(&run->progress, stage, received, total, bytes);
}

static void keep_phase(struct run *run, const char *name, uint64_t duration_us)
{
	struct cm_result_phase *phase = &run->result.phases[run->result.n_phases];

	if (run->result.n_phases >= CM_RESULT_PHASES_MAX)
		return;
	(void)snprintf(phase->name, sizeof(phase->name), "%s", name);
	phase->duration_us = duration_us;
	run->result.n_phases++;
}

static void on_phase(void *data, const char *name, uint64_t duration_us)
{
	struct run *run = data;
	char duration[32];

	keep_phase(run, name, duration_us);
	cm_progress_clear(&run->progress);
	if (run->cli->is_quiet)
		return;
	cm_format_duration(duration_us / 1000, duration, sizeof(duration));
	(void)fprintf(stderr, "casemate: %s %s\n", name, duration);
}

/* Where the command was to start, if that is the same directory here. */
static const char *shown_cwd(const struct run *run)
{
	const struct cm_workspace_facts *workspace = &run->local.workspace;
	const char *cwd = cm_local_cwd(&run->local);
	bool is_shown = workspace->path && cm_text_has_prefix(cwd, workspace->path);

	return is_shown || (workspace->spelled && cm_text_has_prefix(cwd, workspace->spelled))
		       ? cwd
		       : NULL;
}

/* The command's program was not there: where it is on the host says more than an errno. */
static void explain_not_executed(struct run *run, const struct cm_rec_end *end,
				 struct cm_error *err)
{
	const char *name = run->spec->argv.v[0];

	if (end->detail != CM_EXEC_STEP_EXECVE) {
		(void)cm_error_set(err, CM_E_ISOLATION, end->status, "the command could not %s",
				   cm_exec_step_name((enum cm_exec_step)end->detail));
		if (end->detail == CM_EXEC_STEP_CWD) {
			(void)cm_error_set(err, CM_E_INVALID, end->status,
					   "cannot enter '%s' in the jail",
					   cm_local_cwd(&run->local));
			cm_error_hint(err, "--workdir names a directory inside the jail");
		}
		return;
	}
	if (end->status != ENOENT) {
		(void)cm_error_set(err, CM_E_DENIED, end->status,
				   "cannot execute '%s' in the jail (exit %d)", name,
				   EXIT_NOT_EXECUTABLE);
		return;
	}
	cm_cli_explain_not_found(name, cm_strv_env_get(&run->cli->config.env, "PATH"),
				 shown_cwd(run), err);
}

static int exit_of_not_executed(const struct cm_rec_end *end, int failure_exit)
{
	if (end->detail != CM_EXEC_STEP_EXECVE)
		return failure_exit;
	return end->status == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

static void explain_memory(struct run *run, const struct cm_rec_end *end)
{
	const struct cm_limit *limit = &run->local.spec.limits.memory;
	char has[32] = "?";
	struct cm_error err = CM_ERROR_INIT;

	if (limit->is_set)
		cm_format_size(limit->value, has, sizeof(has));
	(void)end;
	(void)cm_error_set(&err, CM_E_LIMIT, 0, "command ended by the memory limit (%s)", has);
	cm_error_hint(&err, "give it more with --memory SIZE");
	run->result.error = err;
	cm_cli_print_error(run->cli, &err);
}

static void explain_timeout(struct run *run)
{
	struct cm_error err = CM_ERROR_INIT;
	char after[32];

	cm_format_duration(run->local.spec.limits.timeout.value, after, sizeof(after));
	(void)cm_error_set(&err, CM_E_TIMEOUT, 0, "command ended after its time limit (%s)", after);
	cm_error_hint(&err, "give it more with --timeout DURATION");
	run->result.error = err;
	cm_cli_print_error(run->cli, &err);
}

static void explain_output(struct run *run)
{
	struct cm_error err = CM_ERROR_INIT;
	char max[32];

	cm_format_size(run->relay.output_max, max, sizeof(max));
	(void)cm_error_set(&err, CM_E_LIMIT, 0, "command ended by the output limit (%s)", max);
	cm_error_hint(&err, "give it more with --output SIZE");
	run->result.error = err;
	cm_cli_print_error(run->cli, &err);
}

/* Not what the command did, and not that it never ran. */
static void explain_lost(struct run *run)
{
	run->result.error = run->relay.why;
	run->result.error.code = CM_E_SYS;
	if (run->result.error.hint[0] == '\0')
		cm_error_hint(&run->result.error, "the system's log may say who ended it");
	cm_cli_print_error(run->cli, &run->result.error);
}

/* How the command ended says nothing about what its reader got. */
static void explain_lost_output(struct run *run)
{
	struct cm_error err = CM_ERROR_INIT;

	(void)cm_error_set(&err, CM_E_SYS, run->relay.lost_errno, "cannot write to standard %s",
			   run->relay.lost_fd == STDERR_FILENO ? "error" : "output");
	cm_error_hint(&err, "the command has run; its exit status is not this one");
	run->result.error = err;
	cm_cli_print_error(run->cli, &err);
}

static void tell_no_network(struct run *run, const struct cm_rec_end *end)
{
	if (end->kind != CM_END_EXIT || end->status == 0 || end->detail == 0)
		return;
	cm_cli_note(run->cli, "this session has no network; %u attempt%s refused", end->detail,
		    end->detail == 1 ? "" : "s");
	if (!run->cli->is_quiet)
		(void)fprintf(stderr, "hint: --network host shares the host's network\n");
}

static int exit_of(struct run *run, const struct cm_rec_end *end)
{
	struct cm_error *err = &run->result.error;

	if (run->relay.is_over_output) {
		explain_output(run);
		return 128 + SIGKILL;
	}
	/* a terminal that is gone says so by SIGHUP, too */
	if (run->relay.lost_errno != 0 && run->relay.signal == 0 && !run->relay.is_lost &&
	    end->kind != CM_END_NOT_EXECUTED) {
		explain_lost_output(run);
		return run->cli->failure_exit;
	}
	switch ((enum cm_end_kind)end->kind) {
	case CM_END_EXIT:
		tell_no_network(run, end);
		return end->status;
	case CM_END_SIGNAL:
		return 128 + end->status;
	case CM_END_TIMEOUT:
		explain_timeout(run);
		return EXIT_TIMEOUT;
	case CM_END_MEMORY:
		explain_memory(run, end);
		return 128 + SIGKILL;
	case CM_END_KILLED:
		if (run->relay.is_lost)
			explain_lost(run);
		return 128 + (run->relay.signal != 0 ? run->relay.signal : SIGKILL);
	case CM_END_NOT_EXECUTED:
		explain_not_executed(run, end, err);
		cm_cli_print_error(run->cli, err);
		return exit_of_not_executed(end, run->cli->failure_exit);
	}
	return run->cli->failure_exit;
}

static bool wants_tty(const struct cm_spec *spec)
{
	if (spec->tty != CM_AUTO)
		return spec->tty == CM_YES;
	return !spec->is_json && cm_terminal_is_there();
}

static uint64_t timeout_of(const struct cm_limits *limits)
{
	const struct cm_limit *limit = &limits->timeout;

	return limit->is_set && limit->value != CM_UNLIMITED ? limit->value : 0;
}

static int ask(struct run *run, char *const *argv, uint32_t flags, uint64_t timeout_ms,
	       struct cm_error *err)
{
	struct cm_relay *relay = &run->relay;
	struct cm_jail_command command = {
		.argv = argv,
		.env = run->local.env.v,
		.cwd = cm_local_cwd(&run->local),
		.flags = flags | (relay->wants_tty ? CM_EXECF_TTY : 0),
		.stdio = { relay->far[0], relay->far[1], relay->far[2] },
		.timeout_ms = timeout_ms,
		.grace_ms = GRACE_MS,
	};

	if (relay->wants_tty)
		cm_terminal_size(&command.rows, &command.cols);
	relay->jail = &run->local.jail;
	return cm_jail_exec(relay->jail, &command, &relay->id, err);
}

static void tell_jail(struct run *run)
{
	uint64_t duration_us = (uint64_t)(cm_clock_mono_us() - run->start_us);
	char name[80];

	(void)snprintf(name, sizeof(name), "jail %s", run->local.summary.level);
	if (run->spec->is_verbose)
		on_phase(run, name, duration_us);
	else
		keep_phase(run, name, duration_us);
}

/* The first answer of a jail that is being made says whether it stands. */
static int wait_up(struct run *run, struct cm_error *err)
{
	int r;

	if (run->local.is_running)
		return CM_OK;
	r = cm_local_wait_up(&run->local, INT64_MAX, err);
	if (r == CM_E_CANCELLED) {
		(void)cm_error_set(err, r, 0, "stopped while the jail was made");
		cm_error_hint(err, "nothing runs: the next run makes it anew");
	}
	if (r == CM_OK)
		r = cm_local_started(&run->local, err);
	if (r == CM_OK)
		tell_jail(run);
	return r;
}

static int run_setup(struct run *run, struct cm_error *err)
{
	if (!cm_local_needs_setup(&run->local))
		return CM_OK;
	run->result.phase = "setup";
	run->setup = (struct cm_setup){ .cli = run->cli,
					.local = &run->local,
					.relay = &run->relay,
					.phase = on_phase,
					.data = run };
	run->result.setup = &run->setup.report;
	return cm_cli_setup_run(&run->setup, err);
}

/* With rights or secrets of its own, and so in a jail of its own. */
static int run_setup_apart(struct run *run, struct cm_error *err)
{
	int r;

	if (!cm_local_setup_is_apart(&run->local))
		return CM_OK;
	run->result.phase = "setup";
	r = cm_local_setup_open(&run->local, err);
	if (r == CM_OK)
		r = run_setup(run, err);
	cm_local_setup_close(&run->local);
	return r;
}

/*
 * The command. Where nothing has to come before it, it is asked for while the jail is still being
 * made, which saves a round trip.
 */
static int run_command(struct run *run, struct cm_error *err)
{
	const struct cm_spec *spec = run->spec;
	/* below the ceilings of a tree that was not known when the command line was read */
	const struct cm_limits *limits = &run->local.spec.limits;
	bool is_last = run->local.is_temporary;
	bool is_early = !cm_local_needs_setup(&run->local) && run->local.is_temporary;
	uint32_t flags = (is_last ? CM_EXECF_LAST : 0) |
			 (spec->is_json || spec->result ? CM_EXECF_USAGE : 0);
	int r = CM_OK;

	if (!is_early)
		r = wait_up(run, err);
	if (r == CM_OK && !is_early)
		r = run_setup(run, err);
	/* a session whose first start failed goes again, by whoever has its lock */
	if (r == CM_OK)
		cm_local_unlock(&run->local);
	if (r == CM_OK && spec->argv.n == 0)
		return CM_OK;
	if (r == CM_OK)
		r = cm_relay_open(&run->relay, wants_tty(spec), true, err);
	if (r < 0)
		return r;
	run->relay.is_captured = spec->is_json;
	run->relay.is_last = is_last;
	run->relay.output_max = limits->output.is_set ? limits->output.value : UINT64_MAX;
	r = ask(run, spec->argv.v, flags, timeout_of(limits), err);
	if (r == CM_OK && is_early)
		r = wait_up(run, err);
	if (r < 0)
		return r;
	run->result.phase = "run";
	return cm_relay_run(&run->relay, err);
}

static int check_target(struct run *run, struct cm_error *err)
{
	int r = run->spec->result ? cm_result_open(run->spec->result, &run->target, err) : CM_OK;

	run->has_target = run->spec->result && r == CM_OK;
	return r;
}

/* Up to the files that a command will find. */
static int prepare_files(struct run *run, struct cm_error *err)
{
	struct cm_local_events events = {
		.note = on_note, .phase = on_phase, .progress = on_progress, .data = run
	};
	int r = check_target(run, err);

	if (r == CM_OK)
		r = cm_relay_block_signals(err);
	if (r == CM_OK)
		r = cm_relay_watch_end(&run->end_fd, err);
	events.cancel_fd = run->end_fd;
	if (r == CM_OK)
		r = cm_local_open(&run->local, run->spec, &run->cli->config, &events, err);
	if (r == CM_OK)
		r = cm_local_session(&run->local, err);
	if (r < 0)
		return r;
	(void)snprintf(run->result.session, sizeof(run->result.session), "%s",
		       run->local.session.record.id);
	run->result.phase = "checkout";
	cm_progress_init(&run->progress, run->cli->is_quiet,
			 cm_strv_env_get(&run->cli->config.env, "TERM"));
	r = cm_local_checkout(&run->local, err);
	cm_progress_clear(&run->progress);
	return r;
}

static int prepare(struct run *run, struct cm_error *err)
{
	int r = prepare_files(run, err);

	if (r == CM_OK)
		r = run_setup_apart(run, err);
	if (r < 0)
		return r;
	run->result.phase = "start";
	run->start_us = cm_clock_mono_us();
	r = cm_local_start(&run->local, err);
	(void)snprintf(run->result.level, sizeof(run->result.level), "%s",
		       run->local.summary.level);
	return r;
}

/* The result where it was asked for; the exit status. */
static int deliver(struct run *run)
{
	const struct cm_spec *spec = run->spec;
	CM_AUTO_BUF struct cm_buf text = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	int status = run->result.exit_code;

	cm_buf_init(&text, 4 * CM_RELAY_CAPTURE_MAX);
	if (spec->is_json) {
		cm_result_write(&run->result, &run->relay, &text);
		if (cm_cli_print(run->cli, text.data ? text.data : "", text.len) != 0)
			status = run->cli->failure_exit;
		cm_buf_clear(&text);
	}
	if (run->has_target) {
		cm_result_write(&run->result, NULL, &text);
		if (cm_result_deliver(&run->target, &text, &err) < 0) {
			if (run->result.has_end)
				cm_error_hint(&err, "the command has run; its exit status is not "
						    "this one");
			status = cm_cli_fail(run->cli, &err);
		}
		cm_result_close(&run->target);
	}
	return status;
}

/* A keeper that waits for what the command line will say. */
static struct cm_jail begun;
static bool has_begun;

/* It has nothing to do before it gets something, and ends when that is nothing. When it cannot be
 * started, whoever needs one is told. */
void cm_cli_run_begin(void)
{
	const struct cm_jail_start start = { .is_temporary = true };

	cm_jail_init(&begun);
	has_begun = cm_jail_spawn(&begun, &start, NULL) == CM_OK;
}

static void begin(struct run *run, const struct cm_spec *spec, struct cm_cli *cli)
{
	memset(run, 0, sizeof(*run));
	run->cli = cli;
	run->spec = spec;
	run->result.phase = "start";
	cm_local_init(&run->local);
	if (has_begun)
		run->local.jail = begun;
	has_begun = false;
	run->relay.in_fd = run->relay.out_fd = run->relay.err_fd = run->relay.pty_fd = -1;
	run->relay.far[0] = run->relay.far[1] = run->relay.far[2] = -1;
}

int cm_cli_run_refused(const struct cm_spec *spec, struct cm_cli *cli, const struct cm_error *err)
{
	static struct run run;
	struct cm_error target_err = CM_ERROR_INIT;

	begin(&run, spec, cli);
	run.result.error = *err;
	run.result.exit_code = cm_cli_fail(cli, err);
	if (check_target(&run, &target_err) < 0)
		cm_cli_print_error(cli, &target_err);
	cm_local_close(&run.local);
	return deliver(&run);
}

/* Who was stopped by a signal says so, as the command would have. */
static int exit_of_failure(const struct run *run, const struct cm_error *err)
{
	int status = cm_cli_fail(run->cli, err);
	int sig = err->code == CM_E_CANCELLED ? run->relay.signal : 0;

	if (err->code == CM_E_CANCELLED && sig == 0)
		sig = cm_relay_take_end(run->end_fd);
	return sig != 0 ? 128 + sig : status;
}

static int finish(struct run *run, int r, const struct cm_error *err)
{
	if (r < 0) {
		run->result.error = *err;
		run->result.reason =
			cm_reason_find(run->result.phase, err->code, run->local.checkout_reason,
				       run->local.checkout_code);
		run->result.exit_code = exit_of_failure(run, err);
	}
	if (run->local.is_kept && run->local.has_session && !run->local.is_new)
		cm_cli_note(run->cli, "kept as session '%s'", run->local.session.record.id);
	/* first everything is gone, then it is said how it ended */
	cm_local_close(&run->local);
	if (run->end_fd > 0)
		(void)close(run->end_fd);
	r = deliver(run);
	cm_relay_close(&run->relay);
	return r;
}

int cm_cli_run(const struct cm_spec *spec, struct cm_cli *cli)
{
	static struct run run;
	struct cm_error err = CM_ERROR_INIT;
	int r;

	begin(&run, spec, cli);
	r = prepare(&run, &err);
	if (r == CM_OK)
		r = run_command(&run, &err);
	if (r == CM_OK && spec->argv.n > 0) {
		run.result.has_end = true;
		run.result.end = run.relay.end;
		run.result.is_over_output = run.relay.is_over_output;
		run.result.output_bytes = run.relay.output_seen;
		run.result.exit_code = exit_of(&run, &run.relay.end);
	}
	return finish(&run, r, &err);
}

int cm_cli_checkout(const struct cm_spec *spec, struct cm_cli *cli)
{
	static struct run run;
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *path = NULL;
	int r;

	begin(&run, spec, cli);
	r = prepare_files(&run, &err);
	if (r == CM_OK) {
		cm_local_keep(&run.local);
		path = cm_asprintf("%s\n", run.local.session.record.checkout);
		if (!path)
			r = cm_error_set(&err, CM_E_NOMEM, 0, "no memory for the path");
	}
	r = finish(&run, r, &err);
	return r == 0 && path && !spec->is_json ? cm_cli_print(cli, path, strlen(path)) : r;
}
