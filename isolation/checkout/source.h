/* SPDX-License-Identifier: Apache-2.0 */
/* Where a checkout comes from: the opened repository. */
#ifndef CM_ISOLATION_CHECKOUT_SOURCE_H
#define CM_ISOLATION_CHECKOUT_SOURCE_H

#include "casemate/error.h"
#include "isolation/checkout/library.h"

struct cm_source {
	/* real path: what becomes origin's URL */
	char *path;
	/* opened as a bare one: its work tree and configuration are of no interest */
	git_repository *repo;
};

#define CM_SOURCE_INIT                                                                             \
	{                                                                                          \
		NULL, NULL                                                                         \
	}

/*
 * spec: a plain path; an address is refused.
 * A work tree, a bare repository, a linked worktree and a submodule's tree are all accepted;
 * parent directories are not searched.
 */
int cm_source_open(const char *spec, struct cm_source *ret, struct cm_error *err);
void cm_source_clear(struct cm_source *src);

#endif
