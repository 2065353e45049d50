/* SPDX-License-Identifier: Apache-2.0 */
/* From a checked plan to a running init. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/keeper/init.h"
#include "isolation/keeper/keeper.h"
#include "isolation/mech/ns.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/store/keeper_lock.h"

static struct cm_mount_sources sources;

/* As seen from the host: whom the leaf groups' cgroup.procs must belong to. */
static uid_t init_kuid(const struct cm_plan *plan)
{
	const struct cm_plan_header *h = plan->header;

	return h->idmap == CM_IDMAP_SLOT ? h->uid_base + CM_ID_INIT : h->uid_base;
}

static int open_state(struct cm_keeper *k, struct cm_error *err)
{
	const char *dir = cm_plan_str(&k->plan, k->plan.header->state_dir);

	if (k->is_temporary)
		return CM_OK;
	k->state_dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (k->state_dir_fd < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot open '%s'", dir);
	return cm_store_keeper_lock(k->state_dir_fd, &k->lock_fd, err);
}

/* In the child: everything of the keeper's but what init needs is closed by its own stages. */
static _Noreturn void become_init(struct cm_keeper *k, int sock, int client_sock)
{
	static struct cm_init init;

	(void)close(client_sock);
	init.plan = &k->plan;
	init.sock = sock;
	init.sources = &sources;
	init.opens_sources = k->plan.header->idmap != CM_IDMAP_SLOT;
	for (size_t i = 0; i < CM_CG_N; i++)
		init.tasks_fd[i] = k->cgroup.tasks_fd[i];
	cm_init_main(&init);
}

static int clone_init(struct cm_keeper *k, int client_sock, struct cm_error *err)
{
	int cgroup_fd = k->cgroup.kind == CM_CGROUP_V2 ? k->cgroup.group_fd[0] : -1;
	struct cm_rec go = { .type = CM_REC_GO };
	int pair[2];
	pid_t pid;
	int r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a socket pair");
	pid = cm_ns_clone_init(&k->plan, cgroup_fd, &k->init_pidfd, err);
	if (pid == 0) {
		(void)close(pair[0]);
		become_init(k, pair[1], client_sock);
	}
	(void)close(pair[1]);
	k->init_sock = pair[0];
	if (pid < 0)
		return (int)pid;
	k->init_pid = pid;
	r = cm_ns_write_maps(&k->plan, pid, err);
	if (r < 0)
		return r;
	/* not before: /proc/PID/uid_map of a non-dumpable process belongs to root */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	r = cm_proto_send(k->init_sock, &go, NULL, NULL, 0);
	if (r < 0)
		return cm_error_set(err, CM_E_ISOLATION, -r, "init went away");
	return CM_OK;
}

static void on_init(struct cm_loop *loop, int fd, uint32_t events, void *data)
{
	(void)loop;
	(void)fd;
	(void)events;
	cm_keeper_answer(data);
}

int cm_keeper_start(struct cm_keeper *k, int client_sock, struct cm_error *err)
{
	int r;

	cm_mount_sources_init(&sources);
	r = open_state(k, err);
	/* with the lock held: a group of this name is a leftover of a keeper that was killed */
	if (r == CM_OK && !k->is_temporary)
		r = cm_cgroup_collect(&k->plan, err);
	if (r == CM_OK)
		r = cm_cgroup_make(&k->cgroup, &k->plan, init_kuid(&k->plan), err);
	/* root's host paths are out of reach for the jail's own root */
	if (r == CM_OK && k->plan.header->idmap == CM_IDMAP_SLOT)
		r = cm_mount_sources_open(&k->plan, &sources, err);
	if (r == CM_OK)
		r = clone_init(k, client_sock, err);
	cm_mount_sources_close(&sources);
	if (r == CM_OK)
		r = cm_keeper_client_add(k, client_sock, true, err);
	if (r == CM_OK)
		r = cm_loop_add(&k->loop, k->init_sock, EPOLLIN, on_init, k, err);
	return r;
}
