/* SPDX-License-Identifier: Apache-2.0 */
/* From a checked plan to a running init. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/keeper/handover.h"
#include "isolation/keeper/init.h"
#include "isolation/keeper/keeper.h"
#include "isolation/mech/ns.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/store/keeper_lock.h"

/* The triples of newuidmap's arguments: inside, outside, count. 0 where id is not mapped. */
static uid_t mapped(const char *numbers, uint32_t id)
{
	char *end = NULL;

	while (*numbers != '\0') {
		uint32_t inside = (uint32_t)strtoul(numbers, &end, 10);
		uint32_t outside = (uint32_t)strtoul(end, &end, 10);
		uint32_t count = (uint32_t)strtoul(end, &end, 10);

		if (id >= inside && id - inside < count)
			return outside + (id - inside);
		if (end == numbers)
			break;
		numbers = end + strspn(end, " ");
	}
	return 0;
}

/* As seen from the host: whom the leaf groups' cgroup.procs must belong to. */
static uid_t init_kuid(const struct cm_plan *plan)
{
	const struct cm_plan_header *h = plan->header;

	if (h->idmap == CM_IDMAP_SUBIDS)
		return mapped(cm_plan_str(plan, h->newuidmap_args), CM_ID_INIT);
	return h->idmap == CM_IDMAP_SLOT ? h->uid_base + CM_ID_INIT : h->uid_base;
}

static int open_state(struct cm_keeper *k, struct cm_error *err)
{
	const char *dir = cm_plan_str(&k->plan, k->plan.header->state_dir);

	if (k->is_temporary)
		return CM_OK;
	k->state_dir_fd = cm_open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (k->state_dir_fd < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot open '%s'", dir);
	k->events.dir_fd = k->state_dir_fd;
	k->events.session = cm_plan_str(&k->plan, k->plan.header->session_id);
	return cm_store_keeper_lock(k->state_dir_fd, &k->lock_fd, err);
}

static int clone_init(struct cm_keeper *k, bool has_own_network, int cgroup_fd,
		      struct cm_error *err)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a socket pair");
	pid = cm_ns_clone_init(has_own_network, cgroup_fd, &k->init_pidfd, err);
	if (pid == 0) {
		/* its own stages close what else it has of the keeper's */
		(void)close(pair[0]);
		(void)close(k->starter);
		cm_init_main(pair[1], has_own_network);
	}
	(void)close(pair[1]);
	k->init_sock = pair[0];
	if (pid < 0)
		return (int)pid;
	k->init_pid = pid;
	return CM_OK;
}

int cm_keeper_clone_ahead(struct cm_keeper *k, bool has_own_network, struct cm_error *err)
{
	if (k->is_ahead)
		return cm_error_set(err, CM_E_PROTOCOL, 0, "asked twice to begin");
	k->is_ahead = true;
	k->has_own_network = has_own_network;
	return clone_init(k, has_own_network, -1, err);
}

static int make_init(struct cm_keeper *k, const struct cm_plan *plan, struct cm_error *err)
{
	bool has_own_network = (plan->header->flags & CM_PLANF_NETNS) != 0;
	int cgroup_fd = k->cgroup.kind == CM_CGROUP_V2 ? k->cgroup.group_fd[0] : -1;

	if (!k->is_ahead)
		return clone_init(k, has_own_network, cgroup_fd, err);
	/* whoever started us ahead of the plan must have known these */
	if (has_own_network != k->has_own_network || cgroup_fd >= 0 || !k->is_temporary)
		return cm_error_set(err, CM_E_PROTOCOL, 0, "the plan is not what was announced");
	return CM_OK;
}

static int open_sources(struct cm_keeper *k, const struct cm_plan *plan, struct cm_error *err)
{
	return plan->header->idmap == CM_IDMAP_SLOT ? cm_mount_sources_open(plan, &k->sources, err)
						    : CM_OK;
}

static int send_sources(struct cm_keeper *k, struct cm_error *err)
{
	int r = open_sources(k, &k->plan, err);

	if (r == CM_OK && k->plan.header->idmap == CM_IDMAP_SLOT)
		r = cm_handover_send_sources(k->init_sock, &k->sources, k->plan.header->n_ops, err);
	cm_mount_sources_close(&k->sources);
	return r;
}

static int make_group_and_maps(struct cm_keeper *k, const struct cm_plan *plan,
			       struct cm_error *err)
{
	int r = cm_cgroup_make(&k->cgroup, plan, init_kuid(plan), err);

	if (r == CM_OK)
		r = make_init(k, plan, err);
	if (r == CM_OK)
		r = cm_ns_write_maps(plan, k->init_pid, err);
	/* not before: /proc/PID/uid_map of a non-dumpable process belongs to root */
	if (r == CM_OK)
		(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	return r;
}

int cm_keeper_prepare(struct cm_keeper *k, struct cm_error *err)
{
	const struct cm_plan *plan = &k->announced.plan;
	int r;

	if (!k->is_ahead)
		return cm_error_set(err, CM_E_PROTOCOL, 0, "nobody waits for a part of the plan");
	k->is_temporary = (plan->header->flags & CM_PLANF_TEMPORARY) != 0;
	r = make_group_and_maps(k, plan, err);
	if (r == CM_OK)
		r = cm_handover_prepare(k->init_sock, &k->announced, err);
	return r < 0 ? r : open_sources(k, plan, err);
}

static void on_init(struct cm_loop *loop, int fd, uint32_t events, void *data)
{
	(void)loop;
	(void)fd;
	(void)events;
	cm_keeper_answer(data);
}

/* What it said before it ended says more than that it did. */
static int why_init_ended(struct cm_keeper *k, struct cm_error *err)
{
	int r = err ? err->code : CM_E_ISOLATION;

	if (cm_proto_recv(k->init_sock, &k->msg) == 1 && k->msg.rec.type == CM_REC_FAILED) {
		cm_proto_error_of(&k->msg, err);
		r = err ? err->code : r;
	}
	cm_msg_clear(&k->msg);
	return r;
}

static int go(struct cm_keeper *k, int plan_fd, struct cm_error *err)
{
	int r = cm_handover_go(k->init_sock, plan_fd, &k->cgroup, err);

	/* whoever is woken stays on the processor of who woke it, whichever others are idle; and of what
	 * is left to do here nothing is as urgent as init's going on */
	(void)sched_yield();
	return r < 0 ? why_init_ended(k, err) : send_sources(k, err);
}

int cm_keeper_start(struct cm_keeper *k, int plan_fd, struct cm_error *err)
{
	int r = open_state(k, err);

	if (r == CM_OK)
		r = cm_handover_check_announced(&k->announced, &k->plan, err);
	/* with the lock held: a group of this name is a leftover of a keeper that was killed */
	if (r == CM_OK && !k->is_temporary)
		r = cm_cgroup_collect(&k->plan, err);
	if (r == CM_OK && !k->announced.is_there)
		r = make_group_and_maps(k, &k->plan, err);
	if (r == CM_OK)
		r = go(k, plan_fd, err);
	if (r == CM_OK)
		r = cm_keeper_client_add(k, k->starter, true, err);
	if (r == CM_OK)
		r = cm_loop_add(&k->loop, k->init_sock, EPOLLIN, on_init, k, err);
	return r;
}
