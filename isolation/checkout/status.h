/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a work tree is not committed: for the note that a checkout leaves it out, and before it is
 * removed.
 */
#ifndef CM_ISOLATION_CHECKOUT_STATUS_H
#define CM_ISOLATION_CHECKOUT_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "casemate/error.h"
#include "isolation/checkout/source.h"

#define CM_STATUS_MAX 1000

struct cm_status {
	/* false: the work tree is elsewhere, or a ".git" says that it has none, so nothing is known of
	 * its files; a bare one has none */
	bool is_tree_known;
	/* paths that are changed, staged or untracked (an untracked directory is one); and of those the
	 * untracked ones */
	uint64_t uncommitted;
	uint64_t untracked;
	/* unsaved.h; 0 unless they were asked for */
	uint64_t stashes;
	uint64_t commits;
};

/*
 * Each number is at most CM_STATUS_MAX. with_unsaved: also what no remote has, and submodules are
 * looked into, and what hides files from git is CM_E_UNSUPPORTED. Reads only.
 */
int cm_status_read(const struct cm_source *src, bool with_unsaved, struct cm_status *ret,
		   struct cm_error *err);

/* Is the work tree that of path, and not another or none? */
bool cm_status_is_tree_at(const git_repository *repo, const char *path);

#endif
