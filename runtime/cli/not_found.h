/* SPDX-License-Identifier: Apache-2.0 */
/* A command that execve did not find: what the host and the command's name say about why. */
#ifndef CM_RUNTIME_CLI_NOT_FOUND_H
#define CM_RUNTIME_CLI_NOT_FOUND_H

#include "casemate/error.h"

/*
 * path: PATH of the caller, or NULL. cwd: where the command was to start, if the jail shows
 * that directory of the host's; else NULL.
 */
void cm_cli_explain_not_found(const char *name, const char *path, const char *cwd,
			      struct cm_error *err);

#endif
