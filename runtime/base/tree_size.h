/* SPDX-License-Identifier: Apache-2.0 */
/* How much disk a tree takes that a jail may have written, and may be writing. */
#ifndef CM_RUNTIME_BASE_TREE_SIZE_H
#define CM_RUNTIME_BASE_TREE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

struct cm_tree_size {
	/* of blocks that files and directories have; a file with several links counts for its share */
	uint64_t bytes;
	/* something was not looked at: it cannot be read, is too deep, or on another file system */
	bool is_partial;
};

/*
 * Add what dirfd/name takes, and what is below it: fd-relative, following no symbolic link and
 * crossing no mount; nothing but directories is opened. What is not there takes nothing.
 */
void cm_tree_size_add(int dirfd, const char *name, struct cm_tree_size *size);

#endif
