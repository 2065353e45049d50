/* SPDX-License-Identifier: Apache-2.0 */
/* The end of commands and of their trees, and when the slot of one can be used again. */
#include <signal.h>

#include "isolation/keeper/serve.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"

void cm_serve_release_slot(struct cm_serve_exec *e)
{
	struct cm_rec rec = { .type = CM_REC_SLOT_FREE };

	rec.body.slot.slot = (uint32_t)(e - e->serve->execs);
	cm_fd_close(&e->kill_fd);
	e->phase = CM_PHASE_FREE;
	cm_serve_send(e->serve, &rec, NULL, 0);
}

void cm_serve_release_lingering(struct cm_serve *serve)
{
	for (size_t i = 0; i < CM_MAX_EXECS; i++) {
		struct cm_serve_exec *e = &serve->execs[i];

		if (e->phase == CM_PHASE_LINGERING && cm_tree_signal(&e->mark, 0) == 0)
			cm_serve_release_slot(e);
	}
}

/* In a temporary session one command runs at a time, so its tree is everything. */
static bool is_whole_jail(const struct cm_serve_exec *e)
{
	return (e->serve->plan->header->flags & CM_PLANF_TEMPORARY) != 0;
}

static void kill_tree(struct cm_serve_exec *e)
{
	bool froze = false;

	/* by its descriptor, too: before it has executed it bears no mark that could be read, and
	 * with one id inside the agent can have stopped it there */
	if (e->pidfd >= 0)
		(void)cm_sys_pidfd_send_signal(e->pidfd, SIGKILL);
	if (is_whole_jail(e))
		cm_tree_kill_all();
	else
		(void)cm_tree_kill(&e->mark, e->is_leaf_v2 ? e->kill_fd : -1,
				   e->is_leaf_v2 ? -1 : e->kill_fd, &froze);
}

void cm_serve_finish(struct cm_serve_exec *e)
{
	struct cm_rec rec = { .type = CM_REC_END, .id = e->id };
	bool ends_tree = e->phase == CM_PHASE_ENDING || (e->flags & CM_EXECF_KILL_TREE) != 0;

	cm_serve_fill_end(e, &rec.body.end);
	cm_serve_due_after(e, CM_SERVE_NEVER);
	cm_fd_close(&e->pidfd);
	cm_fd_close(&e->pty_fd);
	if ((e->flags & CM_EXECF_LAST) != 0) {
		cm_serve_send(e->serve, &rec, NULL, 0);
		cm_serve_leave(e->serve);
	}
	if (ends_tree)
		kill_tree(e);
	if (cm_tree_any() && cm_tree_signal(&e->mark, 0) > 0) {
		rec.body.end.flags |= CM_ENDF_CHILDREN_LEFT;
		e->phase = CM_PHASE_LINGERING;
		cm_serve_send(e->serve, &rec, NULL, 0);
		return;
	}
	cm_serve_send(e->serve, &rec, NULL, 0);
	cm_serve_release_slot(e);
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

void cm_serve_end_tree(struct cm_serve_exec *e, uint32_t kind, uint64_t grace_ms)
{
	if (e->phase == CM_PHASE_ENDING) {
		/* told twice: now */
		kill_tree(e);
		return;
	}
	e->phase = CM_PHASE_ENDING;
	e->end_kind = kind;
	cm_serve_due_after(e, CM_SERVE_NEVER);
	if (grace_ms == 0) {
		kill_tree(e);
		return;
	}
	(void)cm_tree_signal(&e->mark, SIGTERM);
	/* a child that has not executed yet bears no readable mark */
	(void)kill(e->pid, SIGTERM);
	cm_serve_due_after(e, grace_ms);
}

void cm_serve_is_due(struct cm_serve_exec *e)
{
	if (e->phase == CM_PHASE_ENDING)
		kill_tree(e);
	else
		cm_serve_end_tree(e, CM_END_TIMEOUT, e->grace_ms);
}
