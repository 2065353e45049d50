/* SPDX-License-Identifier: Apache-2.0 */
/* What init answers. Init is part of the jail: what it says is checked, and believed no further. */
#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "isolation/keeper/jobs.h"
#include "isolation/keeper/keeper.h"
#include "runtime/base/fd.h"
#include "runtime/store/keeper_lock.h"

/* taken in one go, before others have their turn */
#define MAX_ANSWERS 8

static void tell_up(struct cm_keeper *k)
{
	struct cm_event event;

	if (k->is_temporary)
		return;
	cm_event_begin(&event, &k->events, "session.started", 0);
	cm_jw_kuint(&event.w, "generation", k->plan.header->generation);
	cm_jw_kint(&event.w, "keeperPid", getpid());
	cm_event_end(&event);
}

static void on_up(struct cm_keeper *k)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_rec rec;

	if (k->state != CM_KS_STARTING)
		return;
	if (!k->is_temporary &&
	    (cm_keeper_listen(k, &err) < 0 || cm_keeper_age_begin(k, &err) < 0)) {
		cm_keeper_fail(k, &err);
		cm_loop_stop(&k->loop);
		return;
	}
	k->state = CM_KS_UP;
	tell_up(k);
	cm_keeper_fill_up(k, &rec);
	for (int i = 0; i < k->n_clients; i++) {
		if (k->clients[i].sock >= 0)
			cm_keeper_tell(k, i, &rec, NULL, NULL, 0);
	}
}

static void tell_started(struct cm_keeper *k, struct cm_keeper_exec *e)
{
	struct cm_event event;

	if (!e->is_start_due)
		return;
	e->is_start_due = false;
	k->n_starts_due--;
	cm_event_begin(&event, &k->events, "exec.started", e->id);
	cm_jw_kint(&event.w, "pid", e->pid);
	cm_jw_kbool(&event.w, "detached", (e->flags & CM_EXECF_DETACH) != 0);
	cm_event_end(&event);
}

/* A temporary session has neither a state directory nor events. */
static void tell_ended(struct cm_keeper *k, const struct cm_keeper_exec *e,
		       const struct cm_rec_end *end)
{
	struct cm_event event;

	if (k->is_temporary)
		return;
	cm_event_begin(&event, &k->events, "exec.ended", e->id);
	cm_jw_kstring(&event.w, "end", cm_end_kind_name(end->kind));
	cm_jw_kint(&event.w, "status", end->status);
	cm_jw_kuint(&event.w, "wallMs", end->wall_us / 1000);
	cm_jw_kuint(&event.w, "cpuUserMs", end->cpu_user_us / 1000);
	cm_jw_kuint(&event.w, "cpuSystemMs", end->cpu_system_us / 1000);
	cm_event_end(&event);
}

static void note_started(struct cm_keeper *k, struct cm_keeper_exec *e)
{
	if (k->is_temporary)
		return;
	e->is_start_due = true;
	k->n_starts_due++;
}

static void on_started(struct cm_keeper *k)
{
	struct cm_rec rec = k->msg.rec;
	int slot = cm_keeper_exec_by_id(k, rec.id);
	struct cm_keeper_exec *e;
	unsigned int want;

	if (slot < 0)
		return;
	e = &k->execs[slot];
	want = (e->flags & CM_EXECF_TTY) != 0 ? 1 : 0;
	/* once, and exactly what was asked for: nothing else of the jail's gets to a client */
	if (e->pid != 0 || rec.body.started.pid <= 0 || k->msg.n_fds != want)
		return;
	e->pid = rec.body.started.pid;
	if (e->job) {
		cm_job_started(e->job, &k->msg.fds[0]);
		want = 0;
	}
	rec.len = 0;
	rec.id = e->client_id;
	rec.body.started.exec_id = e->id;
	cm_keeper_tell(k, e->client, &rec, NULL, k->msg.fds, want);
	note_started(k, e);
}

/* What only the group can tell: was it the memory limit, and how much was used. */
static void add_group_usage(struct cm_keeper *k, const struct cm_keeper_exec *e,
			    struct cm_rec_end *end)
{
	struct cm_cgroup_usage usage;
	bool was_killed = (end->kind == CM_END_SIGNAL && end->status == 9) ||
			  (end->kind == CM_END_EXIT && end->status != 0);

	if (k->cgroup.kind == CM_CGROUP_NONE || ((e->flags & CM_EXECF_USAGE) == 0 && !was_killed))
		return;
	cm_cgroup_usage(&k->cgroup, &usage);
	end->memory_peak_bytes = usage.memory_peak_bytes;
	if ((k->cgroup.enforced & CM_CG_MEMORY) == 0 || usage.oom_kills <= e->oom_before)
		return;
	end->flags |= CM_ENDF_MEMORY_LIMIT;
	if (end->kind == CM_END_SIGNAL && end->status == 9)
		end->kind = CM_END_MEMORY;
}

/* It had executed, and has ended before that was told. */
static void take_started(struct cm_keeper *k, struct cm_keeper_exec *e, struct cm_rec_end *end)
{
	if (e->pid != 0 || end->started.pid <= 0 || (e->flags & CM_EXECF_TTY) != 0) {
		end->started = (struct cm_rec_started){ 0, 0 };
		return;
	}
	e->pid = end->started.pid;
	end->started.exec_id = e->id;
	note_started(k, e);
}

static void on_end(struct cm_keeper *k)
{
	struct cm_rec rec = k->msg.rec;
	int slot = cm_keeper_exec_by_id(k, rec.id);
	struct cm_keeper_exec *e;

	if (slot < 0)
		return;
	e = &k->execs[slot];
	take_started(k, e, &rec.body.end);
	add_group_usage(k, e, &rec.body.end);
	/* who is told that it has ended finds its result */
	if (e->job)
		cm_job_end(&e->job, &rec.body.end);
	cm_keeper_exec_ended(k, slot, &rec);
	cm_keeper_was_active(k);
	tell_started(k, e);
	tell_ended(k, e, &rec.body.end);
	if ((e->flags & CM_EXECF_LAST) != 0) {
		k->is_last_told = e->client >= 0 && k->clients[e->client].sock >= 0;
		/* who was told has more to do than this process, and may wait for its processor */
		(void)sched_yield();
		k->end_reason = CM_ENDED_TEMPORARY;
		cm_loop_stop(&k->loop);
	}
}

static void on_refused(struct cm_keeper *k)
{
	int slot = cm_keeper_exec_by_id(k, k->msg.rec.id);
	struct cm_error why = CM_ERROR_INIT;

	if (slot < 0)
		return;
	cm_proto_error_of(&k->msg, &why);
	cm_keeper_exec_refused(k, slot, &why);
}

static void on_failed(struct cm_keeper *k)
{
	struct cm_error why = CM_ERROR_INIT;

	cm_proto_error_of(&k->msg, &why);
	k->end_reason = CM_ENDED_START_FAILED;
	cm_keeper_fail(k, &why);
	cm_loop_stop(&k->loop);
}

static void on_slot_free(struct cm_keeper *k)
{
	uint32_t slot = k->msg.rec.body.slot.slot;

	if (slot >= CM_MAX_EXECS || !k->execs[slot].is_used || k->execs[slot].is_running)
		return;
	cm_keeper_exec_free(k, slot);
	cm_keeper_was_active(k);
}

static const struct {
	uint16_t type;
	void (*run)(struct cm_keeper *k);
} answers[] = {
	{ CM_REC_UP, on_up },	      { CM_REC_STARTED, on_started },
	{ CM_REC_END, on_end },	      { CM_REC_REFUSED, on_refused },
	{ CM_REC_FAILED, on_failed }, { CM_REC_SLOT_FREE, on_slot_free },
};

/* 1, or what cm_proto_recv says when there is none. */
static int take_answer(struct cm_keeper *k)
{
	int r = cm_proto_recv(k->init_sock, &k->msg);

	for (size_t i = 0; r == 1 && i < CM_ARRAY_SIZE(answers); i++) {
		if (answers[i].type == k->msg.rec.type) {
			answers[i].run(k);
			break;
		}
	}
	if (r == 1)
		cm_msg_clear(&k->msg);
	return r;
}

/* The events of starts are written when all who wait for a word of init's have theirs. */
static int take_answers(struct cm_keeper *k)
{
	/* until the first record is sent to init, its socket blocks (requests.c) */
	int max = k->outbox.loop ? MAX_ANSWERS : 1;
	int r = 1;

	for (int i = 0; i < max && r == 1; i++)
		r = take_answer(k);
	for (size_t i = 0; i < CM_MAX_EXECS && k->n_starts_due > 0; i++)
		tell_started(k, &k->execs[i]);
	return r;
}

/* Init is part of the jail: what it says is checked, and what is malformed ends the session. */
void cm_keeper_answer(struct cm_keeper *k)
{
	struct cm_error err = CM_ERROR_INIT;
	int r;

	/* fails when it is gone, and then the end of file says so */
	(void)cm_outbox_flush(&k->outbox);
	r = take_answers(k);
	if (r == 1 || r == -EAGAIN)
		return;
	if (k->state != CM_KS_STOPPING && k->end_reason == 0) {
		(void)cm_error_set(&err, CM_E_ISOLATION, 0,
				   "the session's init ended unexpectedly");
		k->end_reason = CM_ENDED_INIT_DIED;
		cm_keeper_fail(k, &err);
	}
	cm_loop_stop(&k->loop);
}
