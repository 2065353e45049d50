/* SPDX-License-Identifier: Apache-2.0 */
/* Which commits come before which, also where a part of the history is missing on purpose. */
#ifndef CM_ISOLATION_CHECKOUT_HISTORY_H
#define CM_ISOLATION_CHECKOUT_HISTORY_H

#include <stdbool.h>

#include "isolation/checkout/library.h"

/* Is commit an ancestor of tip? What is missing leads nowhere. */
bool cm_history_has(git_repository *repo, const git_oid *tip, const git_oid *commit);
/* Is it one of the tips, or an ancestor of one? */
bool cm_history_any_has(git_repository *repo, const git_oid *tips, size_t n, const git_oid *commit);

#endif
