/* SPDX-License-Identifier: Apache-2.0 */
/* A checkout that is there, brought up to date with its source; and on to another branch or commit. */
#ifndef CM_ISOLATION_CHECKOUT_UPDATE_H
#define CM_ISOLATION_CHECKOUT_UPDATE_H

#include <stdbool.h>

#include "casemate/error.h"
#include "isolation/checkout/report.h"
#include "isolation/checkout/resolve.h"

struct cm_update_options {
	/* absolute path of the work tree */
	const char *checkout;
	const char *source;
	/* nothing in it: what the checkout is on stays what it is */
	struct cm_wanted wanted;
	/* the history that a first checkout left out, too */
	bool is_unshallow;
	/* the source has some of the remote's branches: others are not gone for that */
	bool keeps_branches;
	/* without a source: only go through with what a killed update began */
	bool is_finish;
};

/*
 * Objects, then the remote's refs, then files and HEAD. Fails before the first of them where what is
 * wanted is not in the source; what is in the way of the last is a note, and no error. rep gets where
 * the checkout is then. Mustn't be run outside of a jail.
 */
int cm_update(const struct cm_update_options *opts, struct cm_report *rep, struct cm_error *err);

#endif
