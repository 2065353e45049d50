/* SPDX-License-Identifier: Apache-2.0 */
/* What comes before a session that is elsewhere is stopped or removed. */
#ifndef CM_RUNTIME_CLI_REMOTE_ENDING_H
#define CM_RUNTIME_CLI_REMOTE_ENDING_H

#include "runtime/cli/remote/away.h"

/* Its --teardown commands, where it runs; what becomes of them keeps nothing from ending. */
void cm_away_tear_down(struct cm_away *away);
/* Its detached commands, where it runs: a provider may keep them over a stop. */
int cm_away_kill_commands(struct cm_away *away, struct cm_error *err);

#endif
