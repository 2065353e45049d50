/* SPDX-License-Identifier: Apache-2.0 */
/* Records with descriptors over SOCK_SEQPACKET. */
#include "runtime/base/sock.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/base/fd.h"

#define FDS_SPACE CMSG_SPACE(CM_SOCK_MAX_FDS * sizeof(int))
/* Room for credentials, which the kernel puts before the descriptors where SO_PASSCRED is set. */
#define RECV_SPACE (FDS_SPACE + CMSG_SPACE(sizeof(struct ucred)))

int cm_sock_send(int sock, const struct iovec *iov, size_t n_iov, const int *fds, size_t n_fds)
{
	union {
		struct cmsghdr align;
		char bytes[FDS_SPACE];
	} control = { .bytes = { 0 } };
	struct msghdr msg = { 0 };
	size_t len = 0;
	ssize_t n;

	for (size_t i = 0; i < n_iov; i++)
		len += iov[i].iov_len;
	/* an empty record reads as end of file at the other end */
	if (len == 0 || n_fds > CM_SOCK_MAX_FDS)
		return -EINVAL;
	msg.msg_iov = (struct iovec *)(uintptr_t)iov;
	msg.msg_iovlen = n_iov;
	if (n_fds > 0) {
		struct cmsghdr *c;

		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	do {
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

/* Take over every descriptor of msg; false when one had to be closed for want of room. */
static bool collect_fds(struct msghdr *msg, int fds[CM_SOCK_MAX_FDS], size_t *n_fds)
{
	bool has_room = true;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (*n_fds < CM_SOCK_MAX_FDS) {
				fds[(*n_fds)++] = fd;
			} else {
				cm_fd_close(&fd);
				has_room = false;
			}
		}
	}
	return has_room;
}

ssize_t cm_sock_recv(int sock, void *buf, size_t size, int fds[CM_SOCK_MAX_FDS], size_t *ret_n_fds)
{
	union {
		struct cmsghdr align;
		char bytes[RECV_SPACE];
	} control;
	struct iovec iov = { buf, size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t n_fds = 0;
	bool is_whole;
	ssize_t n;

	for (size_t i = 0; i < CM_SOCK_MAX_FDS; i++)
		fds[i] = -1;
	do {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	is_whole = collect_fds(&msg, fds, &n_fds);
	/* MSG_CTRUNC also when our own descriptor limit stopped the kernel half way */
	if (!is_whole || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
		cm_sock_close_fds(fds);
		return -EMSGSIZE;
	}
	/* a peer's empty record is taken as its end, so nothing that it carried may stay open */
	if (n == 0) {
		cm_sock_close_fds(fds);
		n_fds = 0;
	}
	*ret_n_fds = n_fds;
	return n;
}

void cm_sock_close_fds(int fds[CM_SOCK_MAX_FDS])
{
	for (size_t i = 0; i < CM_SOCK_MAX_FDS; i++)
		cm_fd_close(&fds[i]);
}
