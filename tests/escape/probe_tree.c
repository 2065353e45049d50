/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees of processes that do not want to be ended, each in sessions of their own:
 *
 *	chain	replaces itself by a child again and again
 *	bomb N	N processes, each of which forks
 *	hidden	cannot be dumped, so that little of it can be read
 *	stay	a plain sleeper, in the background
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void chain(void)
{
	for (;;) {
		pid_t pid = fork();

		if (pid > 0)
			_exit(0);
		(void)setsid();
		(void)usleep(200);
	}
}

/* Everybody forks for as long as there is anything left of the number that all share. */
static _Noreturn void bomb(long n)
{
	long *left = mmap(NULL, sizeof(*left), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);

	if (left == MAP_FAILED)
		_exit(1);
	*left = n;
	for (;;) {
		while (__atomic_sub_fetch(left, 1, __ATOMIC_SEQ_CST) >= 0 && fork() == 0)
			(void)setsid();
		/* the kill of one makes room for nobody: the machine is shared */
		(void)waitpid(-1, NULL, WNOHANG);
		(void)usleep(1000);
	}
}

static _Noreturn void sleeper(void)
{
	for (;;)
		(void)pause();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	for (int i = 0; i < 3 && strcmp(mode, "bomb") != 0; i++) {
		pid_t pid = fork();

		if (pid > 0)
			continue;
		(void)setsid();
		(void)signal(SIGTERM, SIG_IGN);
		(void)signal(SIGHUP, SIG_IGN);
		if (strcmp(mode, "hidden") == 0)
			(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		if (strcmp(mode, "chain") == 0)
			chain();
		sleeper();
	}
	(void)puts("ready");
	(void)fflush(stdout);
	if (strcmp(mode, "bomb") == 0)
		bomb(strtol(argv[2], NULL, 10));
	if (strcmp(mode, "stay") == 0)
		return 0;
	sleeper();
}
