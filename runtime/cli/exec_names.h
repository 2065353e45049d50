/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of a session by the names that people type. */
#ifndef CM_RUNTIME_CLI_EXEC_NAMES_H
#define CM_RUNTIME_CLI_EXEC_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "casemate/error.h"
#include "runtime/store/store.h"

/*
 * The id of a command that has a journal: text is "3.17"; or "17", of the session's last start, or
 * of the only one that has such a one. CM_E_NOT_FOUND says what there is, CM_E_INVALID what an id
 * is.
 */
int cm_cli_exec_find(const struct cm_store_session *s, const char *text, uint64_t *ret,
		     struct cm_error *err);
/* "session 'x' has no command 3.17", and as hint which ones are near it. Returns CM_E_NOT_FOUND. */
int cm_cli_exec_not_found(const struct cm_store_session *s, const char *text, uint64_t near,
			  struct cm_error *err);
/* No keeper of that command's start is there to write anything of it any more. */
bool cm_cli_exec_writer_gone(struct cm_store *store, const char *session, uint64_t exec_id);

#endif
