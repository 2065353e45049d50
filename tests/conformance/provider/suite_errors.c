/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines, cancellation, and what a caller gets when he asks for what makes no sense. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "tests/conformance/provider/suite.h"

/* --- every operation, over before it begins -------------------------------------------------- */

static int no_session(void *data, const struct cm_session_info *info)
{
	(void)data;
	(void)info;
	return 0;
}

static int no_exec(void *data, const struct cm_exec_info *info)
{
	(void)data;
	(void)info;
	return 0;
}

static int no_path(void *data, const struct cm_path_info *info)
{
	(void)data;
	(void)info;
	return 0;
}

static int no_event(void *data, const struct cm_watch_event *event)
{
	(void)data;
	(void)event;
	return 0;
}

static ssize_t nothing(void *data, void *buf, size_t size)
{
	(void)data;
	(void)buf;
	(void)size;
	return 0;
}

struct attempt {
	struct suite *t;
	const struct cm_call *call;
	/* a command that runs */
	struct cm_exec *e;
	int want;
};

static void failed(const struct attempt *a, int r, const struct cm_error *err, const char *what)
{
	CHECK(a->t, r == a->want && err->code == r && err->msg[0] != '\0',
	      "%s: wanted %s, got %s (%s)", what, cm_error_name(a->want), cm_error_name(r),
	      err->msg);
}

static void each_of_sessions(const struct attempt *a)
{
	struct suite *t = a->t;
	struct cm_error err = CM_ERROR_INIT;
	struct cm_session *s = NULL;
	struct cm_session_info info;
	struct cm_spec spec;
	char name[64];
	uint32_t caps;

	suite_name(t, name);
	suite_spec(t, name, &spec);
	failed(a, cm_session_create(t->p, &spec, a->call, &s, &err), &err, "create");
	cm_spec_clear(&spec);
	failed(a, cm_session_attach(t->p, t->s->id, a->call, &s, &err), &err, "attach");
	CHECK(t, !s, "there is a session nevertheless");
	failed(a, cm_session_start(t->s, a->call, &err), &err, "start");
	failed(a, cm_session_stop(t->s, a->call, &err), &err, "stop");
	failed(a, cm_session_destroy(t->s, a->call, &err), &err, "destroy");
	failed(a, cm_session_info(t->s, a->call, &info, &err), &err, "info");
	failed(a, cm_session_list(t->p, a->call, no_session, NULL, &err), &err, "list");
	failed(a, cm_provider_probe(t->p, a->call, &caps, &err), &err, "probe");
}

static void each_of_commands(const struct attempt *a)
{
	const char *const argv[] = { "sh", "-c", "echo >> /tmp/was-run", NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv) };
	const uint64_t offsets[2] = { 0, 0 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec_event event;
	struct suite *t = a->t;
	struct cm_exec *e = NULL;

	failed(a, cm_exec_start(t->s, &request, a->call, &e, &err), &err, "exec");
	if ((t->caps & CM_CAP_DETACH) != 0)
		failed(a, cm_exec_attach(t->s, "1.1", offsets, true, a->call, &e, &err), &err,
		       "follow");
	CHECK(t, !e, "there is a command nevertheless");
	failed(a, cm_exec_list(t->s, a->call, no_exec, NULL, &err), &err, "commands");
	failed(a, cm_exec_next(a->e, NULL, a->call, &event, &err), &err, "next");
	if ((t->caps & CM_CAP_STDIN) != 0)
		failed(a, cm_exec_input(a->e, "x", 1, a->call, &err), &err, "input");
	if ((t->caps & CM_CAP_SIGNAL) != 0)
		failed(a, cm_exec_signal(a->e, SIGKILL, a->call, &err), &err, "signal");
}

static void each_of_files(const struct attempt *a)
{
	const struct cm_write_request request = { .mode = UINT32_MAX, .fill = nothing, .len = 0 };
	const struct cm_read_request one = { .length = 1, .take = suite_take };
	struct cm_error err = CM_ERROR_INIT;
	struct suite *t = a->t;
	int64_t end_ms = 0;
	char *url = NULL;

	failed(a, cm_session_read(t->s, "/tmp/f", &one, a->call, &err), &err, "read");
	failed(a, cm_session_write(t->s, "/tmp/was-run", &request, a->call, &err), &err, "write");
	failed(a, cm_session_list_files(t->s, "/tmp", 0, no_path, NULL, a->call, &err), &err, "ls");
	failed(a, cm_session_stat(t->s, "/tmp", 0, no_path, NULL, a->call, &err), &err, "stat");
	failed(a, cm_session_mkdir(t->s, "/tmp/was-run", 0, 0755, a->call, &err), &err, "mkdir");
	failed(a, cm_session_move(t->s, "/tmp/f", "/tmp/was-run", 0, a->call, &err), &err, "move");
	failed(a, cm_session_remove(t->s, "/tmp/f", 0, a->call, &err), &err, "remove");
	if ((t->caps & CM_CAP_WATCH) != 0)
		failed(a, cm_session_watch(t->s, "/tmp", no_event, NULL, a->call, &err), &err,
		       "watch");
	if ((t->caps & CM_CAP_FILE_URL) != 0)
		failed(a, cm_session_file_url(t->s, "/tmp/f", 0, 0, a->call, &url, &end_ms, &err),
		       &err, "url");
	CHECK(t, !url, "there is an address nevertheless");
}

/* Nothing of it is done, and nobody is asked. */
static void over_already(struct suite *t, const struct cm_call *over, int want)
{
	const char *const argv[] = { "sh", "-c", "sleep 2; echo on", NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv),
						 .has_input = (t->caps & CM_CAP_STDIN) != 0 };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec_event event = { 0 };
	struct attempt a = { t, over, NULL, want };
	struct outcome o;
	int before;
	int r;

	suite_sh_is(t, t->s, "echo there > /tmp/f; rm -rf /tmp/was-run", "");
	r = cm_exec_start(t->s, &request, &call, &a.e, &err);
	if (r == CM_OK)
		r = cm_exec_next(a.e, NULL, &call, &event, &err);
	if (!CHECK_OK(t, r, err, "a command"))
		return;
	/* what was asked before is written down when it has ended */
	if (t->port != 0)
		suite_sleep(400);
	before = t->port != 0 ? n_requests(t) : 0;
	each_of_sessions(&a);
	each_of_commands(&a);
	each_of_files(&a);
	if (t->port != 0)
		CHECK(t, n_requests(t) == before, "the service was asked %d times",
		      n_requests(t) - before);
	/* and all of it is usable afterwards */
	outcome_init(&o);
	(void)snprintf(o.name, sizeof(o.name), "seen");
	suite_follow(a.e, SUITE_MS, &o);
	CHECK_EXIT(t, &o, 0);
	CHECK_PRINTED(t, &o, "on\n");
	outcome_clear(&o);
	cm_exec_release(a.e);
	suite_sh_is(t, t->s, "cat /tmp/f; test -e /tmp/was-run || echo not run",
		    "there\nnot run\n");
}

static void past_deadline(struct suite *t)
{
	const struct cm_call call = { .deadline_ms = suite_now() - 1, .cancel_fd = -1 };

	over_already(t, &call, CM_E_TIMEOUT);
}

static void cancelled_before(struct suite *t)
{
	struct cm_call call = suite_call(SUITE_MS);
	int pair[2];

	if (!CHECK(t, pipe2(pair, O_CLOEXEC) == 0 && write(pair[1], "x", 1) == 1, "a pipe"))
		return;
	call.cancel_fd = pair[0];
	over_already(t, &call, CM_E_CANCELLED);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

/* --- in the middle ------------------------------------------------------------------------- */

/* A call that is cancelled after so long; the descriptor is the caller's to close. */
static struct cm_call cancelled_after(int ms)
{
	const struct itimerspec at = { .it_value = { .tv_nsec = ms * 1000000L } };
	struct cm_call call = suite_call(SUITE_MS);

	call.cancel_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	(void)timerfd_settime(call.cancel_fd, 0, &at, NULL);
	return call;
}

static void prompt(struct suite *t, int64_t since, const char *what)
{
	CHECK(t, suite_now() - since < SUITE_PATIENCE * 3000, "%s: it took %lld ms", what,
	      (long long)(suite_now() - since));
}

static void wait_cancelled(struct suite *t, bool by_deadline)
{
	const char *const argv[] = { "sh", "-c", UNTIL_TOLD "; echo late", NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv) };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec_event event = { 0 };
	struct cm_exec *e = NULL;
	struct cm_call over;
	struct outcome o;
	int64_t since;
	int r;

	suite_untell(t);
	r = cm_exec_start(t->s, &request, &call, &e, &err);
	if (r == CM_OK)
		r = cm_exec_next(e, NULL, &call, &event, &err);
	if (!CHECK_OK(t, r, err, "a command"))
		return;
	over = by_deadline ? suite_call(300) : cancelled_after(300);
	since = suite_now();
	r = cm_exec_next(e, NULL, &over, &event, &err);
	CHECK_CODE(t, r, err, by_deadline ? CM_E_TIMEOUT : CM_E_CANCELLED, "a wait");
	CHECK(t, suite_now() - since >= 250 && suite_now() - since < SUITE_PATIENCE * 1200,
	      "after %lld ms", (long long)(suite_now() - since));
	cm_fd_close(&over.cancel_fd);
	suite_tell(t);
	/* it goes on, and is followed on */
	outcome_init(&o);
	(void)snprintf(o.name, sizeof(o.name), "seen");
	suite_follow(e, SUITE_MS, &o);
	CHECK_EXIT(t, &o, 0);
	CHECK_PRINTED(t, &o, "late\n");
	outcome_clear(&o);
	cm_exec_release(e);
}

static void wait_is_cancelled(struct suite *t)
{
	wait_cancelled(t, false);
}

static void wait_times_out(struct suite *t)
{
	wait_cancelled(t, true);
}

static ssize_t endless(void *data, void *buf, size_t size)
{
	(void)data;
	memset(buf, 'x', size < 65536 ? size : 65536);
	/* slow enough not to fill a disk */
	suite_sleep(5);
	return size < 65536 ? (ssize_t)size : 65536;
}

static void write_is_cancelled(struct suite *t)
{
	const struct cm_write_request request = {
		.flags = CM_WRITE_ATOMIC, .mode = UINT32_MAX, .fill = endless, .len = -1
	};
	struct cm_error err = CM_ERROR_INIT;
	struct cm_call call;
	int64_t since;
	int r;

	suite_sh_is(t, t->s, "rm -rf /tmp/endless; mkdir /tmp/endless", "");
	since = suite_now();
	call = cancelled_after(300);
	r = cm_session_write(t->s, "/tmp/endless/f", &request, &call, &err);
	CHECK_CODE(t, r, err, CM_E_CANCELLED, "a write that is cancelled");
	prompt(t, since, "a write");
	cm_fd_close(&call.cancel_fd);
	since = suite_now();
	call = suite_call(300);
	r = cm_session_write(t->s, "/tmp/endless/f", &request, &call, &err);
	CHECK_CODE(t, r, err, CM_E_TIMEOUT, "a write that takes too long");
	prompt(t, since, "a write");
	suite_sh_is(t, t->s, "sleep 0.5; test -e /tmp/endless/f || echo none; rm -rf /tmp/endless",
		    "none\n");
}

static void watch_is_cancelled(struct suite *t)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_call call = cancelled_after(500);
	int64_t since = suite_now();
	int r = cm_session_watch(t->s, "/tmp", no_event, NULL, &call, &err);

	CHECK_CODE(t, r, err, CM_E_CANCELLED, "a watch that is cancelled");
	prompt(t, since, "a watch");
	cm_fd_close(&call.cancel_fd);
	suite_sh_is(t, t->s, "echo on", "on\n");
}

static void input_is_cancelled(struct suite *t)
{
	const char *const argv[] = { "sh", "-c", "sleep 4; wc -c > /dev/null; echo done", NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv), .has_input = true };
	struct cm_call call = suite_call(SUITE_MS);
	CM_AUTO_FREE char *bytes = cm_calloc(1, 1024 * 1024);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec *e = NULL;
	struct cm_call over;
	struct outcome o;
	int64_t since;
	int r = cm_exec_start(t->s, &request, &call, &e, &err);

	if (!CHECK_OK(t, r, err, "a command"))
		return;
	over = cancelled_after(500);
	since = suite_now();
	/* a service may take what the command does not read yet */
	for (int i = 0; i < 64 && r == CM_OK; i++)
		r = cm_exec_input(e, bytes, 1024 * 1024, &over, &err);
	if (r != CM_OK)
		CHECK_CODE(t, r, err, CM_E_CANCELLED, "input that is not read");
	prompt(t, since, "input");
	cm_fd_close(&over.cancel_fd);
	r = cm_exec_input(e, NULL, 0, &call, &err);
	CHECK_OK(t, r, err, "its end");
	outcome_init(&o);
	suite_follow(e, SUITE_MS, &o);
	CHECK_EXIT(t, &o, 0);
	CHECK_PRINTED(t, &o, "done\n");
	outcome_clear(&o);
	cm_exec_release(e);
}

/* --- no sense ------------------------------------------------------------------------------ */

static void no_command(struct suite *t)
{
	const char *const argv[] = { NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv) };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec *e = NULL;
	int r = cm_exec_start(t->s, &request, &call, &e, &err);

	CHECK_CODE(t, r, err, CM_E_INVALID, "no command");
	CHECK(t, !e, "there is one nevertheless");
}

/* What it cannot do is said, and not passed over. */
static void lacks(struct suite *t)
{
	const char *const argv[] = { "true", NULL };
	const struct cm_exec_request wants[] = {
		{ .argv = suite_v(argv), .wants_tty = true, .rows = 24, .cols = 80 },
		{ .argv = suite_v(argv), .has_input = true },
		{ .argv = suite_v(argv), .is_detached = true },
		{ .argv = suite_v(argv), .is_root = true },
		{ .argv = suite_v(argv), .timeout_ms = 1000 },
	};
	static const uint32_t caps[] = { CM_CAP_TTY, CM_CAP_STDIN, CM_CAP_DETACH, CM_CAP_ROOT_USER,
					 CM_CAP_EXEC_TIMEOUT };

	for (size_t i = 0; i < CM_ARRAY_SIZE(wants); i++) {
		struct cm_call call = suite_call(SUITE_MS);
		struct cm_error err = CM_ERROR_INIT;
		struct cm_exec *e = NULL;
		int r;

		if ((t->caps & caps[i]) != 0)
			continue;
		r = cm_exec_start(t->s, &wants[i], &call, &e, &err);
		CHECK_CODE(t, r, err, CM_E_UNSUPPORTED, cm_cap_text(caps[i]));
		CHECK(t, !e, "there is one nevertheless");
	}
}

/* No result, where none is wanted; NULL is an error that nobody wants. */
static void without_an_error(struct suite *t)
{
	const struct cm_read_request one = { .length = 1, .take = suite_take };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_session *s = NULL;

	CHECK(t, cm_session_attach(t->p, "suite-none", &call, &s, NULL) == CM_E_NOT_FOUND,
	      "attach without an error");
	CHECK(t, cm_session_read(t->s, "/tmp/none-such", &one, &call, NULL) == CM_E_NOT_FOUND,
	      "read without an error");
	cm_session_release(NULL);
	cm_exec_release(NULL);
	cm_provider_close(NULL);
}

const struct test suite_errors[] = {
	{ "a deadline that has passed, of every operation", CM_CAP_FILES, past_deadline },
	{ "a call that is cancelled, of every operation", CM_CAP_FILES, cancelled_before },
	{ "a wait is cancelled, and goes on", 0, wait_is_cancelled },
	{ "a wait takes too long, and goes on", 0, wait_times_out },
	{ "a write is cancelled", CM_CAP_FILES, write_is_cancelled },
	{ "a watch is cancelled", CM_CAP_WATCH, watch_is_cancelled },
	{ "input is cancelled", CM_CAP_STDIN, input_is_cancelled },
	{ "no command", 0, no_command },
	{ "what commands cannot have is refused", 0, lacks },
	{ "nobody wants to know why", CM_CAP_FILES, without_an_error },
	{ NULL, 0, NULL },
};
