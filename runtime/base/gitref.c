/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of git-check-ref-format, a component at a time. */
#include "runtime/base/gitref.h"

#include <limits.h>
#include <string.h>

#define LOCK ".lock"

/* len bytes between slashes; s ends in one, or in NUL. */
static bool is_component(const char *s, size_t len)
{
	size_t lock_len = strlen(LOCK);

	if (len == 0 || len > NAME_MAX - lock_len || s[0] == '.')
		return false;
	if (len >= lock_len && memcmp(s + len - lock_len, LOCK, lock_len) == 0)
		return false;
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)s[i] <= ' ' || s[i] == 0x7f || strchr("~^:?*[\\", s[i]))
			return false;
		/* a range, and git's own notation */
		if ((s[i] == '.' && s[i + 1] == '.') || (s[i] == '@' && s[i + 1] == '{'))
			return false;
	}
	return true;
}

bool cm_gitref_is_branch(const char *name)
{
	size_t len = strlen(name);

	/* an option; and what names another reference everywhere else */
	if (len == 0 || name[0] == '-' || name[len - 1] == '.' || strcmp(name, "@") == 0 ||
	    strcmp(name, "HEAD") == 0)
		return false;
	for (;;) {
		len = strcspn(name, "/");
		if (!is_component(name, len))
			return false;
		if (name[len] == '\0')
			return true;
		name += len + 1;
	}
}
