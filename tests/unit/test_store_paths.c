/* SPDX-License-Identifier: Apache-2.0 */
/* The directories: where they are, and which are refused. */
#include "tests/unit/test_store_env.h"

static void put(char *buf, size_t size, const struct env *e, const char *rest)
{
	(void)snprintf(buf, size, "%s/%s", e->dir, rest);
}

static int open_with(struct env *e, const char *root, struct cm_store *ret, struct cm_error *err)
{
	char home[160];

	put(home, sizeof(home), e, "home");
	return cm_store_open(&e->vars, root, home, false, ret, err);
}

static void test_places(void **state)
{
	struct env *e = *state;
	struct cm_store s;
	char path[160];

	assert_int_equal(open_with(e, NULL, &s, NULL), CM_OK);
	put(path, sizeof(path), e, "state/casemate");
	assert_string_equal(s.state, path);
	put(path, sizeof(path), e, "run/casemate");
	assert_string_equal(s.runtime, path);
	put(path, sizeof(path), e, "cache/casemate");
	assert_string_equal(s.cache, path);
	put(path, sizeof(path), e, "home/.mastracode/web/sandboxes");
	assert_string_equal(s.root, path);
	assert_false(s.is_root_named);
	/* neither the root nor the cache is made before it is needed */
	assert_int_equal(access(s.root, F_OK), -1);
	assert_int_equal(access(s.cache, F_OK), -1);
	cm_store_close(&s);
}

static void test_without_xdg(void **state)
{
	struct env *e = *state;
	struct cm_strv vars = { 0 };
	struct cm_store s;
	struct cm_error err = CM_ERROR_INIT;
	char home[160];
	char path[160];

	put(home, sizeof(home), e, "home");
	/* a relative one is to be ignored */
	assert_int_equal(cm_strv_add(&vars, "XDG_STATE_HOME=state"), CM_OK);
	assert_int_equal(cm_store_open(&vars, NULL, home, false, &s, NULL), CM_OK);
	put(path, sizeof(path), e, "home/.local/state/casemate");
	assert_string_equal(s.state, path);
	put(path, sizeof(path), e, "home/.local/state/casemate/run");
	assert_string_equal(s.runtime, path);
	put(path, sizeof(path), e, "home/.cache/casemate");
	assert_string_equal(s.cache, path);
	cm_store_close(&s);
	assert_int_equal(cm_store_open(&vars, NULL, NULL, false, &s, &err), CM_E_INVALID);
	assert_non_null(strstr(err.hint, "HOME"));
	assert_int_equal(cm_store_open(&vars, "/r", "h", false, &s, &err), CM_E_INVALID);
	cm_strv_clear(&vars);
}

/* In a login that is over, and in a service without one. */
static void test_runtime_directory_gone(void **state)
{
	struct env *e = *state;
	struct cm_store s;
	char path[160];
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	/* one that this user cannot make */
	assert_int_equal(cm_strv_env_set(&e->vars, "XDG_RUNTIME_DIR", "/run/user/nobody-has-this"),
			 CM_OK);
	put(path, sizeof(path), e, "state");
	assert_int_equal(chown(e->dir, 12345, 12345), 0);
	assert_int_equal(chown(path, 12345, 12345), 0);
	put(path, sizeof(path), e, "state/casemate");
	assert_int_equal(chown(path, 12345, 12345), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setgid(12345) != 0 || setuid(12345) != 0)
			_exit(9);
		if (open_with(e, NULL, &s, NULL) != CM_OK)
			_exit(1);
		put(path, sizeof(path), e, "state/casemate/run");
		_exit(strcmp(s.runtime, path) == 0 ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_status(status, 0);
}

static void test_root_names(void **state)
{
	struct env *e = *state;
	struct cm_store s;
	struct cm_error err = CM_ERROR_INIT;
	char path[160];

	assert_int_equal(open_with(e, "~/x//y/", &s, NULL), CM_OK);
	put(path, sizeof(path), e, "home/x/y");
	assert_string_equal(s.root, path);
	assert_true(s.is_root_named);
	cm_store_close(&s);
	assert_int_equal(open_with(e, "/a/../b/.", &s, NULL), CM_OK);
	assert_string_equal(s.root, "/b");
	cm_store_close(&s);
	assert_int_equal(open_with(e, "relative/dir", &s, &err), CM_E_INVALID);
	assert_string_equal(err.msg, "session root 'relative/dir' is not absolute");
	assert_non_null(strstr(err.hint, "--root"));
	assert_int_equal(open_with(e, "~other/x", &s, &err), CM_E_INVALID);
	assert_int_equal(open_with(e, "/", &s, &err), CM_E_INVALID);
	assert_int_equal(open_with(e, "/..", &s, &err), CM_E_INVALID);

	/* flag, then our variable, then Mastra's */
	assert_int_equal(cm_strv_env_set(&e->vars, "MASTRACODE_LOCAL_SANDBOX_ROOT", "/m"), CM_OK);
	assert_int_equal(open_with(e, NULL, &s, NULL), CM_OK);
	assert_string_equal(s.root, "/m");
	cm_store_close(&s);
	assert_int_equal(cm_strv_env_set(&e->vars, "CASEMATE_ROOT", "/c"), CM_OK);
	assert_int_equal(open_with(e, NULL, &s, NULL), CM_OK);
	assert_string_equal(s.root, "/c");
	cm_store_close(&s);
	assert_int_equal(open_with(e, "/f", &s, NULL), CM_OK);
	assert_string_equal(s.root, "/f");
	cm_store_close(&s);
	assert_int_equal(cm_strv_env_set(&e->vars, "CASEMATE_ROOT", ""), CM_OK);
	assert_int_equal(open_with(e, NULL, &s, NULL), CM_OK);
	assert_string_equal(s.root, "/m");
	cm_store_close(&s);
}

/* An id is unique to a user; under another root it is refused where a root was named. */
static void test_another_root(void **state)
{
	struct env *e = *state;
	struct cm_store named;
	struct cm_store_session s;
	struct cm_error err = CM_ERROR_INIT;
	char path[160];

	env_make(e, "a");
	put(path, sizeof(path), e, "other");
	assert_int_equal(open_with(e, path, &named, NULL), CM_OK);
	assert_int_equal(cm_store_session_open(&named, "a", true, 0, &s, &err), CM_E_EXISTS);
	assert_non_null(strstr(err.hint, e->store.root));
	/* and has let go of the lock */
	assert_int_equal(cm_store_session_open_as(&named, "a", CM_STORE_CHANGE | CM_STORE_ANY_ROOT,
						  0, &s, NULL),
			 CM_OK);
	assert_non_null(strstr(s.session_dir, "/home/.mastracode/"));
	cm_store_session_close(&s);
	cm_store_close(&named);
}

static void refuse(struct env *e, int code, const char *part_of_hint)
{
	struct cm_store s = { .state_fd = -7 };
	struct cm_error err = CM_ERROR_INIT;
	int r = open_with(e, NULL, &s, &err);

	if (r != code || !strstr(err.hint, part_of_hint))
		fail_msg("%d: %s / %s", r, err.msg, err.hint);
	assert_int_equal(s.state_fd, -7);
}

static void test_refused_directories(void **state)
{
	struct env *e = *state;
	char path[160];
	char away[160];

	put(path, sizeof(path), e, "state/casemate");
	put(away, sizeof(away), e, "away");
	assert_int_equal(chmod(path, 0770), 0);
	refuse(e, CM_E_DENIED, "chmod 700");
	assert_int_equal(chmod(path, 0705), 0);
	refuse(e, CM_E_DENIED, "chmod 700");
	assert_int_equal(chmod(path, 0700), 0);
	/* it was not changed behind anybody's back, and is taken again */
	assert_int_equal(rename(path, away), 0);
	assert_int_equal(symlink(away, path), 0);
	refuse(e, CM_E_EXISTS, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	refuse(e, CM_E_EXISTS, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rename(away, path), 0);
	put(path, sizeof(path), e, "run/casemate");
	assert_int_equal(chmod(path, 0707), 0);
	refuse(e, CM_E_DENIED, "chmod 700");
	assert_int_equal(chmod(path, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 12345), 0);
		refuse(e, CM_E_DENIED, "owner");
	}
}

/* A link in a place of the store's own is not followed either. */
static void test_link_in_the_store(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;
	struct cm_error err = CM_ERROR_INIT;
	char away[160];

	put(away, sizeof(away), e, "away");
	assert_int_equal(mkdir(away, 0700), 0);
	assert_int_equal(symlinkat(away, e->store.state_fd, "sessions"), 0);
	assert_int_not_equal(env_create(e, "a", false, &s, &err), CM_OK);
	assert_non_null(strstr(err.hint, "symbolic link"));
	assert_int_equal(env_entries(e, "away"), 0);
	assert_int_equal(env_entries(e, "state/casemate/new"), 0);
}

/* A home below a symbolic link is common and no reason to refuse. */
static void test_parents_may_be_links(void **state)
{
	struct env *e = *state;
	struct cm_strv vars = { 0 };
	struct cm_store s;
	struct cm_store_session session;
	struct cm_session_record r = env_record("a");
	char real[160];
	char link[160];

	put(real, sizeof(real), e, "data");
	put(link, sizeof(link), e, "link");
	assert_int_equal(mkdir(real, 0755), 0);
	assert_int_equal(symlink(real, link), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cm_store_open(&vars, NULL, link, false, &s, NULL), CM_OK);
		if (i == 0) {
			assert_int_equal(cm_store_session_create(&s, &r, &session, NULL), CM_OK);
			assert_int_equal(cm_store_session_dir_make(&s, &session, NULL), CM_OK);
			cm_store_session_close(&session);
		}
		cm_store_close(&s);
	}
	assert_int_equal(env_entries(e, "data/.mastracode/web/sandboxes"), 1);
}

static int make_under(struct env *e, const char *root, struct cm_error *err)
{
	struct cm_store s;
	struct cm_store_session session;
	struct cm_session_record r = env_record("a");
	int result;

	assert_int_equal(open_with(e, root, &s, NULL), CM_OK);
	r.root = (char *)(uintptr_t)root;
	r.is_temporary = true;
	assert_int_equal(cm_store_session_create(&s, &r, &session, NULL), CM_OK);
	cm_error_clear(err);
	result = cm_store_session_dir_make(&s, &session, err);
	assert_int_equal(cm_store_session_remove(&s, &session, false, NULL), CM_OK);
	cm_store_session_close(&session);
	cm_store_close(&s);
	return result;
}

static void test_session_roots(void **state)
{
	struct env *e = *state;
	struct cm_error err = CM_ERROR_INIT;
	char root[160];
	char path[200];
	struct stat st;

	put(root, sizeof(root), e, "roots/deep");
	assert_int_equal(make_under(e, root, &err), CM_OK);
	(void)snprintf(path, sizeof(path), "%s/a", root);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(lstat(root, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(make_under(e, root, &err), CM_OK);

	assert_int_equal(chmod(root, 0770), 0);
	assert_int_equal(make_under(e, root, &err), CM_E_DENIED);
	assert_non_null(strstr(err.hint, "chmod 700"));
	assert_int_equal(chmod(root, 0700), 0);

	/* the session's own place: a link, a file, one that everybody writes */
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(make_under(e, root, &err), CM_E_DENIED);
	assert_non_null(strstr(err.hint, "--workspace"));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(symlink(e->dir, path), 0);
	assert_int_not_equal(make_under(e, root, &err), CM_OK);
	assert_non_null(strstr(err.hint, "symbolic link"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	assert_int_not_equal(make_under(e, root, &err), CM_OK);
	assert_non_null(strstr(err.hint, "directory must be at"));
	assert_int_equal(unlink(path), 0);

	/* the root */
	assert_int_equal(rmdir(root), 0);
	assert_int_equal(symlink(e->dir, root), 0);
	assert_int_not_equal(make_under(e, root, &err), CM_OK);
	assert_non_null(strstr(err.hint, "symbolic link"));
	assert_int_equal(unlink(root), 0);
	assert_int_equal(close(open(root, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	assert_int_not_equal(make_under(e, root, &err), CM_OK);
	assert_non_null(strstr(err.hint, "directory must be at"));
	assert_int_not_equal(make_under(e, "/proc/no/such", &err), CM_OK);
	assert_true(err.hint[0] != '\0');
}

static int try_unwritable(struct env *e)
{
	struct cm_error err = CM_ERROR_INIT;

	if (setgid(12345) != 0 || setuid(12345) != 0)
		return 9;
	if (make_under(e, "/usr/lib/casemate-test-root", &err) != CM_E_DENIED)
		return 1;
	return err.hint[0] != '\0' && strstr(err.msg, "/usr/lib") ? 0 : 2;
}

static void test_unwritable_root(void **state)
{
	struct env *e = *state;
	char command[160];
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	(void)snprintf(command, sizeof(command), "chown -R 12345:12345 '%s'", e->dir);
	assert_int_equal(system(command), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(try_unwritable(e));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_status(status, 0);
}

/* Root's sessions: what the agent writes is never a file of host root. */
static void test_owner_of_a_root_session(void **state)
{
	struct env *e = *state;
	struct cm_session_record r = env_record("a");
	struct cm_store_session s;
	struct cm_error err = CM_ERROR_INIT;
	struct stat st;
	char file[200];

	if (geteuid() != 0)
		skip();
	r.agent_id = 1879049192;
	assert_int_equal(cm_store_session_create(&e->store, &r, &s, NULL), CM_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fstatat(s.dir_fd, i ? "tmp" : "home", &st, 0), 0);
		assert_int_equal(st.st_uid, r.agent_id);
		assert_int_equal(st.st_gid, r.agent_id);
		assert_int_equal(st.st_mode & 07777, i ? 01777 : 0700);
	}
	assert_int_equal(fstat(s.dir_fd, &st), 0);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(cm_store_session_dir_make(&e->store, &s, NULL), CM_OK);
	assert_int_equal(lstat(s.session_dir, &st), 0);
	assert_int_equal(st.st_uid, r.agent_id);
	assert_int_equal(st.st_gid, r.agent_id);
	assert_int_equal(cm_store_session_dir_make(&e->store, &s, NULL), CM_OK);
	/* left by a death between making and giving away */
	assert_int_equal(chown(s.session_dir, 0, 0), 0);
	assert_int_equal(cm_store_session_dir_make(&e->store, &s, NULL), CM_OK);
	assert_int_equal(lstat(s.session_dir, &st), 0);
	assert_int_equal(st.st_uid, r.agent_id);
	/* somebody's work: no other owner for it */
	assert_int_equal(chown(s.session_dir, 0, 0), 0);
	(void)snprintf(file, sizeof(file), "%s/work", s.session_dir);
	assert_int_equal(close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	assert_int_equal(cm_store_session_dir_make(&e->store, &s, &err), CM_E_DENIED);
	assert_non_null(strstr(err.hint, "--workspace"));
	assert_int_equal(lstat(s.session_dir, &st), 0);
	assert_int_equal(st.st_uid, 0);
	/* its root is closed to other users */
	assert_int_equal(chmod(s.record.root, 0711), 0);
	assert_int_equal(cm_store_session_dir_make(&e->store, &s, &err), CM_E_DENIED);
	assert_non_null(strstr(err.hint, "chmod 700"));
	cm_store_session_close(&s);
}

#define T(name) cmocka_unit_test_setup_teardown(name, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_places),
		T(test_without_xdg),
		T(test_runtime_directory_gone),
		T(test_root_names),
		T(test_another_root),
		T(test_refused_directories),
		T(test_link_in_the_store),
		T(test_parents_may_be_links),
		T(test_session_roots),
		T(test_unwritable_root),
		T(test_owner_of_a_root_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
