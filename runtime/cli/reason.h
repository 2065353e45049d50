/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a run failed, in words that a program can act on: one table of what the parts of Casemate say
 * and what it is called in a result. The names are those that hosts of agent sessions know, and are
 * stable; what to do about it is the hint of the error.
 */
#ifndef CM_RUNTIME_CLI_REASON_H
#define CM_RUNTIME_CLI_REASON_H

#include <stddef.h>

#include "casemate/error.h"

struct cm_reason {
	/* of the result: "checkout", "setup", ...; NULL: any */
	const char *phase;
	/* enum cm_errc; 0: any */
	int code;
	/* what the checkout's helper says, its reason or else its code; NULL: any */
	const char *helper;
	/* "clone-failed" */
	const char *name;
	/* "auth"; NULL: none */
	const char *detail;
};

/* The first that fits counts. */
extern const struct cm_reason cm_reasons[];
extern const size_t cm_n_reasons;

/*
 * helper_reason and helper_code may be empty. Never NULL: what has no row of its own is named by its
 * code.
 */
const struct cm_reason *cm_reason_find(const char *phase, int code, const char *helper_reason,
				       const char *helper_code);

#endif
