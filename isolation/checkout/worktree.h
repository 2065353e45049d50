/* SPDX-License-Identifier: Apache-2.0 */
/* Writing what differs: files, and their entries in an index. */
#ifndef CM_ISOLATION_CHECKOUT_WORKTREE_H
#define CM_ISOLATION_CHECKOUT_WORKTREE_H

#include "isolation/checkout/changes.h"
#include "isolation/checkout/report.h"

/*
 * Each file by way of the scratch, so that it is there whole or not at all. What is blocked stays, and
 * so does what has changed since it was looked at; the index is in memory.
 */
int cm_worktree_write(struct cm_existing *ex, struct cm_changes *changes, git_index *index,
		      struct cm_report *rep, struct cm_error *err);
/*
 * Files of the same moment as the index that was read may have been changed after it; once there is
 * a younger index nothing would tell. st: of the one that was read.
 */
int cm_worktree_keep_racy(git_index *index, const struct stat *st, struct cm_error *err);

#endif
