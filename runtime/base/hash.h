/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 64-bit FNV-1a, for names and for where to begin to look: not against an adversary, so who uses it
 * compares the whole of what was hashed. Names on disk are made of it; it never changes.
 */
#ifndef CM_RUNTIME_BASE_HASH_H
#define CM_RUNTIME_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CM_HASH_START 0xcbf29ce484222325ULL

/* h: CM_HASH_START, or what came before. */
static inline uint64_t cm_hash(uint64_t h, const void *data, size_t len)
{
	const unsigned char *p = (const unsigned char *)data;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3ULL;
	return h;
}

static inline uint64_t cm_hash_text(const char *s)
{
	return cm_hash(CM_HASH_START, s, strlen(s));
}

#endif
