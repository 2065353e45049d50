/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is at the other end of a Unix socket, for more than a message about it. A pid alone can be
 * another process's by the time that it is used; a pidfd stays the one process's.
 */
#ifndef CM_RUNTIME_BASE_PEER_H
#define CM_RUNTIME_BASE_PEER_H

#include <stdbool.h>
#include <sys/types.h>

struct cm_peer {
	uid_t uid;
	/* what is found out by this number holds if cm_peer_lives afterwards */
	pid_t pid;
	/* -1: none */
	int pidfd;
};

#define CM_PEER_INIT                                                                               \
	{                                                                                          \
		0, 0, -1                                                                           \
	}

/*
 * Who connected, or, for who connected, who listens. 0 or -errno; -ESRCH when that process is gone.
 * Before Linux 6.5 the kernel gives no more than a number: then the process is taken for the peer
 * when the other end is still open once its pidfd is held.
 */
int cm_peer_of(int sock, struct cm_peer *ret);
bool cm_peer_lives(const struct cm_peer *peer);
void cm_peer_close(struct cm_peer *peer);

#endif
