/* SPDX-License-Identifier: Apache-2.0 */
/* Removal of trees that hostile code made: deep, wide, locked, with links, mounts and FIFOs. */
#include <limits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/unit/test_base.h"

static bool is_there(int dir, const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* `depth` levels below dir, each with a file and a link beside the next one. */
static void make_deep(int dir, size_t depth, const char *name)
{
	int at = fcntl(dir, F_DUPFD_CLOEXEC, 0);

	for (size_t i = 0; i < depth; i++) {
		int fd;

		assert_int_equal(mkdirat(at, name, 0700), 0);
		fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(fd >= 0);
		close(at);
		at = fd;
		if (i % 50 == 0) {
			make_file(at, "file", "x");
			assert_int_equal(symlinkat("/", at, "link"), 0);
		}
	}
	close(at);
}

static void test_nothing_there(void **state)
{
	CM_AUTO_FD int dir = open_scratch(state);

	assert_int_equal(cm_remove_tree_at(dir, "no"), 0);
	assert_int_equal(cm_remove_tree_at(dir, "no/such"), 0);
	assert_int_equal(cm_remove_tree_at(dir, ""), -EINVAL);
	assert_int_equal(cm_remove_tree_at(dir, "."), -EINVAL);
	assert_int_equal(cm_remove_tree_at(dir, ".."), -EINVAL);
	assert_int_equal(cm_remove_tree_at(dir, "a/.."), -EINVAL);
	assert_int_equal(cm_remove_tree_at(dir, "a/"), -EINVAL);
	assert_int_equal(cm_remove_tree_at(-1, "a"), -EBADF);
}

static void test_long_name(void **state)
{
	CM_AUTO_FD int dir = open_scratch(state);
	char name[NAME_MAX + 2];

	memset(name, 'n', sizeof(name));
	name[NAME_MAX + 1] = '\0';
	assert_int_equal(cm_remove_tree_at(dir, name), -ENAMETOOLONG);
	name[NAME_MAX] = '\0';
	make_deep(dir, 70, name);
	assert_int_equal(cm_remove_tree_at(dir, name), 0);
	assert_false(is_there(dir, name));
}

static void test_kinds(void **state)
{
	CM_AUTO_FD int dir = open_scratch(state);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	CM_AUTO_FD int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(mkdirat(dir, "t", 0700), 0);
	assert_int_equal(mkdirat(dir, "t/empty", 0700), 0);
	make_file(dir, "t/file", "x");
	make_file(dir, "t/-rf", "x");
	make_file(dir, "t/a\nb", "x");
	make_file(dir, "t/.cm-remove-0", "x");
	/* opening it would wait for ever */
	assert_int_equal(mkfifoat(dir, "t/fifo", 0600), 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/t/sock", (char *)*state);
	assert_int_equal(bind(sock, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(symlinkat("nothing", dir, "t/dangling"), 0);
	assert_int_equal(symlinkat("loop", dir, "t/loop"), 0);
	assert_int_equal(cm_remove_tree_at(dir, "t"), 0);
	assert_false(is_there(dir, "t"));
	/* the name itself may be each of them */
	assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
	assert_int_equal(cm_remove_tree_at(dir, "fifo"), 0);
	make_file(dir, "f", "x");
	assert_int_equal(cm_remove_tree_at(dir, "f"), 0);
	assert_int_equal(count_entries(*state), 0);
}

static void test_links_out(void **state)
{
	CM_AUTO_FD int dir = open_scratch(state);

	assert_int_equal(mkdirat(dir, "outside", 0700), 0);
	make_file(dir, "outside/precious", "x");
	assert_int_equal(mkdirat(dir, "t", 0700), 0);
	assert_int_equal(symlinkat("../outside", dir, "t/relative"), 0);
	assert_int_equal(symlinkat(*state, dir, "t/absolute"), 0);
	assert_int_equal(symlinkat("/", dir, "t/root"), 0);
	assert_int_equal(symlinkat("..", dir, "t/up"), 0);
	assert_int_equal(symlinkat("../outside/precious", dir, "t/file"), 0);
	assert_int_equal(linkat(dir, "outside/precious", dir, "t/hard", 0), 0);
	assert_int_equal(cm_remove_tree_at(dir, "t"), 0);
	assert_false(is_there(dir, "t"));
	assert_true(is_there(dir, "outside/precious"));
	/* the name itself is a link */
	assert_int_equal(symlinkat("outside", dir, "link"), 0);
	assert_int_equal(cm_remove_tree_at(dir, "link"), 0);
	assert_false(is_there(dir, "link"));
	assert_true(is_there(dir, "outside/precious"));
}

static void test_deep(void **state)
{
	CM_AUTO_FD int dir = open_scratch(state);
	size_t fds = count_fds();

	make_deep(dir, 5000, "d");
	assert_int_equal(cm_remove_tree_at(dir, "d"), 0);
	assert_false(is_there(dir, "d"));
	assert_int_equal(count_entries(*state), 0);
	assert_int_equal(count_fds(), fds);
	/* names that our own moves would like to have, at the top and below */
	make_deep(dir, 300, ".cm-remove-0");
	assert_int_equal(cm_remove_tree_at(dir, ".cm-remove-0"), 0);
	assert_int_equal(count_entries(*state), 0);
}

/* More descriptors than this process may have are not needed. */
static int remove_with_few_fds(void *data)
{
	int dir = *(int *)data;
	struct rlimit few = { (rlim_t)dir + 12, (rlim_t)dir + 12 };

	if (setrlimit(RLIMIT_NOFILE, &few) != 0)
		return 77;
	return -cm_remove_tree_at(dir, "d");
}

static void test_deep_with_few_fds(void **state)
{
	int dir = open_scratch(state);

	make_deep(dir, 1000, "d");
	assert_int_equal(run_child(remove_with_few_fds, &dir), 0);
	assert_int_equal(count_entries(*state), 0);
	close(dir);
}

static void test_wide(void **state)
{
	CM_AUTO_FD int dir = open_scratch(state);
	char name[32];

	assert_int_equal(mkdirat(dir, "t", 0700), 0);
	/* many listings, each emptied while it is read */
	for (int i = 0; i < 3000; i++) {
		(void)snprintf(name, sizeof(name), "t/%s%d", i % 3 ? "f" : "d", i);
		if (i % 3)
			make_file(dir, name, "");
		else
			assert_int_equal(mkdirat(dir, name, 0700), 0);
	}
	assert_int_equal(cm_remove_tree_at(dir, "t"), 0);
	assert_false(is_there(dir, "t"));
}

/* Each level has two directories, both deeper than there are frames. */
static void test_forks(void **state)
{
	CM_AUTO_FD int dir = open_scratch(state);
	int at = fcntl(dir, F_DUPFD_CLOEXEC, 0);

	for (size_t i = 0; i < 200; i++) {
		int fd;

		assert_int_equal(mkdirat(at, "a", 0700), 0);
		if (i % 10 == 0)
			make_deep(at, 100, "b");
		fd = openat(at, "a", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(fd >= 0);
		close(at);
		at = fd;
	}
	close(at);
	assert_int_equal(cm_remove_tree_at(dir, "a"), 0);
	assert_int_equal(cm_remove_tree_at(dir, "b"), 0);
	assert_int_equal(count_entries(*state), 0);
}

/* What an ordinary user's code can do to its own directories. */
static int remove_locked(void *data)
{
	int dir = *(int *)data;
	static const mode_t modes[] = { 0000, 0100, 0200, 0300, 0400, 0500, 0600 };
	char name[32];

	if (geteuid() == 0 && (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
		return 77;
	if (mkdirat(dir, "t", 0700) != 0)
		return 1;
	for (size_t i = 0; i < CM_ARRAY_SIZE(modes); i++) {
		(void)snprintf(name, sizeof(name), "t/d%zu", i);
		if (mkdirat(dir, name, 0700) != 0)
			return 2;
		(void)snprintf(name, sizeof(name), "t/d%zu/sub", i);
		if (mkdirat(dir, name, 0700) != 0)
			return 3;
		(void)snprintf(name, sizeof(name), "t/d%zu/sub/f", i);
		make_file(dir, name, "x");
		(void)snprintf(name, sizeof(name), "t/d%zu/sub", i);
		if (fchmodat(dir, name, modes[i], 0) != 0)
			return 4;
		(void)snprintf(name, sizeof(name), "t/d%zu", i);
		if (fchmodat(dir, name, modes[i], 0) != 0)
			return 5;
	}
	if (fchmodat(dir, "t", 0, 0) != 0)
		return 6;
	if (cm_remove_tree_at(dir, "t") != 0)
		return 7;
	return is_there(dir, "t") ? 8 : 0;
}

static void test_locked(void **state)
{
	int dir = open_scratch(state);

	if (geteuid() == 0)
		assert_int_equal(fchown(dir, 65534, 65534), 0);
	assert_int_equal(run_child(remove_locked, &dir), 0);
	close(dir);
}

/* A directory of somebody else's in it: the first failure is told, the rest goes. */
static int remove_theirs(void *data)
{
	int dir = *(int *)data;

	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return 77;
	return -cm_remove_tree_at(dir, "t");
}

static void test_not_ours(void **state)
{
	int dir = open_scratch(state);

	if (geteuid() != 0) {
		close(dir);
		skip();
	}
	assert_int_equal(fchown(dir, 65534, 65534), 0);
	assert_int_equal(mkdirat(dir, "t", 0700), 0);
	assert_int_equal(mkdirat(dir, "t/m", 0700), 0);
	make_file(dir, "t/m/theirs", "x");
	/* empty, and not to be entered: removable all the same */
	assert_int_equal(mkdirat(dir, "t/empty", 0000), 0);
	make_file(dir, "t/a", "x");
	make_file(dir, "t/z", "x");
	assert_int_equal(fchownat(dir, "t", 65534, 65534, 0), 0);
	assert_int_equal(run_child(remove_theirs, &dir), EACCES);
	assert_true(is_there(dir, "t/m/theirs"));
	assert_false(is_there(dir, "t/a"));
	assert_false(is_there(dir, "t/z"));
	assert_false(is_there(dir, "t/empty"));
	close(dir);
}

/* Mounts in the tree, another file system's and its own: in a mount namespace of its own. */
static int remove_mounts(void *data)
{
	const char *base = data;
	CM_AUTO_FD int dir = -1;

	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return 77;
	/* only now: what was open before is in the old namespace */
	dir = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fchdir(dir) != 0 || mkdir("outside", 0700) != 0 || mkdir("t", 0700) != 0 ||
	    mkdir("t/tmpfs", 0700) != 0 || mkdir("t/bind", 0700) != 0 || mkdir("t/d", 0700) != 0)
		return 1;
	make_file(dir, "outside/precious", "x");
	make_file(dir, "t/d/file", "x");
	make_file(dir, "t/covered", "x");
	if (mount("cm-test", "t/tmpfs", "tmpfs", 0, "size=64k") != 0 ||
	    mount("outside", "t/bind", NULL, MS_BIND, NULL) != 0 ||
	    mount("outside/precious", "t/covered", NULL, MS_BIND, NULL) != 0)
		return 9;
	make_file(dir, "t/tmpfs/precious", "x");
	if (cm_remove_tree_at(dir, "t") == 0)
		return 2;
	if (!is_there(dir, "t/tmpfs/precious") || !is_there(dir, "t/bind/precious") ||
	    !is_there(dir, "outside/precious") || !is_there(dir, "t/covered"))
		return 3;
	if (is_there(dir, "t/d"))
		return 4;
	/* the name itself is one */
	if (cm_remove_tree_at(dir, "t/tmpfs") != -EXDEV || !is_there(dir, "t/tmpfs/precious"))
		return 5;
	if (umount("t/tmpfs") != 0 || umount("t/bind") != 0 || umount("t/covered") != 0)
		return 6;
	if (cm_remove_tree_at(dir, "t") != 0 || is_there(dir, "t"))
		return 7;
	return is_there(dir, "outside/precious") ? 0 : 8;
}

static void test_mounts(void **state)
{
	int status = run_child(remove_mounts, *state);

	if (status == 77)
		skip();
	assert_int_equal(status, 0);
}

/* Somebody swaps a directory and a link to another place while the tree is removed. */
static int swap_for_ever(void *data)
{
	int dir = *(int *)data;

	for (;;) {
		(void)mkdirat(dir, "t/x", 0700);
		(void)mkdirat(dir, "t/x/y", 0700);
		(void)unlinkat(dir, "t/x/y", AT_REMOVEDIR);
		(void)unlinkat(dir, "t/x", AT_REMOVEDIR);
		(void)!symlinkat("../outside", dir, "t/x");
		(void)unlinkat(dir, "t/x", 0);
	}
	return 0;
}

static void test_race(void **state)
{
	int dir = open_scratch(state);
	int n_removed = 0;
	pid_t pid;

	assert_int_equal(mkdirat(dir, "outside", 0700), 0);
	make_file(dir, "outside/precious", "x");
	pid = fork_child();
	if (pid == 0)
		_exit(swap_for_ever(&dir));
	for (int i = 0; i < 500; i++) {
		int r;

		assert_true(mkdirat(dir, "t", 0700) == 0 || errno == EEXIST);
		r = cm_remove_tree_at(dir, "t");
		if (r != 0 && r != -ENOTEMPTY)
			fail_msg("round %d: %s", i, strerror(-r));
		n_removed += r == 0;
		assert_true(is_there(dir, "outside/precious"));
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(n_removed > 0);
	close(dir);
}

static void test_no_memory(void **state)
{
	CM_AUTO_FD int dir = open_scratch(state);

	assert_int_equal(mkdirat(dir, "t", 0700), 0);
	make_file(dir, "t/f", "x");
	cm_alloc_fail_after(0);
	assert_int_equal(cm_remove_tree_at(dir, "t"), -ENOMEM);
	cm_alloc_fail_after(-1);
	assert_true(is_there(dir, "t/f"));
	assert_int_equal(cm_remove_tree_at(dir, "t"), 0);
}

int main(void)
{
#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
	const struct CMUnitTest tests[] = {
		WITH_SCRATCH(test_nothing_there), WITH_SCRATCH(test_long_name),
		WITH_SCRATCH(test_kinds),	  WITH_SCRATCH(test_links_out),
		WITH_SCRATCH(test_deep),	  WITH_SCRATCH(test_deep_with_few_fds),
		WITH_SCRATCH(test_wide),	  WITH_SCRATCH(test_forks),
		WITH_SCRATCH(test_locked),	  WITH_SCRATCH(test_not_ours),
		WITH_SCRATCH(test_mounts),	  WITH_SCRATCH(test_race),
		WITH_SCRATCH(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
