/* SPDX-License-Identifier: Apache-2.0 */
/* Names of git's references. */
#ifndef CM_RUNTIME_BASE_GITREF_H
#define CM_RUNTIME_BASE_GITREF_H

#include <stdbool.h>

/*
 * Can a branch be called so? The rules of git-check-ref-format --branch. Refused beyond them are
 * "@", which is HEAD everywhere else, and a component that with git's ".lock" is longer than a
 * file's name.
 */
bool cm_gitref_is_branch(const char *name);

#endif
