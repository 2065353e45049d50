/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON in (yajl; a target of its own, cm_json, so that the keeper does not link it).
 *
 * The reader is strict: UTF-8 only, no duplicate keys, bounded size, depth and node count; with
 * CM_JSON_COMMENTS also C comments, as configuration files have. Values are borrowed from the
 * document. Every value knows its line, for messages.
 */
#ifndef CM_RUNTIME_BASE_JSON_H
#define CM_RUNTIME_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "casemate/error.h"
#include "runtime/base/buf.h"

#define CM_JSON_MAX_BYTES (1024UL * 1024)
#define CM_JSON_MAX_DEPTH 32
#define CM_JSON_MAX_NODES 65536

#define CM_JSON_COMMENTS 1U

enum cm_json_type {
	CM_JSON_NULL = 1,
	CM_JSON_BOOL,
	CM_JSON_INT,
	CM_JSON_DOUBLE,
	CM_JSON_STRING,
	CM_JSON_ARRAY,
	CM_JSON_OBJECT,
};

struct cm_json {
	enum cm_json_type type;
	/* of the document, from 1 */
	unsigned int line;
	/* member name inside an object, else NULL */
	const char *key;
	union {
		bool boolean;
		int64_t integer;
		double number;
		/* NUL-terminated; a string with an embedded NUL is refused by the reader */
		const char *string;
	} u;
	/* elements or members, in document order */
	const struct cm_json *first_child;
	const struct cm_json *next;
	size_t n_children;
};

struct cm_json_doc;

/* name is the file's name for messages ("FILE:LINE: ..."). The document is freed by the caller. */
int cm_json_parse(const char *text, size_t len, const char *name, unsigned int flags,
		  struct cm_json_doc **ret, struct cm_error *err);
void cm_json_free(struct cm_json_doc *doc);
const struct cm_json *cm_json_root(const struct cm_json_doc *doc);
/* Member of an object, or NULL (also when v is not an object). */
const struct cm_json *cm_json_get(const struct cm_json *v, const char *key);
/* Typed members with a default for absent ones or ones of another type. */
const char *cm_json_str(const struct cm_json *v, const char *key, const char *fallback);
int64_t cm_json_int(const struct cm_json *v, const char *key, int64_t fallback);
/* Adds the strings of an array; NULL has none, and what is no string is passed over. CM_E_NOMEM or 0. */
int cm_json_strings(const struct cm_json *v, struct cm_strv *ret);
bool cm_json_bool(const struct cm_json *v, const char *key, bool fallback);

#endif
