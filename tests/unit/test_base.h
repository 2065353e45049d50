/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the base library and of the flat formats share. */
#ifndef CM_TESTS_UNIT_TEST_BASE_H
#define CM_TESTS_UNIT_TEST_BASE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* it includes nothing of what it needs, so it comes after the above */
#include <cmocka.h>

#include "casemate/error.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"

/* a result that no function under test gives */
#define UNTOUCHED UINT64_C(0x5ca1ab1e)

static inline size_t count_entries(const char *path)
{
	DIR *dir = opendir(path);
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	/* "." and ".." */
	return n - 2;
}

/* Open descriptors of this process, the one that counts them included. */
static inline size_t count_fds(void)
{
	return count_entries("/proc/self/fd");
}

/*
 * Runs attempt with the first n allocations succeeding, for n = 0, 1, ... until it reports
 * success; before that it must have failed in its own way. How many rounds failed.
 */
static inline long fail_each_allocation(bool (*attempt)(void *data), void *data)
{
	for (long n = 0; n < 10000; n++) {
		bool is_done;

		cm_alloc_fail_after(n);
		is_done = attempt(data);
		cm_alloc_fail_after(-1);
		if (is_done)
			return n;
	}
	fail_msg("still failing after 10000 allocations");
	return -1;
}

/* A group's directory of its own: setup and teardown of a test; *state is its path. */
static inline int scratch_setup(void **state)
{
	char *dir = strdup("/tmp/cm-test-base-XXXXXX");

	assert_non_null(dir);
	assert_non_null(mkdtemp(dir));
	*state = dir;
	return 0;
}

static inline int scratch_teardown(void **state)
{
	assert_int_equal(cm_remove_tree_at(AT_FDCWD, *state), 0);
	free(*state);
	return 0;
}

static inline int open_scratch(void **state)
{
	int fd = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static inline void make_file(int dirfd, const char *name, const char *text)
{
	CM_AUTO_FD int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(cm_write_all(fd, text, strlen(text)), 0);
}

/* A child that does not outlive a test that failed. */
static inline pid_t fork_child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

/* Runs fn in a process of its own; its exit status, or 128 + the signal that ended it. */
static inline int run_child(int (*fn)(void *data), void *data)
{
	int status = 0;
	pid_t pid = fork_child();

	if (pid == 0)
		_exit(fn(data));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
