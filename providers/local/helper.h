/* SPDX-License-Identifier: Apache-2.0 */
/* Our other executables: where they are. */
#ifndef CM_PROVIDERS_LOCAL_HELPER_H
#define CM_PROVIDERS_LOCAL_HELPER_H

#include <stddef.h>

#include "casemate/error.h"

/*
 * For a program that runs from elsewhere than it was built for: its own directory (a build), or
 * ../libexec/casemate from there (another prefix). Else the installed path. Always program and
 * directory belong to this user or root, and nobody else can write them, be it by a group. No
 * environment variable has a say.
 */
int cm_helper_path(const char *name, char *buf, size_t size, struct cm_error *err);
#endif
