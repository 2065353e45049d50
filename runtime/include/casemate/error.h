/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors: a negative code plus a caller-owned, fixed-size record.
 *
 * Every function that can fail takes a struct cm_error * as its last parameter (NULL is allowed),
 * returns CM_OK (0) or a negative enum cm_errc, and fills the record only when it fails.  The
 * record has no pointers, so it is usable when out of memory and can be sent over a pipe.
 *
 * The code answers what a caller can do, the message what happened (lower case, what failed
 * first, subject in single quotes, no full stop), the hint what to do next.
 *
 * Thread rules: a record belongs to one thread at a time; the functions have no other state.
 */
#ifndef CASEMATE_ERROR_H
#define CASEMATE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * code, name (stable: appears in JSON), meaning.  Numbers are frozen: new rows go to the end.
 */
#define CM_ERRORS(X)                                                                               \
	X(INVALID, -1, "invalid", "the request is malformed or contradicts itself")                \
	X(UNSUPPORTED, -2, "unsupported", "not available on this host or in this build")           \
	X(DENIED, -3, "denied", "not permitted")                                                   \
	X(NOT_FOUND, -4, "not-found", "no such object")                                            \
	X(EXISTS, -5, "exists", "already there, and different")                                    \
	X(BUSY, -6, "busy", "in use by something else")                                            \
	X(TIMEOUT, -7, "timeout", "a deadline passed")                                             \
	X(CANCELLED, -8, "cancelled", "given up on request")                                       \
	X(LIMIT, -9, "limit", "a limit was reached")                                               \
	X(NOMEM, -10, "no-memory", "out of memory")                                                \
	X(SYS, -11, "system", "a system call failed")                                              \
	X(REMOTE, -12, "remote", "a remote service failed")                                        \
	X(PROTOCOL, -13, "protocol", "a peer sent something malformed")                            \
	X(ISOLATION, -14, "isolation", "the jail could not be made: the command did not start")    \
	X(BUG, -15, "bug", "an internal error")                                                    \
	X(LEVEL, -16, "level", "the isolation level asked for cannot be had here")                 \
	X(CHECKOUT, -17, "checkout", "the repository could not be checked out")                    \
	X(SETUP, -18, "setup", "a setup command failed")                                           \
	X(SESSIONS, -19, "too-many-sessions", "as many sessions run as may")

enum cm_errc {
	CM_OK = 0,
#define X(name, number, text, meaning) CM_E_##name = number,
	CM_ERRORS(X)
#undef X
	CM_E_MIN = -19,
};

#define CM_ERROR_MSG_SIZE 480
#define CM_ERROR_HINT_SIZE 480

struct cm_error {
	/* enum cm_errc; 0 while nothing failed */
	int code;
	/* errno of the system call that failed, or 0 */
	int sys_errno;
	char msg[CM_ERROR_MSG_SIZE];
	char hint[CM_ERROR_HINT_SIZE];
};

#define CM_ERROR_INIT                                                                              \
	{                                                                                          \
		0, 0, "", ""                                                                       \
	}

/* Fill *err (NULL is allowed) and return code.  errno is kept.  Arguments may point into *err. */
int cm_error_set(struct cm_error *err, int code, int sys_errno, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int cm_error_vset(struct cm_error *err, int code, int sys_errno, const char *fmt, va_list ap)
	__attribute__((format(printf, 4, 0)));
/* Put "context: " before the message; returns err->code (CM_E_BUG when err is NULL). */
int cm_error_wrap(struct cm_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Set the hint: an imperative that names an option, a command or a file. */
void cm_error_hint(struct cm_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void cm_error_clear(struct cm_error *err);
/* The stable name of a code ("limit"); "ok" for 0; "unknown" for anything else. */
const char *cm_error_name(int code);

#ifdef __cplusplus
}
#endif
#endif
