/* SPDX-License-Identifier: Apache-2.0 */
/* Which branch of the remote a branch of the checkout follows. */
#ifndef CM_ISOLATION_CHECKOUT_UPSTREAM_H
#define CM_ISOLATION_CHECKOUT_UPSTREAM_H

#include "isolation/checkout/existing.h"

/* The one of the same name at origin, in the checkout's configuration; what that has already stays. */
int cm_upstream_set(struct cm_existing *ex, const char *branch, struct cm_error *err);

#endif
