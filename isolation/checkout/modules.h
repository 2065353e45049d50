/* SPDX-License-Identifier: Apache-2.0 */
/* Submodules: which may be fetched, and why the others stay empty. */
#ifndef CM_ISOLATION_CHECKOUT_MODULES_H
#define CM_ISOLATION_CHECKOUT_MODULES_H

#include "casemate/error.h"
#include "isolation/checkout/report.h"

/* The report is going to tell them, also where there are none. */
int cm_modules_want(struct cm_report *rep, struct cm_error *err);
/*
 * Count the submodules in index. What may be fetched is told in rep->modules; of the others it is
 * noted why their directories are empty. base: the address that relative ones begin at; NULL: none
 * is wanted.
 */
int cm_modules_report(git_repository *repo, git_index *index, const char *base,
		      struct cm_report *rep, struct cm_error *err);

#endif
