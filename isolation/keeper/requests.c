/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of clients, by a table gated by state. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "isolation/keeper/jobs.h"
#include "isolation/keeper/keeper.h"
#include "isolation/mech/seccomp.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/store/keeper_lock.h"

#define STOP_GRACE_MS 2000
/* after this an init that does not answer is killed anyway */
#define STOP_DEADLINE_MS 3000

static void on_room(void *data)
{
	cm_keeper_clients_resume(data);
}

int cm_keeper_to_init(struct cm_keeper *k, struct cm_rec *rec, const void *blob, const int *fds,
		      unsigned int n_fds)
{
	struct cm_error err = CM_ERROR_INIT;
	int r;

	/* from the first record on; before that the plan and the sources were handed over */
	if (!k->outbox.loop) {
		if (cm_outbox_init(&k->outbox, &k->loop, k->init_sock, &err) < 0)
			return -err.sys_errno;
		k->outbox.emptied = on_room;
		k->outbox.data = k;
	}
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

void cm_keeper_fill_up(const struct cm_keeper *k, struct cm_rec *rec)
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
	cm_keeper_refuse_as(k, client, k->msg.rec.id, &err);
}

static void op_hello(struct cm_keeper *k, int client)
{
	const char *id = cm_plan_str(&k->plan, k->plan.header->session_id);
	struct cm_keeper_client *c = &k->clients[client];

	/* the socket's name is a hash: the whole id decides */
	if (strcmp(k->msg.blob, id) != 0) {
		cm_keeper_refuse(k, client, k->msg.rec.id, CM_E_NOT_FOUND,
				 "another session listens here");
		return;
	}
	cm_keeper_client_greeted(k, client);
	c->is_foreign = k->msg.rec.body.hello.version != CM_PROTO_VERSION;
	if (c->is_foreign) {
		refuse_version(k, client, id);
		return;
	}
	c->is_greeting_due = true;
}

static void op_info(struct cm_keeper *k, int client)
{
	struct cm_rec rec;

	cm_keeper_fill_up(k, &rec);
	rec.type = CM_REC_INFO;
	rec.id = k->msg.rec.id;
	cm_keeper_tell(k, client, &rec, NULL, NULL, 0);
}

static void op_stop(struct cm_keeper *k, int client)
{
	k->clients[client].wants_stopped = true;
	k->clients[client].stop_id = k->msg.rec.id;
	cm_keeper_stop(k, CM_ENDED_STOPPED);
}

static void op_forward(struct cm_keeper *k, int client)
{
	struct cm_rec rec = k->msg.rec;
	int slot = cm_keeper_exec_of(k, client, rec.id);
	int r;

	/* its end may be on the way already */
	if (slot < 0)
		return;
	rec.id = k->execs[slot].id;
	rec.len = 0;
	r = cm_keeper_to_init(k, &rec, NULL, NULL, 0);
	if (r < 0)
		give_up(k, r);
}

static void op_close_input(struct cm_keeper *k, int client)
{
	struct cm_rec rec = { .type = CM_REC_CLOSED, .id = k->msg.rec.id };
	int slot = cm_keeper_exec_by_id(k, k->msg.rec.body.attach.exec_id);

	if (slot < 0) {
		cm_keeper_refuse(k, client, rec.id, CM_E_NOT_FOUND, "the command does not run");
		return;
	}
	if ((k->execs[slot].flags & CM_EXECF_INPUT) == 0 || !k->execs[slot].job) {
		cm_keeper_refuse(k, client, rec.id, CM_E_UNSUPPORTED,
				 "the command was started without an input that can be closed");
		return;
	}
	cm_job_close_input(k->execs[slot].job);
	cm_keeper_tell(k, client, &rec, NULL, NULL, 0);
}

static uint64_t enforced(const struct cm_keeper *k, uint32_t bit, uint64_t limit)
{
	return (k->cgroup.enforced & bit) != 0 ? limit : CM_USAGE_UNKNOWN;
}

static void op_usage(struct cm_keeper *k, int client)
{
	const struct cm_plan_limits *limits = &k->plan.header->limits;
	struct cm_rec rec = { .type = CM_REC_USED, .id = k->msg.rec.id };
	struct cm_cgroup_now now;

	_Static_assert(CM_CGROUP_UNKNOWN == CM_USAGE_UNKNOWN, "one word for what is not known");
	cm_cgroup_now(&k->cgroup, &now);
	rec.body.usage = (struct cm_rec_usage){
		.memory_bytes = now.memory_bytes,
		.memory_peak_bytes = now.memory_peak_bytes,
		.cpu_us = now.cpu_us,
		.n_tasks = now.n_tasks,
		.memory_max_bytes = enforced(k, CM_CG_MEMORY, limits->memory_bytes),
		.cpu_max_milli = enforced(k, CM_CG_CPU, limits->cpu_milli),
		.tasks_max = enforced(k, CM_CG_PIDS, limits->pids),
	};
	cm_keeper_tell(k, client, &rec, NULL, NULL, 0);
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
	{ CM_REC_EXEC, CM_KS_STARTING | CM_KS_UP, false, false, CM_PROTO_BLOB_MAX, cm_keeper_exec },
	{ CM_REC_LIST, CM_KS_UP | CM_KS_STOPPING, false, false, 0, cm_keeper_list },
	{ CM_REC_ATTACH, CM_KS_UP | CM_KS_STOPPING, false, false, 0, cm_keeper_attach },
	{ CM_REC_CLOSE_INPUT, CM_KS_UP | CM_KS_STOPPING, false, false, 0, op_close_input },
	{ CM_REC_USAGE, CM_KS_UP | CM_KS_STOPPING, false, false, 0, op_usage },
	{ CM_REC_SIGNAL, CM_KS_UP | CM_KS_STOPPING, false, false, 0, op_forward },
	{ CM_REC_KILL, CM_KS_UP | CM_KS_STOPPING, false, true, 0, op_forward },
};

/* Who would start a command, and finds the session ending, starts it anew when it is gone. */
static void refuse_request(struct cm_keeper *k, int client)
{
	struct cm_error err = CM_ERROR_INIT;

	if (k->state == CM_KS_STOPPING &&
	    (k->msg.rec.type == CM_REC_HELLO || k->msg.rec.type == CM_REC_EXEC)) {
		(void)cm_error_set(&err, CM_E_NOT_FOUND, 0, "the session is stopping");
		cm_error_hint(&err, "try again: the next command starts it");
	} else {
		(void)cm_error_set(&err, CM_E_PROTOCOL, 0,
				   "a request that is unknown, or not possible now");
	}
	cm_keeper_refuse_as(k, client, k->msg.rec.id, &err);
}

static bool is_allowed(const struct cm_keeper *k, const struct cm_keeper_client *c, size_t i)
{
	return (requests[i].allowed_in & k->state) != 0 && k->msg.rec.len <= requests[i].max_len &&
	       (c->has_said_hello || requests[i].before_hello) &&
	       (!c->is_foreign || requests[i].is_frozen);
}

static bool has_gone(int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0;
}

/* Whoever gave up waiting for a command has it not begun then: he may have asked for it anew. */
static bool is_in_vain(const struct cm_keeper *k, const struct cm_keeper_client *c)
{
	return k->msg.rec.type == CM_REC_EXEC && has_gone(c->sock);
}

static void take_request(struct cm_keeper *k, int client)
{
	struct cm_keeper_client *c = &k->clients[client];
	int r = cm_proto_recv(c->sock, &k->msg);

	if (r <= 0 || is_in_vain(k, c)) {
		cm_msg_clear(&k->msg);
		if (r != -EAGAIN)
			cm_keeper_client_drop(k, client);
		return;
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(requests); i++) {
		if (requests[i].type != k->msg.rec.type)
			continue;
		if (!is_allowed(k, c, i))
			break;
		requests[i].run(k, client);
		cm_msg_clear(&k->msg);
		if (!cm_outbox_is_empty(&k->outbox))
			cm_keeper_client_pause(k, client);
		return;
	}
	refuse_request(k, client);
	cm_msg_clear(&k->msg);
}

void cm_keeper_request(struct cm_keeper *k, int client)
{
	const struct cm_keeper_client *c = &k->clients[client];

	take_request(k, client);
	/* a command comes together with HELLO, and is on its way before that is answered */
	if (c->sock >= 0 && c->is_greeting_due && !c->is_paused)
		take_request(k, client);
	cm_keeper_greet(k, client);
}

static void on_stop_deadline(struct cm_loop *loop, int timer, void *data)
{
	(void)timer;
	(void)data;
	cm_loop_stop(loop);
}

/* Init ends when nothing is left that could be told to; what lingers is only known there. */
void cm_keeper_stop(struct cm_keeper *k, uint32_t reason)
{
	struct cm_rec rec = { .type = CM_REC_STOP };

	if (k->state == CM_KS_STOPPING)
		return;
	k->end_reason = reason;
	rec.body.kill.grace_ms = STOP_GRACE_MS;
	if (k->state != CM_KS_UP || cm_keeper_to_init(k, &rec, NULL, NULL, 0) < 0 ||
	    cm_loop_timer_add(&k->loop, cm_clock_mono_ms() + STOP_DEADLINE_MS, on_stop_deadline,
			      k) < 0) {
		cm_loop_stop(&k->loop);
		return;
	}
	k->state = CM_KS_STOPPING;
}
