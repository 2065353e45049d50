/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ending an exec's tree by its mark, from pid 1 of a pid namespace with a /proc of its own.
 *
 * What is dead is judged by who is left in /proc and not by marks: beside pid 1 and the innocents
 * there may be nobody.  Each scenario runs in a namespace of its own whose pid 1 is the test's
 * child, so that nothing outlives it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "isolation/keeper/tree.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

/* kernel ids that nothing else uses */
#define ID_BASE 1900000000U
#define AGENT 1000U
#define FIRST_MARK 60000U
#define NOBODY 65534U

/* skip the test */
#define NO_NAMESPACES 77

enum kind {
	MARK_GID,
	MARK_UTS,
};

struct scenario {
	const char *payload;
	enum kind kind;
	/* one id in the map, as an ordinary user has it */
	bool is_single_id;
	/* processes to wait for before the kill; 0: some milliseconds */
	size_t n_wanted;
	int rounds;
};

/* --- payloads: this program again, with the payload's name ----------------------------------- */

static int idle(void)
{
	while (pause() < 0)
		;
	return 0;
}

static int deep_chain(void)
{
	for (int i = 0; i < 30; i++) {
		if (fork() != 0)
			return idle();
		(void)setsid();
	}
	return idle();
}

/* Chains that replace themselves for ever: no process lives long enough to be looked at twice. */
static int comets(void)
{
	/* what they leave behind waits for pid 1, and must not use the machine's pids up */
	struct rlimit limit = { 2000, 2000 };

	(void)prctl(PR_SET_DUMPABLE, 0);
	if (setrlimit(RLIMIT_NPROC, &limit) != 0)
		return 1;
	for (int i = 0; i < 8; i++) {
		if (fork() != 0)
			continue;
		for (;;) {
			if (fork() > 0)
				_exit(0);
			(void)setsid();
		}
	}
	return 0;
}

static int bomb(void)
{
	struct rlimit limit = { 300, 300 };

	(void)prctl(PR_SET_DUMPABLE, 0);
	if (setrlimit(RLIMIT_NPROC, &limit) != 0)
		return 1;
	while (setsid() < 0 || getpid() > 0)
		(void)fork();
	return 0;
}

static int non_dumpable(void)
{
	(void)prctl(PR_SET_DUMPABLE, 0);
	return idle();
}

static void *live_on(void *data)
{
	(void)data;
	for (;;)
		(void)usleep(1000);
	return NULL;
}

/* The first thread ends and the process goes on: it looks like a zombie and is none. */
static int headless(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, live_on, NULL) != 0)
		return 1;
	(void)syscall(SYS_exit, 0);
	return 1;
}

/* Ignores what can be ignored, and is traced by its own child. */
static int stubborn(void)
{
	for (int sig = 1; sig < 32; sig++)
		(void)signal(sig, SIG_IGN);
	for (int i = 0; i < 5; i++) {
		if (fork() == 0)
			return idle();
	}
	(void)raise(SIGSTOP);
	return idle();
}

static const struct {
	const char *name;
	int (*run)(void);
} payloads[] = {
	{ "idle", idle },	  { "deep-chain", deep_chain },	    { "comets", comets },
	{ "bomb", bomb },	  { "non-dumpable", non_dumpable }, { "headless", headless },
	{ "stubborn", stubborn },
};

static int run_payload(const char *name)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(payloads); i++) {
		if (strcmp(payloads[i].name, name) == 0)
			return payloads[i].run();
	}
	return 1;
}

/* --- inside: pid 1 --------------------------------------------------------------------------- */

static void __attribute__((format(printf, 1, 2), noreturn)) give_up(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fprintf(stderr, " (errno %d)\n", errno);
	_exit(1);
}

#define NEED(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			give_up("%s:%d: %s", __FILE__, __LINE__, #condition);                      \
	} while (0)

static void reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static char state_of(pid_t pid)
{
	char path[48];
	char text[512];
	const char *p;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (cm_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return '\0';
	p = strrchr(text, ')');
	return (char)(p ? p[2] : '\0');
}

/* Everybody in the namespace but pid 1 and those that are named. */
static size_t count_others(const pid_t *innocent, size_t n_innocent)
{
	DIR *dir;
	struct dirent *entry;
	size_t n = 0;

	reap();
	dir = opendir("/proc");
	NEED(dir != NULL);
	while ((entry = readdir(dir)) != NULL) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		bool is_innocent = pid <= 1;

		for (size_t i = 0; i < n_innocent; i++)
			is_innocent = is_innocent || pid == innocent[i];
		n += !is_innocent;
	}
	(void)closedir(dir);
	return n;
}

static void become_agent(gid_t mark, bool is_single_id)
{
	gid_t groups[1] = { mark };

	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* the one id of a single-id map cannot drop its groups */
	if (!is_single_id)
		NEED(setgroups(mark ? 1 : 0, groups) == 0);
	NEED(setresgid(AGENT, AGENT, AGENT) == 0 && setresuid(AGENT, AGENT, AGENT) == 0);
}

/* Starts a payload with a mark of its own, as init does; returns when it is executed. */
static pid_t start(const struct scenario *s, const char *payload, gid_t gid, struct cm_mark *ret)
{
	uint64_t ino = 0;
	int fds[2];
	pid_t pid;

	NEED(pipe2(fds, O_CLOEXEC) == 0);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		(void)setsid();
		if (s->kind == MARK_UTS)
			NEED(unshare(CLONE_NEWUTS) == 0);
		ino = cm_tree_uts_of(getpid());
		become_agent(s->kind == MARK_GID ? gid : 0, s->is_single_id);
		NEED(write(fds[1], &ino, sizeof(ino)) == (ssize_t)sizeof(ino));
		(void)execl("/proc/self/exe", "payload", payload, (char *)NULL);
		give_up("cannot execute the payload");
	}
	close(fds[1]);
	NEED(read(fds[0], &ino, sizeof(ino)) == (ssize_t)sizeof(ino));
	/* end of file when it is executed */
	NEED(read(fds[0], &(char){ 0 }, 1) == 0);
	close(fds[0]);
	*ret = s->kind == MARK_GID ? (struct cm_mark){ .gid = gid }
				   : (struct cm_mark){ .uts_ino = ino };
	NEED(ino != 0);
	return pid;
}

static void wait_for(size_t n_wanted, const pid_t *innocent, size_t n_innocent)
{
	int64_t until = cm_clock_mono_ms() + (n_wanted > 0 ? 30000 : 60);

	while (cm_clock_mono_ms() < until) {
		if (n_wanted > 0 && count_others(innocent, n_innocent) >= n_wanted)
			return;
		reap();
		(void)usleep(2000);
	}
	if (n_wanted > 0)
		give_up("only %zu of %zu processes", count_others(innocent, n_innocent), n_wanted);
}

static void wait_for_state(pid_t pid, char state)
{
	for (int i = 0; i < 1000 && state_of(pid) != state; i++)
		(void)usleep(1000);
	NEED(state_of(pid) == state);
}

static void kill_once(const struct scenario *s, gid_t gid, const pid_t *innocent, size_t n_innocent)
{
	struct cm_mark mark;
	bool froze = false;
	int64_t until;

	(void)start(s, s->payload, gid, &mark);
	wait_for(s->n_wanted, innocent, n_innocent);
	if (!cm_tree_kill(&mark, -1, -1, &froze))
		give_up("%s: the kill was given up", s->payload);
	/* it is said to be gone: whoever is dying may finish that, and nobody comes again */
	until = cm_clock_mono_ms() + 10000;
	while (count_others(innocent, n_innocent) > 0 && cm_clock_mono_ms() < until)
		(void)usleep(500);
	for (int i = 0; i < 10; i++) {
		size_t n = count_others(innocent, n_innocent);

		if (n > 0)
			give_up("%s, %s%s: %zu processes are left after it (froze: %d)", s->payload,
				s->kind == MARK_GID ? "gid" : "uts",
				s->is_single_id ? ", single id" : "", n, froze);
		(void)usleep(500);
	}
	NEED(cm_tree_signal(&mark, 0) == 0);
}

static int kill_beside_innocents(const struct scenario *s)
{
	struct cm_mark running_mark;
	struct cm_mark stopped_mark;
	pid_t innocent[2];

	innocent[0] = start(s, "idle", FIRST_MARK, &running_mark);
	innocent[1] = start(s, "idle", FIRST_MARK + 1, &stopped_mark);
	NEED(kill(innocent[1], SIGSTOP) == 0);
	wait_for_state(innocent[1], 'T');
	for (int i = 0; i < s->rounds; i++)
		kill_once(s, FIRST_MARK + 2, innocent, 2);
	/* one goes on, the other still stands */
	wait_for_state(innocent[0], 'S');
	NEED(state_of(innocent[1]) == 'T');
	NEED(cm_tree_signal(&running_mark, 0) == 1);
	NEED(cm_tree_signal(&stopped_mark, 0) == 1);
	NEED(cm_tree_any());
	return 0;
}

/* --- outside: the namespaces ----------------------------------------------------------------- */

static int write_map(pid_t pid, const char *file, const char *text)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return cm_write_file_at(AT_FDCWD, path, text);
}

static int write_maps(pid_t pid, bool is_single_id)
{
	char uid_map[64];
	char gid_map[64];

	if (is_single_id) {
		uid_t uid = geteuid() == 0 ? NOBODY : geteuid();
		gid_t gid = geteuid() == 0 ? NOBODY : getegid();

		if (write_map(pid, "setgroups", "deny") != 0)
			return -1;
		(void)snprintf(uid_map, sizeof(uid_map), "%u %u 1", AGENT, uid);
		(void)snprintf(gid_map, sizeof(gid_map), "%u %u 1", AGENT, gid);
	} else {
		(void)snprintf(uid_map, sizeof(uid_map), "0 %u 65536", ID_BASE);
		(void)snprintf(gid_map, sizeof(gid_map), "0 %u 65536", ID_BASE);
	}
	if (write_map(pid, "uid_map", uid_map) != 0)
		return -1;
	return write_map(pid, "gid_map", gid_map);
}

typedef int (*scenario_fn)(const struct scenario *s);

/* The child of `outer`, pid 1 of the new namespace. */
static void be_init(const struct scenario *s, scenario_fn fn)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	NEED(getpid() == 1);
	NEED(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	NEED(mount("proc", "/proc", "proc", 0, NULL) == 0);
	(void)prctl(PR_SET_DUMPABLE, 0);
	_exit(fn(s));
}

/* Makes the namespaces, tells when they need their maps, and waits for its pid 1. */
static int be_outer(const struct scenario *s, scenario_fn fn, int ready_fd, int go_fd)
{
	int status = 0;
	char c = 0;
	pid_t pid;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (s->is_single_id && geteuid() == 0 &&
	    (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
	     setresuid(NOBODY, NOBODY, NOBODY) != 0))
		return 1;
	/* the change of ids has cleared it, and the maps are written from outside */
	(void)prctl(PR_SET_DUMPABLE, 1);
	if (unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS) != 0)
		return NO_NAMESPACES;
	NEED(write(ready_fd, "r", 1) == 1);
	if (read(go_fd, &c, 1) != 1)
		return NO_NAMESPACES;
	if (!s->is_single_id)
		NEED(setgroups(0, NULL) == 0 && setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0)
		be_init(s, fn);
	NEED(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run(const struct scenario *s, scenario_fn fn)
{
	int ready[2];
	int go[2];
	int status = 0;
	char c;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(ready[0]);
		close(go[1]);
		_exit(be_outer(s, fn, ready[1], go[0]));
	}
	close(ready[1]);
	close(go[0]);
	if (read(ready[0], &c, 1) == 1 && write_maps(pid, s->is_single_id) == 0)
		assert_int_equal(write(go[1], "g", 1), 1);
	close(ready[0]);
	close(go[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void check(const struct scenario *s, scenario_fn fn)
{
	int status;

	/* ranges of ids, and so marks that are groups, are for root */
	if (!s->is_single_id && geteuid() != 0)
		skip();
	status = run(s, fn);
	if (status == NO_NAMESPACES)
		skip();
	assert_int_equal(status, 0);
}

static void check_all(const char *payload, size_t n_wanted, int rounds)
{
	const struct scenario rows[] = {
		{ payload, MARK_GID, false, n_wanted, rounds },
		{ payload, MARK_UTS, false, n_wanted, rounds },
		{ payload, MARK_UTS, true, n_wanted, rounds },
	};

	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		if (rows[i].is_single_id || geteuid() == 0)
			check(&rows[i], kill_beside_innocents);
	}
}

static void test_idle(void **state)
{
	(void)state;
	check_all("idle", 1, 3);
}

static void test_setsid_chain(void **state)
{
	(void)state;
	check_all("deep-chain", 31, 3);
}

static void test_comets(void **state)
{
	(void)state;
	check_all("comets", 0, 10);
}

static void test_fork_bomb(void **state)
{
	(void)state;
	check_all("bomb", 250, 2);
}

static void test_non_dumpable(void **state)
{
	(void)state;
	check_all("non-dumpable", 1, 3);
}

static void test_headless(void **state)
{
	(void)state;
	check_all("headless", 1, 3);
}

static void test_stubborn(void **state)
{
	(void)state;
	check_all("stubborn", 6, 3);
}

/* A mark in a text that is longer than what is read of it at once: 1,000 groups. */
static int kill_with_many_groups(const struct scenario *s)
{
	static gid_t groups[1000];
	struct cm_mark mark = { .gid = FIRST_MARK };
	bool froze;
	int fds[2];
	pid_t pid;

	(void)s;
	for (size_t i = 0; i < CM_ARRAY_SIZE(groups); i++)
		groups[i] = FIRST_MARK + (gid_t)i;
	NEED(pipe2(fds, O_CLOEXEC) == 0);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		NEED(setgroups(CM_ARRAY_SIZE(groups), groups) == 0);
		NEED(setresgid(AGENT, AGENT, AGENT) == 0 && setresuid(AGENT, AGENT, AGENT) == 0);
		(void)execl("/proc/self/exe", "payload", "idle", (char *)NULL);
		give_up("cannot execute the payload");
	}
	close(fds[1]);
	NEED(read(fds[0], &(char){ 0 }, 1) == 0);
	NEED(cm_tree_signal(&mark, 0) == 1);
	NEED(cm_tree_kill(&mark, -1, -1, &froze));
	NEED(waitpid(pid, NULL, 0) == pid);
	NEED(count_others(NULL, 0) == 0);
	return 0;
}

static void test_many_groups(void **state)
{
	const struct scenario s = { "idle", MARK_GID, false, 1, 1 };

	(void)state;
	check(&s, kill_with_many_groups);
}

/* Numbers that hold the mark's digits are not the mark. */
static int spare_other_marks(const struct scenario *s)
{
	static const gid_t gids[] = { 6000, 60001, 1, 6000 * 10 + 9 };
	struct cm_mark mark = { .gid = 60000 };
	struct cm_mark other;
	bool froze = true;

	for (size_t i = 0; i < CM_ARRAY_SIZE(gids); i++)
		(void)start(s, "idle", gids[i], &other);
	NEED(cm_tree_signal(&mark, SIGKILL) == 0);
	NEED(cm_tree_kill(&mark, -1, -1, &froze));
	NEED(!froze);
	NEED(count_others(NULL, 0) == CM_ARRAY_SIZE(gids));
	return 0;
}

static void test_other_marks(void **state)
{
	const struct scenario s = { "idle", MARK_GID, false, 1, 1 };

	(void)state;
	check(&s, spare_other_marks);
}

/* A signal other than KILL reaches every bearer, and nobody else. */
static int signal_bearers(const struct scenario *s)
{
	struct cm_mark mark;
	struct cm_mark other;
	pid_t pid = start(s, "idle", FIRST_MARK, &mark);
	pid_t spared = start(s, "idle", FIRST_MARK + 1, &other);
	int status = 0;

	NEED(cm_tree_signal(&mark, 0) == 1);
	NEED(cm_tree_signal(&mark, SIGTERM) == 1);
	NEED(waitpid(pid, &status, 0) == pid);
	NEED(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	wait_for_state(spared, 'S');
	NEED(cm_tree_uts_of(pid) == 0);
	NEED(cm_tree_uts_of(spared) != 0);
	NEED(cm_tree_any());
	cm_tree_signal_all(SIGKILL);
	NEED(waitpid(spared, &status, 0) == spared);
	NEED(!cm_tree_any());
	return 0;
}

static void test_signal(void **state)
{
	const struct scenario rows[] = {
		{ "idle", MARK_GID, false, 1, 1 },
		{ "idle", MARK_UTS, true, 1, 1 },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		if (rows[i].is_single_id || geteuid() == 0)
			check(&rows[i], signal_bearers);
	}
}

static int kill_everything(const struct scenario *s)
{
	struct cm_mark mark;

	(void)start(s, s->payload, FIRST_MARK, &mark);
	wait_for(s->n_wanted, NULL, 0);
	cm_tree_signal_all(SIGKILL);
	for (int i = 0; i < 2000 && cm_tree_any(); i++) {
		reap();
		(void)usleep(1000);
	}
	NEED(!cm_tree_any());
	return 0;
}

static void test_kill_all(void **state)
{
	const struct scenario rows[] = {
		{ "bomb", MARK_UTS, true, 250, 1 },
		{ "comets", MARK_UTS, true, 0, 1 },
		{ "headless", MARK_UTS, true, 1, 1 },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++)
		check(&rows[i], kill_everything);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle),	     cmocka_unit_test(test_setsid_chain),
		cmocka_unit_test(test_comets),	     cmocka_unit_test(test_fork_bomb),
		cmocka_unit_test(test_non_dumpable), cmocka_unit_test(test_headless),
		cmocka_unit_test(test_stubborn),     cmocka_unit_test(test_many_groups),
		cmocka_unit_test(test_other_marks),  cmocka_unit_test(test_signal),
		cmocka_unit_test(test_kill_all),
	};
	const struct scenario probe = { "idle", MARK_UTS, true, 1, 1 };

	if (argc > 1)
		return run_payload(argv[1]);
	/* nothing to be learned where there are no namespaces to be had */
	if (run(&probe, signal_bearers) == NO_NAMESPACES)
		return NO_NAMESPACES;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
