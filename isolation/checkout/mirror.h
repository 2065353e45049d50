/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mirror: the bare repository that what is fetched from a remote goes to, one of each remote and
 * credential. Its directory is the caller's, who also locks it; what is in it is this program's.
 */
#ifndef CM_ISOLATION_CHECKOUT_MIRROR_H
#define CM_ISOLATION_CHECKOUT_MIRROR_H

#include <stdbool.h>

#include "casemate/error.h"
#include "isolation/checkout/library.h"

/* of the repository, within the mirror's directory */
#define CM_MIRROR_REPOSITORY "repository"

struct cm_mirror {
	int dir_fd;
	/* of the repository */
	char *path;
	git_repository *repo;
	/* nothing was fetched into it before */
	bool is_new;
};

#define CM_MIRROR_INIT                                                                             \
	{                                                                                          \
		.dir_fd = -1                                                                       \
	}

/*
 * Open what an earlier fetch left in dir, or make it: also where what is there is damaged, or
 * is_fresh asks for a new one. What killed fetches left is removed.
 */
int cm_mirror_open(const char *dir, bool is_fresh, struct cm_mirror *ret, struct cm_error *err);
/* Begin anew in the same directory. */
int cm_mirror_renew(struct cm_mirror *mirror, struct cm_error *err);
void cm_mirror_clear(struct cm_mirror *mirror);

#endif
