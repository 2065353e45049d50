/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Setup commands, run in a session's jail before its first command: what they print is shown on
 * stderr as it comes, since it is no output of the command's, and kept with the session's state.
 */
#ifndef CM_RUNTIME_CLI_SETUP_H
#define CM_RUNTIME_CLI_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "providers/local/local.h"
#include "runtime/cli/cli.h"
#include "runtime/cli/redact.h"
#include "runtime/cli/relay.h"
#include "runtime/store/setup_log.h"

/* what Mastra shows of a setup that failed */
#define CM_SETUP_TAIL_MAX 1800

/* How a setup went that ran in this call, for the result. */
struct cm_setup_report {
	bool has_run;
	/* neither: it was interrupted */
	bool is_done;
	bool has_failed;
	/* of the command that failed, else 0 */
	int exit_status;
	int64_t took_ms;
	/* of the teardown commands, where they ran: the first status that is not 0 */
	bool has_torn_down;
	int teardown_exit;
	/* the end of what it printed, from a whole character on */
	char tail[CM_SETUP_TAIL_MAX];
	size_t tail_len;
};

struct cm_setup {
	struct cm_cli *cli;
	/* its jail stands */
	struct cm_local *local;
	/* opened and closed for each command; afterwards its `signal` says whether one came */
	struct cm_relay *relay;
	void (*phase)(void *data, const char *name, uint64_t duration_us);
	void *data;
	struct cm_setup_report report;
	/* its teardown commands run */
	bool is_teardown;
	/* for setup.c */
	struct cm_setup_log log;
	struct cm_redact redact_out;
	struct cm_redact redact_err;
};

/*
 * Where the session needs it: run the commands, in order, until one fails, and record how that
 * went. CM_E_SETUP: one failed; anything else: they did not come to an end, and are due again.
 */
int cm_cli_setup_run(struct cm_setup *setup, struct cm_error *err);

/*
 * The session's teardown commands, in a jail that stands: each runs, whatever became of the one before,
 * for 60 s in all. Best effort: what fails is said and is in the report. CM_E_CANCELLED or
 * CM_E_ISOLATION: they did not come to their end.
 */
int cm_cli_teardown_run(struct cm_setup *setup, struct cm_error *err);

#endif
