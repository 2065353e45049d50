/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a Unix socket. */
#include "runtime/base/peer.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"

/* asm-generic/socket.h; Linux 6.5. A test gives a number that no kernel has. */
#ifndef CM_SO_PEERPIDFD
#define CM_SO_PEERPIDFD 77
#endif

static bool is_open(int sock)
{
	struct pollfd p = { .fd = sock, .events = 0 };

	return poll(&p, 1, 0) >= 0 && (p.revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
}

static int pidfd_of(int sock, pid_t pid)
{
	int pidfd = -1;
	socklen_t len = sizeof(pidfd);

	if (getsockopt(sock, SOL_SOCKET, CM_SO_PEERPIDFD, &pidfd, &len) == 0)
		return pidfd;
	if (errno != ENOPROTOOPT)
		return -errno;
	pidfd = cm_sys_pidfd_open(pid, 0);
	if (pidfd < 0)
		return -errno;
	if (!is_open(sock)) {
		cm_fd_close(&pidfd);
		return -ESRCH;
	}
	return pidfd;
}

int cm_peer_of(int sock, struct cm_peer *ret)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct cm_peer peer;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	/* of a pid namespace that is none of ours */
	if (cred.pid <= 0)
		return -ESRCH;
	peer.uid = cred.uid;
	peer.pid = cred.pid;
	peer.pidfd = pidfd_of(sock, cred.pid);
	if (peer.pidfd < 0)
		return peer.pidfd;
	if (!cm_peer_lives(&peer)) {
		cm_peer_close(&peer);
		return -ESRCH;
	}
	*ret = peer;
	return 0;
}

bool cm_peer_lives(const struct cm_peer *peer)
{
	struct pollfd p = { .fd = peer->pidfd, .events = POLLIN };

	return peer->pidfd >= 0 && poll(&p, 1, 0) == 0;
}

void cm_peer_close(struct cm_peer *peer)
{
	cm_fd_close(&peer->pidfd);
}
