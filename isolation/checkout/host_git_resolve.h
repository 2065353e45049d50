/* SPDX-License-Identifier: Apache-2.0 */
/* resolve.h by git's own means: for SHA-256, and for what a fetch has to know of a checkout. */
#ifndef CM_ISOLATION_CHECKOUT_HOST_GIT_RESOLVE_H
#define CM_ISOLATION_CHECKOUT_HOST_GIT_RESOLVE_H

#include "isolation/checkout/host_git.h"

/* As a checkout has them: a ref or 0 and a request's number; a branch to be on, or NULL. */
struct cm_host_git_take {
	const char *ref;
	unsigned int pr;
	const char *branch;
};

struct cm_host_git_taken {
	/* full name in the source; NULL: a commit's id, or a detached HEAD */
	char *ref;
	/* NULL: detached */
	char *branch;
	bool has_upstream;
	bool is_new_branch;
	/* there are no commits to check out */
	bool is_unborn;
	char commit[CM_HOST_GIT_HEX_SIZE];
};

/* CM_E_NOT_FOUND with a hint where it is not there. ret is cleared by the caller on success. */
int cm_host_git_resolve(struct cm_host_git *g, const char *source,
			const struct cm_host_git_take *take, bool is_mirror,
			struct cm_host_git_taken *ret, struct cm_error *err);
void cm_host_git_taken_clear(struct cm_host_git_taken *taken);
/* The commit alone; "" where there is none of that name, which is no error here. */
int cm_host_git_find(struct cm_host_git *g, const char *source, const struct cm_host_git_take *take,
		     char commit[CM_HOST_GIT_HEX_SIZE], struct cm_error *err);

#endif
