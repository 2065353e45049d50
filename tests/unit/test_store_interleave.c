/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A maker and a collector of temporary sessions, at every point of the one and the other.
 *
 * Both are traced. The maker runs to its n-th stop, then the collector to its m-th, then the maker
 * goes on as far as it can, then the collector to its end. What the maker has made by then must be at
 * its name, with the lock that the maker holds.
 */
#include <poll.h>

#include "tests/unit/test_store_env.h"

#include "tests/unit/kill_walk.h"

/* for a maker that does not wait for the collector; one that does costs it a whole one */
#define PATIENCE_MS 3

struct pair {
	struct cm_store makers;
	struct cm_store collectors;
	/* one that is to be removed before another is made at its name; or dir_fd is -1 */
	struct cm_store_session old;
	/* the maker's word that it is through, and the parent's that the collector is */
	int made[2];
	int collected[2];
};

static bool has_its_lock(const struct cm_store *store, const struct cm_store_session *s)
{
	struct stat by_name;
	struct stat by_fd;

	return fstatat(store->runtime_fd, "tmp/a/lock", &by_name, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstat(s->lock_fd, &by_fd) == 0 && by_name.st_ino == by_fd.st_ino;
}

static int make(void *data)
{
	struct pair *p = data;
	struct cm_session_record r = env_record("a");
	struct cm_store_session s;
	char c = 0;

	r.is_temporary = true;
	if (p->old.dir_fd >= 0) {
		if (cm_store_session_remove(&p->makers, &p->old, false, NULL) != CM_OK)
			return 2;
		cm_store_session_close(&p->old);
	}
	if (cm_store_session_create(&p->makers, &r, &s, NULL) != CM_OK)
		return 3;
	if (write(p->made[1], &c, 1) != 1 || read(p->collected[0], &c, 1) != 1)
		return 4;
	if (!has_its_lock(&p->makers, &s))
		return 5;
	return cm_store_session_remove(&p->makers, &s, false, NULL) == CM_OK ? 0 : 6;
}

static int collect(void *data)
{
	struct pair *p = data;

	return cm_store_collect(&p->collectors, NULL, NULL, NULL) == CM_OK ? 0 : 1;
}

static int status_of(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void let_go(pid_t pid)
{
	assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
}

enum walked {
	BOTH,
	COLLECTOR_THROUGH,
	MAKER_THROUGH
};

static enum walked walk(struct pair *p, int n, int m)
{
	struct pollfd through = { .fd = p->made[0], .events = POLLIN };
	pid_t maker = kill_walk_stopped_at(make, p, n);
	pid_t collector;
	char c = 0;

	assert_true(maker > 0);
	if (poll(&through, 1, 0) == 1) {
		assert_int_equal(kill(maker, SIGKILL), 0);
		(void)status_of(maker);
		return MAKER_THROUGH;
	}
	/* with this copy the lock would outlive the maker's */
	cm_store_session_close(&p->old);
	collector = kill_walk_stopped_at(collect, p, m);
	let_go(maker);
	(void)poll(&through, 1, PATIENCE_MS);
	if (collector > 0) {
		let_go(collector);
		assert_status(status_of(collector), 0);
	}
	assert_int_equal(write(p->collected[1], &c, 1), 1);
	if (status_of(maker) != 0)
		fail_msg("the maker's stop %d, the collector's %d", n, m);
	return collector > 0 ? BOTH : COLLECTOR_THROUGH;
}

static enum walked walk_once(struct env *e, bool has_old, int n, int m)
{
	struct pair p;
	enum walked walked;

	env_open(e, &p.makers);
	env_open(e, &p.collectors);
	cm_store_session_init(&p.old);
	assert_int_equal(pipe2(p.made, O_CLOEXEC), 0);
	assert_int_equal(pipe2(p.collected, O_CLOEXEC), 0);
	if (has_old)
		assert_int_equal(env_create(e, "a", true, &p.old, NULL), CM_OK);
	walked = walk(&p, n, m);
	for (int i = 0; i < 2; i++) {
		(void)close(p.made[i]);
		(void)close(p.collected[i]);
	}
	cm_store_session_close(&p.old);
	cm_store_close(&p.makers);
	cm_store_close(&p.collectors);
	/* what the collector was in when the maker removed it, or a killed maker's */
	assert_int_equal(cm_store_collect(&e->store, NULL, NULL, NULL), CM_OK);
	assert_int_equal(env_entries(e, "run/casemate/tmp"), 0);
	return walked;
}

static void walk_all(struct env *e, bool has_old)
{
	enum walked walked = BOTH;
	int n = 0;

	while (walked != MAKER_THROUGH) {
		n++;
		for (int m = 1; m == 1 || walked == BOTH; m++)
			walked = walk_once(e, has_old, n, m);
	}
	assert_true(n > 10);
}

static void test_make(void **state)
{
	walk_all(*state, false);
}

static void test_remove_and_make(void **state)
{
	walk_all(*state, true);
}

#define T(name) cmocka_unit_test_setup_teardown(name, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { T(test_make), T(test_remove_and_make) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
