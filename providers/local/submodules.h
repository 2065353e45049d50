/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The submodules of a repository that was checked out, and theirs: each is fetched into a mirror of its
 * own, in a jail with the network and that mirror, and checked out from it into its place, in a jail
 * with neither network nor credential. What the session's credential is for, is told to the server of
 * the session's repository, and to no other.
 */
#ifndef CM_PROVIDERS_LOCAL_SUBMODULES_H
#define CM_PROVIDERS_LOCAL_SUBMODULES_H

#include "providers/local/local_internal.h"
#include "providers/local/module_list.h"

/*
 * Beside the checkout: what the helper calls the directory that says that submodules are missing, and
 * where it was making one.
 */
#define CM_SUBMODULES_MARK ".modules"
#define CM_SUBMODULES_TREE ".submodule"

/*
 * One that cannot be had is told and left empty: the repository's author may have named what is gone
 * or what others may not see, and the rest can be worked on. Other errors are those of this host;
 * CM_E_CANCELLED as cm_local_inside has it.
 */
int cm_local_submodules(struct cm_local *l, const struct cm_module_list *modules,
			struct cm_error *err);

#endif
