/* SPDX-License-Identifier: Apache-2.0 */
/* Shared between run.c (a command, from its session to its end), run_session.c (sessions alone) and
 * run_tell.c (what is said and kept of it meanwhile). */
#ifndef CM_RUNTIME_CLI_RUN_INTERNAL_H
#define CM_RUNTIME_CLI_RUN_INTERNAL_H

#include "providers/local/local.h"
#include "runtime/cli/cli.h"
#include "runtime/cli/progress.h"
#include "runtime/cli/relay.h"
#include "runtime/cli/result.h"
#include "runtime/cli/setup.h"

enum run_kind {
	RUN_COMMAND = 0,
	/* a session's: it has to exist, and what is named is the command's alone */
	RUN_EXEC,
	/* a session, and no command: what is named is the session's */
	RUN_START,
};

struct run {
	enum run_kind kind;
	struct cm_cli *cli;
	const struct cm_spec *spec;
	/* --result was given and can be written to */
	bool has_target;
	struct cm_result_target target;
	/* cm_relay_watch_end's; 0: none yet */
	int end_fd;
	int64_t start_us;
	/* when the session's last use was noted; 0: not yet */
	int64_t touched_us;
	/* what every command touches comes first: each page of it costs a fault */
	struct cm_relay relay;
	struct cm_result result;
	struct cm_local local;
	struct cm_setup setup;
	struct cm_progress progress;
};

/*
 * Does standard error take a line? It is waited for, as any reader is, but not by who was told to end:
 * a terminal that was stopped would keep that from being seen.
 */
bool cm_run_is_heard(const struct run *run);
/* For the provider: notes, phases and progress go to people and into the result. */
struct cm_local_events cm_run_events(struct run *run);
/* A phase of the start has ended. Quiet: it is in the result alone. */
void cm_run_phase(struct run *run, const char *name, uint64_t duration_us, bool is_quiet);
/* cm_run_phase as struct cm_local_events has it. */
void cm_run_on_phase(void *data, const char *name, uint64_t duration_us);
/* run->result has an error: the session's events have it, too. */
void cm_run_note_failure(const struct run *run);

/* run.c. One a process: it is large. */
struct run *cm_run_begin(enum run_kind kind, const struct cm_spec *spec, struct cm_cli *cli);
/* What is wrong with the caller's end, and signals, before anything is made. */
int cm_run_prepare_caller(struct run *run, struct cm_error *err);
/* Then the session; and then its files, as a command will find them. */
int cm_run_prepare_session(struct run *run, struct cm_error *err);
int cm_run_prepare_files(struct run *run, struct cm_error *err);
/* The session ended while it was joined, and nothing was done: the long way starts it. */
#define CM_RUN_AGAIN 1
/* Until the jail that was started, or is there, has answered. CM_RUN_AGAIN where it ended. */
int cm_run_wait_up(struct run *run, struct cm_error *err);
/* The session that the spec names runs, is set up, and takes commands by run->local.jail. */
int cm_run_reach(struct run *run, struct cm_error *err);
/* The signal that this failure comes from, taken where it was not; 0: it comes from none. */
int cm_run_signal(const struct run *run, const struct cm_error *err);
/* Lets go of everything, tells of a failure (r < 0), delivers the result; the exit status. */
int cm_run_finish(struct run *run, int r, const struct cm_error *err);

#endif
