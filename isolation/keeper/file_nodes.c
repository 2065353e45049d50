/* SPDX-License-Identifier: Apache-2.0 */
/* The directories that are watched. */
#include "isolation/keeper/file_nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"

#define TOLD_MAX (1024UL * 1024)

static void clear(struct cm_file_node *node)
{
	free(node->name);
	cm_buf_clear(&node->told);
}

void cm_file_nodes_clear(struct cm_file_nodes *nodes)
{
	for (size_t i = 0; i < nodes->n; i++)
		clear(&nodes->v[i]);
	free(nodes->v);
	*nodes = (struct cm_file_nodes){ .n = 0 };
}

/* The first whose wd is not below this one. */
static size_t position(const struct cm_file_nodes *nodes, int wd)
{
	size_t low = 0;
	size_t high = nodes->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (nodes->v[middle].wd < wd)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct cm_file_node *cm_file_node_find(const struct cm_file_nodes *nodes, int wd)
{
	size_t at = position(nodes, wd);

	return at < nodes->n && nodes->v[at].wd == wd ? &nodes->v[at] : NULL;
}

struct cm_file_node *cm_file_node_child(const struct cm_file_nodes *nodes, int parent,
					const char *name)
{
	for (size_t i = 0; i < nodes->n; i++) {
		if (nodes->v[i].parent == parent && strcmp(nodes->v[i].name, name) == 0)
			return &nodes->v[i];
	}
	return NULL;
}

static int make_room(struct cm_file_nodes *nodes)
{
	size_t size = nodes->size > 0 ? 2 * nodes->size : 64;
	struct cm_file_node *v;

	if (nodes->n < nodes->size)
		return 0;
	v = cm_realloc(nodes->v, size * sizeof(*v));
	if (!v)
		return -ENOMEM;
	nodes->v = v;
	nodes->size = size;
	return 0;
}

int cm_file_node_put(struct cm_file_nodes *nodes, int wd, int parent, const char *name)
{
	struct cm_file_node *node = cm_file_node_find(nodes, wd);
	char *copy = cm_strdup(name);
	size_t at;

	if (!copy)
		return -ENOMEM;
	if (node) {
		free(node->name);
		node->name = copy;
		node->parent = parent;
		return 0;
	}
	if (make_room(nodes) < 0) {
		free(copy);
		return -ENOMEM;
	}
	at = position(nodes, wd);
	memmove(nodes->v + at + 1, nodes->v + at, (nodes->n - at) * sizeof(*nodes->v));
	nodes->n++;
	nodes->v[at] = (struct cm_file_node){ .wd = wd, .parent = parent, .name = copy };
	cm_buf_init(&nodes->v[at].told, TOLD_MAX);
	return 0;
}

void cm_file_node_remove(struct cm_file_nodes *nodes, int wd)
{
	struct cm_file_node *node = cm_file_node_find(nodes, wd);
	size_t at;

	if (!node)
		return;
	at = (size_t)(node - nodes->v);
	clear(node);
	nodes->n--;
	memmove(nodes->v + at, nodes->v + at + 1, (nodes->n - at) * sizeof(*nodes->v));
}

bool cm_file_node_is_below(const struct cm_file_nodes *nodes, int wd, int top)
{
	/* no circle is longer than there are nodes */
	for (size_t i = 0; i <= nodes->n && wd >= 0; i++) {
		const struct cm_file_node *node;

		if (wd == top)
			return true;
		node = cm_file_node_find(nodes, wd);
		wd = node ? node->parent : -1;
	}
	return false;
}

bool cm_file_node_path(const struct cm_file_nodes *nodes, int wd, const char *name,
		       char ret[CM_FILE_PATH_MAX + 1])
{
	size_t at = CM_FILE_PATH_MAX;
	const char *part = name;

	ret[at] = '\0';
	for (size_t i = 0; i <= nodes->n + 1; i++) {
		const struct cm_file_node *node;
		size_t len = strlen(part);

		if (len > 0) {
			if (at < len + 1)
				return false;
			if (ret[at] != '\0')
				ret[--at] = '/';
			at -= len;
			memcpy(ret + at, part, len);
		}
		if (wd < 0) {
			memmove(ret, ret + at, CM_FILE_PATH_MAX - at + 1);
			return true;
		}
		node = cm_file_node_find(nodes, wd);
		if (!node)
			return false;
		part = node->name;
		wd = node->parent;
	}
	return false;
}

bool cm_file_node_was_told(struct cm_file_node *node, const char *name)
{
	struct cm_buf *told = &node->told;
	size_t at = 0;

	while (at < told->len) {
		size_t len = strlen(told->data + at) + 1;

		if (strcmp(told->data + at, name) == 0) {
			memmove(told->data + at, told->data + at + len, told->len - at - len);
			told->len -= len;
			return true;
		}
		at += len;
	}
	return false;
}
