/* SPDX-License-Identifier: Apache-2.0 */
/* Error records: filling, wrapping and the stable names of the codes. */
#include "casemate/error.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* One write(2) of a record into a pipe is atomic: a child's report is whole or absent. */
_Static_assert(sizeof(struct cm_error) <= PIPE_BUF, "an error record must fit one pipe write");

static void format_into(char *to, size_t size, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

/* Cut text must not pass for the whole message: the end of a path is often what matters. */
static void mark_cut(char *to, size_t size)
{
	static const char dots[] = "...";

	memcpy(to + size - sizeof(dots), dots, sizeof(dots));
}

static void format_into(char *to, size_t size, const char *fmt, va_list ap)
{
	int n = vsnprintf(to, size, fmt, ap);

	if (n < 0)
		to[0] = '\0';
	else if ((size_t)n >= size)
		mark_cut(to, size);
}

/* Not snprintf: gcc's truncation warning for it differs between -O0 and -O2. */
static void append(char *to, size_t size, const char *s)
{
	size_t used = strlen(to);
	size_t len = strlen(s);
	size_t room = size - 1 - used;

	memcpy(to + used, s, len < room ? len : room);
	to[used + (len < room ? len : room)] = '\0';
	if (len > room)
		mark_cut(to, size);
}

int cm_error_vset(struct cm_error *err, int code, int sys_errno, const char *fmt, va_list ap)
{
	char msg[CM_ERROR_MSG_SIZE];
	int saved = errno;

	if (!err)
		return code;
	/* into a local first: an argument may be err->msg */
	format_into(msg, sizeof(msg), fmt, ap);
	err->code = code;
	err->sys_errno = sys_errno;
	memcpy(err->msg, msg, sizeof(msg));
	err->hint[0] = '\0';
	errno = saved;
	return code;
}

int cm_error_set(struct cm_error *err, int code, int sys_errno, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	code = cm_error_vset(err, code, sys_errno, fmt, ap);
	va_end(ap);
	return code;
}

int cm_error_wrap(struct cm_error *err, const char *fmt, ...)
{
	char msg[CM_ERROR_MSG_SIZE];
	int saved = errno;
	va_list ap;

	if (!err)
		return CM_E_BUG;
	va_start(ap, fmt);
	format_into(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	append(msg, sizeof(msg), ": ");
	append(msg, sizeof(msg), err->msg);
	memcpy(err->msg, msg, strlen(msg) + 1);
	/* wrapping a success is a mistake of ours and must not come out as one */
	if (err->code == CM_OK)
		err->code = CM_E_BUG;
	errno = saved;
	return err->code;
}

void cm_error_hint(struct cm_error *err, const char *fmt, ...)
{
	char hint[CM_ERROR_HINT_SIZE];
	int saved = errno;
	va_list ap;

	if (!err)
		return;
	va_start(ap, fmt);
	format_into(hint, sizeof(hint), fmt, ap);
	va_end(ap);
	memcpy(err->hint, hint, sizeof(hint));
	errno = saved;
}

void cm_error_clear(struct cm_error *err)
{
	if (!err)
		return;
	err->code = CM_OK;
	err->sys_errno = 0;
	err->msg[0] = '\0';
	err->hint[0] = '\0';
}

const char *cm_error_name(int code)
{
	switch (code) {
	case CM_OK:
		return "ok";
#define X(name, number, text, meaning)                                                             \
	case number:                                                                               \
		return text;
		CM_ERRORS(X)
#undef X
	default:
		return "unknown";
	}
}
