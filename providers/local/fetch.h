/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A remote repository, fetched into its mirror by a helper in a jail of its own: with the network,
 * the credential and the mirror, and nothing of the session. What is checked out afterwards comes
 * from the mirror, in another jail that has neither network nor credential.
 */
#ifndef CM_PROVIDERS_LOCAL_FETCH_H
#define CM_PROVIDERS_LOCAL_FETCH_H

#include "providers/local/local_internal.h"
#include "runtime/store/mirror.h"

/* where a jail shows the mirror, and the repository in it (isolation/checkout/mirror.h) */
#define CM_FETCH_MIRROR_INSIDE "/run/casemate/mirror"
#define CM_FETCH_REPOSITORY_INSIDE CM_FETCH_MIRROR_INSIDE "/repository"

/*
 * The mirror of the session's repository, brought up to date; locked until it is closed. is_fresh:
 * what is in it already is not to be believed. CM_E_CANCELLED as cm_local_inside has it.
 */
int cm_local_fetch(struct cm_local *l, bool is_fresh, struct cm_store_mirror *mirror,
		   struct cm_error *err);

#endif
