/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checked functions of glibc that its archives call and musl does not have.
 *
 * Debian builds libyajl_s.a and libcap.a with _FORTIFY_SOURCE for glibc; casemate and its keeper
 * are linked with musl.  These are all names of that kind which the two archives want.  The checks
 * are kept: a write past the object that the compiler saw ends the program.
 */
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__memcpy_chk(void *to, const void *from, size_t len, size_t to_size);
int __snprintf_chk(char *to, size_t size, int flag, size_t to_size, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
int __sprintf_chk(char *to, int flag, size_t to_size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int __asprintf_chk(char **ret, int flag, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

void *__memcpy_chk(void *to, const void *from, size_t len, size_t to_size)
{
	if (len > to_size)
		abort();
	return memcpy(to, from, len);
}

int __snprintf_chk(char *to, size_t size, int flag, size_t to_size, const char *fmt, ...)
{
	va_list ap;
	int n;

	(void)flag;
	if (size > to_size)
		abort();
	va_start(ap, fmt);
	n = vsnprintf(to, size, fmt, ap);
	va_end(ap);
	return n;
}

int __sprintf_chk(char *to, int flag, size_t to_size, const char *fmt, ...)
{
	va_list ap;
	int n;

	(void)flag;
	va_start(ap, fmt);
	/* unknown sizes come as SIZE_MAX, which vsnprintf refuses */
	n = vsnprintf(to, to_size > INT_MAX ? INT_MAX : to_size, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n >= to_size)
		abort();
	return n;
}

int __asprintf_chk(char **ret, int flag, const char *fmt, ...)
{
	va_list ap;
	int n;

	(void)flag;
	va_start(ap, fmt);
	n = vasprintf(ret, fmt, ap);
	va_end(ap);
	return n;
}
