/* SPDX-License-Identifier: Apache-2.0 */
/* From what the user called a ref to one commit and the branch to be on. */
#ifndef CM_ISOLATION_CHECKOUT_RESOLVE_H
#define CM_ISOLATION_CHECKOUT_RESOLVE_H

#include "isolation/checkout/refs.h"

struct cm_resolved {
	/* full name in the source; NULL: a commit id */
	char *ref;
	/* local branch, short; NULL: detached */
	char *branch;
	/* the source has the branch of that name, so that it can be pulled from */
	bool has_upstream;
	/* the branch is none of the source's, but was asked for by a name of its own */
	bool is_new_branch;
	/* nothing to check out, HEAD names a branch without commits */
	bool is_unborn;
	git_oid commit;
};

#define CM_RESOLVED_INIT                                                                           \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * wanted: NULL or "HEAD"; a full ref name; the short name of a tag, a branch or a remote-tracking
 * branch; a commit id of 4 to 40 digits. A name that means two things is an error that lists
 * them; an unknown one has the nearest names as its hint.
 */
int cm_resolve(git_repository *repo, const struct cm_refs *refs, const char *wanted,
	       struct cm_resolved *ret, struct cm_error *err);
/* The head of pull or merge request number, on a branch "pr-NUMBER" of this checkout's own. */
int cm_resolve_request(const struct cm_refs *refs, unsigned int number, struct cm_resolved *ret,
		       struct cm_error *err);
/*
 * Of a mirror: what was a commit's id has to be in the history of what the remote has now, whatever
 * an earlier fetch left there. wanted is for the message.
 */
int cm_resolve_check_reachable(git_repository *repo, const struct cm_refs *refs, const char *wanted,
			       const struct cm_resolved *res, struct cm_error *err);
/*
 * To be on the branch of that name. Where the source has it, res (nothing yet) is filled, and true in
 * *ret_has; a tag or a remote's branch is none.
 */
int cm_resolve_branch(const struct cm_refs *refs, const char *branch, struct cm_resolved *res,
		      bool *ret_has, struct cm_error *err);
/* Else one of this checkout's own begins at *res, whatever that had for a branch. */
int cm_resolve_new_branch(const char *branch, struct cm_resolved *res, struct cm_error *err);
/* All that can be asked for, borrowed. */
struct cm_wanted {
	/* where branch begins, if that is one to be made; NULL: HEAD */
	const char *ref;
	/* a pull or merge request instead; 0: none */
	unsigned int pr;
	/* the branch to be on; NULL: as ref and pr have it */
	const char *branch;
	/* a commit that no ref leads to is none that the remote has */
	bool is_mirror;
};
/* res: nothing yet; the caller clears it, also after a failure */
int cm_resolve_wanted(git_repository *repo, const struct cm_refs *refs,
		      const struct cm_wanted *wanted, struct cm_resolved *res,
		      struct cm_error *err);
void cm_resolved_clear(struct cm_resolved *res);

#endif
