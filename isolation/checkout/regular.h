/* SPDX-License-Identifier: Apache-2.0 */
/* What of a git directory is no file, though it is read like one. */
#ifndef CM_ISOLATION_CHECKOUT_REGULAR_H
#define CM_ISOLATION_CHECKOUT_REGULAR_H

#include "casemate/error.h"

/*
 * libgit2 opens what is at a name and waits: for the writer of a FIFO, for a device. Called before
 * it opens git_dir, refuses with CM_E_CHECKOUT what is neither file nor directory, be it through a
 * link, among git_dir's own names, its refs and its objects. What is not there, cannot be looked at
 * or is changed meanwhile is for libgit2; the caller has a deadline for what is left.
 */
int cm_regular_check(const char *git_dir, struct cm_error *err);
/* The same of a git directory that is written to: there a link is refused, too. */
int cm_regular_check_own(const char *git_dir, struct cm_error *err);

#endif
