/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .gitmodules, by a small parser of our own: libgit2's reader of configuration follows include.path,
 * which would open any path that the repository's author chose.
 */
#ifndef CM_ISOLATION_CHECKOUT_GITMODULES_H
#define CM_ISOLATION_CHECKOUT_GITMODULES_H

#include <stdbool.h>
#include <stddef.h>

#include "casemate/error.h"

/* As it is written there; each may be NULL. */
struct cm_gitmodule {
	char *name;
	char *path;
	char *url;
	/* another one has its name or its path, or a value is there twice: which counts, is a guess */
	bool is_ambiguous;
};

struct cm_gitmodules {
	/* by path */
	struct cm_gitmodule *v;
	size_t n;
	size_t capacity;
};

int cm_gitmodules_parse(const char *text, size_t len, struct cm_gitmodules *ret,
			struct cm_error *err);
/* The entry of that path; NULL: none. Borrowed. */
const struct cm_gitmodule *cm_gitmodules_find(const struct cm_gitmodules *modules,
					      const char *path);
void cm_gitmodules_clear(struct cm_gitmodules *modules);

#endif
