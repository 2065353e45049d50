/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stopping a session that runs: its keeper is asked to end, and one that neither answers nor ends
 * (stopped, or stuck) is killed.
 *
 * Nothing is killed by a number that was written down. The keeper is who listens at the session's
 * socket while the session's keeper.lock is held, known by a pidfd from then on; the session's
 * client lock is held, so that nobody starts it meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "providers/local/local_internal.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"
#include "runtime/base/peer.h"

/* the kernel has a jail to bury, which may have much memory */
#define GONE_MS 10000
#define POLL_NS 2000000L
/* init, and for a moment newuidmap or newgidmap */
#define MAX_CHILDREN 4

/* Never waits. CM_E_DENIED when who listens is another user's. */
static int find_keeper(const struct cm_store_session *s, struct cm_peer *ret, struct cm_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	CM_AUTO_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct cm_peer peer = CM_PEER_INIT;
	int r;

	if (fd < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a socket");
	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s", s->socket_path) >=
	    sizeof(address.sun_path))
		return cm_error_set(err, CM_E_SYS, ENAMETOOLONG, "cannot connect to '%s'",
				    s->socket_path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return cm_error_set(err, errno == EAGAIN ? CM_E_BUSY : CM_E_NOT_FOUND, errno,
				    "session '%s' does not answer", s->record.id);
	r = cm_peer_of(fd, &peer);
	if (r < 0)
		return cm_error_set(err, CM_E_NOT_FOUND, -r, "session '%s' does not answer",
				    s->record.id);
	if (peer.uid != geteuid()) {
		cm_peer_close(&peer);
		return cm_error_set(err, CM_E_DENIED, 0,
				    "the socket of session '%s' belongs to another user",
				    s->record.id);
	}
	*ret = peer;
	return CM_OK;
}

/*
 * Init among them. It dies with the keeper, by the kernel, but a moment later; and a pid 1 has ended
 * when all in its namespace has.
 */
static size_t hold_children(const struct cm_peer *keeper, int pidfds[MAX_CHILDREN])
{
	char path[64];
	char text[256];
	char *p = text;
	size_t n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)keeper->pid,
		       (int)keeper->pid);
	if (cm_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	while (n < MAX_CHILDREN) {
		char *end = NULL;
		long pid = strtol(p, &end, 10);

		if (end == p)
			break;
		pidfds[n] = cm_sys_pidfd_open((pid_t)pid, 0);
		if (pidfds[n] >= 0)
			n++;
		p = end;
	}
	return n;
}

static bool wait_gone(int pidfd, int64_t deadline_ms)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int64_t left;
	int r;

	do {
		left = deadline_ms - cm_clock_mono_ms();
		r = poll(&p, 1, left > 0 ? (int)left : 0);
	} while (r < 0 && errno == EINTR);
	return r > 0;
}

static bool wait_unlocked(const struct cm_store_session *s, int64_t deadline_ms)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };

	while (cm_store_keeper_alive(s)) {
		if (cm_clock_mono_ms() >= deadline_ms)
			return false;
		(void)nanosleep(&pause, NULL);
	}
	return true;
}

static int kill_and_wait(const struct cm_store_session *s, const struct cm_peer *keeper)
{
	int64_t deadline = cm_clock_mono_ms() + GONE_MS;
	int children[MAX_CHILDREN];
	size_t n = hold_children(keeper, children);
	/* its children, and not those of who has its number now */
	bool is_told =
		cm_peer_lives(keeper) && cm_sys_pidfd_send_signal(keeper->pidfd, SIGKILL) == 0;
	bool is_gone;

	/* also where the keeper sleeps in the kernel for something that only they can let go of */
	for (size_t i = 0; i < n && is_told; i++)
		(void)cm_sys_pidfd_send_signal(children[i], SIGKILL);
	is_gone = is_told && wait_gone(keeper->pidfd, deadline);
	for (size_t i = 0; i < n; i++) {
		is_gone = is_gone && wait_gone(children[i], deadline);
		cm_fd_close(&children[i]);
	}
	return is_gone && wait_unlocked(s, deadline) ? CM_OK : CM_E_TIMEOUT;
}

static int kill_keeper(const struct cm_store_session *s, const struct cm_peer *keeper,
		       struct cm_error *err)
{
	int r = kill_and_wait(s, keeper);

	if (r < 0) {
		cm_error_set(err, r, 0, "session '%s' does not stop", s->record.id);
		cm_error_hint(err,
			      "its keeper cannot be found or killed; look for 'casemate-keeper' "
			      "in the process list");
		return r;
	}
	/* where it made none, or they went with it, there is nothing to find */
	r = cm_local_collect_group(s->dir, NULL);
	if (r < 0 && r != -ENOENT) {
		cm_error_set(err, CM_E_BUSY, 0, "cannot remove the control groups of session '%s'",
			     s->record.id);
		cm_error_hint(err, "the next start of the session tries again");
		return CM_E_BUSY;
	}
	(void)unlink(s->socket_path);
	return CM_LOCAL_KILLED;
}

/* One attempt. What went wrong with it the caller sees by the lock, and tries again. */
static void ask_to_stop(const struct cm_store_session *s, int64_t deadline_ms)
{
	struct cm_jail jail;
	int r;

	cm_jail_init(&jail);
	r = cm_jail_connect(&jail, s->socket_path, s->record.id, deadline_ms, NULL);
	/* one of another version understands that it is to stop */
	if (r == CM_OK || r == CM_E_UNSUPPORTED)
		(void)cm_jail_stop(&jail, deadline_ms, NULL);
	(void)cm_jail_close(&jail);
}

int cm_local_stop(struct cm_store_session *s, int64_t deadline_ms, struct cm_error *err)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };
	struct cm_peer keeper = CM_PEER_INIT;
	int r = CM_OK;

	while (cm_store_keeper_alive(s)) {
		struct cm_error why = CM_ERROR_INIT;

		/* at first: what hangs later may listen no more */
		if (keeper.pidfd < 0)
			r = find_keeper(s, &keeper, &why);
		if (r == CM_OK)
			ask_to_stop(s, deadline_ms);
		if (r == CM_E_DENIED) {
			if (err)
				*err = why;
			break;
		}
		r = CM_OK;
		if (cm_clock_mono_ms() >= deadline_ms && cm_store_keeper_alive(s)) {
			r = kill_keeper(s, &keeper, err);
			break;
		}
		/* between the answer and the release of its lock, or not listening yet */
		(void)nanosleep(&pause, NULL);
	}
	/* it has nothing to do any more, but "stopped" means that it is not there either */
	if (r == CM_OK && keeper.pidfd >= 0)
		(void)wait_gone(keeper.pidfd, cm_clock_mono_ms() + GONE_MS);
	cm_peer_close(&keeper);
	return r;
}
