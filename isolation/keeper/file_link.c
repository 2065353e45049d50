/* SPDX-License-Identifier: Apache-2.0 */
/* Names and links of a tree that is copied. */
#include "isolation/keeper/file_link.h"

#include <limits.h>
#include <string.h>

bool cm_file_name_is_single(const char *name)
{
	return name[0] != '\0' && strlen(name) <= NAME_MAX && !strchr(name, '/') &&
	       strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/*
 * A ".." behind a name is refused, though it may be harmless: the name can be a link to further up, and
 * ".." of that is outside.
 */
bool cm_file_link_stays(const char *target, unsigned int depth)
{
	unsigned int up = 0;
	bool has_name = false;

	if (target[0] == '\0' || target[0] == '/')
		return false;
	while (*target != '\0') {
		size_t len = strcspn(target, "/");

		if (len == 2 && memcmp(target, "..", 2) == 0) {
			if (has_name || ++up > depth)
				return false;
		} else if (len > 0 && !(len == 1 && target[0] == '.')) {
			has_name = true;
		}
		target += len;
		target += strspn(target, "/");
	}
	return true;
}

bool cm_file_base(const char *path, char *ret, size_t size)
{
	size_t end = strlen(path);
	size_t begin;

	while (end > 0 && path[end - 1] == '/')
		end--;
	begin = end;
	while (begin > 0 && path[begin - 1] != '/')
		begin--;
	if (end - begin >= size)
		return false;
	memcpy(ret, path + begin, end - begin);
	ret[end - begin] = '\0';
	if (strcmp(ret, ".") == 0 || strcmp(ret, "..") == 0)
		ret[0] = '\0';
	return true;
}
