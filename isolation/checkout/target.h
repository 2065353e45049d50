/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checkout being made: DIR.partial beside DIR, renamed when it is complete. What is left of a
 * run that was killed is a DIR.partial, which the next run removes.
 */
#ifndef CM_ISOLATION_CHECKOUT_TARGET_H
#define CM_ISOLATION_CHECKOUT_TARGET_H

#include "casemate/error.h"
#include "isolation/checkout/refs.h"
#include "isolation/checkout/resolve.h"

struct cm_target {
	/* absolute; parent is a real path */
	char *path;
	char *partial_path;
	/* within the two above */
	const char *name;
	const char *partial_name;
	int parent_fd;
	/* locked while we write; -1: there is nothing of ours to remove */
	int partial_fd;
	/* <partial>/.git */
	int git_fd;
	git_repository *repo;
};

#define CM_TARGET_INIT                                                                             \
	{                                                                                          \
		.parent_fd = -1, .partial_fd = -1, .git_fd = -1                                    \
	}

/* Check the place and find its parent; changes nothing. */
int cm_target_locate(const char *dir, const char *source_path, struct cm_target *ret,
		     struct cm_error *err);
/* Remove what an earlier run left and make the empty repository. */
int cm_target_begin(struct cm_target *t, const struct cm_resolved *res, struct cm_error *err);
/* The same without the repository, which somebody else makes. */
int cm_target_begin_bare(struct cm_target *t, struct cm_error *err);
/* <partial>/.git/objects, made. */
int cm_target_open_objects(const struct cm_target *t, int *ret_fd, struct cm_error *err);
/* origin, its refs, the branch and HEAD. The objects are there already. */
int cm_target_write_refs(struct cm_target *t, const char *origin, const struct cm_refs *refs,
			 const struct cm_resolved *res, struct cm_error *err);
/* Copy the list of commits whose parents are missing; *ret_is_shallow tells if there is one. */
int cm_target_copy_shallow(const struct cm_target *t, const char *source_common_dir,
			   bool *ret_is_shallow, struct cm_error *err);
/* Make <path>.modules, a directory: beside the complete checkout it says that submodules are missing. */
int cm_target_mark_incomplete(const struct cm_target *t, struct cm_error *err);
/* Give it its name. After success nothing is removed any more. */
int cm_target_finish(struct cm_target *t, struct cm_error *err);
/* Closes; removes the partial directory unless it was finished. */
void cm_target_clear(struct cm_target *t);

#endif
