/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers, sizes and durations from outside: strict, bounded, with messages that give the bound.
 *
 * Sizes: digits, optional fraction, optional unit K M G T (also KB, KiB, k, ...; powers of 1024)
 * or B; "1.5G" is allowed, negative and blank are not. Durations: digits, optional fraction and a
 * unit ms s m h d ("90s", "1.5h", "2m30s"); a bare number is seconds.
 */
#ifndef CM_RUNTIME_BASE_NUM_H
#define CM_RUNTIME_BASE_NUM_H

#include <stddef.h>
#include <stdint.h>

#include "casemate/error.h"

/* what names the option or key in messages. *ret is written on success only. */
int cm_parse_u64(const char *s, const char *what, uint64_t min, uint64_t max, uint64_t *ret,
		 struct cm_error *err);
int cm_parse_size(const char *s, const char *what, uint64_t min, uint64_t max, uint64_t *ret_bytes,
		  struct cm_error *err);
int cm_parse_duration(const char *s, const char *what, uint64_t min_ms, uint64_t max_ms,
		      uint64_t *ret_ms, struct cm_error *err);
/* "1.5", "0.25", "2" -> thousandths. */
int cm_parse_milli(const char *s, const char *what, uint64_t min, uint64_t max, uint64_t *ret_milli,
		   struct cm_error *err);

/* "4.0 GiB", "512 MiB", "17 B" */
void cm_format_size(uint64_t bytes, char *buf, size_t size);
/* "350 ms", "2.5 s", "3 min", "5 h" */
void cm_format_duration(uint64_t ms, char *buf, size_t size);

#endif
