/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of this side that a jail may have prepared. */
#include "providers/local/host_path.h"

#include "tests/unit/test_base.h"

static char top[32];

static int set_up(void **state)
{
	(void)state;
	memcpy(top, "/tmp/casemate-test-XXXXXX", sizeof("/tmp/casemate-test-XXXXXX"));
	if (!mkdtemp(top) || chdir(top) < 0 || mkdir("a", 0755) < 0 || mkdir("a/b", 0755) < 0 ||
	    mkdir("x", 0755) < 0)
		return -1;
	return close(open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

static int tear_down(void **state)
{
	(void)state;
	return chdir("/") == 0 && cm_remove_tree_at(AT_FDCWD, top) == 0 ? 0 : -1;
}

/* fd is what path is, and is closed. */
static void is(int fd, const char *path)
{
	struct stat got;
	struct stat want;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &got), 0);
	assert_int_equal(stat(path, &want), 0);
	assert_int_equal(got.st_ino, want.st_ino);
	assert_int_equal(got.st_dev, want.st_dev);
	close(fd);
}

static void test_directories(void **state)
{
	(void)state;
	is(cm_host_path_open_dir("."), ".");
	is(cm_host_path_open_dir("a//b/"), "a/b");
	is(cm_host_path_open_dir("a/b/../.."), ".");
	is(cm_host_path_open_dir("../"), "..");
	is(cm_host_path_open_dir("../../"), "/");
	is(cm_host_path_open_dir("/../.."), "/");
	is(cm_host_path_open_dir(top), top);
	assert_int_equal(cm_host_path_open_dir(""), -ENOENT);
	assert_int_equal(cm_host_path_open_dir("none"), -ENOENT);
	assert_int_equal(cm_host_path_open_dir("file"), -ENOTDIR);
	assert_int_equal(cm_host_path_open_dir("file/x"), -ENOTDIR);
}

static void test_parents(void **state)
{
	char base[NAME_MAX + 1];
	bool wants_dir;

	(void)state;
	is(cm_host_path_open_parent("new", base, &wants_dir), ".");
	assert_string_equal(base, "new");
	assert_false(wants_dir);
	is(cm_host_path_open_parent("a/b/new//", base, &wants_dir), "a/b");
	assert_string_equal(base, "new");
	assert_true(wants_dir);
	is(cm_host_path_open_parent("/new", base, &wants_dir), "/");
	assert_int_equal(cm_host_path_open_parent("a/..", base, &wants_dir), -EISDIR);
	assert_int_equal(cm_host_path_open_parent("/", base, &wants_dir), -EISDIR);
	assert_int_equal(cm_host_path_open_parent("", base, &wants_dir), -ENOENT);
}

/* Whoever made them; those of the root directory are followed. */
static void test_links(void **state)
{
	char base[NAME_MAX + 1];
	struct stat st;
	bool wants_dir;

	(void)state;
	assert_int_equal(symlink("../x", "a/link"), 0);
	assert_int_equal(cm_host_path_open_dir("a/link"), -ELOOP);
	assert_int_equal(cm_host_path_open_dir("a/link/"), -ELOOP);
	assert_int_equal(cm_host_path_open_parent("a/link/new", base, &wants_dir), -ELOOP);
	assert_int_equal(symlink("loop", "loop"), 0);
	assert_int_equal(cm_host_path_open_dir("loop"), -ELOOP);
	/* in a jail the root directory is nobody's that is known there */
	if (stat("/", &st) == 0 && st.st_uid == 0 && (st.st_mode & 022) == 0 &&
	    lstat("/bin", &st) == 0 && S_ISLNK(st.st_mode)) {
		is(cm_host_path_open_dir("/bin"), "/bin");
		is(cm_host_path_open_dir("/bin/.."), "/usr");
		is(cm_host_path_open_parent("/bin/sh", base, &wants_dir), "/usr/bin");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_directories, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_parents, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_links, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
