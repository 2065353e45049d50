/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared between the files of init's service loop: serve.c (the loop and who may say what to it),
 * serve_start.c (a command until it has executed), serve_end.c (the end of commands and of their
 * trees), serve_due.c (their time), serve_report.c (what an end is told with).
 */
#ifndef CM_ISOLATION_KEEPER_SERVE_H
#define CM_ISOLATION_KEEPER_SERVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "isolation/keeper/exec.h"
#include "isolation/keeper/image.h"
#include "isolation/keeper/outbox.h"
#include "isolation/keeper/proto.h"
#include "isolation/keeper/tree.h"
#include "isolation/plan/plan.h"
#include "runtime/base/loop.h"

enum cm_serve_phase {
	CM_PHASE_FREE = 0,
	CM_PHASE_STARTING,
	CM_PHASE_RUNNING,
	CM_PHASE_ENDING,
	/* ended, but its mark is still borne: the slot cannot be used again yet */
	CM_PHASE_LINGERING,
};

struct cm_serve;

/* Has init a part of its commands' filter? Who starts one alone would load two programs for it. */
static inline bool cm_serve_is_filtered(const struct cm_plan_header *h)
{
	return (h->flags & CM_PLANF_TEMPORARY) == 0;
}

struct cm_serve_exec {
	struct cm_serve *serve;
	enum cm_serve_phase phase;
	uint64_t id;
	uint32_t flags;
	/* of its main process; 0: it has ended */
	pid_t pid;
	/* the same, of one that its end has to tell of; 0: it was told */
	pid_t started_pid;
	int pidfd;
	int report_fd;
	/* not watched yet: what it has to say is heard with the command's end, or a little later */
	bool is_report_late;
	int pty_fd;
	/* our own of what its process has: standard streams, and the leaf to join; -1: none */
	int lent_fds[4];
	int kill_fd;
	bool is_leaf_v2;
	struct cm_mark mark;
	struct cm_exec_image image;
	/* this and the stack stay with the slot */
	struct cm_image_memory memory[CM_IMAGE_MEMORIES];
	void *stack;
	int64_t start_us;
	/* of its main process */
	int64_t end_us;
	uint64_t grace_ms;
	/* CLOCK_MONOTONIC; 0: never */
	int64_t due_ms;
	/* why it is ENDING: CM_END_TIMEOUT or CM_END_KILLED; 0 otherwise */
	uint32_t end_kind;
	bool has_exited;
	int wait_status;
	struct rusage usage;
};

struct cm_serve {
	const struct cm_plan *plan;
	int sock;
	struct cm_outbox outbox;
	int signal_fd;
	struct cm_loop loop;
	/* for the first exec that is due; -1: none is */
	int timer;
	/* for the reports that are late; -1: none is */
	int report_timer;
	/* those of execs from here on were never used: not even their memory is touched */
	size_t n_slots;
	struct cm_serve_exec execs[CM_MAX_EXECS];
	/* attempts to reach the network that were told of with an end already */
	uint64_t refused_before;
	bool is_up_told;
	bool is_stopping;
	struct cm_msg msg;
};

/* serve.c */
/*
 * The session is over: the keeper is told all that it has to know, and the kernel kills whatever
 * else is in the pid namespace.
 */
_Noreturn void cm_serve_leave(struct cm_serve *serve);
void cm_serve_send(struct cm_serve *serve, struct cm_rec *rec, const int *fds, unsigned int n_fds);
void cm_serve_refuse(struct cm_serve *serve, uint64_t id, const struct cm_error *err);

/* serve_start.c */
/* An EXEC record: answered by REFUSED, or by STARTED and END (or END that tells both). */
void cm_serve_start(struct cm_serve *serve, struct cm_msg *msg);
/* What the command's process has to say about its start; a no-op when it was heard. */
void cm_serve_take_report(struct cm_serve_exec *e);
/*
 * What was there for its process until that executed: of one that has ended before that was heard, until
 * its end is told. Again is no harm.
 */
void cm_serve_drop(struct cm_serve_exec *e);

/* serve_end.c */
/* Its time limit, or its grace while it is ENDING, is over. */
void cm_serve_is_due(struct cm_serve_exec *e);
/*
 * TERM to its tree, KILL after the grace, or at once without one. For one that is ENDING already
 * the end can come nearer only.
 */
void cm_serve_end_tree(struct cm_serve_exec *e, uint32_t kind, uint64_t grace_ms);
/* Its main process has ended (e->wait_status). */
void cm_serve_finish(struct cm_serve_exec *e);
/* It never was executed: the word of its report pipe. */
void cm_serve_finish_not_executed(struct cm_serve_exec *e, uint32_t word);
void cm_serve_release_slot(struct cm_serve_exec *e);
/*
 * Somebody without a name here was reaped: ends that waited for it are told, slots whose marks
 * nobody bears any more are free.
 */
void cm_serve_settle(struct cm_serve *serve);
/* TERM to all there is, KILL after the grace; leaves as soon as nobody is left. */
void cm_serve_stop(struct cm_serve *serve, uint64_t grace_ms);

/* serve_due.c */
#define CM_SERVE_NEVER UINT64_MAX
/* cm_serve_is_due is called then, and not when it was set to before. */
void cm_serve_due_after(struct cm_serve_exec *e, uint64_t ms);
/* The same, if that is before. */
void cm_serve_due_sooner(struct cm_serve_exec *e, uint64_t ms);

/* serve_report.c */
void cm_serve_fill_end(const struct cm_serve_exec *e, struct cm_rec_end *end);

#endif
