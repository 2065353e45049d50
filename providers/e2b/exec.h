/* SPDX-License-Identifier: Apache-2.0 */
/* A command in a sandbox: what its files share. */
#ifndef CM_PROVIDERS_E2B_EXEC_H
#define CM_PROVIDERS_E2B_EXEC_H

#include "providers/e2b/e2b_internal.h"

#define CM_E2B_MARK_SIZE 32

struct cm_e2b_exec {
	struct cm_exec base;
	/* NULL: lost, and to be opened again */
	struct cm_e2b_stream *stream;
	/* the body of Start */
	struct cm_buf request;
	/* what was printed, as of the last event */
	struct cm_buf out;
	/* its name for the agent, by which it is found before its pid is known */
	char tag[CM_PROVIDER_HEX_SIZE + 16];
	bool is_root;
	bool is_tty;
	bool is_idempotent;
	/* events that were given out */
	bool has_told_start;
	bool has_told_end;
	/* how it ended is known */
	bool has_ended;
	struct cm_exec_end end;
	/*
	 * What the shell that begins it prints when the command cannot be executed, and how much of that
	 * came: nothing of it is the command's.
	 */
	char mark[CM_E2B_MARK_SIZE];
	size_t mark_at;
	bool is_mark_over;
	bool is_not_executed;
	/* CLOCK_MONOTONIC; INT64_MAX: never */
	int64_t started_ms;
	int64_t term_ms;
	int64_t kill_ms;
	int64_t give_up_ms;
	uint64_t grace_ms;
	bool is_timed_out;
	/* of cm_exec_signal */
	int asked_signal;
	/* connections that were lost without a sign of life in between */
	unsigned int n_cuts;
	/* that something may be missing was said */
	bool is_noted;
};

/* --- command.c: what is asked of the agent about a process -------------------------------------- */

/* The body of Start, into e->request. */
int cm_e2b_command_write(struct cm_e2b_exec *e, const struct cm_exec_request *request,
			 struct cm_error *err);
/* Opens the stream of Start, or of Connect; until it says that the command runs, e->base.pid is there. */
int cm_e2b_command_open(struct cm_e2b_exec *e, bool is_start, const struct cm_call *call,
			struct cm_error *err);
int cm_e2b_command_input(struct cm_exec *exec, const void *bytes, size_t len,
			 const struct cm_call *call, struct cm_error *err);
int cm_e2b_command_signal(struct cm_e2b_exec *e, int sig, const struct cm_call *call,
			  struct cm_error *err);
int cm_e2b_command_resize(struct cm_exec *exec, uint16_t rows, uint16_t cols,
			  const struct cm_call *call, struct cm_error *err);
/* Says, once, that it is followed again. */
void cm_e2b_command_note(struct cm_e2b_exec *e);
/* Best effort, of one whose start was given up: by its tag. */
void cm_e2b_command_kill(struct cm_e2b_exec *e);

/* --- follow.c: its events -------------------------------------------------------------------------- */

int cm_e2b_follow_next(struct cm_exec *exec, struct cm_wake *wake, const struct cm_call *call,
		       struct cm_exec_event *ret, struct cm_error *err);

static inline struct cm_e2b_exec *cm_e2b_exec_of(struct cm_exec *e)
{
	return (struct cm_e2b_exec *)(void *)e;
}
static inline struct cm_e2b_session *cm_e2b_exec_session(const struct cm_e2b_exec *e)
{
	return (struct cm_e2b_session *)(void *)e->base.session;
}

#endif
