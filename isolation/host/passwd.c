/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of /etc/passwd and /etc/group, without NSS. */
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

#define N_GROUP_FIELDS 4

/* Is the name a user's, and every such line uid's or root's? */
static bool is_name_of(const char *passwd, const char *name, size_t len, uid_t uid)
{
	struct field f[N_FIELDS];
	bool is_found = false;

	for (; *passwd; passwd = next_line(passwd)) {
		if (split(passwd, f) != N_FIELDS || f[0].len != len ||
		    memcmp(f[0].at, name, len) != 0)
			continue;
		if (!is_number(&f[2], uid) && !is_number(&f[2], 0))
			return false;
		is_found = true;
	}
	return is_found;
}

/* Adds to *n how many there are; false when one is neither uid nor root. */
static bool count_members(const char *passwd, const struct field *members, uid_t uid, size_t *n)
{
	const char *at = members->at;
	const char *end = at + members->len;

	while (at < end) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		size_t len = (size_t)((comma ? comma : end) - at);

		if (len > 0 && !is_name_of(passwd, at, len, uid))
			return false;
		*n += len > 0;
		at += len + 1;
	}
	return true;
}

bool cm_passwd_is_private_group(const char *passwd, const char *group, gid_t gid, uid_t uid)
{
	struct field f[N_FIELDS];
	bool is_found = false;
	size_t n = 0;

	for (const char *at = passwd; *at; at = next_line(at)) {
		if (split(at, f) != N_FIELDS || !is_number(&f[3], gid))
			continue;
		if (!is_number(&f[2], uid) && !is_number(&f[2], 0))
			return false;
		n++;
	}
	for (; *group; group = next_line(group)) {
		if (split(group, f) != N_GROUP_FIELDS || !is_number(&f[2], gid))
			continue;
		if (!count_members(passwd, &f[3], uid, &n))
			return false;
		is_found = true;
	}
	return is_found && n > 0;
}
