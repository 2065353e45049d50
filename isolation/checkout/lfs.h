/* SPDX-License-Identifier: Apache-2.0 */
/* Files of Git LFS: what a commit has of them is a pointer, a few lines that name the content. */
#ifndef CM_ISOLATION_CHECKOUT_LFS_H
#define CM_ISOLATION_CHECKOUT_LFS_H

#include <stdbool.h>
#include <stddef.h>

#include "isolation/checkout/library.h"

/* The specification of the pointer file allows no more; real ones have about 130 bytes. */
#define CM_LFS_POINTER_MAX 1024

/* Is that, of a whole file, a pointer? */
bool cm_lfs_is_pointer(const void *data, size_t len);
/* The same of a blob, of which nothing is read when it is larger. */
bool cm_lfs_is_pointer_blob(git_repository *repo, const git_oid *id);
/* With the attribute that the commit gives the path: one without it is a text file for git-lfs, too. */
bool cm_lfs_is_file(git_repository *repo, const git_oid *commit, const char *path,
		    const git_oid *id);

#endif
