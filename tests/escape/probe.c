/* SPDX-License-Identifier: Apache-2.0 */
/* What the probes share: the lines that they report. */
#include "tests/escape/probe.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* musl has no strerrorname_np */
static const struct {
	int error;
	const char *name;
} names[] = {
#define NAME(e)                                                                                    \
	{                                                                                          \
		e, #e                                                                              \
	}
	NAME(EPERM),	    NAME(ENOENT),	NAME(ESRCH),	       NAME(EINTR),
	NAME(EIO),	    NAME(ENXIO),	NAME(E2BIG),	       NAME(ENOEXEC),
	NAME(EBADF),	    NAME(ECHILD),	NAME(EAGAIN),	       NAME(ENOMEM),
	NAME(EACCES),	    NAME(EFAULT),	NAME(EBUSY),	       NAME(EEXIST),
	NAME(EXDEV),	    NAME(ENODEV),	NAME(ENOTDIR),	       NAME(EISDIR),
	NAME(EINVAL),	    NAME(ENFILE),	NAME(EMFILE),	       NAME(ENOTTY),
	NAME(ETXTBSY),	    NAME(EFBIG),	NAME(ENOSPC),	       NAME(EROFS),
	NAME(EMLINK),	    NAME(EPIPE),	NAME(ENAMETOOLONG),    NAME(ENOSYS),
	NAME(ENOTEMPTY),    NAME(ELOOP),	NAME(EOVERFLOW),       NAME(EUSERS),
	NAME(EOPNOTSUPP),   NAME(EAFNOSUPPORT), NAME(EPROTONOSUPPORT), NAME(EADDRINUSE),
	NAME(ECONNREFUSED), NAME(ENETUNREACH),	NAME(ESOCKTNOSUPPORT), NAME(EPROTOTYPE),
	NAME(ECONNRESET),   NAME(ETIMEDOUT),
#undef NAME
};

const char *probe_errno_name(int error)
{
	static char number[16];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].error == error)
			return names[i].name;
	}
	(void)snprintf(number, sizeof(number), "%d", error);
	return number;
}

static void say(const char *attempt, const char *what, const char *why)
{
	(void)printf("%s: %s%s%s\n", attempt, what, *why ? " " : "", why);
	/* a child must not say it again, and a probe that is killed has said what it reached */
	(void)fflush(stdout);
}

void probe_result(const char *attempt, long value)
{
	int error = errno;

	if (value >= 0)
		say(attempt, "reached", "");
	else
		say(attempt, "refused", probe_errno_name(error));
}

void probe_result_or(const char *attempt, long value, int reached_errno, int other_errno)
{
	if (value < 0 && (errno == reached_errno || errno == other_errno))
		value = 0;
	probe_result(attempt, value);
}

void probe_bool(const char *attempt, bool is_reached)
{
	say(attempt, is_reached ? "reached" : "refused", "");
}

void probe_child(const char *attempt, int (*fn)(void))
{
	char signal_name[16];
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fn());
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		say(attempt, "lost", "");
	} else if (WIFSIGNALED(status)) {
		(void)snprintf(signal_name, sizeof(signal_name), "%d", WTERMSIG(status));
		say(attempt, "killed", WTERMSIG(status) == SIGSYS ? "SIGSYS" : signal_name);
	} else if (WEXITSTATUS(status) == 0) {
		say(attempt, "reached", "");
	} else {
		say(attempt, "refused", probe_errno_name(WEXITSTATUS(status)));
	}
}
