/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A remote repository, fetched into its mirror by a helper in a jail of its own: with the network,
 * the credential and the mirror, and nothing of the session. What is checked out afterwards comes
 * from the mirror, in another jail that has neither network nor credential.
 */
#ifndef CM_PROVIDERS_LOCAL_FETCH_H
#define CM_PROVIDERS_LOCAL_FETCH_H

#include "providers/local/checkout_helper.h"
#include "providers/local/local_internal.h"
#include "runtime/store/mirror.h"

/* where a jail shows the mirror, and the repository in it (isolation/checkout/mirror.h) */
#define CM_FETCH_MIRROR_INSIDE "/run/casemate/mirror"
#define CM_FETCH_REPOSITORY_INSIDE CM_FETCH_MIRROR_INSIDE "/repository"

/* All borrowed. */
struct cm_local_remote {
	/* without a secret */
	const char *url;
	/* a ref of any spelling, and a branch, that are going to be checked out; NULL: HEAD's */
	const char *ref;
	const char *branch;
	/* the head of that request, too; 0: none */
	int pr;
	/* commits of history, and then of these alone; 0: all */
	int depth;
	/* for what of it is checked out, and how: the session's spec; NULL: all, as it is fetched */
	const struct cm_spec *spec;
	/* what its server is told when it asks; both NULL: nothing */
	const char *user;
	const char *secret;
	/* where it asks and user is NULL: may git's credential helpers be asked? At once: before it does */
	bool may_ask_helper;
	bool asks_helper_first;
	/* are the caller's ssh keys, or its agent, for this server? */
	bool has_keys;
	/* told when it has been fetched; NULL: nothing is */
	const char *phase;
};

/* The repository of the session. */
void cm_local_remote_of(const struct cm_local *l, struct cm_local_remote *ret);
/* Check something out of a mirror; what the helper says of it goes to result. */
typedef int cm_local_take_fn(struct cm_local *l, const struct cm_store_mirror *mirror, void *data,
			     struct cm_checkout_result *result, struct cm_error *err);
/*
 * Bring the mirror of a repository up to date and take from it, under its lock. What a mirror lacks or
 * has wrong is seen when it is checked out: then what the server has is fetched anew and taken again,
 * once; what is wrong there is wrong again. result was initialised. CM_E_CANCELLED as cm_local_inside
 * has it.
 */
int cm_local_fetch(struct cm_local *l, const struct cm_local_remote *of, cm_local_take_fn *take,
		   void *data, struct cm_checkout_result *result, struct cm_error *err);

#endif
