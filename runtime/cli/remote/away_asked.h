/* SPDX-License-Identifier: Apache-2.0 */
/* What was asked for, against what sessions elsewhere can be given: refused, said, or made to fit. */
#ifndef CM_RUNTIME_CLI_REMOTE_AWAY_ASKED_H
#define CM_RUNTIME_CLI_REMOTE_AWAY_ASKED_H

#include "runtime/cli/remote/away.h"

/* What would be left out silently, whatever the command is: CM_E_UNSUPPORTED. Nothing is asked of anyone. */
int cm_away_asked_check(const struct cm_spec *spec, struct cm_error *err);
/* What 'create' has no time for: a session's files are made ready while it runs. */
int cm_away_asked_check_create(const struct cm_spec *spec, struct cm_error *err);
/* Limits that are enforced where that is possible, and are not here: a note of each. */
void cm_away_asked_note_limits(const struct cm_away *away, const struct cm_spec *spec,
			       bool is_exec);
/* A command's environment: the caller's variables that --pass-env names, then --env. */
int cm_away_asked_env(const struct cm_spec *spec, const struct cm_strv *caller, struct cm_strv *ret,
		      struct cm_error *err);
/* A copy, with that as the session's environment. The caller clears it, on success only. */
int cm_away_asked_copy(const struct cm_spec *spec, const struct cm_strv *caller,
		       struct cm_spec *ret, struct cm_error *err);
/* Of a provider that passes no standard input on: CM_E_UNSUPPORTED where some is there already. */
int cm_away_asked_check_no_input(struct cm_error *err);

#endif
