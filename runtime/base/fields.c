/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of fields. */
#include "runtime/base/fields.h"

#include <string.h>

size_t cm_fields_split(const char *text, char separator, struct cm_field *fields, size_t max)
{
	const char ends[] = { separator, '\n', '\0' };
	size_t n = 0;

	for (;;) {
		size_t len = strcspn(text, n + 1 < max ? ends : "\n");

		fields[n++] = (struct cm_field){ text, len };
		text += len;
		if (*text != separator || n == max)
			return n;
		text++;
	}
}

const char *cm_next_line(const char *text)
{
	text += strcspn(text, "\n");
	return *text ? text + 1 : text;
}

bool cm_field_number(const struct cm_field *field, uint64_t *ret)
{
	uint64_t v = 0;

	if (field->len == 0)
		return false;
	for (size_t i = 0; i < field->len; i++) {
		if (field->at[i] < '0' || field->at[i] > '9')
			return false;
		if (v <= UINT32_MAX)
			v = v * 10 + (uint64_t)(field->at[i] - '0');
	}
	*ret = v;
	return true;
}

bool cm_field_is_id(const struct cm_field *field, uint32_t id)
{
	uint64_t v;

	return cm_field_number(field, &v) && v == id;
}

bool cm_field_is(const struct cm_field *field, const char *s, size_t len)
{
	return field->len == len && memcmp(field->at, s, len) == 0;
}

bool cm_field_copy(const struct cm_field *field, char *buf, size_t size)
{
	if (field->len >= size)
		return false;
	memcpy(buf, field->at, field->len);
	buf[field->len] = '\0';
	return true;
}
