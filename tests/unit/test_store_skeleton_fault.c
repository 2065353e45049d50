/* SPDX-License-Identifier: Apache-2.0 */
/* Skeletons where they cannot be made, and on file systems that outlive a boot. */
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/vfs.h>

#include "runtime/base/alloc.h"
#include "tests/unit/test_store_skeleton.h"

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
		skeleton_touch(e, "other");
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
