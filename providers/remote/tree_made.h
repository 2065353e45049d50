/* SPDX-License-Identifier: Apache-2.0 */
/* The files that an archive made, by device and inode: hard links of it name these and no others. */
#ifndef CM_PROVIDERS_REMOTE_TREE_MADE_H
#define CM_PROVIDERS_REMOTE_TREE_MADE_H

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "providers/remote/tree.h"
#include "runtime/base/alloc.h"
#include "runtime/base/hash.h"

#define CM_TREE_MADE_FIRST 256U

/* no inode: a free slot */
struct cm_tree_made_one {
	uint64_t device;
	uint64_t inode;
};

/* Zero-initialise; free(slots) at the end. */
struct cm_tree_made {
	/* a power of two of them, at most half of them taken */
	struct cm_tree_made_one *slots;
	size_t n_slots;
	size_t n;
};

/* Where it is, or where it would go. */
static inline struct cm_tree_made_one *cm_tree_made_find(const struct cm_tree_made *made,
							 const struct cm_tree_made_one *one)
{
	size_t mask = made->n_slots - 1;
	size_t i = (size_t)cm_hash(CM_HASH_START, one, sizeof(*one)) & mask;

	while (made->slots[i].inode != 0 &&
	       (made->slots[i].inode != one->inode || made->slots[i].device != one->device))
		i = (i + 1) & mask;
	return &made->slots[i];
}

static inline int cm_tree_made_grow(struct cm_tree_made *made)
{
	struct cm_tree_made more = { .n_slots = made->n_slots > 0 ? 2 * made->n_slots
								  : CM_TREE_MADE_FIRST,
				     .n = made->n };

	more.slots = cm_calloc(more.n_slots, sizeof(*more.slots));
	if (!more.slots)
		return -ENOMEM;
	for (size_t i = 0; i < made->n_slots; i++) {
		if (made->slots[i].inode != 0)
			*cm_tree_made_find(&more, &made->slots[i]) = made->slots[i];
	}
	free(made->slots);
	*made = more;
	return 0;
}

/* 0 or -ENOMEM. Beyond CM_TREE_MADE_MAX it is not remembered. */
static inline int cm_tree_made_add(struct cm_tree_made *made, const struct stat *st)
{
	const struct cm_tree_made_one one = { .device = st->st_dev, .inode = st->st_ino };
	struct cm_tree_made_one *slot;

	if (one.inode == 0 || made->n >= CM_TREE_MADE_MAX)
		return 0;
	if (2 * made->n >= made->n_slots && cm_tree_made_grow(made) < 0)
		return -ENOMEM;
	slot = cm_tree_made_find(made, &one);
	made->n += slot->inode == 0 ? 1 : 0;
	*slot = one;
	return 0;
}

static inline bool cm_tree_made_has(const struct cm_tree_made *made, const struct stat *st)
{
	const struct cm_tree_made_one one = { .device = st->st_dev, .inode = st->st_ino };

	return one.inode != 0 && made->n_slots > 0 && cm_tree_made_find(made, &one)->inode != 0;
}

#endif
