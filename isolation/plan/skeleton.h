/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a plan that is alike from start to start: directories, links, small files and the
 * mount points of the root file system. It is taken out of the plan, made once on the host as a
 * directory that is found by all that is in it, and mounted read-only as the root of every jail
 * whose plan asks for the same. Making those nodes anew took a third of a start.
 *
 * What stands in another file system of the jail (its home, /run) stays in the plan. Pure.
 */
#ifndef CM_ISOLATION_PLAN_SKELETON_H
#define CM_ISOLATION_PLAN_SKELETON_H

#include "isolation/plan/plan.h"

/* in the directory: the root itself, and what covers a masked directory and file */
#define CM_SKELETON_ROOT "root"
#define CM_SKELETON_EMPTY_DIR "dir"
#define CM_SKELETON_EMPTY_FILE "file"

struct cm_skeleton {
	/* DIR, FILE, SYMLINK and COPY, in order; their texts are the builder's. OPTIONAL: a mount
	 * point, which may be there already */
	struct cm_plan_op ops[CM_PLAN_MAX_OPS];
	uint32_t n_ops;
	/* steps of the builder that were looked at and stayed there */
	uint32_t n_seen;
};

void cm_skeleton_init(struct cm_skeleton *skeleton);
/* Moves the steps that were added to b since the last call. A plan that has failed fails here. */
int cm_skeleton_take(struct cm_plan_builder *b, struct cm_skeleton *skeleton, struct cm_error *err);
/* Appends what tells it from others: two skeletons with the same key are made of the same. */
void cm_skeleton_key(const struct cm_plan_builder *b, const struct cm_skeleton *skeleton,
		     struct cm_buf *key);
/* The plan's root and masks are those of the skeleton at dir. */
void cm_skeleton_use(struct cm_plan_builder *b, const char *dir);

#endif
