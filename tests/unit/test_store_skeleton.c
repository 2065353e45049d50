/* SPDX-License-Identifier: Apache-2.0 */
/* Skeletons: found, made, locked, pruned. */
#include "tests/unit/test_store_skeleton.h"

/* --- found or made ------------------------------------------------------------------------------ */

static void test_found_again(void **state)
{
	struct env *e = *state;
	struct filling f = { 0 };
	struct cm_store_skeleton first;
	struct cm_store_skeleton second;
	char path[SKELETON_PATH_SIZE];
	char key[64];

	skeleton_get(e, "key", &f, &first);
	assert_int_equal(f.n, 1);
	assert_skeleton(first.dir, "key");
	skeleton_get(e, "key", &f, &second);
	assert_int_equal(f.n, 1);
	assert_string_equal(first.dir, second.dir);
	/* where the header says, with the key in its lock */
	(void)snprintf(path, sizeof(path), "%s/" SKELETONS "/", e->dir);
	assert_memory_equal(first.dir, path, strlen(path));
	(void)snprintf(path, sizeof(path), "%s/lock", first.dir);
	assert_int_equal(cm_read_file_at(AT_FDCWD, path, key, sizeof(key)), 3);
	assert_string_equal(key, "key");
	cm_store_skeleton_close(&first);
	cm_store_skeleton_close(&second);
	assert_int_equal(second.lock_fd, -1);
	assert_null(second.dir);
	skeleton_get(e, "key", &f, &first);
	assert_int_equal(f.n, 1);
	cm_store_skeleton_close(&first);
	assert_int_equal(env_entries(e, SKELETONS), 1);
}

static void test_other_keys(void **state)
{
	static const char *const keys[] = { "key", "kez", "ke", "keys", "" };
	struct env *e = *state;
	struct filling f = { 0 };

	for (size_t i = 0; i < CM_ARRAY_SIZE(keys); i++) {
		struct cm_store_skeleton s;

		skeleton_get(e, keys[i], &f, &s);
		assert_int_equal(f.n, i + 1);
		assert_skeleton(s.dir, keys[i]);
		cm_store_skeleton_close(&s);
	}
	assert_int_equal(env_entries(e, SKELETONS), CM_ARRAY_SIZE(keys));
}

/* Who asks for mine finds another one's under my name. */
static void test_same_hash(void **state)
{
	static const char *const others[] = { "yours", "a longer one", "m" };
	struct env *e = *state;

	for (size_t i = 0; i < CM_ARRAY_SIZE(others); i++) {
		struct filling f = { 0 };
		struct cm_store_skeleton mine;
		struct cm_store_skeleton again;
		char lock[512];
		char taken[256];

		skeleton_get(e, "mine!", &f, &mine);
		(void)snprintf(taken, sizeof(taken), "%s", mine.dir);
		cm_store_skeleton_close(&mine);
		(void)snprintf(lock, sizeof(lock), "%s/lock", taken);
		assert_int_equal(truncate(lock, 0), 0);
		assert_int_equal(cm_write_file_at(AT_FDCWD, lock, others[i]), 0);
		skeleton_get(e, "mine!", &f, &mine);
		assert_int_equal(f.n, 2);
		assert_string_not_equal(mine.dir, taken);
		assert_skeleton(mine.dir, "mine!");
		/* all of the name but the number */
		assert_memory_equal(mine.dir, taken, strlen(taken) - 1);
		skeleton_get(e, "mine!", &f, &again);
		assert_int_equal(f.n, 2);
		assert_string_equal(mine.dir, again.dir);
		cm_store_skeleton_close(&again);
		cm_store_skeleton_close(&mine);
		assert_int_equal(access(taken, F_OK), 0);
		skeletons_clear(e);
	}
}

static void test_taken_away(void **state)
{
	struct env *e = *state;
	struct filling f = { 0 };
	struct cm_store_skeleton s;

	skeleton_get(e, "key", &f, &s);
	cm_store_skeleton_close(&s);
	skeletons_clear(e);
	skeleton_get(e, "key", &f, &s);
	assert_int_equal(f.n, 2);
	assert_skeleton(s.dir, "key");
	cm_store_skeleton_close(&s);
}

static void test_filler_fails(void **state)
{
	struct env *e = *state;
	struct filling f = { .code = CM_E_ISOLATION };
	struct cm_store_skeleton s = { 0 };
	struct cm_error err = CM_ERROR_INIT;

	assert_int_equal(skeleton_open(&e->store, "key", &f, &s, &err), CM_E_ISOLATION);
	assert_string_equal(err.msg, "as the test wants it");
	assert_int_equal(f.n, 1);
	assert_int_equal(env_entries(e, SKELETONS), 0);
	f.code = CM_OK;
	skeleton_get(e, "key", &f, &s);
	cm_store_skeleton_close(&s);
}

/* Whoever died before it had a lock. */
static void test_half_made(void **state)
{
	struct env *e = *state;
	struct filling f = { 0 };
	struct cm_store_skeleton s;
	char path[SKELETON_PATH_SIZE];

	skeleton_get(e, "key", &f, &s);
	cm_store_skeleton_close(&s);
	(void)snprintf(path, sizeof(path), "%s/" SKELETONS "/.0123456789abcdef", e->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	/* nothing is made: nothing is looked through */
	skeleton_get(e, "key", &f, &s);
	cm_store_skeleton_close(&s);
	assert_int_equal(access(path, F_OK), 0);
	skeleton_get(e, "other", &f, &s);
	cm_store_skeleton_close(&s);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(env_entries(e, SKELETONS), 2);
}

/* --- in use, and not ---------------------------------------------------------------------------- */

static struct skeleton_names names;

static bool is_there(const struct env *e, int number)
{
	char path[SKELETON_PATH_SIZE];

	skeleton_path(e, names.v[number], path);
	return access(path, F_OK) == 0;
}

static void test_oldest_first(void **state)
{
	struct env *e = *state;
	struct filling f = { 0 };
	struct cm_store_skeleton s;

	skeletons_make(e, KEPT, &names);
	for (int i = 0; i < 5; i++) {
		char key[16];

		(void)snprintf(key, sizeof(key), "new %d", i);
		skeleton_get(e, key, &f, &s);
		cm_store_skeleton_close(&s);
		assert_int_equal(env_entries(e, SKELETONS), KEPT);
		assert_true(!is_there(e, i) && is_there(e, i + 1));
	}
	/* finding one prunes nothing */
	skeleton_get(e, "new 4", &f, &s);
	cm_store_skeleton_close(&s);
	assert_true(is_there(e, 5));
}

/* Far too many, as after a death in each of many starts. */
static void test_hundreds(void **state)
{
	struct env *e = *state;
	struct filling f = { 0 };
	struct cm_store_skeleton s;

	skeletons_make(e, N_NAMES, &names);
	for (int i = 0; i < 4; i++) {
		char key[16];

		(void)snprintf(key, sizeof(key), "new %d", i);
		skeleton_get(e, key, &f, &s);
		assert_skeleton(s.dir, key);
		cm_store_skeleton_close(&s);
	}
	assert_int_equal(env_entries(e, SKELETONS), KEPT);
}

static void test_in_use(void **state)
{
	struct env *e = *state;
	struct filling f = { 0 };
	struct cm_store_skeleton mine;
	struct cm_store_skeleton given;
	struct cm_store_skeleton s;
	int end[2];
	pid_t pid;

	skeletons_make(e, KEPT + 10, &names);
	/* the two oldest: one that we have, one that we had and passed on */
	skeleton_get(e, skeleton_key(0), &f, &mine);
	skeleton_get(e, skeleton_key(1), &f, &given);
	assert_int_equal(f.n, 0);
	assert_int_equal(pipe(end), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char c;

		(void)close(end[1]);
		cm_store_skeleton_close(&mine);
		_exit(read(end[0], &c, 1) == 0 ? 0 : 1);
	}
	(void)close(end[0]);
	cm_store_skeleton_close(&given);
	skeleton_get(e, "new", &f, &s);
	cm_store_skeleton_close(&s);
	assert_int_equal(env_entries(e, SKELETONS), KEPT);
	assert_true(is_there(e, 0) && is_there(e, 1) && !is_there(e, 2));
	assert_skeleton(mine.dir, skeleton_key(0));
	(void)close(end[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	skeleton_get(e, "another", &f, &s);
	cm_store_skeleton_close(&s);
	assert_true(is_there(e, 0) && !is_there(e, 1) && is_there(e, 14));
	cm_store_skeleton_close(&mine);
}

/* More in use than are kept unused: that is no reason not to have one more. */
static void test_all_in_use(void **state)
{
	static struct cm_store_skeleton held[KEPT + 5];
	struct env *e = *state;
	struct filling f = { 0 };
	struct cm_store_skeleton s;

	skeletons_make(e, KEPT + 5, &names);
	for (int i = 0; i < KEPT + 5; i++)
		skeleton_get(e, skeleton_key(i), &f, &held[i]);
	assert_int_equal(f.n, 0);
	skeleton_get(e, "one more", &f, &s);
	assert_int_equal(f.n, 1);
	assert_skeleton(s.dir, "one more");
	for (int i = 0; i < KEPT + 5; i++) {
		assert_skeleton(held[i].dir, skeleton_key(i));
		cm_store_skeleton_close(&held[i]);
	}
	cm_store_skeleton_close(&s);
}

/* --- others at the same time -------------------------------------------------------------------- */

static int wait_and_fill(int dir_fd, void *data, struct cm_error *err)
{
	struct filling *f = data;
	char c = 'x';

	if (write(f->told_fd, &c, 1) != 1 || read(f->wait_fd, &c, 1) < 0)
		return CM_E_BUG;
	return skeleton_fill(dir_fd, data, err);
}

/* In its filler; let go by writing to the one that is returned. */
static pid_t start_maker(struct env *e, int *ret_wait)
{
	int told[2];
	int wait[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(told), 0);
	assert_int_equal(pipe(wait), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		CM_AUTO_BUF struct cm_buf key = skeleton_key_buf("slow");
		struct filling f = { .key = "slow", .told_fd = told[1], .wait_fd = wait[0] };
		struct cm_store_skeleton s;
		struct cm_store store;

		/* so that it ends with its parent, too */
		(void)close(wait[1]);
		env_open(e, &store);
		_exit(-cm_store_skeleton_open(&store, &key, wait_and_fill, &f, &s, NULL));
	}
	assert_int_equal(read(told[0], &c, 1), 1);
	(void)close(told[0]);
	(void)close(told[1]);
	(void)close(wait[0]);
	*ret_wait = wait[1];
	return pid;
}

/* Left alone: its work is what others find. */
static void test_maker_at_work(void **state)
{
	struct env *e = *state;
	struct filling f = { 0 };
	struct cm_store_skeleton s;
	int wait;
	int status;
	pid_t pid = start_maker(e, &wait);

	skeleton_touch(e, "a");
	assert_int_equal(env_entries(e, SKELETONS), 2);
	assert_int_equal(write(wait, "", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_status(status, 0);
	(void)close(wait);
	assert_int_equal(env_entries(e, SKELETONS), 2);
	skeleton_get(e, "slow", &f, &s);
	assert_int_equal(f.n, 0);
	assert_skeleton(s.dir, "slow");
	cm_store_skeleton_close(&s);
}

static void test_maker_dies(void **state)
{
	struct env *e = *state;
	int wait;
	pid_t pid = start_maker(e, &wait);

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)close(wait);
	assert_int_equal(env_entries(e, SKELETONS), 1);
	skeleton_touch(e, "a");
	assert_int_equal(env_entries(e, SKELETONS), 1);
	skeleton_touch(e, "slow");
}

static void test_ten_at_once(void **state)
{
	struct env *e = *state;
	pid_t pids[10];
	int go[2];
	char c;

	for (int round = 0; round < 20; round++) {
		assert_int_equal(pipe(go), 0);
		for (size_t i = 0; i < CM_ARRAY_SIZE(pids); i++) {
			pids[i] = fork();
			assert_true(pids[i] >= 0);
			if (pids[i] == 0) {
				struct filling f = { 0 };
				struct cm_store_skeleton s;
				struct cm_store store;

				(void)close(go[1]);
				env_open(e, &store);
				if (read(go[0], &c, 1) != 0 ||
				    skeleton_open(&store, "key", &f, &s, NULL) != CM_OK)
					_exit(1);
				_exit(skeleton_is_whole(s.dir, "key") ? 0 : 2);
			}
		}
		(void)close(go[0]);
		(void)close(go[1]);
		for (size_t i = 0; i < CM_ARRAY_SIZE(pids); i++) {
			int status;

			assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
			assert_status(status, 0);
		}
		assert_int_equal(env_entries(e, SKELETONS), 1);
		skeletons_clear(e);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_found_again),  T(test_other_keys), T(test_same_hash),	 T(test_taken_away),
		T(test_filler_fails), T(test_half_made),  T(test_oldest_first),	 T(test_hundreds),
		T(test_in_use),	      T(test_all_in_use), T(test_maker_at_work), T(test_maker_dies),
		T(test_ten_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
