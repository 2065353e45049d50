/* SPDX-License-Identifier: Apache-2.0 */
/* The names and paths of casemate-scope. */
#include "isolation/keeper/scope_text.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/text.h"

/*
 * Every character of an id may stand in a unit's name unescaped. A dash means a parent in names
 * of slices only.
 */
bool cm_scope_unit_name(const char *session_id, char *ret, size_t size)
{
	int len;

	if (!cm_text_is_session_id(session_id))
		return false;
	len = snprintf(ret, size, "casemate-%s.scope", session_id);
	return len > 0 && (size_t)len < size;
}

bool cm_scope_own_dir(const char *self_cgroup, const char *unit, char *ret, size_t size)
{
	/* systemd mounts it here, on every host where it uses v2 alone */
	static const char mount[] = "/sys/fs/cgroup";
	const char *line = self_cgroup;
	size_t unit_len = strlen(unit);
	size_t n;
	int len;

	while (line && !cm_text_has_prefix(line, "0::/")) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	if (!line)
		return false;
	line += strlen("0::");
	n = strcspn(line, "\n");
	/* "/" and the name at the end, so that an outer group of that name is not taken */
	if (n < unit_len + 1 || memcmp(line + n - unit_len, unit, unit_len) != 0 ||
	    line[n - unit_len - 1] != '/' || memmem(line, n, "/../", 4) != NULL)
		return false;
	len = snprintf(ret, size, "%s%.*s", mount, (int)n, line);
	return len > 0 && (size_t)len < size;
}
