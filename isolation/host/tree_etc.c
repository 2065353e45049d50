/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /etc: what there is of etc.def's.
 *
 * Of a directory nothing is told but that it is there: to list a small one, so that its files are copied
 * and need no mount, takes the client longer than the mount takes init.
 */
#include <limits.h>
#include <string.h>

#include "isolation/host/listing.h"
#include "isolation/host/node.h"
#include "isolation/host/tree_internal.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

static const char *const etc_names[] = {
#define CM_ETC(name, why) name,
#include "isolation/plan/etc.def"
#undef CM_ETC
};

static const char *const etc_patterns[] = {
#define CM_ETC_PATTERN(name, why) name,
#include "isolation/plan/etc.def"
#undef CM_ETC_PATTERN
};

static const char *const etc_paths[] = {
#define CM_ETC_PATH(name, why) name,
#include "isolation/plan/etc.def"
#undef CM_ETC_PATH
};

static bool is_listed(const char *name)
{
	size_t low = 0;
	size_t high = CM_ARRAY_SIZE(etc_names);

	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = name[0] - etc_names[middle][0];

		if (order == 0)
			order = strcmp(name, etc_names[middle]);
		if (order == 0)
			return true;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return false;
}

static bool etc_wants(const char *name)
{
	if (is_listed(name))
		return true;
	for (size_t i = 0; i < CM_ARRAY_SIZE(etc_patterns); i++) {
		if (etc_patterns[i][0] == name[0] && cm_text_matches(etc_patterns[i], name))
			return true;
	}
	return false;
}

/* One listing instead of a look-up a row: most rows are absent on most hosts. */
int cm_tree_etc_read(struct cm_tree_reader *reader, const char *root)
{
	CM_AUTO_FD int fd = cm_tree_open_dir(reader, "etc");
	struct cm_nodes *etc = &reader->facts->etc;
	struct cm_listing listing;
	char path[PATH_MAX];
	const char *name;
	int r = CM_OK;

	if (fd < 0 || !cm_join(path, sizeof(path), root, "etc"))
		return CM_OK;
	cm_listing_begin(&listing, fd);
	while (r >= 0 && (name = cm_listing_next(&listing))) {
		if (etc_wants(name))
			r = cm_tree_add(etc, fd, path, name);
	}
	for (size_t i = 0; r >= 0 && i < CM_ARRAY_SIZE(etc_paths); i++)
		r = cm_tree_add(etc, fd, path, etc_paths[i]);
	cm_tree_sort(etc);
	return r < 0 ? CM_E_NOMEM : CM_OK;
}
