/* SPDX-License-Identifier: Apache-2.0 */
/* Checkouts by the host's git: of a sparse tree, of a partial clone, with LFS, of SHA-256. */
#ifndef CM_ISOLATION_CHECKOUT_HOST_GIT_TREE_H
#define CM_ISOLATION_CHECKOUT_HOST_GIT_TREE_H

#include "isolation/checkout/checkout.h"
#include "isolation/checkout/host_git.h"

/* What a checkout takes from, and where to. */
struct cm_host_git_tree {
	const struct cm_host_git_wants *wants;
	/* git directory of the source, or of the mirror */
	const char *source;
	/* work tree being made; there is nothing but its git directory in it */
	const char *dir;
	const char *commit;
};

/*
 * Write the files of the commit that HEAD is at, and the index. The objects are there. Fills rep's
 * counts of files, submodules and LFS pointers, and notes what the latter are.
 */
int cm_host_git_tree_checkout(struct cm_host_git *g, const struct cm_host_git_tree *tree,
			      struct cm_report *rep, struct cm_error *err);
/* The content of its LFS files, copied from the source into the target's own store. */
int cm_host_git_copy_lfs(struct cm_host_git *g, const struct cm_host_git_tree *tree,
			 struct cm_error *err);
/* Is the source a repository that git alone can read? */
bool cm_host_git_is_sha256(const char *source);
/* As cm_checkout, of a SHA-256 repository. */
int cm_host_git_checkout(const struct cm_checkout_options *opts, struct cm_report *rep,
			 struct cm_error *err);

#endif
