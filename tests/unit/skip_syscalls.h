/* SPDX-License-Identifier: Apache-2.0 */
/* What cannot be tested where a filter of system calls is loaded, as in a jail. */
#ifndef CM_TESTS_UNIT_SKIP_SYSCALLS_H
#define CM_TESTS_UNIT_SKIP_SYSCALLS_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* it includes nothing of what it needs, so it comes after the above */
#include <cmocka.h>

/* The facts of a host's tree are read by it alone. */
static inline void skip_without_openat2(void)
{
	if (syscall(SYS_openat2, -1, NULL, NULL, 0) < 0 && errno != ENOSYS && errno != EPERM)
		return;
	print_message("SKIP SYSCALLS: openat2 is filtered\n");
	skip();
}

#endif
