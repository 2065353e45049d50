/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation with a switch by which tests make the n-th one fail. */
#include "runtime/base/alloc.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Only tests write it, so threads of a library user only ever read the same -1. */
static long allocations_left = -1;

void cm_alloc_fail_after(long allowed)
{
	allocations_left = allowed < 0 ? -1 : allowed;
}

static bool may_allocate(void)
{
	if (allocations_left < 0)
		return true;
	if (allocations_left == 0) {
		errno = ENOMEM;
		return false;
	}
	allocations_left--;
	return true;
}

/* Size 0 becomes 1 everywhere, so that NULL always means "no memory". */
void *cm_malloc(size_t size)
{
	return may_allocate() ? malloc(size ? size : 1) : NULL;
}

void *cm_calloc(size_t n, size_t size)
{
	if (n == 0 || size == 0)
		n = size = 1;
	/* as every libc does, but a sanitizer's stops the program */
	if (n > SIZE_MAX / size) {
		errno = ENOMEM;
		return NULL;
	}
	return may_allocate() ? calloc(n, size) : NULL;
}

void *cm_realloc(void *p, size_t size)
{
	return may_allocate() ? realloc(p, size ? size : 1) : NULL;
}

void cm_free_secret(char **s)
{
	if (*s)
		explicit_bzero(*s, strlen(*s));
	free(*s);
	*s = NULL;
}
