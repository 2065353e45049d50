/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one place that allocates, so that tests can make the n-th allocation fail.
 */
#ifndef CM_RUNTIME_BASE_ALLOC_H
#define CM_RUNTIME_BASE_ALLOC_H

#include <stddef.h>

void *cm_malloc(size_t size);
void *cm_calloc(size_t n, size_t size);
void *cm_realloc(void *p, size_t size);
/* Overwrites a secret, frees it and sets *s to NULL. */
void cm_free_secret(char **s);

/* Tests only: let `allowed` more allocations succeed, then fail each; -1 turns it off. */
void cm_alloc_fail_after(long allowed);

#endif
