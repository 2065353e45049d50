/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of a source brought into a checkout that is there. */
#ifndef CM_ISOLATION_CHECKOUT_INCOMING_H
#define CM_ISOLATION_CHECKOUT_INCOMING_H

#include <stdbool.h>

#include "isolation/checkout/existing.h"
#include "isolation/checkout/refs.h"
#include "isolation/checkout/report.h"

/*
 * Copy what the checkout lacks of source's objects, by way of its scratch: a pack has its name when it
 * is whole. What refs name is there afterwards, or it is an error.
 */
int cm_incoming_objects(struct cm_existing *ex, git_repository *source, const struct cm_refs *refs,
			struct cm_report *rep, struct cm_error *err);
/* Are there commits in it whose parents are missing on purpose? */
bool cm_incoming_is_shallow(const struct cm_existing *ex);
/* Source has all of its history, and so have the objects now: so has the checkout. */
int cm_incoming_unshallow(struct cm_existing *ex, struct cm_error *err);

#endif
