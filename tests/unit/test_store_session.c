/* SPDX-License-Identifier: Apache-2.0 */
/* Making, finding, locking and removing sessions. */
#include <sys/file.h>

#include "tests/unit/test_store_env.h"

#define BOTH 2

static void test_bad_ids(void **state)
{
	char longest[129];
	char too_long[130];
	char endless[301];
	const char *const bad[] = { "",		 ".",	     "..",  "../x",   "a/b",   "/a",
				    "-a",	 ".a",	     "a b", "a\nb",   "a\x01", "\x7f",
				    "a\xc3\xa4", "a\x1b[2J", "a:b", too_long, endless };
	struct env *e = *state;
	struct cm_store_session s;

	memset(longest, 'x', 128);
	longest[128] = '\0';
	memset(too_long, 'x', 129);
	too_long[129] = '\0';
	memset(endless, 'x', 300);
	endless[300] = '\0';
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		struct cm_error err = CM_ERROR_INIT;

		if (cm_store_session_open(&e->store, bad[i], false, 0, &s, &err) != CM_E_INVALID ||
		    env_create(e, bad[i], i % BOTH != 0, &s, NULL) != CM_E_INVALID ||
		    cm_store_slot_claim(&e->store, bad[i], NULL, NULL, NULL) != CM_E_INVALID)
			fail_msg("taken: '%s'", bad[i]);
		assert_true(err.hint[0] != '\0');
	}
	/* no file was touched */
	assert_int_equal(env_entries(e, "state/casemate"), 0);
	assert_int_equal(env_entries(e, "run/casemate"), 0);
	env_make(e, longest);
	assert_int_equal(cm_store_session_open(&e->store, longest, true, 0, &s, NULL), CM_OK);
	assert_int_equal(cm_store_session_remove(&e->store, &s, true, NULL), CM_OK);
	cm_store_session_close(&s);
}

static void assert_mode(const struct cm_store_session *s, const char *name, mode_t mode)
{
	struct stat st;

	assert_int_equal(fstatat(s->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode & 07777, mode);
	assert_int_equal(st.st_uid, geteuid());
}

static void test_create(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;
	struct cm_error err = CM_ERROR_INIT;
	char dir[160];
	mode_t before = umask(0);

	assert_int_equal(env_create(e, "a", false, &s, NULL), CM_OK);
	(void)umask(before);
	(void)snprintf(dir, sizeof(dir), "%s/state/casemate/sessions/a", e->dir);
	assert_string_equal(s.dir, dir);
	(void)snprintf(dir, sizeof(dir), "%s/home/.mastracode/web/sandboxes/a", e->dir);
	assert_string_equal(s.session_dir, dir);
	assert_true(strlen(s.socket_path) < 108);
	assert_true(s.lock_fd >= 0);
	assert_true(s.record.created_ms > 0);
	assert_mode(&s, ".", 0700);
	assert_mode(&s, "home", 0700);
	assert_mode(&s, "tmp", 01777);
	assert_mode(&s, "state.json", 0600);
	assert_mode(&s, "lock", 0600);
	/* nothing half made, and no session directory before somebody wants one */
	assert_int_equal(env_entries(e, "state/casemate/new"), 0);
	assert_int_equal(access(s.session_dir, F_OK), -1);
	cm_store_session_close(&s);
	assert_int_equal(env_create(e, "a", false, &s, &err), CM_E_EXISTS);
	assert_non_null(strstr(err.hint, "casemate rm a"));
}

static void test_open(void **state)
{
	struct env *e = *state;
	struct cm_store_session s = { .dir_fd = -7 };
	struct cm_error err = CM_ERROR_INIT;

	env_make(e, "a");
	env_make(e, "b");
	assert_int_equal(cm_store_session_open(&e->store, "x", false, 0, &s, &err), CM_E_NOT_FOUND);
	assert_int_equal(s.dir_fd, -7);
	assert_string_equal(err.msg, "session 'x' not found");
	assert_string_equal(err.hint,
			    "'casemate ls' lists 2 sessions of yours (each user has their own); "
			    "'casemate start x' makes one");
	assert_int_equal(cm_store_session_open(&e->store, "a", false, 0, &s, NULL), CM_OK);
	assert_int_equal(s.lock_fd, -1);
	assert_string_equal(s.record.id, "a");
	assert_int_equal(s.record.network, CM_NETWORK_NONE);
	/* only the holder of the lock writes */
	assert_int_equal(cm_store_session_save(&s, false, NULL), CM_E_BUG);
	assert_int_equal(cm_store_session_remove(&e->store, &s, false, NULL), CM_E_BUG);
	cm_store_session_close(&s);
}

/* Looked at, and kept: a change by somebody else is seen, and so is that it was removed. */
static void test_is_current(void **state)
{
	struct env *e = *state;
	struct cm_store_session seen;
	struct cm_store_session s;

	env_make(e, "a");
	assert_int_equal(cm_store_session_open(&e->store, "a", false, 0, &seen, NULL), CM_OK);
	assert_true(cm_store_session_is_current(&seen));
	cm_store_session_touch(&seen);
	assert_true(cm_store_session_is_current(&seen));
	assert_int_equal(cm_store_session_open(&e->store, "a", true, 0, &s, NULL), CM_OK);
	assert_true(cm_store_session_is_current(&seen));
	assert_int_equal(cm_store_session_save(&s, false, NULL), CM_OK);
	assert_false(cm_store_session_is_current(&seen));
	cm_store_session_close(&seen);
	assert_int_equal(cm_store_session_open(&e->store, "a", false, 0, &seen, NULL), CM_OK);
	assert_true(cm_store_session_is_current(&seen));
	assert_int_equal(cm_store_session_remove(&e->store, &s, false, NULL), CM_OK);
	cm_store_session_close(&s);
	assert_false(cm_store_session_is_current(&seen));
	env_make(e, "a");
	assert_false(cm_store_session_is_current(&seen));
	cm_store_session_close(&seen);
}

static void test_lock_waits_until_its_deadline(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;
	struct cm_store_session other;
	struct cm_error err = CM_ERROR_INIT;
	int64_t begin;
	int64_t took;

	assert_int_equal(env_create(e, "a", false, &s, NULL), CM_OK);
	begin = cm_clock_mono_ms();
	assert_int_equal(cm_store_session_open(&e->store, "a", true, begin + 150, &other, &err),
			 CM_E_BUSY);
	took = cm_clock_mono_ms() - begin;
	assert_true(took >= 140 && took < 2000);
	assert_true(err.hint[0] != '\0');
	/* looking needs no lock */
	assert_int_equal(cm_store_session_open(&e->store, "a", false, 0, &other, NULL), CM_OK);
	cm_store_session_close(&other);
	cm_store_session_close(&s);
	assert_int_equal(cm_store_session_open(&e->store, "a", true, 0, &other, NULL), CM_OK);
	cm_store_session_close(&other);
}

/* A killed holder lets go; the waiter gets the lock, and a state that was saved before. */
static void test_lock_of_a_killed_holder(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;
	int ready[2];
	int status;
	char c;
	pid_t pid;

	env_make(e, "a");
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct cm_store store;

		env_open(e, &store);
		if (cm_store_session_open(&store, "a", true, 0, &s, NULL) != CM_OK)
			_exit(1);
		s.record.generation = 1;
		if (cm_store_session_save(&s, true, NULL) != CM_OK || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(cm_store_session_open(&e->store, "a", true, 0, &s, NULL), CM_E_BUSY);
	(void)kill(pid, SIGKILL);
	assert_int_equal(
		cm_store_session_open(&e->store, "a", true, cm_clock_mono_ms() + 5000, &s, NULL),
		CM_OK);
	assert_int_equal(s.record.generation, 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	cm_store_session_close(&s);
	(void)close(ready[0]);
	(void)close(ready[1]);
}

/* Who waited for the lock of a session that was removed and made anew gets the new one. */
static void test_lock_of_a_session_made_anew(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;
	int status;
	pid_t pid;

	assert_int_equal(env_create(e, "a", false, &s, NULL), CM_OK);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct cm_store store;
		struct cm_store_session mine;
		struct stat st;

		/* the parent's copy of the lock's description must not be kept by this child */
		cm_store_session_close(&s);
		env_open(e, &store);
		if (cm_store_session_open(&store, "a", true, cm_clock_mono_ms() + 5000, &mine,
					  NULL) != CM_OK)
			_exit(1);
		if (mine.record.generation != 77 || fstat(mine.lock_fd, &st) != 0 ||
		    st.st_nlink != 1)
			_exit(2);
		_exit(0);
	}
	(void)usleep(50000);
	{
		struct cm_session_record r = env_record("a");
		struct cm_store_session again;

		r.generation = 77;
		assert_int_equal(cm_store_session_remove(&e->store, &s, false, NULL), CM_OK);
		assert_int_equal(cm_store_session_create(&e->store, &r, &again, NULL), CM_OK);
		cm_store_session_close(&s);
		(void)usleep(50000);
		cm_store_session_close(&again);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_status(status, 0);
}

/* All at once; exactly one wins, the others are told why. */
static void test_many_create_one_id(void **state)
{
	struct env *e = *state;
	int n_made = 0;

	for (int round = 0; round < 20; round++) {
		char id[16];
		int gate[2];
		int n_won = 0;

		(void)snprintf(id, sizeof(id), "s%d", round);
		assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
		for (int i = 0; i < BOTH; i++) {
			pid_t pid = fork();
			struct cm_store_session s;
			struct cm_store store;
			char c;
			int r;

			assert_true(pid >= 0);
			if (pid > 0)
				continue;
			(void)close(gate[1]);
			env_open(e, &store);
			(void)!read(gate[0], &c, 1);
			r = env_create(e, id, false, &s, NULL);
			_exit(r == CM_OK ? 10 : r == CM_E_EXISTS ? 11 : 12);
		}
		(void)close(gate[0]);
		(void)close(gate[1]);
		for (int i = 0; i < BOTH; i++) {
			int status;

			assert_true(wait(&status) > 0);
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 12);
			n_won += WEXITSTATUS(status) == 10;
		}
		assert_int_equal(n_won, 1);
		n_made++;
	}
	assert_int_equal(env_count(e), n_made);
	assert_int_equal(env_entries(e, "state/casemate/new"), 0);
}

static void test_remove(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;
	struct cm_error err = CM_ERROR_INIT;
	char file[200];
	int keeper = -1;
	int fd;

	assert_int_equal(env_create(e, "a", false, &s, NULL), CM_OK);
	assert_int_equal(cm_store_session_dir_make(&e->store, &s, NULL), CM_OK);
	(void)snprintf(file, sizeof(file), "%s/work", s.session_dir);
	fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
	fd = open(s.socket_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
	/* what an agent may leave in its home */
	assert_int_equal(mkdirat(s.dir_fd, "home/d", 0), 0);
	assert_int_equal(symlinkat(e->dir, s.dir_fd, "home/link"), 0);

	assert_int_equal(cm_store_keeper_lock(s.dir_fd, &keeper, NULL), CM_OK);
	assert_int_equal(cm_store_session_remove(&e->store, &s, true, &err), CM_E_BUSY);
	assert_string_equal(err.hint, "casemate stop a");
	assert_int_equal(access(file, F_OK), 0);
	cm_fd_close(&keeper);

	assert_int_equal(cm_store_session_remove(&e->store, &s, false, NULL), CM_OK);
	assert_int_equal(access(file, F_OK), 0);
	assert_int_equal(access(s.socket_path, F_OK), -1);
	cm_store_session_close(&s);
	assert_int_equal(env_count(e), 0);
	assert_int_equal(env_entries(e, "state/casemate/sessions"), 0);
	assert_int_equal(env_entries(e, "state/casemate/new"), 0);

	/* a new session of the same name finds the work, and with_files takes it */
	assert_int_equal(env_create(e, "a", false, &s, NULL), CM_OK);
	assert_int_equal(cm_store_session_dir_make(&e->store, &s, NULL), CM_OK);
	assert_int_equal(cm_store_session_remove(&e->store, &s, true, NULL), CM_OK);
	assert_int_equal(access(s.session_dir, F_OK), -1);
	cm_store_session_close(&s);
	assert_int_equal(access(e->dir, F_OK), 0);
}

/* Run in a child that is no longer root: files of somebody else in a home stay, and so does
 * the session. */
static int remove_as_user(struct env *e)
{
	struct cm_store store;
	struct cm_store_session s;
	struct cm_error err = CM_ERROR_INIT;

	env_open(e, &store);
	if (cm_store_session_open(&store, "a", true, 0, &s, NULL) != CM_OK)
		return 1;
	if (cm_store_session_remove(&store, &s, false, &err) != CM_E_DENIED)
		return 2;
	if (!strstr(err.msg, s.dir) || err.hint[0] == '\0')
		return 3;
	cm_store_session_close(&s);
	/* still there */
	if (cm_store_session_open(&store, "a", true, 0, &s, NULL) != CM_OK)
		return 4;
	return 0;
}

static void chown_tree(const char *dir, unsigned int uid)
{
	char command[200];

	(void)snprintf(command, sizeof(command), "chown -R %u:%u '%s'", uid, uid, dir);
	assert_int_equal(system(command), 0);
}

static void test_files_of_others(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	env_make(e, "a");
	assert_int_equal(cm_store_session_open(&e->store, "a", false, 0, &s, NULL), CM_OK);
	assert_int_equal(mkdirat(s.dir_fd, "home/theirs", 0700), 0);
	assert_int_equal(mkdirat(s.dir_fd, "home/theirs/x", 0700), 0);
	chown_tree(e->dir, 12345);
	assert_int_equal(fchownat(s.dir_fd, "home/theirs", 54321, 54321, 0), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setgid(12345) != 0 || setuid(12345) != 0)
			_exit(9);
		_exit(remove_as_user(e));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_status(status, 0);
	cm_store_session_close(&s);
	chown_tree(e->dir, 0);
}

static void test_temporary(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;
	struct cm_store_session other;
	struct cm_error err = CM_ERROR_INIT;
	char id[32];

	cm_store_new_id(id, sizeof(id));
	assert_int_equal(cm_session_id_check(id, NULL), CM_OK);
	assert_int_equal(strncmp(id, "run-", 4), 0);
	assert_int_equal(env_create(e, id, true, &s, NULL), CM_OK);
	assert_int_equal(env_count(e), 1);
	assert_true(cm_store_keeper_alive(&s));
	/* others see it, with nothing written about it yet */
	assert_int_equal(cm_store_session_open(&e->store, id, false, 0, &other, NULL), CM_OK);
	assert_true(other.record.is_temporary);
	assert_true(other.record.created_ms > 0);
	assert_true(cm_store_keeper_alive(&other));
	cm_store_session_close(&other);
	assert_int_equal(cm_store_session_open(&e->store, id, true, 0, &other, &err), CM_E_BUSY);
	assert_non_null(strstr(err.hint, "temporary"));
	/* and more once its owner tells */
	s.record.workspace = cm_strdup("/w");
	assert_int_equal(cm_store_session_save(&s, true, NULL), CM_OK);
	assert_int_equal(cm_store_session_open(&e->store, id, false, 0, &other, NULL), CM_OK);
	assert_string_equal(other.record.workspace, "/w");
	cm_store_session_close(&other);
	assert_int_equal(cm_store_collect(&e->store, NULL, NULL, NULL), CM_OK);
	assert_int_equal(env_count(e), 1);
	assert_int_equal(cm_store_session_remove(&e->store, &s, false, NULL), CM_OK);
	cm_store_session_close(&s);
	assert_int_equal(env_count(e), 0);
	assert_int_equal(env_entries(e, "run/casemate/tmp"), 0);
}

static int count_group(const char *dir, void *data)
{
	int *n = data;

	assert_non_null(strstr(dir, "/run/casemate/tmp/"));
	if ((*n)++ == 0)
		return CM_E_BUSY;
	return CM_OK;
}

static void test_collect(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;
	struct cm_store_session alive;
	struct stat st;
	char files[512] = "";
	int n_groups = 0;
	int keeper = -1;

	assert_int_equal(env_create(e, "alive", true, &alive, NULL), CM_OK);
	assert_int_equal(cm_store_session_dir_make(&e->store, &alive, NULL), CM_OK);
	for (int i = 0; i < 5; i++) {
		char id[16];

		(void)snprintf(id, sizeof(id), "dead%d", i);
		assert_int_equal(env_create(e, id, true, &s, NULL), CM_OK);
		if (i == 0)
			assert_int_equal(
				cm_replace_file_at(s.dir_fd, CM_STORE_GROUPS, "p", 1, 0600, false),
				0);
		if (i == 1)
			assert_int_equal(cm_store_keeper_lock(s.dir_fd, &keeper, NULL), CM_OK);
		/* the same with a directory to work on; of the last one, its root is gone */
		if (i >= 2) {
			assert_int_equal(cm_store_session_dir_make(&e->store, &s, NULL), CM_OK);
			assert_int_equal(snprintf(files, sizeof(files), "%s", s.session_dir) > 0,
					 true);
			assert_int_equal(lstat(files, &st), 0);
		}
		if (i == 4) {
			assert_int_equal(
				cm_replace_file_at(s.dir_fd, "root", "/no/such", 8, 0600, false),
				0);
			assert_int_equal(rmdir(files), 0);
		}
		cm_store_session_close(&s);
	}
	assert_int_equal(env_count(e), 6);
	/* one's group is busy, one's keeper still ends */
	assert_int_equal(cm_store_collect(&e->store, count_group, &n_groups, NULL), CM_OK);
	assert_int_equal(n_groups, 1);
	assert_int_equal(env_count(e), 3);
	cm_fd_close(&keeper);
	assert_int_equal(cm_store_collect(&e->store, count_group, &n_groups, NULL), CM_OK);
	assert_int_equal(n_groups, 2);
	assert_int_equal(env_count(e), 1);
	/* what is left of the session root: the living one's directory */
	*strrchr(files, '/') = '\0';
	assert_int_equal(lstat(files, &st), 0);
	assert_int_equal(st.st_nlink, 3);
	assert_int_equal(lstat(alive.session_dir, &st), 0);
	assert_int_equal(cm_store_session_remove(&e->store, &alive, true, NULL), CM_OK);
	cm_store_session_close(&alive);
}

/* More dead ones than one call looks at. */
static void test_collect_many(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;

	for (int i = 0; i < 100; i++) {
		char id[16];

		(void)snprintf(id, sizeof(id), "dead%d", i);
		assert_int_equal(env_create(e, id, true, &s, NULL), CM_OK);
		cm_store_session_close(&s);
	}
	for (int i = 0; i < 60 && env_count(e) > 0; i++)
		assert_int_equal(cm_store_collect(&e->store, NULL, NULL, NULL), CM_OK);
	assert_int_equal(env_count(e), 0);
}

static void test_list(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;
	struct cm_strv ids = { 0 };

	assert_int_equal(cm_store_list(&e->store, &ids, NULL), CM_OK);
	assert_int_equal(ids.n, 0);
	env_make(e, "b");
	env_make(e, "c");
	env_make(e, "A");
	assert_int_equal(env_create(e, "bb", true, &s, NULL), CM_OK);
	assert_int_equal(cm_store_list(&e->store, &ids, NULL), CM_OK);
	assert_int_equal(ids.n, 4);
	assert_string_equal(ids.v[0], "A");
	assert_string_equal(ids.v[1], "b");
	assert_string_equal(ids.v[2], "bb");
	assert_string_equal(ids.v[3], "c");
	cm_strv_clear(&ids);
	cm_store_session_close(&s);
}

/* A session's socket is where its last starter put it, as long as that keeper lives. */
static void test_socket_of_another_login(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;
	struct cm_store other;
	int keeper = -1;
	char *first;

	assert_int_equal(env_create(e, "a", false, &s, NULL), CM_OK);
	first = cm_strdup(s.socket_path);
	assert_int_equal(cm_store_keeper_lock(s.dir_fd, &keeper, NULL), CM_OK);
	cm_store_session_close(&s);
	{
		char value[100];

		(void)snprintf(value, sizeof(value), "%s/elsewhere", e->dir);
		assert_int_equal(cm_strv_env_set(&e->vars, "XDG_RUNTIME_DIR", value), CM_OK);
	}
	env_open(e, &other);
	assert_int_equal(cm_store_session_open(&other, "a", false, 0, &s, NULL), CM_OK);
	assert_string_equal(s.socket_path, first);
	cm_store_session_close(&s);
	cm_fd_close(&keeper);
	assert_int_equal(cm_store_session_open(&other, "a", false, 0, &s, NULL), CM_OK);
	assert_non_null(strstr(s.socket_path, "/elsewhere/"));
	cm_store_session_close(&s);
	cm_store_close(&other);
	free(first);
}

#define T(name) cmocka_unit_test_setup_teardown(name, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_bad_ids),
		T(test_create),
		T(test_open),
		T(test_is_current),
		T(test_lock_waits_until_its_deadline),
		T(test_lock_of_a_killed_holder),
		T(test_lock_of_a_session_made_anew),
		T(test_many_create_one_id),
		T(test_remove),
		T(test_files_of_others),
		T(test_temporary),
		T(test_collect),
		T(test_collect_many),
		T(test_list),
		T(test_socket_of_another_login),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
