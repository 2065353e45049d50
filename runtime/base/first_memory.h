/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What --wrap makes of the four names of libc's allocator, and the names it leaves libc's own. Nobody
 * calls any of them by these: the linker puts them in the place of malloc, calloc, realloc and free.
 */
#ifndef CM_RUNTIME_BASE_FIRST_MEMORY_H
#define CM_RUNTIME_BASE_FIRST_MEMORY_H

#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);

#endif
