/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of one handle, one after the other: they go over a connection to the session's keeper that the
 * handle keeps. What happens to the session in between has to be seen all the same, and whatever becomes
 * of the keeper, a command runs once or not at all. Of sessions of this host alone.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/conformance/provider/suite.h"

#define COUNT "echo once >> ~/count; cat ~/count"

/* Of the casemate beside this program; 0: it could not be told. */
static pid_t keeper_of(struct suite *t, const char *id)
{
	char line[1024];
	char own[256] = "";
	FILE *from;
	long pid = 0;

	if (readlink("/proc/self/exe", own, sizeof(own) - 1) < 0 || !strrchr(own, '/'))
		return 0;
	*strrchr(own, '/') = '\0';
	(void)snprintf(line, sizeof(line),
		       "'%s/casemate' events '%s' --type session.started | tail -n 1", own, id);
	from = popen(line, "r");
	while (from && fgets(line, sizeof(line), from)) {
		const char *at = strstr(line, "\"keeperPid\":");

		if (at)
			pid = strtol(at + strlen("\"keeperPid\":"), NULL, 10);
	}
	if (from)
		(void)pclose(from);
	CHECK(t, pid > 0, "the keeper of %s", id);
	return (pid_t)pid;
}

/* Of this process: its connections to keepers. */
static int n_sockets(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	char to[16] = "";
	int n = 0;

	while (dir && (entry = readdir(dir)) != NULL) {
		if (readlinkat(dirfd(dir), entry->d_name, to, sizeof(to) - 1) > 0)
			n += strncmp(to, "socket:", 7) == 0;
	}
	if (dir)
		(void)closedir(dir);
	return n;
}

/* In a while, by a process of its own. */
static pid_t signal_later(pid_t pid, int sig, int ms)
{
	pid_t child = fork();

	if (child == 0) {
		suite_sleep(ms);
		_exit(kill(pid, sig) < 0);
	}
	return child;
}

static void bury(pid_t child)
{
	if (child > 0)
		(void)waitpid(child, NULL, 0);
}

static bool is_gone(pid_t pid)
{
	for (int i = 0; i < 100 * SUITE_PATIENCE && kill(pid, 0) == 0; i++)
		suite_sleep(50);
	return kill(pid, 0) < 0;
}

/* Of `ms` without a command it ends by itself; 0: it does not. */
static struct cm_session *create(struct suite *t, uint64_t idle_ms)
{
	struct cm_spec spec;
	char name[64];

	suite_name(t, name);
	suite_spec(t, name, &spec);
	if (idle_ms > 0)
		spec.limits.idle = (struct cm_limit){ .value = idle_ms, .is_set = true };
	return suite_create_of(t, &spec, "a session is made");
}

/* One that has run COUNT once, over what is kept since, and whose keeper got `sig` (0: none). NULL: said why. */
static struct cm_session *create_used(struct suite *t, uint64_t idle_ms, int sig, pid_t *ret_keeper)
{
	struct cm_session *s = create(t, idle_ms);

	if (!s)
		return NULL;
	suite_sh_is(t, s, COUNT, "once\n");
	*ret_keeper = keeper_of(t, s->id);
	if (*ret_keeper > 0 &&
	    (sig == 0 || CHECK(t, kill(*ret_keeper, sig) == 0, "the keeper has ended")))
		return s;
	suite_end(t, s);
	return NULL;
}

/* A command to its end, which is a good one. */
static void ends_with(struct suite *t, struct cm_exec *e, const char *prints)
{
	struct outcome o;

	outcome_init(&o);
	suite_follow(e, SUITE_MS, &o);
	CHECK_PRINTED(t, &o, prints);
	CHECK_EXIT(t, &o, 0);
	outcome_clear(&o);
	cm_exec_release(e);
}

/* --- what is kept -------------------------------------------------------------------------- */

static void one_connection(struct suite *t)
{
	struct cm_session *s = create(t, 0);
	struct cm_session *same = NULL;
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	int before = n_sockets();
	int r;

	if (!s)
		return;
	r = cm_session_attach(t->p, s->id, &call, &same, &err);
	if (CHECK_OK(t, r, err, "another handle")) {
		for (int i = 0; i < 20; i++)
			suite_sh_is(t, same, "echo yes", "yes\n");
		CHECK(t, n_sockets() == before + 1, "%d sockets after %d", n_sockets(), before);
		cm_session_release(same);
		CHECK(t, n_sockets() == before, "%d sockets after %d", n_sockets(), before);
	}
	suite_end(t, s);
}

static void several_at_once(struct suite *t)
{
	const char *const argv[] = { "sh", "-c", "echo \"$N\"; " UNTIL_TOLD, NULL };
	struct cm_exec *e[6] = { NULL };
	struct cm_call call = suite_call(SUITE_MS);

	for (int round = 0; round < 2; round++) {
		suite_untell(t);
		for (int i = 0; i < 6; i++) {
			char own[16];
			const char *const env[] = { own, NULL };
			const struct cm_exec_request request = { .argv = suite_v(argv),
								 .env = suite_v(env) };
			struct cm_error err = CM_ERROR_INIT;

			(void)snprintf(own, sizeof(own), "N=%d", i);
			CHECK_OK(t, cm_exec_start(t->s, &request, &call, &e[i], &err), err,
				 "a command beside others");
		}
		suite_tell(t);
		for (int i = 0; i < 6; i++) {
			char want[16];

			(void)snprintf(want, sizeof(want), "%d\n", i);
			if (e[i])
				ends_with(t, e[i], want);
		}
	}
}

/* A keeper takes 200 clients: whoever has no command gives way. */
static void more_than_there_is_room(struct suite *t)
{
	struct cm_session *handles[205] = { NULL };
	struct cm_session *s = create(t, 0);
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	size_t n = 0;

	if (!s)
		return;
	while (n < sizeof(handles) / sizeof(*handles) &&
	       CHECK_OK(t, cm_session_attach(t->p, s->id, &call, &handles[n], &err), err,
			"one more handle")) {
		/* what was used a moment ago is not given up */
		if (n == 200)
			suite_sleep(50);
		if (!suite_sh_is(t, handles[n++], "echo yes", "yes\n"))
			break;
	}
	/* whose connection was closed */
	suite_sh_is(t, handles[0], "echo yes", "yes\n");
	while (n > 0)
		cm_session_release(handles[--n]);
	suite_end(t, s);
}

static void each_where_it_says(struct suite *t)
{
	const char *const argv[] = { "pwd", NULL };
	struct cm_exec_request request = { .argv = suite_v(argv), .cwd = "/usr/bin" };
	struct outcome o;

	suite_run(t, t->s, &request, &o);
	CHECK_PRINTED(t, &o, "/usr/bin\n");
	outcome_clear(&o);
	request.cwd = "/nowhere";
	suite_run(t, t->s, &request, &o);
	CHECK(t, o.r == CM_E_INVALID, "a directory that is not there: %s", cm_error_name(o.r));
	outcome_clear(&o);
	request.cwd = NULL;
	suite_run(t, t->s, &request, &o);
	CHECK(t, o.r == CM_OK && !outcome_printed(&o, "/usr/bin\n"), "where the last one was");
	outcome_clear(&o);
}

/* --- what happens in between --------------------------------------------------------------- */

static void made_anew(struct suite *t)
{
	struct cm_session *s = create(t, 0);
	struct cm_session *other = NULL;
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_spec spec;
	int r;

	if (!s)
		return;
	suite_sh_is(t, s, "echo old > /tmp/old; echo \"[$NEW]\"", "[]\n");
	r = cm_session_attach(t->p, s->id, &call, &other, &err);
	CHECK_OK(t, r, err, "another handle");
	if (r == CM_OK) {
		CHECK_OK(t, cm_session_destroy(other, &call, &err), err, "destroyed by another");
		cm_session_release(other);
	}
	suite_spec(t, s->id, &spec);
	(void)cm_strv_add(&spec.env, "NEW=yes");
	r = cm_session_create(t->p, &spec, &call, &other, &err);
	cm_spec_clear(&spec);
	if (CHECK_OK(t, r, err, "and made anew"))
		cm_session_release(other);
	suite_sh_is(t, s, "test -e /tmp/old || echo \"[$NEW]\"", "[yes]\n");
	suite_end(t, s);
}

static void idle_all_the_same(struct suite *t)
{
	pid_t keeper = 0;
	struct cm_session *s = create_used(t, 1000, 0, &keeper);

	if (!s)
		return;
	CHECK(t, keeper > 0 && is_gone(keeper), "a handle keeps the session from ending");
	suite_sh_is(t, s, COUNT, "once\nonce\n");
	suite_end(t, s);
}

static void keeper_killed(struct suite *t)
{
	pid_t keeper = 0;
	struct cm_session *s = create_used(t, 0, SIGKILL, &keeper);

	if (!s)
		return;
	suite_sh_is(t, s, COUNT, "once\nonce\n");
	suite_end(t, s);
}

/* --- and just when a command is asked for ---------------------------------------------------- */

/* It reads nothing any more, and is killed with the request in its socket. */
static void killed_with_request(struct suite *t)
{
	pid_t keeper = 0;
	struct cm_session *s = create_used(t, 0, SIGSTOP, &keeper);
	pid_t child;

	if (!s)
		return;
	child = signal_later(keeper, SIGKILL, 300);
	suite_sh_is(t, s, COUNT, "once\nonce\n");
	bury(child);
	suite_end(t, s);
}

/* Its idle time has passed before it reads the request: it is ending, and refuses. */
static void refused_at_its_end(struct suite *t)
{
	pid_t keeper = 0;
	struct cm_session *s = create_used(t, 1000, SIGSTOP, &keeper);
	pid_t child;

	if (!s)
		return;
	suite_sleep(1500);
	child = signal_later(keeper, SIGCONT, 300);
	suite_sh_is(t, s, COUNT, "once\nonce\n");
	bury(child);
	suite_end(t, s);
}

/* A keeper that hangs is nobody's who has enough of it; and what was given up is not run some day. */
static void given_up(struct suite *t)
{
	pid_t keeper = 0;
	const char *const argv[] = { "sh", "-c", COUNT, NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv) };
	struct cm_session *s = create_used(t, 0, SIGSTOP, &keeper);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec_event event;
	struct cm_exec *e = NULL;
	struct cm_call call;
	int64_t since;
	int r;

	if (!s)
		return;
	since = suite_now();
	call = suite_call(500);
	r = cm_exec_start(s, &request, &call, &e, &err);
	if (r == CM_OK)
		r = cm_exec_next(e, NULL, &call, &event, &err);
	CHECK_CODE(t, r, err, CM_E_TIMEOUT, "a command of a keeper that hangs");
	CHECK(t, suite_now() - since < SUITE_PATIENCE * 3000, "it took %lld ms",
	      (long long)(suite_now() - since));
	cm_exec_release(e);
	(void)kill(keeper, SIGCONT);
	suite_sh_is(t, s, COUNT, "once\nonce\n");
	suite_end(t, s);
}

/* Nor does anybody wait for it without an end. */
static void given_up_by_itself(struct suite *t)
{
	pid_t keeper = 0;
	const char *const argv[] = { "true", NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv) };
	struct cm_call call = { .deadline_ms = INT64_MAX, .cancel_fd = -1 };
	struct cm_session *s = create_used(t, 0, SIGSTOP, &keeper);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec_event event;
	struct cm_exec *e = NULL;
	int r;

	if (!s)
		return;
	r = cm_exec_start(s, &request, &call, &e, &err);
	if (r == CM_OK)
		r = cm_exec_next(e, NULL, &call, &event, &err);
	CHECK_CODE(t, r, err, CM_E_ISOLATION, "a command of a keeper that hangs");
	r = e ? cm_exec_signal(e, SIGTERM, &call, &err) : r;
	CHECK_CODE(t, r, err, CM_E_ISOLATION, "and that stays so");
	cm_exec_release(e);
	(void)kill(keeper, SIGCONT);
	suite_end(t, s);
}

/* While it is asked for anew a call may end: the next one goes on. */
static void deadline_in_between(struct suite *t)
{
	pid_t keeper = 0;
	const char *const argv[] = { "sh", "-c", COUNT, NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv) };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_session *s = create_used(t, 0, SIGSTOP, &keeper);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec_event event;
	struct cm_exec *e = NULL;
	struct cm_call soon;
	int r;

	if (!s)
		return;
	r = cm_exec_start(s, &request, &call, &e, &err);
	CHECK_OK(t, r, err, "a command is asked for");
	(void)kill(keeper, SIGKILL);
	for (int i = 0; i < 3 && r == CM_OK; i++) {
		soon = suite_call(2);
		r = cm_exec_next(e, NULL, &soon, &event, &err);
		CHECK_CODE(t, r, err, CM_E_TIMEOUT, "no session is started so soon");
		r = r == CM_E_TIMEOUT ? CM_OK : r;
	}
	if (e)
		ends_with(t, e, "once\nonce\n");
	suite_end(t, s);
}

/* What is written goes to the one that runs. */
static void input_of_one_that_ended(struct suite *t)
{
	pid_t keeper = 0;
	const char *const argv[] = { "cat", NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv), .has_input = true };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_session *s = create_used(t, 0, SIGSTOP, &keeper);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec *e = NULL;
	pid_t child;
	int r;

	if (!s)
		return;
	child = signal_later(keeper, SIGKILL, 300);
	r = cm_exec_start(s, &request, &call, &e, &err);
	CHECK_OK(t, r, err, "a command with an input");
	if (r == CM_OK) {
		CHECK_OK(t, cm_exec_input(e, "in it\n", 6, &call, &err), err, "its input");
		CHECK_OK(t, cm_exec_input(e, NULL, 0, &call, &err), err, "and its end");
		ends_with(t, e, "in it\n");
	}
	bury(child);
	suite_end(t, s);
}

const struct test suite_kept[] = {
	{ "one connection for commands one after the other", 0, one_connection },
	{ "several at once, and again", 0, several_at_once },
	{ "more connections than there is room for", 0, more_than_there_is_room },
	{ "each in the directory that it says", 0, each_where_it_says },
	{ "a session that was made anew", 0, made_anew },
	{ "a session that is idle ends", CM_CAP_LIMIT_TIME, idle_all_the_same },
	{ "a keeper that was killed", 0, keeper_killed },
	{ "a keeper that is killed with the request unread", 0, killed_with_request },
	{ "a keeper that ends when it is asked", CM_CAP_LIMIT_TIME, refused_at_its_end },
	{ "a keeper that is killed before an input is written", CM_CAP_STDIN,
	  input_of_one_that_ended },
	{ "a deadline while it is asked for anew", 0, deadline_in_between },
	{ "a keeper that hangs, and a deadline", 0, given_up },
	{ "a keeper that hangs, and none", 0, given_up_by_itself },
	{ NULL, 0, NULL },
};
