/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An attempt made in a process of its own, with a profile's filters loaded or with none.  After
 * cmocka's headers.
 */
#ifndef CM_TESTS_UNIT_SECCOMP_CHILD_H
#define CM_TESTS_UNIT_SECCOMP_CHILD_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "isolation/mech/seccomp.h"

/* the child ended without a result */
#define DIED (-1)

/* 0 or the errno of a call that has just returned `r` */
static inline int outcome(long r)
{
	return r < 0 ? errno : 0;
}

/* What `try` gives in a process of its own, under those two that are not NULL. */
static inline int in_child_of_two(const struct cm_seccomp_profile *first,
				  const struct cm_seccomp_profile *over, int (*try)(long arg),
				  long arg)
{
	int fds[2];
	int result = DIED;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);

		if (r == 0 && first)
			r = cm_seccomp_load(first);
		if (r == 0 && over)
			r = cm_seccomp_load(over);
		r = r == 0 ? try(arg) : DIED;
		_exit(write(fds[1], &r, sizeof(r)) == sizeof(r) ? 0 : 1);
	}
	close(fds[1]);
	if (read(fds[0], &result, sizeof(result)) != sizeof(result))
		result = DIED;
	close(fds[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return result;
}

static inline int in_child(const struct cm_seccomp_profile *profile, int (*try)(long arg), long arg)
{
	return in_child_of_two(profile, NULL, try, arg);
}

/* Of init's program and the rest over it. */
static inline int in_parts(enum cm_plan_seccomp p, int (*try)(long arg), long arg)
{
	return in_child_of_two(cm_seccomp_profile_get(p, CM_SECCOMP_OF_INIT),
			       cm_seccomp_profile_get(p, CM_SECCOMP_REST), try, arg);
}

static inline const struct cm_seccomp_profile *profile_of(enum cm_plan_seccomp p)
{
	return cm_seccomp_profile_get(p, CM_SECCOMP_WHOLE);
}

static inline int count_filters(long unused)
{
	char line[128];
	int n = DIED;
	FILE *f = fopen("/proc/self/status", "re");

	(void)unused;
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "Seccomp_filters:", 16) == 0)
			n = (int)strtol(line + 16, NULL, 10);
	}
	return n;
}

/* Another's filter refuses in our stead, so that nothing would be proven. */
static inline void skip_below_a_filter(void)
{
	if (count_filters(0) == 0)
		return;
	print_message("SKIP SYSCALLS: a filter is loaded in this process already\n");
	skip();
}

#endif
