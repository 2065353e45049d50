/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process's own hardening. The jail around it does the real work; this holds when there is
 * none: no core file with somebody's sources, no tracing by others of the same user, no gain of
 * privileges, nothing inherited that libgit2 or libc would act on.
 */
#include "isolation/checkout/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"

/* A file of ours must never become number 0, 1 or 2: messages would be written into it. */
static int fill_standard_fds(struct cm_error *err)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* deliberately not O_CLOEXEC: it stands for an inherited one */
		if (open("/dev/null", O_RDWR) != fd) /* NOLINT(android-cloexec-open) */
			return cm_error_set(err, CM_E_SYS, errno, "cannot open '/dev/null'");
	}
	return CM_OK;
}

static int close_others(const int *keep, size_t n_keep, struct cm_error *err)
{
	unsigned int first = 3;

	for (;;) {
		int next = -1;

		for (size_t i = 0; i < n_keep; i++) {
			if (keep[i] >= (int)first && (next < 0 || keep[i] < next))
				next = keep[i];
		}
		if (next != (int)first &&
		    cm_sys_close_range(first, next < 0 ? ~0U : (unsigned int)next - 1, 0) < 0)
			return cm_error_set(err, CM_E_SYS, errno,
					    "cannot close inherited descriptors");
		if (next < 0)
			return CM_OK;
		first = (unsigned int)next + 1;
	}
}

static int set_environment(struct cm_error *err)
{
	/* C: the texts of strerror are compared in library.c; UTC: nothing reads local files */
	static const char *const fixed[][2] = {
		{ "PATH", "/usr/bin:/bin" },
		{ "HOME", "/nonexistent" },
		{ "LC_ALL", "C" },
		{ "TZ", "UTC0" },
	};

	if (clearenv() != 0)
		return cm_error_set(err, CM_E_NOMEM, 0, "cannot clear the environment");
	for (size_t i = 0; i < CM_ARRAY_SIZE(fixed); i++) {
		if (setenv(fixed[i][0], fixed[i][1], 1) < 0)
			return cm_error_set(err, CM_E_NOMEM, errno, "cannot set the environment");
	}
	return CM_OK;
}

int cm_process_harden(const int *keep, size_t n_keep, struct cm_error *err)
{
	static const struct rlimit no_core = { 0, 0 };
	int r;

	for (size_t i = 0; i < n_keep; i++) {
		if (keep[i] >= 0 && fcntl(keep[i], F_GETFD) < 0) {
			r = cm_error_set(err, CM_E_INVALID, errno, "descriptor %d is not open",
					 keep[i]);
			cm_error_hint(err, "give --progress-fd and --report-fd open descriptors");
			return r;
		}
	}
	if (setrlimit(RLIMIT_CORE, &no_core) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot forbid core files");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make the process non-dumpable");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot set no_new_privs");
	/* a reader that went away is an error of write(2), reported like others */
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return cm_error_set(err, CM_E_SYS, errno, "cannot ignore SIGPIPE");
	umask(022);
	r = fill_standard_fds(err);
	if (r == CM_OK)
		r = close_others(keep, n_keep, err);
	return r == CM_OK ? set_environment(err) : r;
}
