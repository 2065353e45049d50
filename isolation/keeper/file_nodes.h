/* SPDX-License-Identifier: Apache-2.0 */
/* The directories that are watched: which descriptor of inotify is which path. */
#ifndef CM_ISOLATION_KEEPER_FILE_NODES_H
#define CM_ISOLATION_KEEPER_FILE_NODES_H

#include <stdbool.h>
#include <stddef.h>

#include "isolation/keeper/file_proto.h"
#include "runtime/base/buf.h"

struct cm_file_node {
	int wd;
	/* -1: the top */
	int parent;
	char *name;
	/* for who takes some away */
	bool is_gone;
	/* names that were told when it was looked through, each with a NUL: what inotify says of them
	 * is no news */
	struct cm_buf told;
};

/* Zero-initialise. By ascending wd, which is the order that inotify gives them out in. */
struct cm_file_nodes {
	struct cm_file_node *v;
	size_t n;
	size_t size;
};

void cm_file_nodes_clear(struct cm_file_nodes *nodes);
struct cm_file_node *cm_file_node_find(const struct cm_file_nodes *nodes, int wd);
struct cm_file_node *cm_file_node_child(const struct cm_file_nodes *nodes, int parent,
					const char *name);
/* It is there afterwards, at that place, if it was elsewhere before, too. 0 or -ENOMEM. */
int cm_file_node_put(struct cm_file_nodes *nodes, int wd, int parent, const char *name);
void cm_file_node_remove(struct cm_file_nodes *nodes, int wd);
/* Is node `wd` what is at `top`, or below that? */
bool cm_file_node_is_below(const struct cm_file_nodes *nodes, int wd, int top);
/* Path of `name` in directory wd, below the top; name "" for the directory. False: too long, unknown. */
bool cm_file_node_path(const struct cm_file_nodes *nodes, int wd, const char *name,
		       char ret[CM_FILE_PATH_MAX + 1]);
/* name was told of: true, once, if it is among those. */
bool cm_file_node_was_told(struct cm_file_node *node, const char *name);

#endif
