/* SPDX-License-Identifier: Apache-2.0 */
/* kill -9 before and after every system call of a function, one death a walk. */
#ifndef CM_TESTS_UNIT_KILL_WALK_H
#define CM_TESTS_UNIT_KILL_WALK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* 0: it got through */
typedef int (*kill_walk_fn)(void *data);

static inline void kill_walk_child(kill_walk_fn fn, void *data)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		_exit(77);
	(void)raise(SIGSTOP);
	_exit(fn(data));
}

/* A process in fn, stopped before or after its n-th system call; -1: it got through. */
static inline pid_t kill_walk_stopped_at(kill_walk_fn fn, void *data, int n)
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		kill_walk_child(fn, data);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_true(WIFSTOPPED(status));
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, pid, NULL,
				(void *)(uintptr_t)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)),
			 0);
	for (int i = 0; i < n; i++) {
		assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status)) {
			assert_int_equal(WEXITSTATUS(status), 0);
			return -1;
		}
	}
	return pid;
}

/* Was it killed there? false: it got through before. */
static inline bool kill_walk_killed_at(kill_walk_fn fn, void *data, int n)
{
	int status = 0;
	pid_t pid = kill_walk_stopped_at(fn, data, n);

	if (pid < 0)
		return false;
	assert_int_equal(kill(pid, SIGKILL), 0);
	do {
		assert_int_equal(waitpid(pid, &status, 0), pid);
	} while (WIFSTOPPED(status));
	return true;
}

#endif
