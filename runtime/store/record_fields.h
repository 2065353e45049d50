/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a session's record, for the files that read and write them. */
#ifndef CM_RUNTIME_STORE_RECORD_FIELDS_H
#define CM_RUNTIME_STORE_RECORD_FIELDS_H

#include "runtime/store/store_internal.h"

enum cm_record_kind {
	CM_FIELD_STRING = 1,
	CM_FIELD_BOOL,
	CM_FIELD_INT,
	CM_FIELD_INT64,
	CM_FIELD_UINT32,
	CM_FIELD_UINT64,
	/* read and written through an int */
	CM_FIELD_ENUM,
	/* struct cm_strv of "name=value"; in the file an object of strings */
	CM_FIELD_MAP,
};

struct cm_record_field {
	const char *key;
	enum cm_record_kind kind;
	size_t offset;
	/* CM_FIELD_ENUM: name of a value, or NULL; values are 0 to max */
	const char *(*name)(int value);
	int max;
};

#define CM_RECORD_FIELDS 41
/* record.c */
extern const struct cm_record_field cm_record_fields[];

static inline void *cm_record_member(struct cm_session_record *r, const struct cm_record_field *f)
{
	return (char *)r + f->offset;
}

static inline const void *cm_record_member_const(const struct cm_session_record *r,
						 const struct cm_record_field *f)
{
	return (const char *)r + f->offset;
}

#endif
