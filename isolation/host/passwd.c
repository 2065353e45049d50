/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of /etc/passwd and /etc/group, without NSS. */
#include "isolation/host/passwd.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/buf.h"
#include "runtime/base/fields.h"

#define N_FIELDS 7

static char *copy(const struct cm_field *field)
{
	char *s = cm_malloc(field->len + 1);

	if (s) {
		memcpy(s, field->at, field->len);
		s[field->len] = '\0';
	}
	return s;
}

bool cm_passwd_find(const char *text, uid_t uid, struct cm_passwd_entry *ret)
{
	struct cm_field f[N_FIELDS];

	for (; *text; text = cm_next_line(text)) {
		struct cm_passwd_entry entry;

		if (cm_fields_split(text, ':', f, N_FIELDS) != N_FIELDS ||
		    !cm_field_is_id(&f[2], uid) || f[0].len == 0)
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
	struct cm_field f[N_FIELDS];

	for (; **text; *text = cm_next_line(*text)) {
		if (cm_fields_split(*text, ':', f, N_FIELDS) != N_FIELDS || f[5].len == 0 ||
		    !cm_field_copy(&f[5], buf, size))
			continue;
		*text = cm_next_line(*text);
		return true;
	}
	return false;
}

#define N_GROUP_FIELDS 4

/* Is the name a user's, and every such line uid's or root's? */
static bool is_name_of(const char *passwd, const char *name, size_t len, uid_t uid)
{
	struct cm_field f[N_FIELDS];
	bool is_found = false;

	for (; *passwd; passwd = cm_next_line(passwd)) {
		if (cm_fields_split(passwd, ':', f, N_FIELDS) != N_FIELDS ||
		    !cm_field_is(&f[0], name, len))
			continue;
		if (!cm_field_is_id(&f[2], uid) && !cm_field_is_id(&f[2], 0))
			return false;
		is_found = true;
	}
	return is_found;
}

/* Adds to *n how many there are; false when one is neither uid nor root. */
static bool count_members(const char *passwd, const struct cm_field *members, uid_t uid, size_t *n)
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
	struct cm_field f[N_FIELDS];
	bool is_found = false;
	size_t n = 0;

	for (const char *at = passwd; *at; at = cm_next_line(at)) {
		if (cm_fields_split(at, ':', f, N_FIELDS) != N_FIELDS ||
		    !cm_field_is_id(&f[3], gid))
			continue;
		if (!cm_field_is_id(&f[2], uid) && !cm_field_is_id(&f[2], 0))
			return false;
		n++;
	}
	for (; *group; group = cm_next_line(group)) {
		if (cm_fields_split(group, ':', f, N_FIELDS) != N_GROUP_FIELDS ||
		    !cm_field_is_id(&f[2], gid))
			continue;
		if (!count_members(passwd, &f[3], uid, &n))
			return false;
		is_found = true;
	}
	return is_found && n > 0;
}
