/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SOCK_SEQPACKET records with descriptors. All descriptors received are close-on-exec.
 */
#ifndef CM_RUNTIME_BASE_SOCK_H
#define CM_RUNTIME_BASE_SOCK_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#define CM_SOCK_MAX_FDS 8

/* Send one record made of iov, with n_fds descriptors. 0 or -errno (-EAGAIN when non-blocking). */
int cm_sock_send(int sock, const struct iovec *iov, size_t n_iov, const int *fds, size_t n_fds);
/*
 * Receive one record into buf. Its length, 0 at end of file, or -errno; -EMSGSIZE when it was
 * longer than size or carried more than CM_SOCK_MAX_FDS descriptors (then none is kept). fds
 * receives what came; unused entries are -1.
 */
ssize_t cm_sock_recv(int sock, void *buf, size_t size, int fds[CM_SOCK_MAX_FDS], size_t *ret_n_fds);
void cm_sock_close_fds(int fds[CM_SOCK_MAX_FDS]);

#endif
