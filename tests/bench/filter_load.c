/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the microseconds that loading the system-call filters takes: the best of many children. */
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "isolation/mech/seccomp.h"

#define RUNS 200

static double now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double load_once(void)
{
	int pair[2];
	double us = -1;
	pid_t pid;

	if (pipe(pair) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		double start;

		(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		start = now_us();
		us = cm_seccomp_load(cm_seccomp_profile_get(CM_SECCOMP_DEFAULT, CM_SECCOMP_WHOLE)) <
				     0
			     ? -1
			     : now_us() - start;
		_exit(write(pair[1], &us, sizeof(us)) == (ssize_t)sizeof(us) ? 0 : 1);
	}
	(void)close(pair[1]);
	if (read(pair[0], &us, sizeof(us)) != (ssize_t)sizeof(us))
		us = -1;
	(void)close(pair[0]);
	(void)waitpid(pid, NULL, 0);
	return us;
}

int main(void)
{
	double best = 1e12;

	for (int i = 0; i < RUNS; i++) {
		double us = load_once();

		if (us < 0) {
			(void)fprintf(stderr, "filter_load: cannot load the filters\n");
			return 1;
		}
		if (us < best)
			best = us;
	}
	(void)printf("%.1f\n", best);
	return 0;
}
