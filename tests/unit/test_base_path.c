/* SPDX-License-Identifier: Apache-2.0 */
/* Path text, real paths of any length, directories that must be ours. */
#include <limits.h>

#include "runtime/base/buf.h"
#include "runtime/base/path.h"
#include "tests/unit/test_base.h"

static void test_join(void **state)
{
	static const struct {
		const char *a;
		const char *b;
		const char *joined;
	} rows[] = {
		{ "/a", "b", "/a/b" }, { "/a/", "b", "/a/b" },	    { "/a//", "b", "/a/b" },
		{ "/", "b", "/b" },    { "//", "b", "/b" },	    { "a", "b", "a/b" },
		{ "", "b", "b" },      { "/a", "", "/a" },	    { "", "", "" },
		{ "/a", "/b", "/b" },  { "/a", "../b", "/a/../b" },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		CM_AUTO_FREE char *s = cm_path_join(rows[i].a, rows[i].b);

		assert_string_equal(s, rows[i].joined);
	}
}

static void test_clean(void **state)
{
	static const struct {
		const char *s;
		const char *clean;
	} rows[] = {
		{ "/", "/" },
		{ "//", "/" },
		{ "/.", "/" },
		{ "/./", "/" },
		{ "/..", "/" },
		{ "/../..", "/" },
		{ "/../../a", "/a" },
		{ "/a", "/a" },
		{ "/a/", "/a" },
		{ "//a///b//", "/a/b" },
		{ "/a/./b/.", "/a/b" },
		{ "/a/..", "/" },
		{ "/a/../b", "/b" },
		{ "/a/b/../..", "/" },
		{ "/a/b/../../..", "/" },
		{ "/a/b/../c", "/a/c" },
		{ "/...", "/..." },
		{ "/.a", "/.a" },
		{ "/..a/b..", "/..a/b.." },
		{ "/a/.../b", "/a/.../b" },
		{ "/a b/\n", "/a b/\n" },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		CM_AUTO_FREE char *s = cm_path_clean(rows[i].s);

		if (!s || strcmp(s, rows[i].clean) != 0)
			fail_msg("'%s' is '%s'", rows[i].s, s ? s : "NULL");
	}
}

static void test_clean_refusals(void **state)
{
	static const char *const bad[] = { NULL, "", "a", "./a", "../a", " /a" };
	char text[PATH_MAX + 1];
	CM_AUTO_FREE char *s = NULL;

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		errno = 0;
		assert_null(cm_path_clean(bad[i]));
		assert_int_equal(errno, EINVAL);
	}
	memset(text, 'a', sizeof(text));
	text[0] = '/';
	text[PATH_MAX - 1] = '\0';
	s = cm_path_clean(text);
	assert_string_equal(s, text);
	text[PATH_MAX - 1] = 'a';
	text[PATH_MAX] = '\0';
	assert_null(cm_path_clean(text));
	assert_int_equal(errno, ENAMETOOLONG);
	cm_alloc_fail_after(0);
	errno = 0;
	assert_null(cm_path_clean("/a"));
	assert_int_equal(errno, ENOMEM);
	assert_null(cm_path_join("a", "b"));
	cm_alloc_fail_after(-1);
}

static void test_below_and_base(void **state)
{
	(void)state;
	assert_true(cm_path_is_below("/a", "/a"));
	assert_true(cm_path_is_below("/a/b", "/a"));
	assert_true(cm_path_is_below("/a", "/"));
	assert_true(cm_path_is_below("/", "/"));
	assert_false(cm_path_is_below("/ab", "/a"));
	assert_false(cm_path_is_below("/a", "/a/b"));
	assert_false(cm_path_is_below("/", "/a"));
	assert_string_equal(cm_path_base("/a/b"), "b");
	assert_string_equal(cm_path_base("/a"), "a");
	assert_string_equal(cm_path_base("/"), "/");
	assert_string_equal(cm_path_base("a"), "a");
}

/* depth directories with names of 200 bytes below dirfd; the last one's descriptor. */
static int make_deep(int dirfd, size_t depth)
{
	char name[201];
	int at = fcntl(dirfd, F_DUPFD_CLOEXEC, 0);

	memset(name, 'd', sizeof(name) - 1);
	name[200] = '\0';
	for (size_t i = 0; i < depth; i++) {
		int fd;

		assert_int_equal(mkdirat(at, name, 0700), 0);
		fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(fd >= 0);
		close(at);
		at = fd;
	}
	return at;
}

static void test_real(void **state)
{
	CM_AUTO_FD int dir = open_scratch(state);
	CM_AUTO_FREE char *path = cm_asprintf("%s/link/../link/.//file", (char *)*state);
	CM_AUTO_FREE char *loop = cm_asprintf("%s/loop", (char *)*state);
	CM_AUTO_FREE char *expected = cm_asprintf("%s/real/file", (char *)*state);
	CM_AUTO_FREE char *real = NULL;

	assert_int_equal(mkdirat(dir, "real", 0700), 0);
	make_file(dir, "real/file", "");
	assert_int_equal(symlinkat("real", dir, "link"), 0);
	assert_int_equal(symlinkat("loop", dir, "loop"), 0);
	real = cm_path_real(path);
	assert_string_equal(real, expected);
	errno = 0;
	assert_null(cm_path_real(loop));
	assert_int_equal(errno, ELOOP);
	assert_null(cm_path_real("/nonexistent-by-all-odds"));
	assert_int_equal(errno, ENOENT);
	assert_null(cm_path_real(""));
	assert_int_equal(errno, ENOENT);
}

struct long_case {
	const char *path;
	const char *expected;
};

static bool resolve_once(void *data)
{
	const struct long_case *c = data;
	size_t fds = count_fds();
	char *real = cm_path_real(c->path);
	bool is_done = real != NULL;

	if (is_done)
		assert_string_equal(real, c->expected);
	else
		assert_int_equal(errno, ENOMEM);
	free(real);
	assert_int_equal(count_fds(), fds);
	return is_done;
}

/* Longer than any text that the kernel takes, with links in it. */
static void test_real_long(void **state)
{
	CM_AUTO_FD int dir = open_scratch(state);
	CM_AUTO_FD int deep = make_deep(dir, 30);
	CM_AUTO_BUF struct cm_buf path;
	CM_AUTO_BUF struct cm_buf expected;
	struct long_case c;
	char name[202];

	name[0] = '/';
	memset(name + 1, 'd', 200);
	name[201] = '\0';
	cm_buf_init(&path, 100000);
	cm_buf_init(&expected, 100000);
	cm_buf_puts(&path, *state);
	cm_buf_puts(&expected, *state);
	for (size_t i = 0; i < 30; i++) {
		cm_buf_puts(&path, i == 3 ? "/./" : "/");
		cm_buf_puts(&path, name + 1);
		cm_buf_puts(&expected, name);
	}
	make_file(deep, "file", "");
	assert_int_equal(symlinkat("file", deep, "link"), 0);
	assert_int_equal(symlinkat("../nowhere/../x", deep, "broken"), 0);
	assert_int_equal(symlinkat("a-loop", deep, "a-loop"), 0);
	assert_int_equal(symlinkat(*state, deep, "home"), 0);
	cm_buf_puts(&expected, "/file");

	cm_buf_puts(&path, "/link");
	c = (struct long_case){ path.data, expected.data };
	assert_in_range(fail_each_allocation(resolve_once, &c), 5, 100);
	path.len -= strlen("link");
	cm_buf_puts(&path, "broken");
	assert_null(cm_path_real(path.data));
	assert_int_equal(errno, ENOENT);
	path.len -= strlen("broken");
	cm_buf_puts(&path, "a-loop");
	assert_null(cm_path_real(path.data));
	assert_int_equal(errno, ELOOP);
	path.len -= strlen("a-loop");
	cm_buf_puts(&path, "file/x");
	assert_null(cm_path_real(path.data));
	assert_int_equal(errno, ENOTDIR);
	path.len -= strlen("file/x");
	cm_buf_puts(&path, "home/../");
	c = (struct long_case){ path.data, "/tmp" };
	assert_true(resolve_once(&c));
	cm_buf_puts(&path, "../../..");
	c.expected = "/";
	assert_true(resolve_once(&c));
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

static void test_make_dirs(void **state)
{
	const char *base = *state;
	CM_AUTO_FREE char *deep = cm_asprintf("%s/a//b/./c/", base);
	CM_AUTO_FREE char *c = cm_asprintf("%s/a/b/c", base);
	struct cm_error err = CM_ERROR_INIT;

	assert_int_equal(cm_path_make_dirs(deep, 0750, &err), CM_OK);
	assert_int_equal(mode_of(c), 0750);
	/* left as it is */
	assert_int_equal(chmod(c, 0711), 0);
	assert_int_equal(cm_path_make_dirs(deep, 0700, &err), CM_OK);
	assert_int_equal(mode_of(c), 0711);
	assert_int_equal(cm_path_make_dirs("/", 0700, &err), CM_OK);
	assert_int_equal(cm_path_make_dirs(".", 0700, &err), CM_OK);
}

static void assert_make_fails(const char *base, const char *rest, int code, int sys_errno)
{
	CM_AUTO_FREE char *path = cm_asprintf("%s/%s", base, rest);
	struct cm_error err = CM_ERROR_INIT;
	int fd = -7;

	assert_int_equal(cm_path_make_dirs(path, 0700, &err), code);
	assert_int_equal(err.sys_errno, sys_errno);
	assert_true(err.hint[0] != '\0');
	assert_int_equal(cm_path_open_private_dir(path, &fd, &err), code);
	assert_int_equal(fd, -7);
}

static void test_make_dirs_refusals(void **state)
{
	const char *base = *state;
	CM_AUTO_FD int dir = open_scratch(state);
	CM_AUTO_FREE char *message =
		cm_asprintf("cannot make directory '%s/link/x': '%s/link' is a symbolic link or "
			    "not a directory",
			    base, base);
	CM_AUTO_FREE char *path = cm_asprintf("%s/link/x", base);
	struct cm_error err = CM_ERROR_INIT;
	char name[300];

	assert_int_equal(mkdirat(dir, "real", 0700), 0);
	assert_int_equal(symlinkat("real", dir, "link"), 0);
	assert_int_equal(symlinkat("nothing", dir, "dangling"), 0);
	make_file(dir, "file", "");
	assert_int_equal(cm_path_make_dirs(path, 0700, &err), CM_E_EXISTS);
	assert_string_equal(err.msg, message);
	assert_int_equal(faccessat(dir, "real/x", F_OK, 0), -1);
	assert_make_fails(base, "link", CM_E_EXISTS, ENOTDIR);
	assert_make_fails(base, "dangling/x", CM_E_EXISTS, ENOTDIR);
	assert_int_equal(faccessat(dir, "nothing", F_OK, 0), -1);
	assert_make_fails(base, "file/x", CM_E_EXISTS, ENOTDIR);
	assert_make_fails(base, "real/../other", CM_E_INVALID, 0);
	assert_int_equal(faccessat(dir, "other", F_OK, 0), -1);
	memset(name, 'n', sizeof(name));
	name[256] = '\0';
	assert_make_fails(base, name, CM_E_SYS, ENAMETOOLONG);
	assert_int_equal(cm_path_make_dirs("", 0700, &err), CM_E_INVALID);
	assert_make_fails("/proc", "new/x", CM_E_SYS, ENOENT);
}

static int be_nobody_and_make(void *data)
{
	struct cm_error err = CM_ERROR_INIT;
	int fd = -7;

	if (geteuid() == 0 && (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
		return 1;
	if (cm_path_make_dirs(data, 0700, &err) != CM_E_DENIED || err.sys_errno != EACCES)
		return 2;
	if (!strstr(err.hint, "choose a place that this user may write"))
		return 3;
	return cm_path_open_private_dir(data, &fd, &err) == CM_E_DENIED && fd == -7 ? 0 : 4;
}

static void test_make_dirs_denied(void **state)
{
	CM_AUTO_FD int dir = open_scratch(state);
	CM_AUTO_FREE char *path = cm_asprintf("%s/locked/x", (char *)*state);

	assert_int_equal(mkdirat(dir, "locked", 0555), 0);
	assert_int_equal(chmod(*state, 0755), 0);
	assert_int_equal(run_child(be_nobody_and_make, path), 0);
}

static void test_private_dir(void **state)
{
	const char *base = *state;
	CM_AUTO_FREE char *path = cm_asprintf("%s/p/q", base);
	CM_AUTO_FREE char *parent = cm_asprintf("%s/p", base);
	CM_AUTO_FD int fd = -1;
	struct cm_error err = CM_ERROR_INIT;
	static const mode_t loose[] = { 0710, 0701, 0750, 0755, 0777, 0704, 0720, 01777, 0740 };

	/* whatever the umask is, nobody else gets in */
	(void)umask(0);
	assert_int_equal(cm_path_open_private_dir(path, &fd, &err), CM_OK);
	assert_int_equal(mode_of(path), 0700);
	assert_int_equal(mode_of(parent), 0700);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	/* usable for what O_PATH is not */
	assert_int_equal(fsync(fd), 0);
	for (size_t i = 0; i < CM_ARRAY_SIZE(loose); i++) {
		int untouched = -7;

		assert_int_equal(chmod(path, loose[i]), 0);
		assert_int_equal(cm_path_open_private_dir(path, &untouched, &err), CM_E_DENIED);
		assert_int_equal(untouched, -7);
		/* refused, not fixed */
		assert_int_equal(mode_of(path), loose[i]);
		assert_non_null(strstr(err.hint, "chmod 700 '"));
	}
	assert_non_null(strstr(err.msg, "others may access it (mode 0740)"));
	/* only the directory itself is judged */
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(chmod(parent, 0755), 0);
	cm_fd_close(&fd);
	assert_int_equal(cm_path_open_private_dir(path, &fd, &err), CM_OK);
}

static void test_private_dir_of_others(void **state)
{
	CM_AUTO_FREE char *path = cm_asprintf("%s/theirs", (char *)*state);
	struct cm_error err = CM_ERROR_INIT;
	size_t fds;
	int fd = -7;

	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chown(path, 65534, 65534), 0);
	fds = count_fds();
	assert_int_equal(cm_path_open_private_dir(path, &fd, &err), CM_E_DENIED);
	assert_non_null(strstr(err.msg, "it belongs to uid 65534, not to uid 0"));
	assert_int_equal(fd, -7);
	assert_int_equal(count_fds(), fds);
}

int main(void)
{
#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_clean_refusals),
		cmocka_unit_test(test_below_and_base),
		WITH_SCRATCH(test_real),
		WITH_SCRATCH(test_real_long),
		WITH_SCRATCH(test_make_dirs),
		WITH_SCRATCH(test_make_dirs_refusals),
		WITH_SCRATCH(test_make_dirs_denied),
		WITH_SCRATCH(test_private_dir),
		WITH_SCRATCH(test_private_dir_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
