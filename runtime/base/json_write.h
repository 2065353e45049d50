/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON out, onto a cm_buf; no library needed. Commas and indentation are the writer's business.
 * Strings are escaped; bytes that are not UTF-8 come out as U+FFFD.
 */
#ifndef CM_RUNTIME_BASE_JSON_WRITE_H
#define CM_RUNTIME_BASE_JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/buf.h"

#define CM_JSON_WRITE_MAX_DEPTH 32

struct cm_json_writer {
	struct cm_buf *out;
	unsigned int depth;
	bool is_pretty;
	bool after_key;
	/* one bit a level: something was written at it */
	uint32_t has_items;
};

void cm_jw_init(struct cm_json_writer *w, struct cm_buf *out, bool is_pretty);
void cm_jw_object(struct cm_json_writer *w);
void cm_jw_end_object(struct cm_json_writer *w);
void cm_jw_array(struct cm_json_writer *w);
void cm_jw_end_array(struct cm_json_writer *w);
void cm_jw_key(struct cm_json_writer *w, const char *key);
/* NULL writes null */
void cm_jw_string(struct cm_json_writer *w, const char *s);
void cm_jw_string_len(struct cm_json_writer *w, const char *s, size_t len);
void cm_jw_int(struct cm_json_writer *w, int64_t v);
void cm_jw_uint(struct cm_json_writer *w, uint64_t v);
void cm_jw_double(struct cm_json_writer *w, double v);
void cm_jw_bool(struct cm_json_writer *w, bool v);
void cm_jw_null(struct cm_json_writer *w);
/* key and value in one call */
void cm_jw_kstring(struct cm_json_writer *w, const char *key, const char *s);
void cm_jw_kint(struct cm_json_writer *w, const char *key, int64_t v);
void cm_jw_kuint(struct cm_json_writer *w, const char *key, uint64_t v);
/* an array of strings */
void cm_jw_kstrings(struct cm_json_writer *w, const char *key, const struct cm_strv *v);
void cm_jw_kbool(struct cm_json_writer *w, const char *key, bool v);
/* the same of what may not be known: null then */
void cm_jw_known_int(struct cm_json_writer *w, const char *key, bool is_known, int64_t v);
void cm_jw_known_uint(struct cm_json_writer *w, const char *key, bool is_known, uint64_t v);
void cm_jw_known_double(struct cm_json_writer *w, const char *key, bool is_known, double v);
void cm_jw_known_bool(struct cm_json_writer *w, const char *key, bool is_known, bool v);

#endif
