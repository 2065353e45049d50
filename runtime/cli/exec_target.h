/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command of a session that somebody else started: found by its name, followed to its end.
 *
 * Two know of it: the keeper, while it runs, and its journal, where nobody waited for it. What ran
 * in the foreground of another client has no journal.
 */
#ifndef CM_RUNTIME_CLI_EXEC_TARGET_H
#define CM_RUNTIME_CLI_EXEC_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "casemate/error.h"
#include "providers/local/jail.h"
#include "runtime/cli/cli.h"
#include "runtime/store/journal.h"
#include "runtime/store/store.h"

struct cm_exec_target {
	struct cm_cli *cli;
	struct cm_store store;
	bool has_store;
	struct cm_store_session session;
	bool has_session;
	/* ids of all journals, ascending, from before `list` was asked for: one of them that is not in
	 * it has ended */
	uint64_t *journals;
	size_t n_journals;
	/* the session runs: jail is connected, and list what it answered */
	bool is_connected;
	struct cm_jail jail;
	struct cm_buf list;
	/* the command, once it is found */
	uint64_t exec_id;
	char name[CM_EXEC_ID_SIZE];
	struct cm_journal_reader journal;
	bool has_journal;
};

/* How a command ended. */
struct cm_exec_fate {
	/* else `end` means nothing, and `why` says why */
	bool is_known;
	struct cm_rec_end end;
	/* CLOCK_REALTIME; 0: not known */
	int64_t ended_ms;
	/* static */
	const char *why;
};

/* The session, its journals, and its keeper where it runs. After a failure, too, close is right. */
int cm_exec_target_open(struct cm_exec_target *t, struct cm_cli *cli, const char *root,
			const char *session, struct cm_error *err);
void cm_exec_target_close(struct cm_exec_target *t);
/*
 * Opens it, and finds a command of it: "3.17", or "17": of the start that runs, else as cm_cli_exec_find
 * has it. Opens its journal, where it has one.
 */
int cm_exec_target_get(struct cm_exec_target *t, struct cm_cli *cli, const char *root,
		       const char *session, const char *text, struct cm_error *err);
/* What the keeper said of a command; NULL: it does not know it. Borrowed. */
const struct cm_rec_item *cm_exec_target_item(const struct cm_exec_target *t, uint64_t exec_id,
					      const char **ret_text);
/* As far as the keeper said, its main process has not ended. */
bool cm_exec_target_runs(const struct cm_exec_target *t);

/*
 * Its end is told from now on (ret_id names it), and ret_input, if it is not NULL, is what it reads
 * from. CM_E_NOT_FOUND: it does not run (any more).
 */
int cm_exec_target_attach(struct cm_exec_target *t, uint64_t *ret_id, int *ret_input,
			  struct cm_error *err);
/* What it reads ends, but for what others hold of it. Asked apart: an end that comes is not missed. */
int cm_exec_target_close_input(const struct cm_exec_target *t, struct cm_error *err);
/* Until it has ended, or the session has. CM_E_TIMEOUT: it has not; else an error is why its start was
 * refused. */
int cm_exec_target_wait(struct cm_exec_target *t, uint64_t id, int64_t deadline_ms,
			struct cm_exec_fate *ret, struct cm_error *err);
/* It does not run: what its journal says. */
void cm_exec_target_fate(const struct cm_exec_target *t, struct cm_exec_fate *ret);
/* The same when its keeper was lost a moment ago and may have a last word to write. */
void cm_exec_target_last_word(struct cm_exec_target *t, struct cm_exec_fate *ret);
/*
 * The exit status that `exec` would have had. What is no plain end is said; one that is not known is
 * a failure.
 */
int cm_exec_target_exit(const struct cm_exec_target *t, const struct cm_exec_fate *fate);

/* "exit 3", "SIGTERM", "time limit": at most CM_EXEC_FATE_SIZE bytes. */
#define CM_EXEC_FATE_SIZE 32
void cm_exec_fate_format(const struct cm_exec_fate *fate, char buf[CM_EXEC_FATE_SIZE]);

/* Two words are what the command takes: a session and a command of it. */
int cm_exec_target_check(const char *command, int n, struct cm_error *err);

#endif
