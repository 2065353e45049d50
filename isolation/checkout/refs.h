/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The refs of a source, read once before its objects are copied: what they name at that moment
 * is then among the objects, whatever the source's owner does meanwhile.
 */
#ifndef CM_ISOLATION_CHECKOUT_REFS_H
#define CM_ISOLATION_CHECKOUT_REFS_H

#include <stdbool.h>
#include <stddef.h>

#include "casemate/error.h"
#include "isolation/checkout/library.h"
#include "runtime/base/buf.h"

/* A bound on memory, far above what is in use: the largest known repositories have 200,000. */
#define CM_REFS_MAX 2000000

enum cm_ref_kind {
	CM_REF_BRANCH,
	CM_REF_TAG,
	/* a remote-tracking branch of the source's own */
	CM_REF_REMOTE,
	/* the head of a pull or merge request, by its full name alone */
	CM_REF_REQUEST,
};

struct cm_ref {
	/* full: "refs/heads/main" */
	char *name;
	/* within name, after "refs/heads/" and the like */
	const char *short_name;
	enum cm_ref_kind kind;
	git_oid oid;
	/* differs from oid for an annotated tag */
	git_oid peeled;
	/* what peeled is */
	git_object_t type;
};

struct cm_refs {
	struct cm_ref *v;
	size_t n;
	size_t capacity;
	/* refs to objects that are missing or of the wrong type: left out of v */
	size_t broken;
	/* the branch that HEAD names, full; NULL: detached */
	char *head_name;
	/* only when !head_is_unborn */
	git_oid head;
	bool head_is_unborn;
};

#define CM_REFS_INIT                                                                               \
	{                                                                                          \
		0                                                                                  \
	}

int cm_refs_read(git_repository *repo, struct cm_refs *ret, struct cm_error *err);
void cm_refs_clear(struct cm_refs *refs);
/*
 * The names that forges give to the head of a pull or merge request, one after the other; NULL after
 * the last. Freed by the caller; also NULL when out of memory.
 */
char *cm_refs_request_name(unsigned int number, size_t i);
#define CM_REFS_REQUEST_NAMES 3
/* By full name; NULL when there is none. Borrowed. */
const struct cm_ref *cm_refs_find(const struct cm_refs *refs, const char *name);
/*
 * The content of a packed-refs file for a clone: branches become refs/remotes/origin/..., tags
 * stay, the source's own remote-tracking branches are left behind.
 */
int cm_refs_pack(const struct cm_refs *refs, struct cm_buf *out, struct cm_error *err);

#endif
