/* SPDX-License-Identifier: Apache-2.0 */
/* casemate: the command line. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/cli/cli.h"

/* A file opened as descriptor 2 would get our error messages. */
static void fill_standard_fds(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		/* the lowest free number is this one; not close-on-exec, as standard ones are */
		if (open("/dev/null", O_RDWR) != fd) /* NOLINT(android-cloexec-open) */
			_exit(CM_EXIT_FAILURE);
	}
}

int main(int argc, char **argv)
{
	fill_standard_fds();
	/* whoever ignores it hands that down; then the kernel keeps nothing of a child that has ended,
	 * and a keeper that was killed would look like one that ended by itself */
	(void)signal(SIGCHLD, SIG_DFL);
	return cm_cli_main(argc, argv);
}
