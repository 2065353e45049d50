/* SPDX-License-Identifier: Apache-2.0 */
/* casemate run: a session, its checkout and setup, one command relayed, and how it ended. */
#include "runtime/cli/run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/cli/outcome.h"
#include "runtime/cli/run_internal.h"
#include "runtime/cli/terminal.h"
#include "runtime/spec/keys.h"
#include "runtime/store/journal.h"

/* "last used" is shown in seconds */
#define TOUCH_US 1000000

static int exit_of(struct run *run)
{
	const struct cm_outcome outcome = { run->cli, run->spec, &run->local, &run->relay,
					    &run->result };

	return cm_outcome_exit(&outcome);
}

static bool wants_tty(const struct run *run)
{
	const struct cm_spec *spec = run->spec;

	if (spec->tty != CM_AUTO)
		return spec->tty == CM_YES;
	return run->kind == RUN_COMMAND && !spec->is_json && cm_terminal_is_there();
}

/* run is a wrapper as env and timeout are; exec is asked many times by who has an input of its own */
static bool wants_input(const struct run *run)
{
	return run->kind == RUN_COMMAND || run->spec->is_interactive || wants_tty(run);
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
		.grace_ms = CM_CLI_GRACE_MS,
		.generation = run->local.session.record.generation,
	};

	if (relay->wants_tty)
		cm_terminal_size(&command.rows, &command.cols);
	relay->jail = &run->local.jail;
	return cm_jail_exec(relay->jail, &command, &relay->id, err);
}

static int take_start(struct run *run, const struct cm_msg *msg, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;

	switch (msg->rec.type) {
	case CM_REC_STARTED:
		run->result.exec_id = msg->rec.body.started.exec_id;
		run->result.is_detached = true;
		return CM_OK;
	case CM_REC_END:
		/* it could not be executed: as of a command that is waited for */
		run->relay.end = msg->rec.body.end;
		run->relay.has_ended = true;
		return CM_OK;
	default:
		cm_proto_error_of(msg, &why);
		if (err)
			*err = why;
		return why.code;
	}
}

/* The command goes on without us; its journal has what it prints. */
static int detach(struct run *run, uint32_t flags, uint64_t timeout_ms, struct cm_error *err)
{
	const struct cm_limit *output = &run->local.spec.limits.output;
	struct cm_jail_command command = {
		.argv = run->spec->argv.v,
		.env = run->local.env.v,
		.cwd = cm_local_cwd(&run->local),
		.flags = flags | CM_EXECF_DETACH | (wants_tty(run) ? CM_EXECF_TTY : 0),
		.stdio = { -1, -1, -1 },
		.timeout_ms = timeout_ms,
		.grace_ms = CM_CLI_GRACE_MS,
		.generation = run->local.session.record.generation,
		.journal_bytes =
			output->is_set && output->value != CM_UNLIMITED ? output->value : 0,
	};
	struct cm_msg msg;
	uint64_t id = 0;
	int r;

	if (run->spec->is_interactive && !wants_tty(run))
		command.flags |= CM_EXECF_INPUT;
	if (wants_tty(run))
		cm_terminal_size(&command.rows, &command.cols);
	cm_msg_init(&msg);
	r = cm_jail_exec(&run->local.jail, &command, &id, err);
	if (r == CM_OK)
		r = cm_jail_next(&run->local.jail, id, &msg, INT64_MAX, err);
	if (r == CM_OK)
		r = take_start(run, &msg, err);
	cm_msg_clear(&msg);
	run->result.phase = "run";
	return r;
}

static void tell_jail(struct run *run)
{
	uint64_t duration_us = (uint64_t)(cm_clock_mono_us() - run->start_us);
	char name[80];

	(void)snprintf(name, sizeof(name), "jail %s", run->local.summary.level);
	cm_run_phase(run, name, duration_us, !run->spec->is_verbose);
}

/* The first answer of a jail that is being made says whether it stands. */
int cm_run_wait_up(struct run *run, struct cm_error *err)
{
	int r;

	if (run->local.is_running) {
		r = cm_local_greeted(&run->local, err);
		return r == CM_OK && !run->local.is_running ? CM_RUN_AGAIN : r;
	}
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
					.phase = cm_run_on_phase,
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

/* The session is used. While the command begins this costs nobody any time. */
static void touch(struct run *run)
{
	int64_t now_us = cm_clock_mono_us();

	if (run->touched_us == 0 || now_us - run->touched_us >= TOUCH_US)
		cm_store_session_touch(&run->local.session);
	run->touched_us = now_us;
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
	bool is_early = run->local.is_dialled
				? !spec->is_detached
				: !cm_local_needs_setup(&run->local) && run->local.is_temporary;
	uint32_t flags = (is_last ? CM_EXECF_LAST : 0) | (spec->is_as_user ? CM_EXECF_AS_USER : 0) |
			 (spec->is_json || spec->result ? CM_EXECF_USAGE : 0);
	int r = CM_OK;

	if (!is_early)
		r = cm_run_wait_up(run, err);
	if (r == CM_OK && !is_early)
		r = run_setup(run, err);
	/* a session whose first start failed goes again, by whoever has its lock */
	if (r == CM_OK)
		cm_local_unlock(&run->local);
	if (r == CM_OK && spec->argv.n == 0)
		return CM_OK;
	if (r == CM_OK && spec->is_detached)
		return detach(run, flags, timeout_of(limits), err);
	if (r == CM_OK)
		r = cm_relay_open(&run->relay, wants_tty(run), wants_input(run),
				  spec->is_json || spec->result || limits->output.is_set, err);
	if (r != CM_OK)
		return r;
	run->relay.is_captured = spec->is_json;
	run->relay.is_last = is_last;
	run->relay.output_max = limits->output.is_set ? limits->output.value : UINT64_MAX;
	r = ask(run, spec->argv.v, flags, timeout_of(limits), err);
	if (r == CM_OK && run->local.is_dialled)
		touch(run);
	if (r == CM_OK && is_early)
		r = cm_run_wait_up(run, err);
	if (r != CM_OK)
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

int cm_run_prepare_caller(struct run *run, struct cm_error *err)
{
	int r = check_target(run, err);

	if (r == CM_OK)
		r = cm_relay_block_signals(err);
	return r < 0 ? r : cm_relay_watch_end(&run->end_fd, err);
}

static void name_session(struct run *run)
{
	(void)snprintf(run->result.session, sizeof(run->result.session), "%s",
		       run->local.session.record.id);
}

int cm_run_prepare_session(struct run *run, struct cm_error *err)
{
	const struct cm_local_events events = cm_run_events(run);
	int r = cm_local_open(&run->local, run->spec, &run->cli->config, &events, err);

	if (r == CM_OK)
		r = cm_local_session(&run->local, err);
	if (r == CM_OK)
		name_session(run);
	return r;
}

/* Up to the files that a command will find. */
int cm_run_prepare_files(struct run *run, struct cm_error *err)
{
	int r = cm_run_prepare_session(run, err);

	if (r < 0)
		return r;
	run->result.phase = "checkout";
	cm_progress_init(&run->progress, run->cli->is_quiet,
			 cm_strv_env_get(&run->cli->config.env, "TERM"));
	r = cm_local_checkout(&run->local, err);
	cm_progress_clear(&run->progress);
	return r;
}

/* What was joined does not run: it is to be started, from its lock on. */
static void begin_anew(struct run *run)
{
	cm_local_close(&run->local);
	run->local.must_exist = run->local.runs_due_setup = true;
}

/* exec: most sessions run, and then nothing has to be looked at. */
static int join(struct run *run, struct cm_error *err)
{
	const struct cm_local_events events = cm_run_events(run);
	int r = cm_local_join(&run->local, run->spec, &run->cli->config, &events, err);

	if (r == CM_OK && run->local.is_running)
		name_session(run);
	if (r < 0 || run->local.is_running)
		return r;
	begin_anew(run);
	return CM_OK;
}

static int prepare_anew(struct run *run, struct cm_error *err)
{
	int r = cm_run_prepare_files(run, err);

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

static int prepare(struct run *run, struct cm_error *err)
{
	int r = cm_run_prepare_caller(run, err);

	if (r == CM_OK && run->kind == RUN_EXEC)
		r = join(run, err);
	return r < 0 || run->local.is_running ? r : prepare_anew(run, err);
}

static int print_exec_id(const struct run *run)
{
	char id[CM_EXEC_ID_SIZE];
	char line[CM_EXEC_ID_SIZE + 1];
	int len;

	cm_exec_id_format(run->result.exec_id, id);
	len = snprintf(line, sizeof(line), "%s\n", id);
	if (cm_cli_print(run->cli, line, (size_t)len) == 0)
		return 0;
	cm_cli_note(run->cli, "the command runs as %s", id);
	return run->cli->failure_exit;
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
	if (run->result.is_detached && !spec->is_json && print_exec_id(run) != 0)
		status = run->cli->failure_exit;
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
	begun.reaps = true;
	has_begun = cm_jail_spawn(&begun, &start, NULL) == CM_OK;
}

struct run *cm_run_begin(enum run_kind kind, const struct cm_spec *spec, struct cm_cli *cli)
{
	static struct run the_run;
	static bool is_used;
	struct run *run = &the_run;

	/* the first one is zeroes, of which most are never touched */
	if (is_used)
		memset(run, 0, sizeof(*run));
	is_used = true;
	run->kind = kind;
	run->cli = cli;
	run->spec = spec;
	run->result.phase = "start";
	cm_local_init(&run->local);
	if (has_begun) {
		run->local.jail = begun;
		has_begun = false;
	}
	run->relay.in_fd = run->relay.out_fd = run->relay.err_fd = run->relay.pty_fd = -1;
	run->relay.far[0] = run->relay.far[1] = run->relay.far[2] = -1;
	return run;
}

int cm_cli_run_refused(const struct cm_spec *spec, struct cm_cli *cli, const struct cm_error *err)
{
	struct run *run = cm_run_begin(RUN_COMMAND, spec, cli);
	struct cm_error target_err = CM_ERROR_INIT;

	run->result.error = *err;
	run->result.exit_code = cm_cli_fail(cli, err);
	if (check_target(run, &target_err) < 0)
		cm_cli_print_error(cli, &target_err);
	cm_local_close(&run->local);
	return deliver(run);
}

int cm_run_signal(const struct run *run, const struct cm_error *err)
{
	if (err->code != CM_E_CANCELLED)
		return 0;
	return run->relay.signal != 0 ? run->relay.signal : cm_relay_take_end(run->end_fd);
}

/* Who was stopped by a signal says so, as the command would have. */
static int exit_of_failure(const struct run *run, const struct cm_error *err)
{
	int status = cm_run_is_heard(run) ? cm_cli_fail(run->cli, err) : run->cli->failure_exit;
	int sig = cm_run_signal(run, err);

	return sig != 0 ? 128 + sig : status;
}

int cm_run_finish(struct run *run, int r, const struct cm_error *err)
{
	if (r < 0) {
		run->result.error = *err;
		run->result.reason =
			cm_reason_find(run->result.phase, err->code, run->local.checkout_reason,
				       run->local.checkout_code);
		run->result.exit_code = exit_of_failure(run, err);
		if (run->local.has_session)
			cm_run_note_failure(run);
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

/*
 * A command in a session that goes on, of which nothing is to be told but its exit status: memory and
 * descriptors go with this process, which somebody waits for.
 */
static bool leaves_at_once(const struct run *run, int r)
{
	return r == CM_OK && run->kind == RUN_EXEC && run->local.is_running &&
	       run->relay.has_ended && !run->has_target && !run->spec->is_json;
}

static void take_end(struct run *run)
{
	run->result.has_end = true;
	run->result.end = run->relay.end;
	run->result.is_over_output = run->relay.is_over_output;
	run->result.output_bytes = run->relay.output_seen;
	if (!run->local.is_temporary)
		run->result.exec_id = run->relay.exec_id;
	run->result.exit_code = exit_of(run);
}

static int carry_out(struct run *run)
{
	struct cm_error err = CM_ERROR_INIT;
	int r = prepare(run, &err);

	if (r == CM_OK)
		r = run_command(run, &err);
	if (r == CM_RUN_AGAIN) {
		cm_relay_close(&run->relay);
		begin_anew(run);
		r = prepare_anew(run, &err);
		if (r == CM_OK)
			r = run_command(run, &err);
	}
	if (r == CM_OK && run->relay.has_ended)
		take_end(run);
	if (leaves_at_once(run, r)) {
		touch(run);
		return run->result.exit_code;
	}
	return cm_run_finish(run, r, &err);
}

static int reach(struct run *run, struct cm_error *err)
{
	int r = cm_run_wait_up(run, err);

	if (r == CM_OK)
		r = run_setup(run, err);
	cm_local_unlock(&run->local);
	return r;
}

int cm_run_reach(struct run *run, struct cm_error *err)
{
	int r = prepare(run, err);

	if (r == CM_OK)
		r = reach(run, err);
	if (r != CM_RUN_AGAIN)
		return r;
	begin_anew(run);
	r = prepare_anew(run, err);
	return r < 0 ? r : reach(run, err);
}

int cm_cli_run(const struct cm_spec *spec, struct cm_cli *cli)
{
	struct run *run = cm_run_begin(RUN_COMMAND, spec, cli);

	return carry_out(run);
}

int cm_cli_exec(const struct cm_spec *spec, struct cm_cli *cli)
{
	struct run *run = cm_run_begin(RUN_EXEC, spec, cli);

	return carry_out(run);
}

int cm_cli_start(const struct cm_spec *spec, struct cm_cli *cli)
{
	struct run *run = cm_run_begin(RUN_START, spec, cli);

	run->local.keeps_env = run->local.runs_due_setup = true;
	return carry_out(run);
}
