/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that are waited for. C1 to C12 are Mastra's, as in the README above. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "tests/conformance/provider/suite.h"

static void run_argv(struct suite *t, const char *const *argv, struct outcome *o)
{
	const struct cm_exec_request request = { .argv = suite_v(argv) };

	suite_run(t, t->s, &request, o);
}

static void prints_all(struct suite *t, const char *const *argv, const char *text)
{
	struct outcome o;

	run_argv(t, argv, &o);
	CHECK_EXIT(t, &o, 0);
	CHECK_PRINTED(t, &o, text);
	outcome_clear(&o);
}

static void c1_echo(struct suite *t)
{
	const char *const argv[] = { "echo", "hello", NULL };
	struct outcome o;

	run_argv(t, argv, &o);
	CHECK_EXIT(t, &o, 0);
	CHECK(t, o.end.kind == CM_EXEC_EXITED, "kind %d", o.end.kind);
	CHECK_PRINTED(t, &o, "hello\n");
	CHECK(t, o.errs.len == 0, "stderr has something");
	CHECK(t, o.name[0] != '\0', "it has no name");
	outcome_clear(&o);
}

static void c3_stderr(struct suite *t)
{
	struct outcome o;

	suite_sh(t, "echo out; echo err >&2", &o);
	CHECK_EXIT(t, &o, 0);
	CHECK_PRINTED(t, &o, "out\n");
	CHECK(t, o.errs.data && strcmp(o.errs.data, "err\n") == 0, "stderr '%s'",
	      o.errs.data ? o.errs.data : "");
	outcome_clear(&o);
}

static void c4_status(struct suite *t)
{
	static const int codes[] = { 1, 2, 42, 124, 125, 126, 127, 128, 130, 137, 255 };

	for (size_t i = 0; i < CM_ARRAY_SIZE(codes); i++) {
		char text[32];
		struct outcome o;

		(void)snprintf(text, sizeof(text), "exit %d", codes[i]);
		suite_sh(t, text, &o);
		CHECK_EXIT(t, &o, codes[i]);
		outcome_clear(&o);
	}
}

static void c5_order(struct suite *t)
{
	const char *const argv[] = { "echo", "a", "b", "c", NULL };

	prints_all(t, argv, "a b c\n");
}

static void c6_arguments(struct suite *t)
{
	const char *const argv[] = { "printf",
				     "<%s>",
				     "one two",
				     "",
				     "a'b\"c",
				     "$HOME `id`",
				     "\\n\t*?",
				     "-n",
				     "--",
				     "line\nline",
				     "\xc3\xa4\xe2\x82\xac",
				     "~",
				     "!x",
				     ";true&",
				     NULL };

	prints_all(t, argv,
		   "<one two><><a'b\"c><$HOME `id`><\\n\t*?><-n><--><line\nline>"
		   "<\xc3\xa4\xe2\x82\xac><~><!x><;true&>");
}

static void c7_variables(struct suite *t)
{
	const char *const argv[] = { "sh", "-c", "printf '%s|%s|%s' \"$ONE\" \"$TWO\" \"$THREE\"",
				     NULL };
	const char *const env[] = { "ONE=1", "TWO=it's \"two\" $HOME\nline", "THREE=", NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv), .env = suite_v(env) };
	struct outcome o;

	suite_run(t, t->s, &request, &o);
	CHECK_EXIT(t, &o, 0);
	CHECK_PRINTED(t, &o, "1|it's \"two\" $HOME\nline|");
	outcome_clear(&o);
	/* one command's alone */
	suite_sh(t, "printf '%s' \"$ONE\"", &o);
	CHECK_PRINTED(t, &o, "");
	outcome_clear(&o);
}

static void c9_directory(struct suite *t)
{
	const char *const argv[] = { "pwd", NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv), .cwd = "/tmp" };
	struct outcome o;

	suite_run(t, t->s, &request, &o);
	CHECK_EXIT(t, &o, 0);
	CHECK_PRINTED(t, &o, "/tmp\n");
	outcome_clear(&o);
}

static void no_directory(struct suite *t)
{
	const char *const argv[] = { "pwd", NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv), .cwd = "/tmp/not/there" };
	struct outcome o;

	suite_run(t, t->s, &request, &o);
	CHECK(t, o.r < 0 || o.end.exit_code != 0, "it ran");
	CHECK(t, o.out.len == 0, "it printed '%s'", o.out.data ? o.out.data : "");
	if (o.r < 0)
		CHECK(t, o.r == CM_E_INVALID || o.r == CM_E_NOT_FOUND, "%s: %s", cm_error_name(o.r),
		      o.err.msg);
	outcome_clear(&o);
	suite_sh_is(t, t->s, "echo still there", "still there\n");
}

/* It ignores TERM, and so does what it started. */
static void c10_timeout(struct suite *t)
{
	const char *const argv[] = {
		"sh", "-c", "trap '' TERM; echo begun; sleep 300 & while :; do sleep 1; done", NULL
	};
	const struct cm_exec_request request = { .argv = suite_v(argv),
						 .timeout_ms = 500,
						 .grace_ms = 300 };
	int64_t since = suite_now();
	struct outcome o;

	suite_run(t, t->s, &request, &o);
	CHECK_EXIT(t, &o, 124);
	CHECK(t, o.end.kind == CM_EXEC_TIMED_OUT, "kind %d", o.end.kind);
	CHECK_PRINTED(t, &o, "begun\n");
	CHECK(t, suite_now() - since < SUITE_PATIENCE * 8000, "it took %lld ms",
	      (long long)(suite_now() - since));
	outcome_clear(&o);
	suite_sh_is(t, t->s, "echo still there", "still there\n");
}

static void timeout_unused(struct suite *t)
{
	const char *const argv[] = { "sh", "-c", "echo quick; exit 3", NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv),
						 .timeout_ms = 20000,
						 .grace_ms = 1000 };
	struct outcome o;

	suite_run(t, t->s, &request, &o);
	CHECK_EXIT(t, &o, 3);
	CHECK_PRINTED(t, &o, "quick\n");
	outcome_clear(&o);
}

/* Output and environment of each are its own, however they are read. */
static void c11_three(struct suite *t)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_exec *e[3] = { NULL };

	for (int i = 0; i < 3; i++) {
		const char *const argv[] = { "sh", "-c", "sleep 0.2; echo \"I am $WHO\"", NULL };
		char who[] = "WHO=0";
		const char *const env[] = { who, NULL };
		const struct cm_exec_request request = { .argv = suite_v(argv),
							 .env = suite_v(env) };
		struct cm_error err = CM_ERROR_INIT;
		int r;

		who[4] = (char)('0' + i);
		r = cm_exec_start(t->s, &request, &call, &e[i], &err);
		CHECK_OK(t, r, err, "start");
	}
	for (int i = 2; i >= 0; i--) {
		char want[] = "I am 0\n";
		struct outcome o;

		want[5] = (char)('0' + i);
		outcome_init(&o);
		if (e[i])
			suite_follow(e[i], SUITE_MS, &o);
		CHECK_EXIT(t, &o, 0);
		CHECK_PRINTED(t, &o, want);
		outcome_clear(&o);
		cm_exec_release(e[i]);
	}
}

/* --- output ---------------------------------------------------------------------------- */

static void comes_while_it_runs(struct suite *t)
{
	const char *const argv[] = { "sh", "-c",
				     "echo first; echo first >&2; " UNTIL_TOLD "; echo last",
				     NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv) };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec_event event = { 0 };
	struct cm_exec *e = NULL;
	unsigned int seen = 0;
	struct outcome o;
	int r;

	suite_untell(t);
	r = cm_exec_start(t->s, &request, &call, &e, &err);
	while (r == CM_OK && seen != 3) {
		r = cm_exec_next(e, NULL, &call, &event, &err);
		if (r == CM_OK && event.kind == CM_EXEC_HAS_OUTPUT)
			seen |= 1U << (event.stream - 1);
	}
	CHECK_OK(t, r, err, "both streams come before the end");
	suite_tell(t);
	outcome_init(&o);
	(void)snprintf(o.name, sizeof(o.name), "seen");
	if (e)
		suite_follow(e, SUITE_MS, &o);
	CHECK_EXIT(t, &o, 0);
	CHECK_PRINTED(t, &o, "last\n");
	outcome_clear(&o);
	cm_exec_release(e);
}

/* --- what cannot be executed --------------------------------------------------------------- */

static void not_found(struct suite *t)
{
	const char *const bare[] = { "no-such-program-anywhere", NULL };
	const char *const path[] = { "/tmp/no/such/program", NULL };
	const char *const *const argvs[] = { bare, path };

	for (size_t i = 0; i < CM_ARRAY_SIZE(argvs); i++) {
		struct outcome o;

		run_argv(t, argvs[i], &o);
		CHECK_EXIT(t, &o, 127);
		CHECK(t, o.end.kind == CM_EXEC_EXITED || o.end.kind == CM_EXEC_NOT_EXECUTED,
		      "kind %d", o.end.kind);
		outcome_clear(&o);
	}
}

static void not_executable(struct suite *t)
{
	const char *const file[] = { "/tmp/suite-data", NULL };
	const char *const directory[] = { "/tmp", NULL };
	const char *const *const argvs[] = { file, directory };

	suite_sh_is(t, t->s, "echo data > /tmp/suite-data", "");
	for (size_t i = 0; i < CM_ARRAY_SIZE(argvs); i++) {
		struct outcome o;

		run_argv(t, argvs[i], &o);
		CHECK_EXIT(t, &o, 126);
		outcome_clear(&o);
	}
}

/* --- signals ------------------------------------------------------------------------------- */

static void dies_by_itself(struct suite *t)
{
	static const struct {
		const char *text;
		int sig;
	} ways[] = { { "kill -KILL $$", SIGKILL },
		     { "kill -TERM $$", SIGTERM },
		     { "kill -SEGV $$", SIGSEGV } };

	for (size_t i = 0; i < CM_ARRAY_SIZE(ways); i++) {
		struct outcome o;

		suite_sh(t, ways[i].text, &o);
		CHECK_EXIT(t, &o, 128 + ways[i].sig);
		outcome_clear(&o);
	}
}

static void signal_with(struct suite *t, int sig, const char *text, int code)
{
	const char *const argv[] = { "sh", "-c", text, NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv) };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec_event event = { 0 };
	struct cm_exec *e = NULL;
	struct outcome o;
	int64_t since;
	int r = cm_exec_start(t->s, &request, &call, &e, &err);

	while (r == CM_OK && event.kind != CM_EXEC_HAS_OUTPUT)
		r = cm_exec_next(e, NULL, &call, &event, &err);
	since = suite_now();
	if (r == CM_OK)
		r = cm_exec_signal(e, sig, &call, &err);
	CHECK_OK(t, r, err, "a signal is sent");
	outcome_init(&o);
	(void)snprintf(o.name, sizeof(o.name), "seen");
	if (e)
		suite_follow(e, SUITE_MS, &o);
	CHECK_EXIT(t, &o, code);
	CHECK(t, suite_now() - since < SUITE_PATIENCE * 8000, "it ended late");
	if (e) {
		r = cm_exec_signal(e, sig, &call, &err);
		CHECK_CODE(t, r, err, CM_E_NOT_FOUND, "a signal after the end");
	}
	outcome_clear(&o);
	cm_exec_release(e);
}

static void signals(struct suite *t)
{
	signal_with(t, SIGTERM, "echo up; exec sleep 300", 143);
	signal_with(t, SIGKILL, "trap '' TERM; echo up; while :; do sleep 1; done", 137);
	signal_with(t, SIGTERM, "trap 'exit 9' TERM; echo up; while :; do sleep 0.1; done", 9);
}

/* --- terminals ----------------------------------------------------------------------------- */

static void terminal(struct suite *t)
{
	const char *const argv[] = { "sh", "-c",
				     "test -t 0 && test -t 1 && stty size; read x; stty size",
				     NULL };
	const struct cm_exec_request request = {
		.argv = suite_v(argv), .wants_tty = true, .has_input = true, .rows = 31, .cols = 97
	};
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec_event event = { 0 };
	struct cm_exec *e = NULL;
	struct outcome o;
	int r = cm_exec_start(t->s, &request, &call, &e, &err);

	outcome_init(&o);
	while (r == CM_OK && !(o.out.data && strstr(o.out.data, "31 97"))) {
		r = cm_exec_next(e, NULL, &call, &event, &err);
		if (r == CM_OK && event.kind == CM_EXEC_HAS_OUTPUT)
			cm_buf_append(&o.out, event.bytes, event.len);
		if (r == CM_OK && event.kind == CM_EXEC_HAS_ENDED)
			break;
	}
	CHECK_OK(t, r, err, "its size is told");
	if (r == CM_OK)
		r = cm_exec_resize(e, 40, 132, &call, &err);
	if (r == CM_OK)
		r = cm_exec_input(e, "go\n", 3, &call, &err);
	CHECK_OK(t, r, err, "it is resized and typed at");
	(void)snprintf(o.name, sizeof(o.name), "seen");
	if (e && r == CM_OK)
		suite_follow(e, SUITE_MS, &o);
	CHECK_EXIT(t, &o, 0);
	CHECK(t, o.out.data && strstr(o.out.data, "40 132"), "printed '%s'",
	      o.out.data ? o.out.data : "");
	outcome_clear(&o);
	cm_exec_release(e);
}

static void terminal_input_ends(struct suite *t)
{
	const char *const argv[] = { "cat", NULL };
	const struct cm_exec_request request = {
		.argv = suite_v(argv), .wants_tty = true, .has_input = true, .rows = 24, .cols = 80
	};
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec *e = NULL;
	struct outcome o;
	int r = cm_exec_start(t->s, &request, &call, &e, &err);

	if (r == CM_OK)
		r = cm_exec_input(e, "line\n", 5, &call, &err);
	if (r == CM_OK)
		r = cm_exec_input(e, NULL, 0, &call, &err);
	CHECK_OK(t, r, err, "it is typed at");
	outcome_init(&o);
	if (e)
		suite_follow(e, SUITE_MS, &o);
	CHECK_EXIT(t, &o, 0);
	CHECK(t, o.out.data && strstr(o.out.data, "line"), "it echoes");
	outcome_clear(&o);
	cm_exec_release(e);
}

/* --- the rest ------------------------------------------------------------------------------ */

static void long_arguments(struct suite *t)
{
	CM_AUTO_FREE char *text = cm_malloc(100001);
	const char *const argv[] = { "sh", "-c", "printf %s \"$1\" | wc -c | tr -d ' '",
				     "sh", text, NULL };

	memset(text, 'x', 100000);
	text[100000] = '\0';
	prints_all(t, argv, "100000\n");
}

/* What a command leaves running with its output keeps nobody for ever. */
static void left_behind(struct suite *t)
{
	int64_t since = suite_now();
	struct outcome o;

	suite_untell(t);
	/* a service tells of an end when nobody has its output any more; that of this host is told at once */
	suite_sh(t, t->port != 0 ? "sleep 4 & echo done" : UNTIL_TOLD " & echo done", &o);
	CHECK_EXIT(t, &o, 0);
	CHECK_PRINTED(t, &o, "done\n");
	CHECK(t, suite_now() - since < SUITE_PATIENCE * 10000, "it took %lld ms",
	      (long long)(suite_now() - since));
	outcome_clear(&o);
	suite_tell(t);
}

static void as_root(struct suite *t)
{
	const char *const argv[] = { "id", "-u", NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv), .is_root = true };
	const struct cm_exec_request plain = { .argv = suite_v(argv) };
	struct cm_session *s;
	struct outcome o;
	char name[64];

	suite_name(t, name);
	s = suite_create_root(t, name);
	if (!s)
		return;
	suite_run(t, s, &request, &o);
	CHECK_EXIT(t, &o, 0);
	CHECK_PRINTED(t, &o, "0\n");
	outcome_clear(&o);
	suite_run(t, s, &plain, &o);
	CHECK_EXIT(t, &o, 0);
	/* the session's commands are root */
	CHECK_PRINTED(t, &o, "0\n");
	outcome_clear(&o);
	suite_end(t, s);
}

static void wakes(struct suite *t)
{
	const char *const argv[] = { "sh", "-c", UNTIL_TOLD, NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv) };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec_event event = { 0 };
	struct cm_exec *e = NULL;
	struct pollfd fd = { .fd = -1, .events = POLLIN };
	struct cm_wake wake = { &fd, 1 };
	int pair[2];
	int r;

	if (!CHECK(t, pipe2(pair, O_CLOEXEC) == 0, "a pipe"))
		return;
	suite_untell(t);
	r = cm_exec_start(t->s, &request, &call, &e, &err);
	fd.fd = pair[0];
	if (r == CM_OK)
		r = cm_exec_next(e, &wake, &call, &event, &err);
	CHECK(t, r == CM_OK && event.kind == CM_EXEC_HAS_STARTED, "%s: event %d", err.msg,
	      event.kind);
	CHECK(t, write(pair[1], "x", 1) == 1, "written");
	if (r == CM_OK)
		r = cm_exec_next(e, &wake, &call, &event, &err);
	CHECK(t, r == CM_OK && event.kind == CM_EXEC_WOKEN && (fd.revents & POLLIN) != 0,
	      "%s: event %d", err.msg, event.kind);
	suite_tell(t);
	if (r == CM_OK)
		r = cm_exec_next(e, NULL, &call, &event, &err);
	CHECK(t, r == CM_OK && event.kind == CM_EXEC_HAS_ENDED && event.end.exit_code == 0,
	      "%s: event %d", err.msg, event.kind);
	cm_exec_release(e);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

const struct test suite_exec[] = {
	{ "C1 C2: echo, exit code 0 and what it printed", 0, c1_echo },
	{ "C3: stderr is kept apart", 0, c3_stderr },
	{ "C4: a failure is its exit code", 0, c4_status },
	{ "C5: arguments keep their order", 0, c5_order },
	{ "C6: an argument is one, whatever is in it", 0, c6_arguments },
	{ "C7 C8: variables, of this command alone", 0, c7_variables },
	{ "C9: another directory", 0, c9_directory },
	{ "a directory that is not there", 0, no_directory },
	{ "C10: a timeout ends what ignores TERM", CM_CAP_EXEC_TIMEOUT, c10_timeout },
	{ "a timeout that is not reached changes nothing", CM_CAP_EXEC_TIMEOUT, timeout_unused },
	{ "C11 C12: three at once, each with its own", 0, c11_three },
	{ "output comes while it runs", 0, comes_while_it_runs },
	{ "not found is 127", 0, not_found },
	{ "not executable is 126", 0, not_executable },
	{ "who dies by a signal of his own", 0, dies_by_itself },
	{ "signals", CM_CAP_SIGNAL, signals },
	{ "a terminal, its size and its input", CM_CAP_TTY | CM_CAP_STDIN, terminal },
	{ "the end of a terminal's input", CM_CAP_TTY | CM_CAP_STDIN, terminal_input_ends },
	{ "an argument of 100 KB", 0, long_arguments },
	{ "what is left behind keeps nobody", 0, left_behind },
	{ "root", CM_CAP_ROOT_USER, as_root },
	{ "descriptors of the caller's wake", 0, wakes },
	{ NULL, 0, NULL },
};
