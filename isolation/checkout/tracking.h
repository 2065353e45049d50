/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkout knows of its remote: refs/remotes/origin and tags, as a first checkout has them. */
#ifndef CM_ISOLATION_CHECKOUT_TRACKING_H
#define CM_ISOLATION_CHECKOUT_TRACKING_H

#include "isolation/checkout/existing.h"
#include "isolation/checkout/refs.h"
#include "isolation/checkout/report.h"

/*
 * The branches of refs under refs/remotes/origin, moved, made and removed as they are in the source,
 * and its HEAD. A tag that is new is added; one that is there stays what it is, which may be the
 * user's own. The objects are there already. With keeps_branches no branch is removed but those whose names
 * stand in the way of others.
 */
int cm_tracking_update(struct cm_existing *ex, const struct cm_refs *refs, bool keeps_branches,
		       struct cm_report *rep, struct cm_error *err);

#endif
