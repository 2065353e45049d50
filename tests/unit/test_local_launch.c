/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a keeper without waiting for it: scripts of this test stand in for the programs. */
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "providers/local/helper.h"
#include "providers/local/launch.h"
#include "tests/unit/test_base.h"

static char dir[64];

/* instead of the one that asks where casemate is installed */
int cm_helper_path(const char *name, char *buf, size_t size, struct cm_error *err)
{
	(void)snprintf(buf, size, "%s/%s", dir, name);
	if (access(buf, F_OK) < 0)
		return cm_error_set(err, CM_E_NOT_FOUND, errno, "cannot find '%s'", name);
	return CM_OK;
}

static void write_program(const char *name, const char *text, mode_t mode)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, mode);
	assert_true(fd >= 0);
	assert_int_equal(cm_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
}

/* A jail of Casemate's has no clone3 to give, so this cannot be learned when the tests run in one. */
static void skip_without_clone3(void)
{
	if (syscall(SYS_clone3, NULL, 0) < 0 && errno != ENOSYS)
		return;
	print_message("SKIP SYSCALLS: there is no clone3 here\n");
	skip();
}

static int setup(void **state)
{
	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/cm-test-launch.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return cm_remove_tree_at(AT_FDCWD, dir);
}

/* What the program that was started says on its descriptor 3, and how it ended. */
static int launch(const char *scope_id, const char *option, char *buf, size_t size)
{
	struct cm_launch *started = NULL;
	struct cm_error err = CM_ERROR_INIT;
	size_t n = 0;
	int status = 0;
	pid_t pid = 0;
	int pair[2];
	ssize_t got;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(cm_launch_keeper(pair[1], scope_id, option, &started, &pid, &err), CM_OK);
	assert_true(pid > 0);
	assert_non_null(started);
	assert_int_equal(close(pair[1]), 0);
	assert_int_equal(cm_launch_end(&started, &err), CM_OK);
	assert_null(started);
	/* once more is nothing */
	assert_int_equal(cm_launch_end(&started, &err), CM_OK);
	while ((got = read(pair[0], buf + n, size - 1 - n)) > 0)
		n += (size_t)got;
	buf[n] = '\0';
	assert_int_equal(close(pair[0]), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void test_runs(void **state)
{
	char text[512];
	char expected[256];
	size_t before = count_fds();

	(void)state;
	skip_without_clone3();
	write_program("casemate-keeper", "#!/bin/sh\necho \"$0 $# $1\" >&3\nexit 7\n", 0755);
	assert_int_equal(WEXITSTATUS(launch(NULL, NULL, text, sizeof(text))), 7);
	(void)snprintf(expected, sizeof(expected), "%s/casemate-keeper 0 \n", dir);
	assert_string_equal(text, expected);
	assert_int_equal(WEXITSTATUS(launch(NULL, "--collect", text, sizeof(text))), 7);
	(void)snprintf(expected, sizeof(expected), "%s/casemate-keeper 1 --collect\n", dir);
	assert_string_equal(text, expected);
	assert_int_equal(count_fds(), before);
}

static void test_scope(void **state)
{
	char text[512];
	char expected[256];

	(void)state;
	skip_without_clone3();
	write_program("casemate-keeper", "#!/bin/sh\n", 0755);
	write_program("casemate-scope", "#!/bin/sh\necho \"$@\" >&3\n", 0755);
	assert_int_equal(launch("some-id", "--collect", text, sizeof(text)), 0);
	(void)snprintf(expected, sizeof(expected), "some-id -- %s/casemate-keeper --collect\n",
		       dir);
	assert_string_equal(text, expected);
}

static void test_no_environment(void **state)
{
	char text[1024];

	(void)state;
	skip_without_clone3();
	write_program("casemate-keeper", "#!/bin/sh\ntr '\\0' '\\n' </proc/$$/environ >&3\n", 0755);
	assert_int_equal(setenv("CM_TEST_LAUNCH", "secret", 1), 0);
	assert_int_equal(launch(NULL, NULL, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	(void)unsetenv("CM_TEST_LAUNCH");
}

static void on_usr1(int sig)
{
	(void)sig;
}

/* The mask is the caller's again, on both sides, and what it handles is by default there. */
static void test_signals(void **state)
{
	char text[512];
	char expected[64];
	struct sigaction act = { .sa_handler = on_usr1 };
	sigset_t mask;
	sigset_t old;
	sigset_t after;

	(void)state;
	skip_without_clone3();
	write_program("casemate-keeper",
		      "#!/bin/sh\nwhile read -r k v; do case $k in SigBlk:|SigCgt:)\n"
		      "echo \"$k $v\" >&3;; esac; done </proc/$$/status\n",
		      0755);
	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGWINCH);
	assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
	assert_int_equal(sigprocmask(SIG_SETMASK, &mask, &old), 0);
	assert_int_equal(launch(NULL, NULL, text, sizeof(text)), 0);
	assert_int_equal(sigprocmask(SIG_SETMASK, &old, &after), 0);
	assert_int_equal(sigismember(&after, SIGWINCH), 1);
	assert_int_equal(sigismember(&after, SIGTERM), 0);
	(void)snprintf(expected, sizeof(expected), "SigBlk: %016llx\n",
		       1ULL << (unsigned int)(SIGWINCH - 1));
	assert_non_null(strstr(text, expected));
	assert_non_null(strstr(text, "SigCgt: "));
	assert_int_equal(strtoull(strstr(text, "SigCgt: ") + 8, NULL, 16) & 1ULL << (SIGUSR1 - 1),
			 0);
}

/* What cannot be executed is known when the launch ends, and not before. */
static void test_not_executable(void **state)
{
	struct cm_launch *started = NULL;
	struct cm_error err = CM_ERROR_INIT;
	size_t before = count_fds();
	int status = 0;
	pid_t pid = 0;

	(void)state;
	skip_without_clone3();
	write_program("casemate-keeper", "\177ELF of no machine", 0755);
	assert_int_equal(cm_launch_keeper(STDIN_FILENO, NULL, NULL, &started, &pid, &err), CM_OK);
	assert_int_equal(cm_launch_end(&started, &err), CM_E_SYS);
	assert_int_equal(err.sys_errno, ENOEXEC);
	assert_non_null(strstr(err.msg, "casemate-keeper"));
	assert_true(err.hint[0] != '\0');
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 127);
	assert_int_equal(count_fds(), before);
}

static void test_not_there(void **state)
{
	struct cm_launch *started = NULL;
	struct cm_error err = CM_ERROR_INIT;
	size_t before = count_fds();
	pid_t pid = 0;

	(void)state;
	assert_int_equal(cm_launch_keeper(STDIN_FILENO, NULL, NULL, &started, &pid, &err),
			 CM_E_NOT_FOUND);
	assert_null(started);
	assert_int_equal(pid, 0);
	write_program("casemate-keeper", "#!/bin/sh\n", 0755);
	assert_int_equal(cm_launch_keeper(STDIN_FILENO, "id", NULL, &started, &pid, &err),
			 CM_E_NOT_FOUND);
	assert_null(started);
	assert_int_equal(count_fds(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scope, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_environment, setup, teardown),
		cmocka_unit_test_setup_teardown(test_signals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_executable, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_there, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
