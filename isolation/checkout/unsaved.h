/* SPDX-License-Identifier: Apache-2.0 */
/* What would be lost with a repository that is removed, beside uncommitted files. */
#ifndef CM_ISOLATION_CHECKOUT_UNSAVED_H
#define CM_ISOLATION_CHECKOUT_UNSAVED_H

#include "isolation/checkout/library.h"
#include "isolation/checkout/status.h"

/*
 * Stashes, and commits of HEAD and of any ref, tags among them, that no remote-tracking branch has; of
 * the submodules that are there, too. Each at most CM_STATUS_MAX. Reads only. CM_E_UNSUPPORTED where
 * there may be more: linked worktrees, files that git is told not to look at, a submodule's tree that
 * is elsewhere.
 */
int cm_unsaved_count(git_repository *repo, struct cm_status *status, struct cm_error *err);

#endif
