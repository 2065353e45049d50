/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of commands and of their trees, and when the slot of one can be used again.
 *
 * A tree that is told to end has its grace as a whole: whoever of it is left when its main process
 * has ended still has the rest of it. Its end is told when nothing of it runs any more, and never
 * before: a tree that cannot be killed at once is killed again until it is gone.
 */
#include <signal.h>

#include "isolation/keeper/serve.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"

#define KILL_AGAIN_MS 100

void cm_serve_release_slot(struct cm_serve_exec *e)
{
	struct cm_rec rec = { .type = CM_REC_SLOT_FREE };

	rec.body.slot.slot = (uint32_t)(e - e->serve->execs);
	cm_fd_close(&e->kill_fd);
	e->phase = CM_PHASE_FREE;
	cm_serve_send(e->serve, &rec, NULL, 0);
}

/* In a temporary session one command runs at a time, so its tree is everything. */
static bool is_whole_jail(const struct cm_serve_exec *e)
{
	return (e->serve->plan->header->flags & CM_PLANF_TEMPORARY) != 0;
}

static bool is_tree_gone(const struct cm_serve_exec *e)
{
	return !cm_tree_any() || (!is_whole_jail(e) && cm_tree_signal(&e->mark, 0) == 0);
}

static void tell_tree(const struct cm_serve_exec *e)
{
	if (is_whole_jail(e)) {
		cm_tree_signal_all(SIGTERM);
		return;
	}
	(void)cm_tree_signal(&e->mark, SIGTERM);
	/* a child that has not executed yet bears no readable mark */
	if (e->pidfd >= 0)
		(void)cm_sys_pidfd_send_signal(e->pidfd, SIGTERM);
}

static void tell_end(struct cm_serve_exec *e)
{
	struct cm_rec rec = { .type = CM_REC_END, .id = e->id };
	bool is_last = (e->flags & CM_EXECF_LAST) != 0;

	cm_serve_due_after(e, CM_SERVE_NEVER);
	cm_serve_fill_end(e, &rec.body.end);
	/* of the last one the others end with the session */
	if (e->phase != CM_PHASE_ENDING && !is_last && !is_tree_gone(e)) {
		rec.body.end.flags |= CM_ENDF_CHILDREN_LEFT;
		e->phase = CM_PHASE_LINGERING;
	}
	rec.body.end.started.pid = e->started_pid;
	cm_serve_send(e->serve, &rec, NULL, 0);
	if (is_last)
		cm_serve_leave(e->serve);
	cm_serve_drop(e);
	cm_fd_close(&e->pidfd);
	if (e->phase != CM_PHASE_LINGERING)
		cm_serve_release_slot(e);
}

/* ENDING, and its main process has ended: is that the end of the tree? */
static void settle(struct cm_serve_exec *e)
{
	if (e->has_exited && is_tree_gone(e))
		tell_end(e);
}

static void kill_tree(struct cm_serve_exec *e)
{
	bool is_gone = true;
	bool froze = false;

	/* by its descriptor, too: before it has executed it bears no mark that could be read, and
	 * with one id inside the agent can have stopped it there */
	if (e->pidfd >= 0)
		(void)cm_sys_pidfd_send_signal(e->pidfd, SIGKILL);
	if (is_whole_jail(e))
		cm_tree_signal_all(SIGKILL);
	else
		is_gone = cm_tree_kill(&e->mark, e->is_leaf_v2 ? e->kill_fd : -1,
				       e->is_leaf_v2 ? -1 : e->kill_fd, &froze);
	/* until its end is told: what the kernel has to bury first takes a moment, too */
	cm_serve_due_after(e, KILL_AGAIN_MS);
	if (is_gone)
		settle(e);
}

void cm_serve_finish(struct cm_serve_exec *e)
{
	e->end_us = cm_clock_mono_us();
	/* while its tree is waited for, the number may become another process's */
	e->pid = 0;
	cm_fd_close(&e->pty_fd);
	if (e->phase == CM_PHASE_ENDING) {
		settle(e);
	} else if ((e->flags & CM_EXECF_KILL_TREE) != 0) {
		e->phase = CM_PHASE_ENDING;
		kill_tree(e);
	} else {
		tell_end(e);
	}
}

void cm_serve_settle(struct cm_serve *serve)
{
	for (size_t i = 0; i < serve->n_slots; i++) {
		struct cm_serve_exec *e = &serve->execs[i];

		if (e->phase == CM_PHASE_ENDING)
			settle(e);
		else if (e->phase == CM_PHASE_LINGERING && is_tree_gone(e))
			cm_serve_release_slot(e);
	}
	if (serve->is_stopping && !cm_tree_any())
		cm_serve_leave(serve);
}

void cm_serve_finish_not_executed(struct cm_serve_exec *e, uint32_t word)
{
	struct cm_rec rec = { .type = CM_REC_END, .id = e->id };

	rec.body.end.kind = CM_END_NOT_EXECUTED;
	rec.body.end.status = (int32_t)(word & 0xffffU);
	rec.body.end.detail = word >> 16;
	cm_serve_due_after(e, CM_SERVE_NEVER);
	cm_fd_close(&e->pidfd);
	cm_fd_close(&e->pty_fd);
	cm_serve_send(e->serve, &rec, NULL, 0);
	if ((e->flags & CM_EXECF_LAST) != 0)
		cm_serve_leave(e->serve);
	cm_serve_release_slot(e);
}

static void begin_ending(struct cm_serve_exec *e, uint32_t kind)
{
	e->phase = CM_PHASE_ENDING;
	e->end_kind = kind;
	cm_serve_due_after(e, CM_SERVE_NEVER);
}

void cm_serve_end_tree(struct cm_serve_exec *e, uint32_t kind, uint64_t grace_ms)
{
	bool is_told = e->phase == CM_PHASE_ENDING;

	if (!is_told)
		begin_ending(e, kind);
	if (grace_ms == 0) {
		kill_tree(e);
		return;
	}
	/* it has the grace that it was told with, or less, and hears of it once */
	if (is_told) {
		cm_serve_due_sooner(e, grace_ms);
		return;
	}
	tell_tree(e);
	cm_serve_due_after(e, grace_ms);
}

void cm_serve_is_due(struct cm_serve_exec *e)
{
	if (e->phase == CM_PHASE_ENDING)
		kill_tree(e);
	else
		cm_serve_end_tree(e, CM_END_TIMEOUT, e->grace_ms);
}

/* TERM to all that have not been told yet. One system call where that is everybody. */
static void tell_all(struct cm_serve *serve)
{
	bool is_any_told = false;

	for (size_t i = 0; i < serve->n_slots; i++)
		is_any_told = is_any_told || serve->execs[i].phase == CM_PHASE_ENDING;
	if (!is_any_told) {
		cm_tree_signal_all(SIGTERM);
		return;
	}
	for (size_t i = 0; i < serve->n_slots; i++) {
		struct cm_serve_exec *e = &serve->execs[i];

		if (e->phase != CM_PHASE_FREE && e->phase != CM_PHASE_ENDING)
			tell_tree(e);
	}
}

static void on_stop_grace(struct cm_loop *loop, int timer, void *data)
{
	(void)loop;
	(void)timer;
	(void)data;
	cm_tree_signal_all(SIGKILL);
}

void cm_serve_stop(struct cm_serve *serve, uint64_t grace_ms)
{
	if (serve->is_stopping)
		return;
	serve->is_stopping = true;
	tell_all(serve);
	for (size_t i = 0; i < serve->n_slots; i++) {
		struct cm_serve_exec *e = &serve->execs[i];

		if (e->phase == CM_PHASE_STARTING || e->phase == CM_PHASE_RUNNING)
			begin_ending(e, CM_END_KILLED);
	}
	/* without a timer the keeper's deadline is the grace */
	(void)cm_loop_timer_add(&serve->loop, cm_clock_mono_ms() + (int64_t)grace_ms, on_stop_grace,
				serve);
	cm_serve_settle(serve);
}
