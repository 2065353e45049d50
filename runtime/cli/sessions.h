/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands on sessions share: the store, the status, the loop over ids. */
#ifndef CM_RUNTIME_CLI_SESSIONS_H
#define CM_RUNTIME_CLI_SESSIONS_H

#include "runtime/cli/cli.h"
#include "runtime/cli/shown_time.h"
#include "runtime/store/store.h"

/* How long a command waits for another one that holds a session's lock. */
#define CM_CLI_LOCK_MS 10000

/* root: --root, may be NULL. */
int cm_cli_store_open(struct cm_cli *cli, const char *root, struct cm_store *ret,
		      struct cm_error *err);
/* end, when it is not NULL, gets the keeper's last word, if there is one (magic 0: none). */
enum cm_session_status cm_cli_session_status(const struct cm_store_session *s,
					     struct cm_end_record *end);
/* What the session works on: its repository, its workspace, its directory, or "-". Borrowed. */
const char *cm_cli_session_subject(const struct cm_store_session *s);

typedef int (*cm_cli_session_fn)(struct cm_store *store, struct cm_store_session *s,
				 const void *data, struct cm_error *err);
/*
 * Call fn for each id, with the session open (cm_store_session_open_as with flags) and, with
 * CM_STORE_CHANGE, locked. Goes on after an error; the exit status of the whole.
 */
int cm_cli_each_session(struct cm_cli *cli, struct cm_store *store, int n_ids, char *const *ids,
			unsigned int flags, cm_cli_session_fn fn, const void *data);

/*
 * Before sessions are stopped: of each of these that runs, and that nobody else holds, run the teardown
 * commands. 0; or 128 and the number of the signal that broke one off, which goes on with the next.
 */
int cm_cli_teardown_each(struct cm_cli *cli, struct cm_store *store, int n_ids, char *const *ids);
/* Stop one that runs. CM_OK also when its keeper had to be killed; that is said. */
int cm_cli_stop_session(const struct cm_cli *cli, struct cm_store_session *s, struct cm_error *err);

#endif
