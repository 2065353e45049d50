/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A checkout that is there already, and that a jail has written to since it was made. It is opened in
 * a jail alone; there its git directory is one to distrust as to correctness, and nothing more: this
 * process reaches no more than the session does. Of its configuration no value is used.
 */
#ifndef CM_ISOLATION_CHECKOUT_EXISTING_H
#define CM_ISOLATION_CHECKOUT_EXISTING_H

#include <stdbool.h>

#include "casemate/error.h"
#include "isolation/checkout/library.h"
#include "runtime/base/buf.h"

/* below .git: what an update works with, and what is left of one that was killed */
#define CM_EXISTING_SCRATCH "casemate-update"

struct cm_existing {
	/* of the work tree, absolute; borrowed */
	const char *path;
	char *git_path;
	char *scratch_path;
	int dir_fd;
	int git_fd;
	/* -1: not begun */
	int scratch_fd;
	/* keeps the scratch for the next update, which has something to finish by it */
	bool is_unfinished;
	/* bare, so that no configuration says where the work tree is */
	git_repository *repo;
	/* backs the configuration that repo has */
	int config_fd;
};

#define CM_EXISTING_INIT                                                                           \
	{                                                                                          \
		.dir_fd = -1, .git_fd = -1, .scratch_fd = -1, .config_fd = -1                      \
	}

/*
 * Open it, or refuse what is no git directory as a checkout has it: a link or a file in its place,
 * one that shares with another (commondir, alternates), links and FIFOs among its refs and objects.
 */
int cm_existing_open(const char *path, struct cm_existing *ret, struct cm_error *err);
/*
 * Make the scratch directory, or open what a killed update left: then *ret_is_left. The locks that
 * such a one held are gone afterwards, those of others stay.
 */
int cm_existing_begin(struct cm_existing *ex, bool *ret_is_left, struct cm_error *err);
/* Empty the scratch. */
int cm_existing_reset(struct cm_existing *ex, struct cm_error *err);
/* Say which files of the git directory (refs, by their names) are going to be locked. */
int cm_existing_will_lock(struct cm_existing *ex, const struct cm_strv *names,
			  struct cm_error *err);
/* Removes the scratch but where is_unfinished. */
void cm_existing_clear(struct cm_existing *ex);

#endif
