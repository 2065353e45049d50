/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first memory that a program allocates: one block after the other from a range of its own.
 *
 * musl's allocator gives each size of block pages of its own, and returns them when they are empty. Mostly
 * that is what one wants of it, but a client that starts a jail is gone three milliseconds later: fifty
 * pages for twenty kilobytes, each touched for the first time, and thirty mappings made and removed, were
 * a twentieth of that. What does not fit here is musl's, as ever.
 *
 * Nothing here is used twice: a block that is freed stays as it is, so that whoever uses it after that,
 * or frees it again, does no harm to another. Linked by name (--wrap) into static programs alone, where
 * all that allocates and frees comes by these four (cm_first_memory in CasemateComponent.cmake). Any
 * thread may.
 */
#include "runtime/base/first_memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* the program's to choose (CMakeLists.txt); this one is the tests' */
#ifndef CM_FIRST_MEMORY_SIZE
#define CM_FIRST_MEMORY_SIZE (256UL * 1024)
#endif
#define SIZE CM_FIRST_MEMORY_SIZE
#define ALIGNMENT (_Alignof(max_align_t))

/* In front of each block: how much of it there is. */
struct head {
	_Alignas(max_align_t) size_t size;
};

static _Alignas(max_align_t) char memory[SIZE];
static atomic_size_t used;

static bool is_ours(const void *p)
{
	return (uintptr_t)p >= (uintptr_t)memory && (uintptr_t)p < (uintptr_t)memory + SIZE;
}

static struct head *head_of(void *p)
{
	return (struct head *)p - 1;
}

/* SIZE or more: does not fit. */
static size_t rounded(size_t size)
{
	return size >= SIZE ? SIZE : (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Zeroes: it was never used. NULL: there is no room. */
static void *take(size_t size)
{
	size_t need = sizeof(struct head) + rounded(size);
	size_t at = atomic_load(&used);
	struct head *head;

	do {
		if (need > SIZE - at)
			return NULL;
	} while (!atomic_compare_exchange_weak(&used, &at, at + need));
	head = (struct head *)(void *)(memory + at);
	head->size = need - sizeof(*head);
	return head + 1;
}

/* The last block can become larger where it is. */
static bool grow(struct head *head, size_t size)
{
	size_t end = (size_t)((char *)(head + 1) - memory) + head->size;
	size_t more = rounded(size) - head->size;

	if (more > SIZE - end || !atomic_compare_exchange_strong(&used, &end, end + more))
		return false;
	head->size += more;
	return true;
}

void *__wrap_malloc(size_t size)
{
	void *p = take(size);

	return p ? p : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	void *p = size == 0 || n <= SIZE / size ? take(n * size) : NULL;

	return p ? p : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	struct head *head;
	void *new;

	if (!p)
		return __wrap_malloc(size);
	if (!is_ours(p))
		return __real_realloc(p, size);
	head = head_of(p);
	if (size <= head->size || grow(head, size))
		return p;
	new = __wrap_malloc(size);
	if (new)
		memcpy(new, p, head->size);
	return new;
}

void __wrap_free(void *p)
{
	if (!is_ours(p))
		__real_free(p);
}
