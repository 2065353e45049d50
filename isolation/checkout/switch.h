/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Being on another branch or commit: files, index, refs, HEAD, in this order. What is not committed is
 * never lost: where it would be, nothing is changed. One that is killed on the way is finished by the
 * next update, by what is written down in the scratch before the first file is touched.
 */
#ifndef CM_ISOLATION_CHECKOUT_SWITCH_H
#define CM_ISOLATION_CHECKOUT_SWITCH_H

#include <stdbool.h>

#include "isolation/checkout/existing.h"
#include "isolation/checkout/report.h"

struct cm_switch {
	/* where HEAD is; is_unborn: nowhere yet */
	git_oid from;
	bool is_unborn;
	git_oid to;
	/* the branch to be on, short; NULL: none. Borrowed. */
	const char *branch;
	/* where that is now; without it is made */
	git_oid tip;
	bool has_tip;
};

/* *ret_is_done is false when work is in the way, which a note says. */
int cm_switch(struct cm_existing *ex, const struct cm_switch *sw, struct cm_report *rep,
	      bool *ret_is_done, struct cm_error *err);
/* What a killed one has left undone. Changes of after its death stay. */
int cm_switch_finish(struct cm_existing *ex, struct cm_report *rep, struct cm_error *err);

#endif
