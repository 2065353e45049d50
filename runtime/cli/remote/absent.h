/* SPDX-License-Identifier: Apache-2.0 */
/* Commands and options that sessions elsewhere do not have: refused, and never left out silently. */
#ifndef CM_RUNTIME_CLI_REMOTE_ABSENT_H
#define CM_RUNTIME_CLI_REMOTE_ABSENT_H

#include <stdbool.h>

#include "runtime/cli/cli.h"

/* "provider 'e2b' has no 'stats'"; hint: what does instead, may be NULL. The exit status. */
int cm_away_absent(struct cm_cli *cli, const char *what, const char *hint);
/* CM_OK where it was not given; else CM_E_UNSUPPORTED. option: with its dashes. */
int cm_away_absent_option(bool is_given, const char *option, const char *hint,
			  struct cm_error *err);
/* --root, of all commands: where the directories of this host's sessions are. */
int cm_away_absent_root(const char *root, struct cm_error *err);
/* --user, of commands about files. */
int cm_away_absent_user(const char *user, struct cm_error *err);

#endif
