/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What there is to say of a session that is elsewhere. For programs the members have the names that
 * `ls --json` and `inspect --json` of this host's sessions have; null: not known.
 */
#ifndef CM_RUNTIME_CLI_REMOTE_SESSION_SHOWN_H
#define CM_RUNTIME_CLI_REMOTE_SESSION_SHOWN_H

#include "providers/provider.h"
#include "runtime/base/json_write.h"
#include "runtime/cli/shown_time.h"
#include "runtime/store/store.h"

enum cm_session_status cm_away_session_status(enum cm_session_state state);
/* What filters choose by, as a session of this host has it: nothing of it is owned. */
void cm_away_session_record(const struct cm_session_info *info, struct cm_session_record *ret);
/* An object of a list. */
void cm_away_session_write(struct cm_json_writer *w, const struct cm_session_info *info);
/* All of it: an object, or lines. */
void cm_away_session_write_all(struct cm_json_writer *w, const struct cm_session_info *info);
void cm_away_session_put(struct cm_buf *out, const struct cm_session_info *info);
/* "4 min"; "-": not known; "over" */
void cm_away_format_left(int64_t until_ms, char *buf, size_t size);

#endif
