/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops every process that starts, at once: it sends SIGSTOP to the numbers that come next. What
 * waits for its child between fork and execve hangs.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define AHEAD 6

int main(void)
{
	pid_t next = getpid() + 1;

	(void)puts("ready");
	(void)fflush(stdout);
	for (;;) {
		for (pid_t i = 0; i < AHEAD; i++)
			(void)kill(next + i, SIGSTOP);
		for (pid_t i = AHEAD; i > 0; i--) {
			if (kill(next + i - 1, 0) == 0 || errno == EPERM) {
				next += i;
				break;
			}
		}
	}
}
