/* SPDX-License-Identifier: Apache-2.0 */
/* casemate wait, kill, stdin, attach: commands of sessions that are elsewhere. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/num.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/relay.h"
#include "runtime/cli/remote/absent.h"
#include "runtime/cli/remote/away.h"
#include "runtime/cli/remote/exec_follow.h"
#include "runtime/cli/remote/exec_shown.h"
#include "runtime/cli/signal_names.h"

/* what is killed may have much to bury, and the way is long */
#define GONE_MS 30000
#define LOOK_MS 150
/* as kill(1) has it: there was nothing to kill */
#define EXIT_ENDED_ALREADY 1

struct options {
	const char *root;
	const char *text;
	bool is_json;
	bool no_stdin;
	bool is_close;
};

/* --- one command --------------------------------------------------------------------------- */

struct target {
	struct cm_away away;
	const char *name;
	/* as the session's list has it */
	struct cm_exec_info info;
	struct cm_away_follow follow;
};

static int find_target(struct target *t, struct cm_cli *cli, char *const *words,
		       struct cm_error *err)
{
	int r;

	*t = (struct target){ .away = { .signal_fd = -1, .cli = cli }, .name = words[1] };
	t->follow.away = &t->away;
	r = cm_away_attach(&t->away, cli, words[0], err);
	return r < 0 ? r : cm_away_exec_find(&t->away, t->name, &t->info, err);
}

/* Found; and attached to, where it runs. Without its output it is not followed. */
static int open_target(struct target *t, struct cm_cli *cli, char *const *words, bool with_output,
		       struct cm_error *err)
{
	const uint64_t from = with_output ? 0 : CM_AWAY_BEHIND_ALL;
	const uint64_t offsets[2] = { from, from };
	int r = find_target(t, cli, words, err);

	return r < 0 || !t->info.is_running
		       ? r
		       : cm_exec_attach(t->away.session, t->name, offsets, true, &t->away.call,
					&t->follow.exec, err);
}

static void close_target(struct target *t)
{
	cm_exec_release(t->follow.exec);
	cm_exec_info_clear(&t->info);
	cm_away_close(&t->away);
}

/* Until its end, which is then t->info's. */
static int follow(struct target *t, int64_t deadline_ms, struct cm_error *err)
{
	int r;

	t->follow.deadline_ms = deadline_ms;
	r = cm_away_follow(&t->follow, err);
	if (r == CM_OK && t->follow.has_ended)
		cm_away_exec_set_end(&t->info, &t->follow.end);
	return r;
}

/* The exit status that `exec` would have had. What is no plain end is said. */
static int exit_of(const struct target *t)
{
	const struct cm_exec_end *end = &t->info.end;
	char text[CM_AWAY_STATE_SIZE];
	struct cm_error err = CM_ERROR_INIT;

	if (!t->info.has_end || end->kind == CM_EXEC_LOST) {
		(void)cm_error_set(&err, CM_E_NOT_FOUND, 0, "how command %s ended is not known",
				   t->name);
		cm_error_hint(&err, "its sandbox was lost or stopped while it ran, or the command "
				    "was one that somebody else waited for");
		return cm_cli_fail(t->away.cli, &err);
	}
	if (end->kind != CM_EXEC_EXITED) {
		cm_away_exec_state(&t->info, text);
		cm_cli_note(t->away.cli, "command %s has ended: %s", t->name, text);
	}
	return end->exit_code;
}

/* --- wait ---------------------------------------------------------------------------------- */

static int still_runs(const struct target *t, const char *timeout, struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_TIMEOUT, 0, "command %s still runs after %.40s", t->name,
			   timeout);
	cm_error_hint(err,
		      "it goes on: 'casemate wait %.100s %s' waits again, 'casemate kill' ends it",
		      t->away.session->id, t->name);
	return CM_E_TIMEOUT;
}

static int wait_for(struct cm_cli *cli, const struct options *o, char *const *words,
		    int64_t deadline_ms)
{
	struct cm_error err = CM_ERROR_INIT;
	struct target t;
	int r = open_target(&t, cli, words, true, &err);
	int status = 0;

	if (r == CM_OK && t.info.is_running) {
		r = follow(&t, deadline_ms, &err);
		if (r == CM_E_TIMEOUT && o->text && cm_clock_mono_ms() >= deadline_ms)
			r = still_runs(&t, o->text, &err);
	}
	if (r < 0)
		status = cm_away_follow_fail(&t.away, &err);
	else
		status = exit_of(&t);
	if (o->is_json && (r == CM_OK || r == CM_E_TIMEOUT) && t.info.name[0] != '\0' &&
	    cm_away_exec_print(&t.away, &t.info) != 0)
		status = cli->failure_exit;
	close_target(&t);
	return status;
}

int cm_cmd_wait(struct cm_cli *cli, int argc, char **argv)
{
	struct options o = { NULL };
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &o.root },
		{ "timeout", '\0', CM_OPTION_TEXT, &o.text },
		{ "json", '\0', CM_OPTION_SWITCH, &o.is_json },
		{ "quiet", 'q', CM_OPTION_SWITCH, &cli->is_quiet },
		{ "verbose", '\0', CM_OPTION_SWITCH, &cli->is_verbose },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	int64_t deadline_ms = INT64_MAX;
	uint64_t timeout_ms = 0;
	int n = 0;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) < 0 ||
	    cm_away_exec_check_words("wait", n, &err) < 0 ||
	    cm_away_absent_root(o.root, &err) < 0 ||
	    (o.text && cm_parse_duration(o.text, "--timeout", 0, INT32_MAX, &timeout_ms, &err) < 0))
		return cm_cli_fail(cli, &err);
	if (o.text)
		deadline_ms = cm_clock_mono_ms() + (int64_t)timeout_ms;
	return wait_for(cli, &o, argv + 1, deadline_ms);
}

/* --- kill ---------------------------------------------------------------------------------- */

static int ended_already(const struct target *t, bool is_json)
{
	struct cm_error err = CM_ERROR_INIT;
	char text[CM_AWAY_STATE_SIZE];

	cm_away_exec_state(&t->info, text);
	if (t->info.has_end)
		(void)cm_error_set(&err, CM_E_NOT_FOUND, 0, "command %s has ended already (%s)",
				   t->name, text);
	else
		(void)cm_error_set(&err, CM_E_NOT_FOUND, 0, "command %s has ended already",
				   t->name);
	cm_cli_print_error(t->away.cli, &err);
	if (is_json)
		(void)cm_away_exec_print(&t->away, &t->info);
	return EXIT_ENDED_ALREADY;
}

static int send_signal(struct target *t, int sig, struct cm_error *err)
{
	return cm_exec_signal(t->follow.exec, sig, &t->away.call, err);
}

/* Looked for: what it printed may take long to come, and is not wanted. */
static int await_end(struct target *t, int64_t deadline_ms, struct cm_error *err)
{
	struct pollfd cancel = { .fd = t->away.call.cancel_fd, .events = POLLIN };

	for (;;) {
		int r;

		cm_exec_info_clear(&t->info);
		r = cm_away_exec_find(&t->away, t->name, &t->info, err);
		if (r < 0 || !t->info.is_running)
			return r;
		if (cm_clock_mono_ms() >= deadline_ms)
			return cm_error_set(err, CM_E_TIMEOUT, 0, "command %s still runs", t->name);
		if (poll(&cancel, 1, LOOK_MS) > 0)
			return cm_error_set(err, CM_E_CANCELLED, 0, "not waited for any longer");
	}
}

/* TERM, and where that does not end it KILL. */
static int end_command(struct target *t, struct cm_error *err)
{
	int r = send_signal(t, SIGTERM, err);

	if (r == CM_OK)
		r = await_end(t, cm_clock_mono_ms() + CM_CLI_GRACE_MS, err);
	if (r != CM_E_TIMEOUT)
		return r;
	r = send_signal(t, SIGKILL, err);
	if (r == CM_OK || r == CM_E_NOT_FOUND)
		r = await_end(t, cm_clock_mono_ms() + GONE_MS, err);
	if (r == CM_E_TIMEOUT) {
		(void)cm_error_set(err, r, 0, "command %s does not end", t->name);
		cm_error_hint(err, "'casemate stop %.100s' ends the session with all in it",
			      t->away.session->id);
	}
	return r;
}

static int kill_command(struct cm_cli *cli, char *const *words, int sig, bool is_json)
{
	struct cm_error err = CM_ERROR_INIT;
	struct target t;
	int r = open_target(&t, cli, words, false, &err);
	bool is_found = t.info.name[0] != '\0';
	int status;

	if (r == CM_OK && t.info.is_running)
		r = sig != 0 ? send_signal(&t, sig, &err) : end_command(&t, &err);
	else if (r == CM_OK)
		r = CM_E_NOT_FOUND;
	if (r == CM_E_NOT_FOUND && is_found) {
		t.info.is_running = false;
		status = ended_already(&t, is_json);
	} else if (r < 0) {
		status = cm_away_fail(&t.away, &err);
	} else {
		status = is_json ? cm_away_exec_print(&t.away, &t.info) : 0;
	}
	close_target(&t);
	return status;
}

int cm_cmd_kill(struct cm_cli *cli, int argc, char **argv)
{
	struct options o = { NULL };
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &o.root },
		{ "signal", 's', CM_OPTION_TEXT, &o.text },
		{ "json", '\0', CM_OPTION_SWITCH, &o.is_json },
		{ "verbose", '\0', CM_OPTION_SWITCH, &cli->is_verbose },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	int sig = 0;
	int n = 0;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) < 0 ||
	    cm_away_exec_check_words("kill", n, &err) < 0 ||
	    cm_away_absent_root(o.root, &err) < 0 ||
	    (o.text && cm_signal_parse(o.text, &sig, &err) < 0))
		return cm_cli_fail(cli, &err);
	return kill_command(cli, argv + 1, sig, o.is_json);
}

/* --- stdin --------------------------------------------------------------------------------- */

static int not_running(const struct target *t, struct cm_error *err)
{
	char text[CM_AWAY_STATE_SIZE];

	cm_away_exec_state(&t->info, text);
	(void)cm_error_set(err, CM_E_NOT_FOUND, 0, "command %s has ended (%s)", t->name, text);
	cm_error_hint(err, "'casemate ps %.100s' lists those that run", t->away.session->id);
	return CM_E_NOT_FOUND;
}

/* What was read has nobody to read it. */
static int not_read(struct target *t, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;

	cm_exec_info_clear(&t->info);
	if (cm_away_exec_find(&t->away, t->name, &t->info, &why) == CM_OK && !t->info.is_running)
		(void)not_running(t, err);
	else
		(void)cm_error_set(err, CM_E_SYS, EPIPE, "command %s has closed its input",
				   t->name);
	cm_error_hint(err, "what was written last may not have been read");
	return err->code;
}

/* What comes when it comes: 1; 0: it has ended. */
static int read_input(const struct target *t, char *bytes, size_t size, size_t *ret_len,
		      struct cm_error *err)
{
	struct pollfd p[2] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = t->away.call.cancel_fd, .events = POLLIN },
	};
	ssize_t n = -1;

	while (n < 0) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return cm_error_set(err, CM_E_SYS, errno, "cannot wait");
		if (p[1].revents != 0)
			return cm_error_set(err, CM_E_CANCELLED, 0, "interrupted");
		if (p[0].revents == 0)
			continue;
		n = read(STDIN_FILENO, bytes, size);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return cm_error_set(err, CM_E_SYS, errno, "cannot read standard input");
	}
	*ret_len = (size_t)n;
	return n > 0;
}

static int feed(struct target *t, bool is_close, struct cm_error *err)
{
	struct cm_exec *exec = t->follow.exec;
	char bytes[CM_AWAY_INPUT_MAX];
	size_t len = 0;
	/* to close is all that is wanted of who sits at a terminal */
	bool is_over = is_close && (!cm_relay_has_stdin() || isatty(STDIN_FILENO));
	int r = is_over ? 0 : 1;

	if (!t->info.is_running)
		return not_running(t, err);
	while (r > 0) {
		r = read_input(t, bytes, sizeof(bytes), &len, err);
		if (r <= 0)
			break;
		r = cm_exec_input(exec, bytes, len, &t->away.call, err);
		if (r == CM_E_NOT_FOUND)
			return not_read(t, err);
		r = r < 0 ? r : 1;
	}
	if (r < 0 || !is_close)
		return r;
	r = cm_exec_input(exec, NULL, 0, &t->away.call, err);
	return r == CM_E_NOT_FOUND ? not_running(t, err) : r;
}

int cm_cmd_stdin(struct cm_cli *cli, int argc, char **argv)
{
	struct options o = { NULL };
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &o.root },
		{ "close", '\0', CM_OPTION_SWITCH, &o.is_close },
		{ "verbose", '\0', CM_OPTION_SWITCH, &cli->is_verbose },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	struct target t;
	int n = 0;
	int r;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) < 0 ||
	    cm_away_exec_check_words("stdin", n, &err) < 0 || cm_away_absent_root(o.root, &err) < 0)
		return cm_cli_fail(cli, &err);
	r = open_target(&t, cli, argv + 1, false, &err);
	if (r == CM_OK)
		r = feed(&t, o.is_close, &err);
	r = r < 0 ? cm_away_fail(&t.away, &err) : 0;
	close_target(&t);
	return r;
}

/* --- attach -------------------------------------------------------------------------------- */

static int look_on(struct target *t, const struct options *o, struct cm_error *err)
{
	static struct cm_away_output outputs[2];
	int r;

	for (int i = 0; i < 2; i++) {
		cm_away_output_init(&outputs[i], i + 1, t->away.call.cancel_fd);
		t->follow.outputs[i] = &outputs[i];
	}
	t->follow.has_input = t->info.is_running && !o->no_stdin && cm_relay_has_stdin();
	r = follow(t, INT64_MAX, err);
	for (int i = 0; i < 2; i++)
		cm_away_output_close(&outputs[i]);
	return r;
}

/* What came before is not shown, but for its last lines. */
static int attach_to(struct target *t, uint64_t n_lines, struct cm_error *err)
{
	uint64_t offsets[2] = { 0, 0 };
	int r = cm_away_tail(&t->away, t->name, n_lines, offsets, err);

	if (r == CM_OK && !t->info.is_running)
		cm_cli_note(t->away.cli, "command %s has ended already", t->name);
	return r < 0 ? r
		     : cm_exec_attach(t->away.session, t->name, offsets, true, &t->away.call,
				      &t->follow.exec, err);
}

static int attach(struct cm_cli *cli, const struct options *o, char *const *words, uint64_t n_lines)
{
	struct cm_error err = CM_ERROR_INIT;
	struct target t;
	int r = find_target(&t, cli, words, &err);

	if (r == CM_OK)
		r = attach_to(&t, n_lines, &err);
	if (r == CM_OK)
		r = look_on(&t, o, &err);
	if (r < 0)
		r = cm_away_follow_fail(&t.away, &err);
	else
		r = t.follow.has_ended ? exit_of(&t) : 128 + SIGPIPE;
	close_target(&t);
	return r;
}

int cm_cmd_attach(struct cm_cli *cli, int argc, char **argv)
{
	struct options o = { NULL };
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &o.root },
		{ "no-stdin", '\0', CM_OPTION_SWITCH, &o.no_stdin },
		{ "tail", 'n', CM_OPTION_TEXT, &o.text },
		{ "quiet", 'q', CM_OPTION_SWITCH, &cli->is_quiet },
		{ "verbose", '\0', CM_OPTION_SWITCH, &cli->is_verbose },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	uint64_t n_lines = 0;
	int n = 0;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) < 0 ||
	    cm_away_exec_check_words("attach", n, &err) < 0 ||
	    cm_away_absent_root(o.root, &err) < 0 ||
	    (o.text && cm_parse_u64(o.text, "--tail", 0, CM_AWAY_TAIL_MAX, &n_lines, &err) < 0))
		return cm_cli_fail(cli, &err);
	return attach(cli, &o, argv + 1, n_lines);
}
