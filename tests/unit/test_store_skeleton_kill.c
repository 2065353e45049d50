/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Skeletons while somebody else is at work on them: for each system call of a maker, it dies there, or
 * others do all of theirs there.
 */
#include "tests/unit/test_store_skeleton.h"

#include "tests/unit/kill_walk.h"

static struct skeleton_names names;

/* 0 when it got a whole one. */
static int open_key(const struct env *e, const char *key)
{
	struct filling f = { 0 };
	struct cm_store_skeleton s;
	struct cm_store store;
	int code;

	env_open((struct env *)(uintptr_t)e, &store);
	code = skeleton_open(&store, key, &f, &s, NULL);
	if (code != CM_OK)
		return 1;
	code = skeleton_is_whole(s.dir, key) ? 0 : 2;
	cm_store_skeleton_close(&s);
	cm_store_close(&store);
	return code;
}

struct opening {
	const struct env *e;
	const char *key;
};

static int run_opening(void *data)
{
	const struct opening *o = data;

	return open_key(o->e, o->key);
}

/* A process that opens key, stopped before or after its n-th system call; -1: it got through. */
static pid_t stopped_at(const struct env *e, const char *key, int n)
{
	struct opening o = { e, key };

	return kill_walk_stopped_at(run_opening, &o, n);
}

static bool killed_at(const struct env *e, const char *key, int n)
{
	struct opening o = { e, key };

	return kill_walk_killed_at(run_opening, &o, n);
}

static void assert_went_on(pid_t pid)
{
	int status;

	assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_status(status, 0);
}

static void test_maker_dies(void **state)
{
	struct env *e = *state;
	int n_found = 0;
	int n_made = 0;

	for (int n = 1; killed_at(e, "key", n); n++) {
		struct filling f = { 0 };
		struct cm_store_skeleton s;

		assert_true(env_entries(e, SKELETONS) <= 1);
		assert_true(skeletons_are_free(e));
		skeleton_get(e, "key", &f, &s);
		assert_skeleton(s.dir, "key");
		cm_store_skeleton_close(&s);
		n_found += f.n == 0;
		n_made += f.n == 1;
		/* and nothing half-made is left then */
		skeleton_touch(e, "other");
		assert_int_equal(env_entries(e, SKELETONS), 2);
		skeletons_clear(e);
	}
	/* the walk met both sides of the rename */
	assert_true(n_made > 20 && n_found > 4);
}

static void test_pruner_dies(void **state)
{
	struct env *e = *state;
	int n_pruned = 0;

	/* its own steps before it prunes were seen above */
	for (int n = 60;; n++) {
		skeletons_clear(e);
		skeletons_make(e, KEPT + 1, &names);
		if (!killed_at(e, "new", n))
			break;
		n_pruned += env_entries(e, SKELETONS) < KEPT + 2;
		/* each one can be had, found or made again */
		for (int i = 0; i < 4; i++)
			skeleton_touch(e, skeleton_key(i));
		skeleton_touch(e, "new");
		skeleton_touch(e, "another");
		assert_int_equal(env_entries(e, SKELETONS), KEPT);
		assert_true(skeletons_are_free(e));
	}
	assert_true(n_pruned > 10);
}

/* Does all of its work, but for a moment's wait for who is stopped. */
static pid_t start_other(const struct env *e, const char *key)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(open_key(e, key));
	for (int i = 0; i < 100; i++) {
		siginfo_t info = { 0 };

		assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
		if (info.si_pid == pid)
			break;
		(void)usleep(500);
	}
	return pid;
}

static void test_others_meanwhile(void **state)
{
	/* one that wants the same, and one that makes another and prunes */
	static const char *const keys[] = { "key", "other" };
	struct env *e = *state;

	for (size_t i = 0; i < CM_ARRAY_SIZE(keys); i++) {
		int n = 1;

		for (;; n++) {
			int status;
			pid_t other;
			pid_t pid = stopped_at(e, "key", n);

			if (pid < 0)
				break;
			other = start_other(e, keys[i]);
			assert_went_on(pid);
			assert_int_equal(waitpid(other, &status, 0), other);
			assert_status(status, 0);
			assert_int_equal(env_entries(e, SKELETONS), i + 1);
			assert_true(skeletons_are_free(e));
			skeletons_clear(e);
		}
		assert_true(n > 40);
	}
}

/*
 * While one prunes, another one who would remove the oldest dies after it renamed it, and somebody
 * has made and uses a new one of that name.
 */
static void test_name_changes_hands(void **state)
{
	struct env *e = *state;
	int n_swapped = 0;

	for (int n = 60;; n++) {
		struct filling f = { 0 };
		struct cm_store_skeleton in_use;
		char path[SKELETON_PATH_SIZE];
		char dead[SKELETON_PATH_SIZE];
		char parked[80];
		pid_t pid;

		skeletons_clear(e);
		skeleton_get(e, skeleton_key(0), &f, &in_use);
		(void)snprintf(parked, sizeof(parked), "%s/in-use", e->dir);
		assert_int_equal(rename(in_use.dir, parked), 0);
		skeletons_make(e, KEPT + 1, &names);
		pid = stopped_at(e, "new", n);
		if (pid < 0) {
			cm_store_skeleton_close(&in_use);
			assert_int_equal(cm_remove_tree_at(AT_FDCWD, parked), 0);
			break;
		}
		skeleton_path(e, names.v[0], path);
		skeleton_path(e, ".dead", dead);
		if (skeleton_is_free(e, names.v[0]) && rename(path, dead) == 0) {
			assert_int_equal(rename(parked, path), 0);
			n_swapped++;
			assert_went_on(pid);
			assert_skeleton(path, skeleton_key(0));
		} else {
			assert_went_on(pid);
			assert_int_equal(cm_remove_tree_at(AT_FDCWD, parked), 0);
		}
		cm_store_skeleton_close(&in_use);
	}
	assert_true(n_swapped > 10);
}

/* Has the process a file open whose path ends so? */
static bool is_open_by(pid_t pid, const char *end)
{
	char path[64];
	char link[512];
	bool is = false;

	for (int fd = 0; fd < 16 && !is; fd++) {
		ssize_t n;

		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
		n = readlink(path, link, sizeof(link) - 1);
		link[n < 0 ? 0 : n] = '\0';
		is = n > 0 && strlen(link) > strlen(end) &&
		     strcmp(link + strlen(link) - strlen(end), end) == 0;
	}
	return is;
}

/* Who has opened it waits for its lock while a remover dies, or does not: gets all of it, or anew. */
static void test_finder_meets_remover(void **state)
{
	struct env *e = *state;
	int n_met = 0;

	for (int n = 1;; n++) {
		bool is_dead = true;

		for (int m = 1; is_dead; m += 3) {
			struct filling f = { 0 };
			struct cm_store_skeleton s;
			char path[SKELETON_PATH_SIZE];
			pid_t pid;

			skeletons_clear(e);
			skeleton_get(e, "key", &f, &s);
			cm_store_skeleton_close(&s);
			pid = stopped_at(e, "key", n);
			if (pid < 0) {
				assert_true(n_met > 20);
				return;
			}
			if (!is_open_by(pid, "/lock") || !skeletons_are_free(e)) {
				assert_went_on(pid);
				break;
			}
			skeleton_path(e, ".half", path);
			assert_int_equal(rename(skeleton_only(e), path), 0);
			is_dead = killed_at(e, "other", m);
			n_met++;
			assert_went_on(pid);
		}
	}
}

/* Who looks through what is half-made comes upon one that is just begun, and has no lock yet. */
static void test_maker_meets_remover(void **state)
{
	struct env *e = *state;
	int n_met = 0;

	for (int n = 1;; n++) {
		pid_t other = 0;

		for (int m = 1; other >= 0; m++) {
			char path[SKELETON_PATH_SIZE + 8];
			pid_t pid;

			skeletons_clear(e);
			pid = stopped_at(e, "key", n);
			if (pid < 0) {
				assert_true(n_met > 20);
				return;
			}
			(void)snprintf(path, sizeof(path), "%s/lock", skeleton_only(e));
			if (env_entries(e, SKELETONS) == 0 || access(path, F_OK) == 0) {
				assert_went_on(pid);
				break;
			}
			other = stopped_at(e, "other", m);
			n_met++;
			assert_went_on(pid);
			if (other >= 0)
				assert_went_on(other);
		}
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_maker_dies),	      T(test_pruner_dies),
		T(test_others_meanwhile),     T(test_name_changes_hands),
		T(test_finder_meets_remover), T(test_maker_meets_remover),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
