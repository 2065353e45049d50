/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/e2b/entry.h"

#include <string.h>

#include "providers/e2b/events.h"
#include "providers/e2b/texts.h"
#include "runtime/base/fd.h"

#define MODE_MASK 0777

static enum cm_path_type type_of(const struct cm_json *v, const char *target)
{
	const struct cm_json *type = cm_e2b_member(v, "type", NULL);
	const char *letters = cm_json_str(v, "permissions", "");
	int64_t number = 0;

	/* a link has the type of what it leads to, and a broken one none */
	if (target || letters[0] == 'L')
		return CM_PATH_LINK;
	if (type && type->type == CM_JSON_STRING && strcmp(type->u.string, "FILE_TYPE_FILE") == 0)
		return CM_PATH_FILE;
	if (type && type->type == CM_JSON_STRING &&
	    strcmp(type->u.string, "FILE_TYPE_DIRECTORY") == 0)
		return CM_PATH_DIRECTORY;
	if (!cm_e2b_number(type, &number) || number < 1 || number > 2)
		return CM_PATH_OTHER;
	return number == 1 ? CM_PATH_FILE : CM_PATH_DIRECTORY;
}

int cm_e2b_entry_read(const struct cm_json *v, struct cm_path_info *ret, struct cm_error *err)
{
	const struct cm_json *target = cm_e2b_member(v, "symlinkTarget", "symlink_target");
	const struct cm_json *changed = cm_e2b_member(v, "modifiedTime", "modified_time");
	struct cm_path_info info = { .path = cm_json_str(v, "path", "") };
	int64_t size = 0;
	int64_t mode = 0;
	int64_t ns = 0;

	if (target && target->type == CM_JSON_STRING && target->u.string[0] != '\0')
		info.target = target->u.string;
	info.type = type_of(v, info.target);
	(void)cm_e2b_number(cm_e2b_member(v, "size", NULL), &size);
	(void)cm_e2b_number(cm_e2b_member(v, "mode", NULL), &mode);
	if (!v || info.path[0] == '\0' || size < 0) {
		(void)cm_error_set(err, CM_E_PROTOCOL, 0,
				   "the sandbox tells of a file without its path or its size");
		return CM_E_PROTOCOL;
	}
	info.size = (uint64_t)size;
	/* what it has of a link is what the link leads to */
	info.mode = info.type == CM_PATH_LINK ? MODE_MASK : (uint32_t)mode & MODE_MASK;
	if (changed && changed->type == CM_JSON_STRING && cm_e2b_time(changed->u.string, &ns))
		cm_path_info_set_mtime(&info, ns);
	info.owner = cm_json_str(v, "owner", NULL);
	info.group = cm_json_str(v, "group", NULL);
	*ret = info;
	return CM_OK;
}

/* Up to and with the last '/'; 0: it has none. */
static size_t directory_len(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) + 1 : 0;
}

long cm_e2b_entries_prefix(const struct cm_json *entries)
{
	const char *shortest = NULL;
	size_t len = 0;

	for (const struct cm_json *v = entries ? entries->first_child : NULL; v; v = v->next) {
		const char *path = cm_json_str(v, "path", "");

		if (!shortest || directory_len(path) < len) {
			shortest = path;
			len = directory_len(path);
		}
	}
	for (const struct cm_json *v = entries ? entries->first_child : NULL; v; v = v->next) {
		const char *path = cm_json_str(v, "path", "");

		if (len == 0 || strncmp(path, shortest, len) != 0 || path[len] == '\0')
			return -1;
	}
	return (long)len;
}

bool cm_e2b_base(const char *path, const char **ret, size_t *ret_len)
{
	size_t end = strlen(path);
	size_t from;

	while (end > 0 && path[end - 1] == '/')
		end--;
	from = end;
	while (from > 0 && path[from - 1] != '/')
		from--;
	*ret = path + from;
	*ret_len = end - from;
	if (end == from || (end - from == 1 && path[from] == '.'))
		return false;
	return !(end - from == 2 && path[from] == '.' && path[from + 1] == '.');
}

char *cm_e2b_parent(const char *path)
{
	size_t end = strlen(path);

	while (end > 0 && path[end - 1] == '/')
		end--;
	while (end > 0 && path[end - 1] != '/')
		end--;
	while (end > 1 && path[end - 1] == '/')
		end--;
	if (end == 0)
		return cm_strdup(path[0] == '/' ? "/" : ".");
	return cm_asprintf("%.*s", (int)end, path);
}
