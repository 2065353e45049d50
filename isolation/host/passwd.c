/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of /etc/passwd, without NSS. */
#include "isolation/host/passwd.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/buf.h"

#define N_FIELDS 7

struct field {
	const char *at;
	size_t len;
};

/* Fields of the line at text; the number found, at most N_FIELDS. */
static size_t split(const char *text, struct field fields[N_FIELDS])
{
	size_t n = 0;

	for (;;) {
		size_t len = strcspn(text, n + 1 < N_FIELDS ? ":\n" : "\n");

		fields[n++] = (struct field){ text, len };
		text += len;
		if (*text != ':' || n == N_FIELDS)
			return n;
		text++;
	}
}

static bool is_number(const struct field *field, uid_t wanted)
{
	uint64_t v = 0;

	if (field->len == 0 || field->len > 10)
		return false;
	for (size_t i = 0; i < field->len; i++) {
		if (field->at[i] < '0' || field->at[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(field->at[i] - '0');
	}
	return v == wanted;
}

static char *copy(const struct field *field)
{
	char *s = cm_malloc(field->len + 1);

	if (s) {
		memcpy(s, field->at, field->len);
		s[field->len] = '\0';
	}
	return s;
}

static const char *next_line(const char *text)
{
	const char *end = strchr(text, '\n');

	return end ? end + 1 : text + strlen(text);
}

bool cm_passwd_find(const char *text, uid_t uid, struct cm_passwd_entry *ret)
{
	struct field f[N_FIELDS];

	for (; *text; text = next_line(text)) {
		struct cm_passwd_entry entry;

		if (split(text, f) != N_FIELDS || !is_number(&f[2], uid) || f[0].len == 0)
			continue;
		entry = (struct cm_passwd_entry){ copy(&f[0]), copy(&f[5]), copy(&f[6]) };
		if (!entry.name || !entry.home || !entry.shell) {
			cm_passwd_entry_clear(&entry);
			return false;
		}
		*ret = entry;
		return true;
	}
	return false;
}

void cm_passwd_entry_clear(struct cm_passwd_entry *entry)
{
	free(entry->name);
	free(entry->home);
	free(entry->shell);
	*entry = (struct cm_passwd_entry){ 0 };
}

bool cm_passwd_next_home(const char **text, char *buf, size_t size)
{
	struct field f[N_FIELDS];

	for (; **text; *text = next_line(*text)) {
		if (split(*text, f) != N_FIELDS || f[5].len == 0 || f[5].len >= size)
			continue;
		memcpy(buf, f[5].at, f[5].len);
		buf[f[5].len] = '\0';
		*text = next_line(*text);
		return true;
	}
	return false;
}
