/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors, whole reads and writes, atomic replacement, sealed memory. */
#include <limits.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "tests/unit/test_base.h"

static void test_close_and_take(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int old = fd;
	char *p = strdup("x");
	char *taken = cm_ptr_take(&p);

	(void)state;
	assert_true(fd >= 0);
	errno = ERANGE;
	cm_fd_close(&fd);
	assert_int_equal(fd, -1);
	assert_int_equal(fcntl(old, F_GETFD), -1);
	errno = ERANGE;
	cm_fd_close(&fd);
	assert_int_equal(errno, ERANGE);
	fd = 5;
	assert_int_equal(cm_fd_take(&fd), 5);
	assert_int_equal(fd, -1);
	assert_null(p);
	assert_string_equal(taken, "x");
	cm_ptr_free(&p);
	cm_ptr_free(&taken);
	assert_null(taken);
	assert_int_equal(errno, ERANGE);
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* A writer of small pieces, while signals interrupt the reader. */
static int write_slowly(void *data)
{
	int fd = *(int *)data;

	for (int i = 0; i < 20; i++) {
		(void)usleep(2000);
		(void)kill(getppid(), SIGALRM);
		if (write(fd, "0123456789", 10) != 10)
			return 1;
	}
	return 0;
}

static void test_read_exact(void **state)
{
	struct sigaction act = { .sa_handler = on_alarm };
	struct sigaction before;
	char buf[201] = { 0 };
	int fds[2];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(sigaction(SIGALRM, &act, &before), 0);
	pid = fork_child();
	if (pid == 0)
		_exit(write_slowly(&fds[1]));
	close(fds[1]);
	assert_int_equal(cm_read_exact(fds[0], buf, 200), 0);
	assert_memory_equal(buf + 190, "0123456789", 11);
	assert_int_equal(cm_read_exact(fds[0], buf, 1), -EPIPE);
	assert_int_equal(cm_read_exact(fds[0], buf, 0), 0);
	close(fds[0]);
	assert_int_equal(cm_read_exact(fds[0], buf, 1), -EBADF);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
}

static void test_write_all(void **state)
{
	struct sigaction act = { .sa_handler = SIG_IGN };
	struct sigaction before;
	size_t size = 1000000;
	char *data = calloc(1, size);
	char *back = malloc(size);
	int fds[2];
	pid_t pid;

	(void)state;
	assert_non_null(data);
	assert_non_null(back);
	data[size - 1] = 'z';
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork_child();
	if (pid == 0)
		_exit(cm_write_all(fds[1], data, size) == 0 ? 0 : 1);
	assert_int_equal(cm_read_exact(fds[0], back, size), 0);
	assert_memory_equal(back, data, size);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(fds[0]);
	assert_int_equal(sigaction(SIGPIPE, &act, &before), 0);
	assert_int_equal(cm_write_all(fds[1], data, size), -EPIPE);
	assert_int_equal(sigaction(SIGPIPE, &before, NULL), 0);
	assert_int_equal(cm_write_all(fds[1], data, 0), 0);
	close(fds[1]);
	free(data);
	free(back);
}

static void test_read_file(void **state)
{
	CM_AUTO_FD int dir = open_scratch(state);
	char buf[8];

	make_file(dir, "f", "1234567");
	assert_int_equal(cm_read_file_at(dir, "f", buf, sizeof(buf)), 7);
	assert_string_equal(buf, "1234567");
	make_file(dir, "f", "12345678");
	assert_int_equal(cm_read_file_at(dir, "f", buf, sizeof(buf)), -E2BIG);
	assert_string_equal(buf, "");
	make_file(dir, "f", "");
	assert_int_equal(cm_read_file_at(dir, "f", buf, 1), 0);
	assert_int_equal(cm_read_file_at(dir, "f", buf, 0), -EINVAL);
	assert_int_equal(cm_read_file_at(dir, "no", buf, 8), -ENOENT);
	assert_int_equal(cm_read_file_at(dir, ".", buf, 8), -EISDIR);
	assert_true(cm_read_file_at(AT_FDCWD, "/proc/sys/kernel/ostype", buf, 8) == 6);
	assert_string_equal(buf, "Linux\n");
}

static void test_read_all(void **state)
{
	CM_AUTO_FD int dir = open_scratch(state);
	CM_AUTO_FD int fd = -1;
	char buf[4];

	make_file(dir, "f", "12345678");
	fd = openat(dir, "f", O_RDONLY | O_CLOEXEC);
	assert_int_equal(cm_read_all(fd, buf, 4), -E2BIG);
	assert_int_equal(lseek(fd, 4, SEEK_SET), 4);
	assert_int_equal(cm_read_all(fd, buf, 4), 4);
	assert_int_equal(lseek(fd, 6, SEEK_SET), 6);
	assert_int_equal(cm_read_all(fd, buf, 4), 2);
	assert_int_equal(cm_read_all(fd, buf, 4), 0);
	assert_int_equal(cm_read_all(-1, buf, 4), -EBADF);
}

static void test_write_file(void **state)
{
	CM_AUTO_FD int dir = open_scratch(state);
	char buf[16];

	make_file(dir, "f", "old and long");
	assert_int_equal(cm_write_file_at(dir, "f", "new"), 0);
	assert_int_equal(cm_read_file_at(dir, "f", buf, sizeof(buf)), 12);
	/* as a file of the kernel's: one write, nothing truncated, nothing made */
	assert_string_equal(buf, "new and long");
	assert_int_equal(cm_write_file_at(dir, "no", "x"), -ENOENT);
	assert_int_equal(faccessat(dir, "no", F_OK, 0), -1);
	assert_int_equal(cm_write_file_at(AT_FDCWD, "/dev/full", "x"), -ENOSPC);
}

static void test_open_parent(void **state)
{
	static const char *const bad[] = { "", ".", "..", "/", "a/", "a/.", "a/..", "/..", "//" };
	CM_AUTO_FD int dir = open_scratch(state);
	const char *base = "untouched";
	int fd = -7;

	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++)
		assert_int_equal(cm_open_parent_at(dir, bad[i], &fd, &base), -EINVAL);
	assert_int_equal(cm_open_parent_at(dir, "no/x", &fd, &base), -ENOENT);
	make_file(dir, "file", "");
	assert_int_equal(cm_open_parent_at(dir, "file/x", &fd, &base), -ENOTDIR);
	cm_alloc_fail_after(0);
	assert_int_equal(cm_open_parent_at(dir, "d/x", &fd, &base), -ENOMEM);
	cm_alloc_fail_after(-1);
	assert_int_equal(fd, -7);
	assert_string_equal(base, "untouched");
	assert_int_equal(cm_open_parent_at(dir, "x", &fd, &base), 0);
	assert_int_equal(fd, -1);
	assert_string_equal(base, "x");
	assert_int_equal(cm_open_parent_at(dir, "/x", &fd, &base), 0);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFL) & O_PATH, O_PATH);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	cm_fd_close(&fd);
}

static void assert_content(int dir, const char *name, const char *expected, mode_t mode)
{
	char buf[64];
	struct stat st;

	assert_true(cm_read_file_at(dir, name, buf, sizeof(buf)) >= 0);
	assert_string_equal(buf, expected);
	assert_int_equal(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode, S_IFREG | mode);
}

static void test_replace(void **state)
{
	CM_AUTO_FD int dir = open_scratch(state);
	CM_AUTO_FD int path_fd = open(*state, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CM_AUTO_FD int old = -1;
	mode_t mask = umask(077);
	char buf[8];

	assert_int_equal(cm_replace_file_at(dir, "f", "one", 3, 0644, false), 0);
	/* whatever the umask is */
	assert_content(dir, "f", "one", 0644);
	old = openat(dir, "f", O_RDONLY | O_CLOEXEC);
	assert_int_equal(cm_replace_file_at(dir, "f", "two!", 4, 0600, true), 0);
	assert_content(dir, "f", "two!", 0600);
	/* who had the old one open still reads the old one */
	assert_int_equal(cm_read_all(old, buf, sizeof(buf)), 3);
	assert_memory_equal(buf, "one", 3);
	/* a link is replaced, what it points to is not */
	make_file(dir, "target", "kept");
	assert_int_equal(symlinkat("target", dir, "link"), 0);
	assert_int_equal(cm_replace_file_at(path_fd, "link", "new", 3, 0640, true), 0);
	assert_content(dir, "link", "new", 0640);
	assert_content(dir, "target", "kept", 0600);
	assert_int_equal(cm_replace_file_at(dir, "empty", NULL, 0, 0600, true), 0);
	assert_content(dir, "empty", "", 0600);
	assert_int_equal(mkdirat(dir, "d", 0700), 0);
	assert_int_equal(cm_replace_file_at(dir, "d/sub", "x", 1, 0600, true), 0);
	assert_content(dir, "d/sub", "x", 0600);
	assert_int_equal(count_entries(*state), 5);
	(void)umask(mask);
}

static void test_replace_failures(void **state)
{
	CM_AUTO_FD int dir = open_scratch(state);
	size_t fds = count_fds();
	char name[NAME_MAX + 2];

	memset(name, 'n', sizeof(name));
	name[NAME_MAX + 1] = '\0';
	assert_int_equal(mkdirat(dir, "d", 0700), 0);
	assert_int_equal(cm_replace_file_at(dir, "d", "x", 1, 0600, true), -EISDIR);
	assert_int_equal(cm_replace_file_at(dir, name, "x", 1, 0600, true), -ENAMETOOLONG);
	assert_int_equal(cm_replace_file_at(dir, "no/x", "x", 1, 0600, true), -ENOENT);
	assert_int_equal(cm_replace_file_at(dir, "d/", "x", 1, 0600, true), -EINVAL);
	assert_int_equal(cm_replace_file_at(dir, "..", "x", 1, 0600, true), -EINVAL);
	/* no temporary file, no descriptor */
	assert_int_equal(count_entries(*state), 1);
	assert_int_equal(count_fds(), fds);
}

/* A disk that is full half way: the old content stays whole. */
static int replace_too_much(void *data)
{
	struct rlimit limit = { 100, 100 };
	char big[1000] = { 0 };

	(void)signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
		return 77;
	return cm_replace_file_at(*(int *)data, "f", big, sizeof(big), 0600, true) == -EFBIG ? 0
											     : 1;
}

static void test_replace_full(void **state)
{
	int dir = open_scratch(state);

	make_file(dir, "f", "old");
	assert_int_equal(run_child(replace_too_much, &dir), 0);
	assert_content(dir, "f", "old", 0600);
	assert_int_equal(count_entries(*state), 1);
	close(dir);
}

#define REPLACED_SIZE 20000

static int replace_for_ever(void *data)
{
	static char text[REPLACED_SIZE];
	int dir = *(int *)data;

	for (char c = 'a';; c = (char)(c == 'z' ? 'a' : c + 1)) {
		memset(text, c, sizeof(text));
		if (cm_replace_file_at(dir, "f", text, sizeof(text), 0600, false) != 0)
			return 1;
	}
}

/* Read and killed at any time: the file is there, and of one piece. */
static void test_replace_is_atomic(void **state)
{
	static char text[REPLACED_SIZE + 1];
	int dir = open_scratch(state);

	memset(text, '0', REPLACED_SIZE);
	make_file(dir, "f", text);
	for (int round = 0; round < 20; round++) {
		pid_t pid = fork_child();

		if (pid == 0)
			_exit(replace_for_ever(&dir));
		for (int i = 0; i < 50; i++) {
			assert_int_equal(cm_read_file_at(dir, "f", text, sizeof(text)),
					 REPLACED_SIZE);
			for (size_t k = 1; k < REPLACED_SIZE; k++) {
				if (text[k] != text[0])
					fail_msg("two versions in one file");
			}
		}
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
	close(dir);
}

static void test_memfd(void **state)
{
	static const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	CM_AUTO_FD int fd = cm_memfd_sealed("cm-test", "content", 7);
	CM_AUTO_FD int empty = cm_memfd_sealed("cm-test", NULL, 0);
	char buf[8] = { 0 };

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GET_SEALS) & seals, seals);
	/* from its start, without a seek */
	assert_int_equal(read(fd, buf, sizeof(buf)), 7);
	assert_string_equal(buf, "content");
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, 3), -1);
	assert_int_equal(ftruncate(fd, 30), -1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	assert_true(mmap(NULL, 7, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	assert_true(empty >= 0);
	assert_int_equal(read(empty, buf, sizeof(buf)), 0);
}

int main(void)
{
#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_close_and_take), cmocka_unit_test(test_read_exact),
		cmocka_unit_test(test_write_all),      WITH_SCRATCH(test_read_file),
		WITH_SCRATCH(test_read_all),	       WITH_SCRATCH(test_write_file),
		WITH_SCRATCH(test_open_parent),	       WITH_SCRATCH(test_replace),
		WITH_SCRATCH(test_replace_failures),   WITH_SCRATCH(test_replace_full),
		WITH_SCRATCH(test_replace_is_atomic),  cmocka_unit_test(test_memfd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
