/* SPDX-License-Identifier: Apache-2.0 */
/* Skeletons: found, made, locked, pruned; full disks and other failures. Deaths: _skeleton_kill. */
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/vfs.h>

#include "runtime/base/alloc.h"
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

static void make_one(struct env *e, const char *key)
{
	struct filling f = { 0 };
	struct cm_store_skeleton s;

	skeleton_get(e, key, &f, &s);
	assert_int_equal(f.n, 1);
	cm_store_skeleton_close(&s);
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

	make_one(e, "a");
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
	make_one(e, "a");
	assert_int_equal(env_entries(e, SKELETONS), 1);
	make_one(e, "slow");
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

/* --- failures ----------------------------------------------------------------------------------- */

/* A mount namespace of this process's own; ends it with 77 where there is none to be had. */
static void own_mounts(void)
{
	char uids[32];
	char gids[32];

	(void)snprintf(uids, sizeof(uids), "0 %u 1", (unsigned int)geteuid());
	(void)snprintf(gids, sizeof(gids), "0 %u 1", (unsigned int)getegid());
	if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0)
		_exit(77);
	if (strcmp(uids, "0 0 1") != 0 &&
	    (cm_write_file_at(AT_FDCWD, "/proc/self/setgroups", "deny") != 0 ||
	     cm_write_file_at(AT_FDCWD, "/proc/self/uid_map", uids) != 0 ||
	     cm_write_file_at(AT_FDCWD, "/proc/self/gid_map", gids) != 0))
		_exit(77);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		_exit(77);
}

static void in_own_mounts(struct env *e, void (*fn)(struct env *e))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		own_mounts();
		fn(e);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_status(status, 0);
}

static void assert_clear(const struct cm_error *err, int code, int sys_errno)
{
	if (code >= 0 || err->sys_errno != sys_errno)
		fail_msg("%d: %s: %s", code, err->msg, strerror(err->sys_errno));
	if (strncmp(err->msg, "cannot ", 7) != 0 || err->hint[0] == '\0')
		fail_msg("'%s', hint '%s'", err->msg, err->hint);
}

/* The descriptors of a store look at mounts as they were when it was opened. */
static void open_again(struct env *e)
{
	cm_store_close(&e->store);
	env_open(e, &e->store);
}

/* true: it could be made */
static bool on_little(struct env *e, const char *options)
{
	struct cm_error err = CM_ERROR_INIT;
	struct filling f = { 0 };
	struct cm_store_skeleton s;
	char path[128];
	int code;

	(void)snprintf(path, sizeof(path), "%s/" SKELETONS, e->dir);
	assert_int_equal(mount("t", path, "tmpfs", MS_NOSUID | MS_NODEV, options), 0);
	open_again(e);
	code = skeleton_open(&e->store, "key", &f, &s, &err);
	if (code == CM_OK) {
		assert_skeleton(s.dir, "key");
		cm_store_skeleton_close(&s);
	} else {
		assert_clear(&err, code, ENOSPC);
	}
	assert_int_equal(env_entries(e, SKELETONS), code == CM_OK);
	assert_int_equal(umount2(path, MNT_DETACH), 0);
	return code == CM_OK;
}

static void on_all_sizes(struct env *e)
{
	char options[64];
	int made = 0;

	for (int n = 1; n <= 12; n++) {
		(void)snprintf(options, sizeof(options), "nr_inodes=%d,size=1m,mode=700", n);
		made += on_little(e, options);
	}
	/* itself, the directory, its lock, and three nodes */
	assert_int_equal(made, 12 - 5);
	for (int n = 1; n <= 4; n++) {
		(void)snprintf(options, sizeof(options), "nr_inodes=99,size=%dk,mode=700", n * 4);
		made += on_little(e, options);
	}
	/* a page for the key, a page for the file */
	assert_int_equal(made, 12 - 5 + 4 - 1);
}

static void test_full_disk(void **state)
{
	skeletons_clear(*state);
	in_own_mounts(*state, on_all_sizes);
}

static void read_only(struct env *e)
{
	struct cm_error err = CM_ERROR_INIT;
	struct filling f = { 0 };
	struct cm_store_skeleton s;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/" SKELETONS, e->dir);
	assert_int_equal(mount(path, path, NULL, MS_BIND, NULL), 0);
	/* in a user namespace flags of the host's cannot be cleared */
	if (mount(NULL, path, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) != 0)
		_exit(77);
	open_again(e);
	assert_clear(&err, skeleton_open(&e->store, "other", &f, &s, &err), EROFS);
	/* what is there can be used */
	skeleton_get(e, "key", &f, &s);
	assert_int_equal(f.n, 0);
}

static void test_read_only(void **state)
{
	struct filling f = { 0 };
	struct cm_store_skeleton s;

	skeleton_get(*state, "key", &f, &s);
	cm_store_skeleton_close(&s);
	in_own_mounts(*state, read_only);
}

static void test_not_ours(void **state)
{
	struct env *e = *state;
	struct cm_error err = CM_ERROR_INIT;
	struct filling f = { 0 };
	struct cm_store_skeleton s;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/" SKELETONS, e->dir);
	/* a link, and a file, in its place */
	assert_int_equal(symlink(e->dir, path), 0);
	assert_clear(&err, skeleton_open(&e->store, "key", &f, &s, &err), ELOOP);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mknod(path, S_IFREG | 0600, 0), 0);
	assert_clear(&err, skeleton_open(&e->store, "key", &f, &s, &err), ENOTDIR);
	assert_int_equal(unlink(path), 0);
	if (geteuid() == 0)
		return;
	assert_int_equal(mkdir(path, 0500), 0);
	assert_clear(&err, skeleton_open(&e->store, "key", &f, &s, &err), EACCES);
	assert_int_equal(chmod(path, 0700), 0);
}

static void limit_descriptors(int n)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = n < 0 ? limit.rlim_max : (rlim_t)n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Said at once, and what is left of it is the next one's to take away. */
static void test_no_descriptors(void **state)
{
	struct env *e = *state;
	struct filling f = { 0 };
	struct cm_store_skeleton s;
	int first = dup(STDIN_FILENO);
	int n = 0;

	(void)close(first);
	for (;; n++) {
		struct cm_error err = CM_ERROR_INIT;
		int code;

		limit_descriptors(first + n);
		code = skeleton_open(&e->store, "key", &f, &s, &err);
		limit_descriptors(-1);
		if (code == CM_OK)
			break;
		assert_clear(&err, code, EMFILE);
		assert_true(env_entries(e, SKELETONS) <= 1);
		make_one(e, "other");
		assert_int_equal(env_entries(e, SKELETONS), 1);
		skeletons_clear(e);
	}
	assert_true(n >= 4);
	assert_skeleton(s.dir, "key");
	cm_store_skeleton_close(&s);
}

static void test_allocations(void **state)
{
	struct env *e = *state;
	struct filling f = { .key = "key" };
	struct cm_store_skeleton s;
	int failed = 0;
	int code;

	for (long n = 0;; n++) {
		CM_AUTO_BUF struct cm_buf key = skeleton_key_buf("key");
		struct cm_error err = CM_ERROR_INIT;

		cm_alloc_fail_after(n);
		code = cm_store_skeleton_open(&e->store, &key, skeleton_fill, &f, &s, &err);
		cm_alloc_fail_after(-1);
		if (code == CM_OK)
			break;
		assert_true(err.sys_errno == ENOMEM || code == CM_E_NOMEM);
		/* who was told so has nothing to let go of */
		assert_true(skeletons_are_free(e));
		failed++;
	}
	assert_true(failed >= 2);
	cm_store_skeleton_close(&s);
}

/* --- file systems that outlive a boot ----------------------------------------------------------- */

static void in_another_boot(struct env *e)
{
	static const char boot_id[] = "/proc/sys/kernel/random/boot_id";
	struct filling f = { 0 };
	struct cm_store_skeleton s;
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/boot", e->dir);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_equal(cm_write_all(fd, "01234567-89ab\n", 14), 0);
	(void)close(fd);
	assert_int_equal(mount(path, boot_id, NULL, MS_BIND, NULL), 0);
	skeleton_get(e, "key", &f, &s);
	assert_int_equal(f.n, 1);
	assert_string_equal(strrchr(s.dir, '.'), ".01234567");
	assert_int_equal(env_entries(e, SKELETONS), 2);
	skeleton_get(e, "key", &f, &s);
	assert_int_equal(f.n, 1);
}

static void test_boot(void **state)
{
	struct env *e = *state;
	struct filling f = { 0 };
	struct cm_store_skeleton s;
	struct statfs fs;
	char boot[64];

	assert_int_equal(statfs(e->dir, &fs), 0);
	if (fs.f_type == TMPFS_MAGIC)
		skip();
	assert_true(cm_read_file_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot,
				    sizeof(boot)) > 8);
	boot[8] = '\0';
	skeleton_get(e, "key", &f, &s);
	assert_string_equal(strrchr(s.dir, '.') + 1, boot);
	cm_store_skeleton_close(&s);
	in_own_mounts(e, in_another_boot);
}

static void test_no_boot(void **state)
{
	struct env *e = *state;
	struct filling f = { 0 };
	struct cm_store_skeleton s;
	struct statfs fs;

	assert_int_equal(statfs(e->dir, &fs), 0);
	if (fs.f_type != TMPFS_MAGIC)
		skip();
	skeleton_get(e, "key", &f, &s);
	assert_null(strchr(strrchr(s.dir, '/'), '.'));
	cm_store_skeleton_close(&s);
}

static int env_setup_on_disk(void **state)
{
	struct env *e = calloc(1, sizeof(*e));

	assert_non_null(e);
	(void)snprintf(e->dir, sizeof(e->dir), "/var/tmp/cm-test-store-XXXXXX");
	assert_non_null(mkdtemp(e->dir));
	env_vars(e);
	env_open(e, &e->store);
	*state = e;
	return 0;
}

#define T(name) cmocka_unit_test_setup_teardown(name, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_found_again),
		T(test_other_keys),
		T(test_same_hash),
		T(test_taken_away),
		T(test_filler_fails),
		T(test_half_made),
		T(test_oldest_first),
		T(test_hundreds),
		T(test_in_use),
		T(test_all_in_use),
		T(test_maker_at_work),
		T(test_maker_dies),
		T(test_ten_at_once),
		T(test_full_disk),
		T(test_read_only),
		T(test_not_ours),
		T(test_no_descriptors),
		T(test_allocations),
		T(test_no_boot),
		cmocka_unit_test_setup_teardown(test_boot, env_setup_on_disk, env_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
