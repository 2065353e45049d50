/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a commit's files. */
#ifndef CM_ISOLATION_CHECKOUT_TREE_H
#define CM_ISOLATION_CHECKOUT_TREE_H

#include "casemate/error.h"
#include "isolation/checkout/report.h"

/*
 * Write the files of commit into dir, which holds nothing but its git_dir, and the index. Fills
 * rep's counts. Names that stand for ".git" anywhere are errors; symbolic links are made and never
 * followed. modules_base: as cm_modules_report has it.
 */
int cm_tree_checkout(const char *git_dir, const char *dir, const git_oid *commit,
		     const char *modules_base, struct cm_report *rep, struct cm_error *err);
/*
 * The same of a checkout whose files and index somebody else wrote: its submodules alone, and of those
 * the ones that the work tree has a directory for.
 */
int cm_tree_modules(const char *git_dir, const char *modules_base, struct cm_report *rep,
		    struct cm_error *err);

#endif
