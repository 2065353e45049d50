/* SPDX-License-Identifier: Apache-2.0 */
/* Records over SOCK_SEQPACKET: sending, receiving, and the checks on what came. */
#include "isolation/keeper/proto.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"
#include "runtime/base/sock.h"

int cm_proto_send(int sock, struct cm_rec *rec, const void *blob, const int *fds,
		  unsigned int n_fds)
{
	CM_AUTO_FD int memfd = -1;
	struct iovec iov[2] = { { rec, sizeof(*rec) }, { NULL, 0 } };
	int all[CM_SOCK_MAX_FDS] = { 0 };
	size_t n_iov = 1;

	if (n_fds + (rec->len > CM_PROTO_INLINE_MAX) > CM_SOCK_MAX_FDS ||
	    rec->len > CM_PROTO_BLOB_MAX)
		return -E2BIG;
	if (n_fds > 0)
		memcpy(all, fds, n_fds * sizeof(*fds));
	rec->flags &= (uint16_t)~CM_RECF_MEMFD;
	if (rec->len > CM_PROTO_INLINE_MAX) {
		memfd = cm_memfd_sealed("casemate-blob", blob, rec->len);
		if (memfd < 0)
			return memfd;
		rec->flags |= CM_RECF_MEMFD;
		all[n_fds++] = memfd;
	} else if (rec->len > 0) {
		iov[1].iov_base = (void *)(uintptr_t)blob;
		iov[1].iov_len = rec->len;
		n_iov = 2;
	}
	return cm_sock_send(sock, iov, n_iov, all, n_fds);
}

int cm_proto_send_error(int sock, uint16_t type, uint64_t id, const struct cm_error *why)
{
	struct cm_rec rec = { .type = type, .id = id, .len = sizeof(*why) };

	return cm_proto_send(sock, &rec, why, NULL, 0);
}

/* The blob of most records: nothing is allocated for it. */
static char no_blob[1];

/*
 * One block for a blob, and after that for the next: each allocation of a page is a mapping and two faults,
 * and the first of a process some more. Whoever takes it has it alone, also of several threads.
 */
#define SPARE_SIZE 8192U
static _Alignas(max_align_t) char first_block[SPARE_SIZE];
static _Atomic(char *) spare = first_block;

static char *new_blob(size_t size)
{
	char *blob;

	if (size > SPARE_SIZE)
		return cm_malloc(size);
	blob = atomic_exchange(&spare, NULL);
	return blob ? blob : cm_malloc(SPARE_SIZE);
}

/* Wiped: environments are in them, and secrets in those. */
static void free_blob(char *blob, uint32_t len)
{
	if (!blob || blob == no_blob)
		return;
	explicit_bzero(blob, len);
	if (len < SPARE_SIZE)
		blob = atomic_exchange(&spare, blob);
	if (blob != first_block)
		free(blob);
}

void cm_msg_init(struct cm_msg *msg)
{
	memset(msg, 0, sizeof(*msg));
	for (size_t i = 0; i < CM_ARRAY_SIZE(msg->fds); i++)
		msg->fds[i] = -1;
}

void cm_msg_clear(struct cm_msg *msg)
{
	cm_sock_close_fds(msg->fds);
	free_blob(msg->blob, msg->rec.len);
	cm_msg_init(msg);
}

/* Seals first: after this check the content cannot change under the reader. */
static int read_memfd(int fd, size_t len, char *to)
{
	const int need = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	size_t done = 0;

	if (seals < 0 || (seals & need) != need || fstat(fd, &st) < 0 ||
	    (uint64_t)st.st_size != len)
		return -EBADMSG;
	while (done < len) {
		ssize_t n = pread(fd, to + done, len - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EBADMSG;
		done += (size_t)n;
	}
	return 0;
}

static int take_blob(struct cm_msg *msg, const char *inline_blob, size_t inline_len)
{
	if (msg->rec.len > CM_PROTO_BLOB_MAX)
		return -EBADMSG;
	if (msg->rec.len == 0 && (msg->rec.flags & CM_RECF_MEMFD) == 0) {
		msg->blob = no_blob;
		return inline_len == 0 ? 0 : -EBADMSG;
	}
	msg->blob = new_blob((size_t)msg->rec.len + 1);
	if (!msg->blob)
		return -ENOMEM;
	msg->blob[msg->rec.len] = '\0';
	if ((msg->rec.flags & CM_RECF_MEMFD) != 0) {
		CM_AUTO_FD int memfd = -1;

		if (msg->n_fds == 0 || inline_len != 0)
			return -EBADMSG;
		msg->n_fds--;
		memfd = cm_fd_take(&msg->fds[msg->n_fds]);
		return read_memfd(memfd, msg->rec.len, msg->blob);
	}
	if (msg->rec.len != inline_len)
		return -EBADMSG;
	memcpy(msg->blob, inline_blob, inline_len);
	return 0;
}

#define BUFFER_SIZE (sizeof(struct cm_rec) + CM_PROTO_INLINE_MAX)

static int receive(int sock, char *buf, struct cm_msg *msg)
{
	size_t n_fds = 0;
	ssize_t n;
	int r;

	cm_msg_clear(msg);
	n = cm_sock_recv(sock, buf, BUFFER_SIZE, msg->fds, &n_fds);
	/* the peer closed with requests of ours unread: told once, ahead of what it had sent */
	if (n == -ECONNRESET)
		n = cm_sock_recv(sock, buf, BUFFER_SIZE, msg->fds, &n_fds);
	if (n == 0)
		return 0;
	if (n < 0)
		return n == -EMSGSIZE ? -EBADMSG : (int)n;
	msg->n_fds = (unsigned int)n_fds;
	if ((size_t)n < sizeof(msg->rec)) {
		cm_msg_clear(msg);
		return -EBADMSG;
	}
	memcpy(&msg->rec, buf, sizeof(msg->rec));
	r = take_blob(msg, buf + sizeof(msg->rec), (size_t)n - sizeof(msg->rec));
	if (r < 0) {
		cm_msg_clear(msg);
		return r;
	}
	return 1;
}

int cm_proto_recv(int sock, struct cm_msg *msg)
{
	/* static: pid 1 inside has a small stack. A second thread that comes meanwhile, of a program that
	 * uses this as a library, gets one of its own. */
	static _Alignas(struct cm_rec) char shared[BUFFER_SIZE];
	static atomic_bool is_taken;
	bool is_shared = !atomic_exchange(&is_taken, true);
	char *buf = is_shared ? shared : cm_malloc(BUFFER_SIZE);
	int r = buf ? receive(sock, buf, msg) : -ENOMEM;

	if (is_shared)
		atomic_store(&is_taken, false);
	else
		free(buf);
	return r;
}

void cm_proto_error_of(const struct cm_msg *msg, struct cm_error *ret)
{
	if (msg->rec.len != sizeof(*ret)) {
		cm_error_set(ret, CM_E_PROTOCOL, 0, "malformed report from the keeper");
		return;
	}
	memcpy(ret, msg->blob, sizeof(*ret));
	ret->msg[sizeof(ret->msg) - 1] = '\0';
	ret->hint[sizeof(ret->hint) - 1] = '\0';
	if (ret->code >= 0 || ret->code < CM_E_MIN)
		ret->code = CM_E_PROTOCOL;
}

const char *cm_end_kind_name(uint32_t kind)
{
	switch ((enum cm_end_kind)kind) {
	case CM_END_EXIT:
		return "exit";
	case CM_END_SIGNAL:
		return "signal";
	case CM_END_TIMEOUT:
		return "timeout";
	case CM_END_MEMORY:
		return "memory-limit";
	case CM_END_KILLED:
		return "killed";
	case CM_END_NOT_EXECUTED:
		return "not-executed";
	}
	return "unknown";
}

const char *cm_exec_step_name(enum cm_exec_step step)
{
	switch (step) {
	case CM_EXEC_STEP_SESSION:
		return "make a session";
	case CM_EXEC_STEP_STDIO:
		return "set up standard input and output";
	case CM_EXEC_STEP_GROUP:
		return "join its control group";
	case CM_EXEC_STEP_MARK:
		return "be marked";
	case CM_EXEC_STEP_CWD:
		return "enter the working directory";
	case CM_EXEC_STEP_IDS:
		return "change to its ids";
	case CM_EXEC_STEP_CAPS:
		return "drop capabilities";
	case CM_EXEC_STEP_SECCOMP:
		return "load the system-call filter";
	case CM_EXEC_STEP_EXECVE:
		return "be executed";
	}
	return "start";
}
