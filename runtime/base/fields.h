/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of fields between one separator: the files of accounts (passwd, group, subuid, subgid: a
 * colon) and mountinfo (a blank). Any text; nothing is copied or changed.
 */
#ifndef CM_RUNTIME_BASE_FIELDS_H
#define CM_RUNTIME_BASE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cm_field {
	const char *at;
	size_t len;
};

/*
 * The fields of the line at text, at most max, of which the last has the rest of the line; how many
 * there are, at least 1.
 */
size_t cm_fields_split(const char *text, char separator, struct cm_field *fields, size_t max);
/* The line after the one at text; the text's end when there is none. */
const char *cm_next_line(const char *text);
/*
 * Digits and nothing else; false when it is not that. What is above UINT32_MAX, and so no id, is some
 * number above UINT32_MAX: a range that reaches too far is still a range.
 */
bool cm_field_number(const struct cm_field *field, uint64_t *ret);
bool cm_field_is_id(const struct cm_field *field, uint32_t id);
bool cm_field_is(const struct cm_field *field, const char *s, size_t len);
/* False, and buf is as it was: it does not fit. */
bool cm_field_copy(const struct cm_field *field, char *buf, size_t size);

#endif
