/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What there is to say of a command of a session that is elsewhere. For programs the members have the
 * names that exec_view.h lists; null: not known.
 */
#ifndef CM_RUNTIME_CLI_REMOTE_EXEC_SHOWN_H
#define CM_RUNTIME_CLI_REMOTE_EXEC_SHOWN_H

#include "providers/provider.h"
#include "runtime/base/json_write.h"
#include "runtime/cli/remote/away.h"

/* "exit 3", "SIGTERM", "time limit", "running", "unknown" */
#define CM_AWAY_STATE_SIZE 32
void cm_away_exec_state(const struct cm_exec_info *info, char buf[CM_AWAY_STATE_SIZE]);
void cm_away_exec_write(struct cm_json_writer *w, const struct cm_exec_info *info);
/* An object in a line on standard output; the exit status of that. */
int cm_away_exec_print(const struct cm_away *away, const struct cm_exec_info *info);
void cm_away_exec_header(struct cm_buf *out);
/* columns: of the terminal; 0: as long as it is */
void cm_away_exec_row(struct cm_buf *out, const struct cm_exec_info *info, size_t columns);

/* Two words are what the command takes: a session and a command of it. */
int cm_away_exec_check_words(const char *command, int n, struct cm_error *err);
/* The last row of the session's list that has this name; the caller clears it. CM_E_NOT_FOUND. */
int cm_away_exec_find(struct cm_away *away, const char *name, struct cm_exec_info *ret,
		      struct cm_error *err);
/* All that is in *from; on failure *ret is empty. */
int cm_away_exec_copy(const struct cm_exec_info *from, struct cm_exec_info *ret);
/* It has ended so, now. */
void cm_away_exec_set_end(struct cm_exec_info *info, const struct cm_exec_end *end);

#endif
