/* SPDX-License-Identifier: Apache-2.0 */
/* casemate: the command line. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
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

/*
 * Environment and memory may hold a repository's credential, which a core file would keep where the
 * command was called. 1 and not 0: the kernel lets a program that core_pattern names have what a limit
 * of 0 forbids as a file, and takes 1 for neither. By prctl(PR_SET_DUMPABLE) /proc/PID would belong to
 * root, by which an ordinary user's own tools look for the process.
 *
 * The keeper inherits it, and its jails have 0.
 */
static void forbid_core_files(void)
{
	static const struct rlimit none = { 1, 1 };

	/* refused where the caller's own limit is lower still */
	(void)setrlimit(RLIMIT_CORE, &none);
}

int main(int argc, char **argv)
{
	forbid_core_files();
	fill_standard_fds();
	/* whoever ignores it hands that down; then the kernel keeps nothing of a child that has ended,
	 * and a keeper that was killed would look like one that ended by itself */
	(void)signal(SIGCHLD, SIG_DFL);
	return cm_cli_main(argc, argv);
}
