/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of clients by a table gated by state, and what init answers. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "isolation/keeper/keeper.h"
#include "isolation/mech/seccomp.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/store/keeper_lock.h"

#define STOP_GRACE_MS 2000
/* after this an init that does not answer is killed anyway */
#define STOP_DEADLINE_MS 3000

static void refuse_as(struct cm_keeper *k, int client, uint64_t id, const struct cm_error *why)
{
	if (cm_proto_send_error(k->clients[client].sock, CM_REC_REFUSED, id, why) < 0)
		cm_keeper_client_drop(k, client);
}

static void refuse(struct cm_keeper *k, int client, uint64_t id, int code, const char *why)
{
	struct cm_error err = CM_ERROR_INIT;

	(void)cm_error_set(&err, code, 0, "%s", why);
	refuse_as(k, client, id, &err);
}

static void answer(struct cm_keeper *k, int client, struct cm_rec *rec, const int *fds,
		   unsigned int n_fds)
{
	if (client >= 0 && cm_proto_send(k->clients[client].sock, rec, NULL, fds, n_fds) < 0)
		cm_keeper_client_drop(k, client);
}

/* 0, or -errno. An init that is gone is no failure: its last words are in the socket. */
static int to_init(struct cm_keeper *k, struct cm_rec *rec, const void *blob, const int *fds,
		   unsigned int n_fds)
{
	struct cm_error err = CM_ERROR_INIT;
	int r;

	/* from the first record on; before that the plan and the sources were handed over */
	if (!k->outbox.loop && cm_outbox_init(&k->outbox, &k->loop, k->init_sock, &err) < 0)
		return -err.sys_errno;
	r = cm_outbox_send(&k->outbox, rec, blob, fds, n_fds);
	return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}

/* What may not be lost could not be told. */
static void give_up(struct cm_keeper *k, int error)
{
	struct cm_error err = CM_ERROR_INIT;

	(void)cm_error_set(&err, CM_E_SYS, -error, "cannot reach the session's init");
	k->end_reason = CM_ENDED_INIT_DIED;
	cm_keeper_fail(k, &err);
	cm_loop_stop(&k->loop);
}

static void fill_up(const struct cm_keeper *k, struct cm_rec *rec)
{
	const struct cm_plan_header *h = k->plan.header;
	struct cm_rec_up *up = &rec->body.up;

	memset(rec, 0, sizeof(*rec));
	rec->type = CM_REC_UP;
	up->version = CM_PROTO_VERSION;
	if (k->cgroup.kind == CM_CGROUP_V1)
		up->flags |= CM_UPF_CGROUP_V1;
	if (k->cgroup.kind == CM_CGROUP_V2)
		up->flags |= CM_UPF_CGROUP_V2;
	if (h->idmap == CM_IDMAP_SINGLE)
		up->flags |= CM_UPF_SINGLE_ID;
	if ((h->flags & CM_PLANF_NETNS) == 0)
		up->flags |= CM_UPF_HOST_NETWORK;
	if (h->landlock_abi > 0)
		up->flags |= CM_UPF_LANDLOCK;
	up->enforced = k->cgroup.enforced;
	up->keeper_pid = (int32_t)getpid();
	up->init_pid = (int32_t)k->init_pid;
	up->landlock_abi = h->landlock_abi;
	up->generation = h->generation;
}

/* It can look and it can end the session, but what it means by the rest is not known here. */
static void refuse_version(struct cm_keeper *k, int client, const char *id)
{
	struct cm_error err = CM_ERROR_INIT;

	(void)cm_error_set(&err, CM_E_UNSUPPORTED, 0,
			   "session '%s' was started by another version of casemate (protocol %u, "
			   "and not %u)",
			   id, CM_PROTO_VERSION, k->msg.rec.body.hello.version);
	cm_error_hint(&err, "stop the session and start it again: casemate stop %s", id);
	refuse_as(k, client, k->msg.rec.id, &err);
}

static void op_hello(struct cm_keeper *k, int client)
{
	const char *id = cm_plan_str(&k->plan, k->plan.header->session_id);
	struct cm_keeper_client *c = &k->clients[client];
	struct cm_rec rec;

	/* the socket's name is a hash: the whole id decides */
	if (strcmp(k->msg.blob, id) != 0) {
		refuse(k, client, k->msg.rec.id, CM_E_NOT_FOUND, "another session listens here");
		return;
	}
	c->has_said_hello = true;
	cm_loop_timer_cancel(&k->loop, c->hello_timer);
	c->hello_timer = -1;
	c->is_foreign = k->msg.rec.body.hello.version != CM_PROTO_VERSION;
	if (c->is_foreign) {
		refuse_version(k, client, id);
		return;
	}
	fill_up(k, &rec);
	answer(k, client, &rec, NULL, 0);
}

static void op_info(struct cm_keeper *k, int client)
{
	struct cm_rec rec;

	fill_up(k, &rec);
	rec.type = CM_REC_INFO;
	rec.id = k->msg.rec.id;
	answer(k, client, &rec, NULL, 0);
}

static void op_stop(struct cm_keeper *k, int client)
{
	k->clients[client].wants_stopped = true;
	k->clients[client].stop_id = k->msg.rec.id;
	cm_keeper_stop(k);
}

static int find_exec(const struct cm_keeper *k, int client, uint64_t client_id)
{
	for (int i = 0; i < (int)CM_MAX_EXECS; i++) {
		const struct cm_keeper_exec *e = &k->execs[i];

		if (e->is_running && e->client == client && e->client_id == client_id)
			return i;
	}
	return -1;
}

static int find_exec_by_id(const struct cm_keeper *k, uint64_t id)
{
	for (int i = 0; i < (int)CM_MAX_EXECS; i++) {
		if (k->execs[i].is_running && k->execs[i].id == id)
			return i;
	}
	return -1;
}

/*
 * A slot for the next command, and its leaf where there can be one. The leaf of a slot that is free
 * again may still hold what the kernel has not buried yet: then the next slot is taken, so that no
 * command goes without. In a temporary session the tree of a command is the whole jail.
 */
static int take_slot(struct cm_keeper *k, struct cm_cgroup_leaf *ret_leaf)
{
	bool wants_leaf = !k->is_temporary && k->cgroup.kind != CM_CGROUP_NONE;
	int first = -1;

	for (int i = 0; i < (int)CM_MAX_EXECS; i++) {
		int r = CM_OK;

		if (k->execs[i].is_used)
			continue;
		if (first < 0)
			first = i;
		if (wants_leaf)
			r = cm_cgroup_leaf_make(&k->cgroup, (unsigned int)i, ret_leaf, NULL);
		if (r == CM_OK)
			return i;
		if (r != CM_E_BUSY)
			break;
	}
	return first;
}

static void free_slot(struct cm_keeper *k, uint32_t slot)
{
	if (k->execs[slot].has_leaf)
		(void)cm_cgroup_leaf_remove(&k->cgroup, slot);
	k->execs[slot].is_used = false;
}

/* Three from the client at the most; the leaf's two are ours. */
static void op_exec(struct cm_keeper *k, int client)
{
	struct cm_rec rec = k->msg.rec;
	struct cm_keeper_exec *e;
	struct cm_cgroup_leaf leaf = { -1, -1 };
	int fds[8];
	unsigned int n = 0;
	int slot;
	int r;

	if ((rec.body.exec.flags & ~CM_EXECF_CLIENT_) != 0 || k->msg.n_fds > 3) {
		refuse(k, client, rec.id, CM_E_PROTOCOL, "malformed request");
		return;
	}
	slot = take_slot(k, &leaf);
	if (slot < 0) {
		refuse(k, client, rec.id, CM_E_LIMIT, "too many commands in the session");
		return;
	}
	if (!k->is_temporary)
		rec.body.exec.flags &= ~CM_EXECF_LAST;
	e = &k->execs[slot];
	memset(e, 0, sizeof(*e));
	for (; n < k->msg.n_fds; n++)
		fds[n] = k->msg.fds[n];
	if (leaf.join_fd >= 0) {
		e->has_leaf = true;
		rec.body.exec.flags |= CM_EXECF_LEAF;
		fds[n++] = leaf.join_fd;
		fds[n++] = leaf.kill_fd;
	}
	e->is_used = e->is_running = true;
	e->client = client;
	e->client_id = rec.id;
	e->flags = rec.body.exec.flags;
	e->id = k->plan.header->generation << 32 | ++k->counter;
	rec.id = e->id;
	rec.body.exec.slot = (uint32_t)slot;
	rec.body.exec.exec_id = e->id;
	if ((k->cgroup.enforced & CM_CG_MEMORY) != 0) {
		struct cm_cgroup_usage usage;

		cm_cgroup_usage(&k->cgroup, &usage);
		e->oom_before = usage.oom_kills;
	}
	r = to_init(k, &rec, k->msg.blob, fds, n);
	cm_fd_close(&leaf.join_fd);
	cm_fd_close(&leaf.kill_fd);
	if (r < 0) {
		e->is_running = false;
		free_slot(k, (uint32_t)slot);
		refuse(k, client, e->client_id, CM_E_LIMIT,
		       "cannot pass the request on to the session's init");
	}
}

static void op_forward(struct cm_keeper *k, int client)
{
	struct cm_rec rec = k->msg.rec;
	int slot = find_exec(k, client, rec.id);
	int r;

	/* its end may be on the way already */
	if (slot < 0)
		return;
	rec.id = k->execs[slot].id;
	rec.len = 0;
	r = to_init(k, &rec, NULL, NULL, 0);
	if (r < 0)
		give_up(k, r);
}

static const struct {
	uint16_t type;
	unsigned int allowed_in;
	bool before_hello;
	/* the same in every version */
	bool is_frozen;
	uint32_t max_len;
	void (*run)(struct cm_keeper *k, int client);
} requests[] = {
	{ CM_REC_HELLO, CM_KS_UP, true, true, 256, op_hello },
	{ CM_REC_INFO, CM_KS_UP | CM_KS_STOPPING, false, true, 0, op_info },
	/* before the jail is up only from the starter (nobody else is listened to): it has enough of
	 * waiting for it */
	{ CM_REC_STOP, CM_KS_STARTING | CM_KS_UP | CM_KS_STOPPING, false, true, 0, op_stop },
	/* the same: init reads it when it gets there */
	{ CM_REC_EXEC, CM_KS_STARTING | CM_KS_UP, false, false, CM_PROTO_BLOB_MAX, op_exec },
	{ CM_REC_SIGNAL, CM_KS_UP | CM_KS_STOPPING, false, false, 0, op_forward },
	{ CM_REC_KILL, CM_KS_UP | CM_KS_STOPPING, false, true, 0, op_forward },
};

void cm_keeper_request(struct cm_keeper *k, int client)
{
	struct cm_keeper_client *c = &k->clients[client];
	int r = cm_proto_recv(c->sock, &k->msg);

	if (r <= 0) {
		if (r != -EAGAIN)
			cm_keeper_client_drop(k, client);
		return;
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(requests); i++) {
		if (requests[i].type != k->msg.rec.type)
			continue;
		if ((requests[i].allowed_in & k->state) == 0 ||
		    k->msg.rec.len > requests[i].max_len ||
		    (!c->has_said_hello && !requests[i].before_hello) ||
		    (c->is_foreign && !requests[i].is_frozen))
			break;
		requests[i].run(k, client);
		cm_msg_clear(&k->msg);
		if (!cm_outbox_is_empty(&k->outbox))
			cm_keeper_client_pause(k, client);
		return;
	}
	refuse(k, client, k->msg.rec.id, CM_E_PROTOCOL,
	       "a request that is unknown, or not possible now");
	cm_msg_clear(&k->msg);
}

static void on_stop_deadline(struct cm_loop *loop, int timer, void *data)
{
	(void)timer;
	(void)data;
	cm_loop_stop(loop);
}

/* Init ends when nothing is left that could be told to; what lingers is only known there. */
void cm_keeper_stop(struct cm_keeper *k)
{
	struct cm_rec rec = { .type = CM_REC_STOP };

	if (k->state == CM_KS_STOPPING)
		return;
	k->end_reason = CM_ENDED_STOPPED;
	rec.body.kill.grace_ms = STOP_GRACE_MS;
	if (k->state != CM_KS_UP || to_init(k, &rec, NULL, NULL, 0) < 0 ||
	    cm_loop_timer_add(&k->loop, cm_clock_mono_ms() + STOP_DEADLINE_MS, on_stop_deadline,
			      k) < 0) {
		cm_loop_stop(&k->loop);
		return;
	}
	k->state = CM_KS_STOPPING;
}

static void on_up(struct cm_keeper *k)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_rec rec;

	if (k->state != CM_KS_STARTING)
		return;
	if (!k->is_temporary && cm_keeper_listen(k, &err) < 0) {
		cm_keeper_fail(k, &err);
		cm_loop_stop(&k->loop);
		return;
	}
	k->state = CM_KS_UP;
	fill_up(k, &rec);
	for (int i = 0; i < CM_KEEPER_MAX_CLIENTS; i++) {
		if (k->clients[i].sock >= 0)
			answer(k, i, &rec, NULL, 0);
	}
}

static void on_started(struct cm_keeper *k)
{
	struct cm_rec rec = k->msg.rec;
	int slot = find_exec_by_id(k, rec.id);
	unsigned int want;

	if (slot < 0)
		return;
	want = (k->execs[slot].flags & CM_EXECF_TTY) != 0 ? 1 : 0;
	/* exactly what was asked for: nothing else of the jail's gets to a client */
	if (k->msg.n_fds != want)
		return;
	rec.len = 0;
	rec.id = k->execs[slot].client_id;
	rec.body.started.exec_id = k->execs[slot].id;
	answer(k, k->execs[slot].client, &rec, k->msg.fds, want);
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

static void on_end(struct cm_keeper *k)
{
	struct cm_rec rec = k->msg.rec;
	int slot = find_exec_by_id(k, rec.id);
	struct cm_keeper_exec *e;

	if (slot < 0)
		return;
	e = &k->execs[slot];
	add_group_usage(k, e, &rec.body.end);
	rec.len = 0;
	rec.id = e->client_id;
	e->is_running = false;
	answer(k, e->client, &rec, NULL, 0);
	if ((e->flags & CM_EXECF_LAST) != 0) {
		k->end_reason = CM_ENDED_TEMPORARY;
		cm_loop_stop(&k->loop);
	}
}

static void on_refused(struct cm_keeper *k)
{
	int slot = find_exec_by_id(k, k->msg.rec.id);
	struct cm_error why = CM_ERROR_INIT;

	if (slot < 0)
		return;
	cm_proto_error_of(&k->msg, &why);
	k->execs[slot].is_running = false;
	if (k->execs[slot].client >= 0 &&
	    cm_proto_send_error(k->clients[k->execs[slot].client].sock, CM_REC_REFUSED,
				k->execs[slot].client_id, &why) < 0)
		cm_keeper_client_drop(k, k->execs[slot].client);
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
	free_slot(k, slot);
}

static const struct {
	uint16_t type;
	void (*run)(struct cm_keeper *k);
} answers[] = {
	{ CM_REC_UP, on_up },	      { CM_REC_STARTED, on_started },
	{ CM_REC_END, on_end },	      { CM_REC_REFUSED, on_refused },
	{ CM_REC_FAILED, on_failed }, { CM_REC_SLOT_FREE, on_slot_free },
};

/* Init is part of the jail: what it says is checked, and what is malformed ends the session. */
void cm_keeper_answer(struct cm_keeper *k)
{
	struct cm_error err = CM_ERROR_INIT;
	int r;

	/* fails when it is gone, and then the end of file says so */
	(void)cm_outbox_flush(&k->outbox);
	if (cm_outbox_is_empty(&k->outbox))
		cm_keeper_clients_resume(k);
	r = cm_proto_recv(k->init_sock, &k->msg);
	if (r == -EAGAIN)
		return;
	if (r == 1) {
		for (size_t i = 0; i < CM_ARRAY_SIZE(answers); i++) {
			if (answers[i].type == k->msg.rec.type) {
				answers[i].run(k);
				break;
			}
		}
		cm_msg_clear(&k->msg);
		return;
	}
	if (k->state != CM_KS_STOPPING && k->end_reason == 0) {
		(void)cm_error_set(&err, CM_E_ISOLATION, 0,
				   "the session's init ended unexpectedly");
		k->end_reason = CM_ENDED_INIT_DIED;
		cm_keeper_fail(k, &err);
	}
	cm_loop_stop(&k->loop);
}
