/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /etc: what there is of etc.def's, and what its small directories hold.
 *
 * Each directory that is mounted costs a start some 10 us, a look at a file 1 us, and that while
 * others work. So a directory of a few files that can be copied is told with all of them. Whatever
 * else there is in it (too many or too large ones, what not everybody may read, programs, sockets,
 * another file system), nothing of it is: it is shown as one, by a mount.
 */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/host/listing.h"
#include "isolation/host/node.h"
#include "isolation/host/tree_internal.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"
#include "runtime/base/text.h"

/* of a directory with its subdirectories; and of all together, since a plan's steps are bounded */
#define MAX_ENTRIES 8
#define MAX_ALL_ENTRIES 64
/* in bytes: larger ones hold more, or did once, and are not opened */
#define MAX_DIR_SIZE 4096
/* below a directory of /etc that is listed */
#define MAX_DEPTH 1

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

struct etc {
	struct cm_nodes *nodes;
	int fd;
	/* "/etc", with the rootfs before it */
	const char *path;
	size_t n_entries;
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

/* Without links on the way, as it will be mounted, and on the file system of where it is. */
static int open_small_dir(int at_fd, const char *name, const struct cm_node *node)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				.resolve =
					RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV };
	CM_AUTO_FD int fd = -1;
	struct stat st;

	if (node->type != CM_NODE_DIR || !cm_node_is_public(node) || node->size > MAX_DIR_SIZE)
		return -1;
	fd = cm_sys_openat2(at_fd, name, &how);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_dev != node->dev || st.st_ino != node->ino)
		return -1;
	return cm_fd_take(&fd);
}

static int add_entry(struct cm_nodes *nodes, size_t of, int dir_fd, const char *name)
{
	/* what is longer is mounted with the rest */
	char path[512];

	if (!cm_join(path, sizeof(path), nodes->v[of].path, name))
		return 0;
	return cm_nodes_add_path(nodes, dir_fd, name, path);
}

/*
 * Adds all that is in the directory, which is node `of` and stands at at_fd/name. 1: done;
 * 0: that cannot be, and some may have been added; CM_E_NOMEM. At most MAX_DEPTH deep.
 */
static int add_entries(struct cm_nodes *nodes, size_t of, int at_fd, const char *name,
		       unsigned int depth, size_t *n_left)
{
	CM_AUTO_FD int fd = open_small_dir(at_fd, name, &nodes->v[of]);
	const char *names[MAX_ENTRIES];
	struct cm_listing listing;
	int n;

	if (fd < 0)
		return 0;
	cm_listing_begin(&listing, fd);
	n = cm_listing_all(&listing, names, *n_left);
	if (n < 0)
		return 0;
	*n_left -= (size_t)n;
	for (int i = 0; i < n; i++) {
		size_t entry = nodes->n;
		int r = add_entry(nodes, of, fd, names[i]);

		if (r <= 0)
			return r;
		if (nodes->v[entry].dev != nodes->v[of].dev)
			return 0;
		if (nodes->v[entry].type == CM_NODE_DIR && depth < MAX_DEPTH)
			r = add_entries(nodes, entry, fd, names[i], depth + 1, n_left);
		else if (nodes->v[entry].type != CM_NODE_SYMLINK &&
			 !cm_node_can_be_copied(&nodes->v[entry]))
			r = 0;
		if (r <= 0)
			return r;
	}
	nodes->v[of].has_entries = true;
	return 1;
}

/* All or nothing. */
static int add_small_dir(struct etc *etc, size_t of, const char *name)
{
	size_t n_left = MAX_ALL_ENTRIES - etc->n_entries;
	size_t n = etc->nodes->n;
	int r;

	if (n_left > MAX_ENTRIES)
		n_left = MAX_ENTRIES;
	r = add_entries(etc->nodes, of, etc->fd, name, 0, &n_left);
	if (r <= 0)
		cm_nodes_cut(etc->nodes, n);
	etc->n_entries += etc->nodes->n - n;
	return r;
}

static int add(struct etc *etc, const char *name)
{
	size_t at = etc->nodes->n;
	char path[PATH_MAX];
	int r;

	if (!cm_join(path, sizeof(path), etc->path, name))
		return 0;
	r = cm_nodes_add_path(etc->nodes, etc->fd, name, path);
	if (r > 0 && etc->nodes->v[at].type == CM_NODE_DIR)
		r = add_small_dir(etc, at, name);
	return r < 0 ? CM_E_NOMEM : CM_OK;
}

/* One listing instead of a look-up a row: most rows are absent on most hosts. */
int cm_tree_etc_read(struct cm_tree_reader *reader, const char *root)
{
	CM_AUTO_FD int fd = cm_tree_open_dir(reader, "etc");
	struct etc etc = { .nodes = &reader->facts->etc, .fd = fd };
	struct cm_listing listing;
	char path[PATH_MAX];
	const char *name;
	int r = CM_OK;

	if (fd < 0 || !cm_join(path, sizeof(path), root, "etc"))
		return CM_OK;
	etc.path = path;
	cm_listing_begin(&listing, fd);
	while (r == CM_OK && (name = cm_listing_next(&listing))) {
		if (etc_wants(name))
			r = add(&etc, name);
	}
	for (size_t i = 0; r == CM_OK && i < CM_ARRAY_SIZE(etc_paths); i++)
		r = add(&etc, etc_paths[i]);
	/* what is in a directory stands after it, too */
	cm_tree_sort(etc.nodes);
	return r;
}
