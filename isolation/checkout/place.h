/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A submodule's place: a checkout that was made by itself becomes a submodule of another one, as git
 * has it. Its git directory goes to where the superproject keeps those, its files to the empty
 * directory that the superproject's checkout made for them.
 */
#ifndef CM_ISOLATION_CHECKOUT_PLACE_H
#define CM_ISOLATION_CHECKOUT_PLACE_H

#include "casemate/error.h"
#include "isolation/checkout/target.h"

struct cm_place {
	/* the whole checkout; NULL: the checkout is no submodule */
	const char *checkout;
	/* of the submodule, below it */
	const char *path;
	/* the superproject's git directory, below it: ".git", ".git/modules/NAME" */
	const char *git_dir;
	const char *name;
};

int cm_place_check(const struct cm_place *place, struct cm_error *err);
/*
 * In place of cm_target_finish. url is what the superproject's configuration calls the submodule's
 * address. Nothing is written outside of the checkout, no link in it is followed, and nothing that
 * is there is replaced.
 */
int cm_place_finish(struct cm_target *t, const struct cm_place *place, const char *url,
		    struct cm_error *err);

#endif
