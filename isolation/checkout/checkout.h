/* SPDX-License-Identifier: Apache-2.0 */
/* One checkout from beginning to end. */
#ifndef CM_ISOLATION_CHECKOUT_CHECKOUT_H
#define CM_ISOLATION_CHECKOUT_CHECKOUT_H

#include <stdbool.h>

#include "casemate/error.h"
#include "isolation/checkout/host_git.h"
#include "isolation/checkout/place.h"
#include "isolation/checkout/report.h"

struct cm_checkout_options {
	const char *source;
	const char *target;
	/* what the checkout calls origin; NULL: the source's path */
	const char *origin;
	/* NULL: HEAD */
	const char *ref;
	/* a pull or merge request instead; 0: none */
	unsigned int pr;
	/* the branch to be on: the source's of that name, else a new one; NULL: as ref and pr have it */
	const char *branch;
	/*
	 * Submodules that may be fetched are told in the report, and where there are any there is a
	 * directory TARGET.modules when there is the target: the caller's, who removes it when they
	 * are there.
	 */
	bool wants_modules;
	/* what libgit2 cannot do */
	struct cm_host_git_wants wants;
	/* with a checkout: it becomes this submodule, and nothing is called target then */
	struct cm_place place;
};

/*
 * All or nothing: target exists and is complete, or nothing of it is left. Fills rep's result on
 * success; progress and notes as it goes.
 */
int cm_checkout(const struct cm_checkout_options *opts, struct cm_report *rep,
		struct cm_error *err);

#endif
