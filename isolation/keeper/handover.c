/* SPDX-License-Identifier: Apache-2.0 */
/* What the keeper hands to init. */
#include "isolation/keeper/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/keeper/proto.h"
#include "runtime/base/fd.h"

#define PLAN_MAX (8L * 1024 * 1024)
/* below SCM_MAX_FD (253) of the kernel */
#define FDS_A_MESSAGE 200

int cm_handover_map_plan(int plan_fd, struct cm_plan *ret, struct cm_error *err)
{
	const int need = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	struct stat st;
	void *memory;
	int seals = fcntl(plan_fd, F_GET_SEALS);

	if (seals < 0 || (seals & need) != need)
		return cm_error_set(err, CM_E_PROTOCOL, 0, "the plan is not sealed");
	if (fstat(plan_fd, &st) < 0 || st.st_size <= 0 || st.st_size > PLAN_MAX)
		return cm_error_set(err, CM_E_PROTOCOL, 0, "the plan has no usable size");
	memory = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, plan_fd, 0);
	if (memory == MAP_FAILED)
		return cm_error_set(err, CM_E_SYS, errno, "cannot map the plan");
	return cm_plan_check(memory, (size_t)st.st_size, ret, err);
}

int cm_handover_go(int sock, int plan_fd, const struct cm_cgroup *cg, struct cm_error *err)
{
	struct cm_rec rec = { .type = CM_REC_GO };
	int fds[1 + CM_CG_N] = { plan_fd };
	unsigned int n = 1;
	int r;

	for (unsigned int i = 0; i < CM_CG_N; i++) {
		if (cg->tasks_fd[i] < 0)
			continue;
		rec.body.go.tasks |= 1U << i;
		fds[n++] = cg->tasks_fd[i];
	}
	r = cm_proto_send(sock, &rec, NULL, fds, n);
	if (r < 0)
		return cm_error_set(err, CM_E_ISOLATION, -r, "init went away");
	return CM_OK;
}

int cm_handover_announced(struct cm_announced *announced, struct cm_msg *msg, struct cm_error *err)
{
	int r;

	if (announced->is_there)
		return cm_error_set(err, CM_E_PROTOCOL, 0, "a plan was announced twice");
	announced->msg = *msg;
	cm_msg_init(msg);
	r = cm_plan_check(announced->msg.blob, announced->msg.rec.len, &announced->plan, err);
	announced->is_there = r == CM_OK;
	return r;
}

int cm_handover_check_announced(const struct cm_announced *announced, const struct cm_plan *plan,
				struct cm_error *err)
{
	if (announced->is_there && !cm_plan_continues(plan, &announced->plan))
		return cm_error_set(err, CM_E_PROTOCOL, 0, "the plan is not what was announced");
	return CM_OK;
}

int cm_handover_prepare(int sock, const struct cm_announced *announced, struct cm_error *err)
{
	struct cm_rec rec = { .type = CM_REC_PREPARE, .len = announced->msg.rec.len };
	int r = cm_proto_send(sock, &rec, announced->msg.blob, NULL, 0);

	return r < 0 ? cm_error_set(err, CM_E_ISOLATION, -r, "init went away") : CM_OK;
}

static void take_tasks(struct cm_msg *msg, int tasks_fd[CM_CG_N])
{
	unsigned int next = 1;

	for (unsigned int i = 0; i < CM_CG_N; i++) {
		tasks_fd[i] = -1;
		if ((msg->rec.body.go.tasks & 1U << i) != 0 && next < msg->n_fds)
			tasks_fd[i] = cm_fd_take(&msg->fds[next++]);
	}
}

int cm_handover_wait(int sock,
		     int (*prepare)(const struct cm_plan *plan, void *data, struct cm_error *err),
		     void *data, struct cm_plan *ret_plan, int tasks_fd[CM_CG_N],
		     struct cm_error *err)
{
	struct cm_announced announced = { .is_there = false };
	struct cm_msg msg;
	int r;
	int r2 = CM_OK;

	cm_msg_init(&msg);
	cm_msg_init(&announced.msg);
	r = cm_proto_recv(sock, &msg);
	if (r == 1 && msg.rec.type == CM_REC_PREPARE && msg.blob) {
		r2 = cm_handover_announced(&announced, &msg, err);
		if (r2 == CM_OK)
			r2 = prepare(&announced.plan, data, err);
		r = r2 < 0 ? r2 : cm_proto_recv(sock, &msg);
	}
	if (r2 == CM_OK && (r != 1 || msg.rec.type != CM_REC_GO || msg.n_fds == 0))
		r2 = cm_error_set(err, CM_E_ISOLATION, r < 0 ? -r : 0,
				  "the keeper went away before the jail was made");
	if (r2 == CM_OK) {
		take_tasks(&msg, tasks_fd);
		r2 = cm_handover_map_plan(msg.fds[0], ret_plan, err);
	}
	if (r2 == CM_OK)
		r2 = cm_handover_check_announced(&announced, ret_plan, err);
	cm_msg_clear(&msg);
	cm_msg_clear(&announced.msg);
	return r2;
}

/* A chunk: the numbers of the steps, and their descriptors beside it. */
static int send_chunk(int sock, const uint16_t *ops, const int *fds, size_t n)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(FDS_A_MESSAGE * sizeof(int))];
	} control;
	struct iovec iov = { (void *)(uintptr_t)ops, n * sizeof(*ops) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *cmsg;

	memset(&control, 0, sizeof(control));
	cmsg = CMSG_FIRSTHDR(&msg);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(cmsg), fds, n * sizeof(int));
	return sendmsg(sock, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int cm_handover_send_sources(int sock, const struct cm_mount_sources *sources, size_t n_ops,
			     struct cm_error *err)
{
	uint16_t ops[FDS_A_MESSAGE];
	int fds[FDS_A_MESSAGE];
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i <= n_ops && r == 0; i++) {
		if (n > 0 && (i == n_ops || n == FDS_A_MESSAGE)) {
			r = send_chunk(sock, ops, fds, n);
			n = 0;
		}
		if (i == n_ops || sources->fd[i] < 0)
			continue;
		ops[n] = (uint16_t)i;
		fds[n++] = sources->fd[i];
	}
	/* a word without a descriptor: that was all */
	ops[0] = UINT16_MAX;
	if (r == 0 && send(sock, ops, sizeof(*ops), MSG_NOSIGNAL) < 0)
		r = -errno;
	if (r < 0)
		return cm_error_set(err, CM_E_ISOLATION, -r, "cannot hand over the mounts");
	return CM_OK;
}

/* The descriptors of one message, by the numbers in it. */
static void take_chunk(struct msghdr *msg, const uint16_t *ops, size_t n_words,
		       struct cm_mount_sources *sources, size_t n_ops)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	size_t n_fds = 0;

	if (cmsg && cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS)
		n_fds = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	for (size_t i = 0; i < n_fds; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(int), sizeof(fd));
		if (i < n_words && ops[i] < n_ops && sources->fd[ops[i]] < 0)
			sources->fd[ops[i]] = fd;
		else
			(void)close(fd);
	}
}

int cm_handover_recv_sources(int sock, struct cm_mount_sources *sources, size_t n_ops,
			     struct cm_error *err)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(FDS_A_MESSAGE * sizeof(int))];
	} control;
	uint16_t ops[FDS_A_MESSAGE];

	for (;;) {
		struct iovec iov = { ops, sizeof(ops) };
		struct msghdr msg = { .msg_iov = &iov,
				      .msg_iovlen = 1,
				      .msg_control = &control,
				      .msg_controllen = sizeof(control) };
		ssize_t n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
			return cm_error_set(err, CM_E_ISOLATION, n < 0 ? errno : 0,
					    "the keeper went away before the jail was made");
		if (msg.msg_controllen == 0 && ops[0] == UINT16_MAX)
			return CM_OK;
		take_chunk(&msg, ops, (size_t)n / sizeof(*ops), sources, n_ops);
	}
}
