/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a work tree is not committed: for the note that a checkout leaves it out. */
#ifndef CM_ISOLATION_CHECKOUT_STATUS_H
#define CM_ISOLATION_CHECKOUT_STATUS_H

#include <stdint.h>

#include "casemate/error.h"
#include "isolation/checkout/source.h"

#define CM_STATUS_MAX 1000

/*
 * Paths that are changed, staged or untracked (an untracked directory is one), at most
 * CM_STATUS_MAX. Submodules are not looked into. 0 where src is a git directory, or has its work tree
 * elsewhere. Reads only.
 */
int cm_status_count(const struct cm_source *src, uint64_t *ret, struct cm_error *err);

#endif
