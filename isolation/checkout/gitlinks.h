/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submodules' entries, kept out of libgit2's checkout: it would look each one up in the .gitmodules
 * that it just wrote, and its reader of configuration opens what include.path names there.
 */
#ifndef CM_ISOLATION_CHECKOUT_GITLINKS_H
#define CM_ISOLATION_CHECKOUT_GITLINKS_H

#include <stddef.h>

#include "casemate/error.h"
#include "isolation/checkout/library.h"

struct cm_gitlinks {
	struct cm_gitlink *v;
	size_t n;
	size_t capacity;
};

/* Move the entries from index to *ret, which is empty. */
int cm_gitlinks_take(git_index *index, struct cm_gitlinks *ret, struct cm_error *err);
/*
 * Put them back, make their directories, empty, below the work tree dir_fd, and write the index.
 * Names are checked by libgit2 before anything is made; no link is followed.
 */
int cm_gitlinks_restore(git_index *index, int dir_fd, const struct cm_gitlinks *links,
			struct cm_error *err);
void cm_gitlinks_clear(struct cm_gitlinks *links);

#endif
