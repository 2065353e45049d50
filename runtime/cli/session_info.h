/* SPDX-License-Identifier: Apache-2.0 */
/* What a session is to those who speak of sandboxes as Mastra's SandboxInfo does. */
#ifndef CM_RUNTIME_CLI_SESSION_INFO_H
#define CM_RUNTIME_CLI_SESSION_INFO_H

#include "runtime/base/json_write.h"
#include "runtime/cli/session_use.h"
#include "runtime/store/store.h"

/*
 * The members name, provider, createdAt, lastUsedAt, timeoutAt and metadata of an open object; null
 * for what is not known. end: the keeper's last word, or one with magic 0. use: of cm_session_use_look.
 */
void cm_cli_write_session_info(struct cm_json_writer *w, const struct cm_store_session *s,
			       const struct cm_end_record *end, const struct cm_session_use *use);

#endif
