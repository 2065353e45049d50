/* SPDX-License-Identifier: Apache-2.0 */
/* Work in a session that is elsewhere, which would be lost with it. */
#ifndef CM_RUNTIME_CLI_REMOTE_UNSAVED_H
#define CM_RUNTIME_CLI_REMOTE_UNSAVED_H

#include "runtime/cli/remote/away.h"

/*
 * Of a session that does not run: CM_OK where this host remembers no checkout in it, where its sandbox
 * is gone, or where the checkout has nothing that is not elsewhere, too. Else CM_E_BUSY, also where that
 * cannot be told. The session is started for it, and stopped again unless CM_OK comes of it.
 */
int cm_away_check_unsaved(struct cm_away *away, struct cm_error *err);

#endif
