/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fd.h"

/* to a terminal that cannot be opened again: it may have room for less than it is asked for */
#define SMALL_PIECE 256

void cm_outlet_init(struct cm_outlet *outlet, int fd)
{
	outlet->fd = fd;
	outlet->write_fd = fd;
	outlet->is_ready = false;
	outlet->kind = CM_OUTLET_UNKNOWN;
	outlet->at = outlet->len = 0;
}

void cm_outlet_close(struct cm_outlet *outlet)
{
	if (outlet->write_fd != outlet->fd)
		cm_fd_close(&outlet->write_fd);
	cm_outlet_init(outlet, outlet->fd);
}

/* As the caller has it: for writing, at the same place. */
static int open_again(int fd)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static bool can_write(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

static void find_kind(struct cm_outlet *outlet)
{
	bool is_terminal = isatty(outlet->fd);
	struct stat st;
	int fd;

	outlet->kind = CM_OUTLET_FILE;
	if (fstat(outlet->fd, &st) < 0)
		return;
	if (S_ISSOCK(st.st_mode)) {
		outlet->kind = CM_OUTLET_SOCKET;
		return;
	}
	/* what is open for reading alone stays so */
	if ((!S_ISFIFO(st.st_mode) && !is_terminal) || !can_write(outlet->fd))
		return;
	fd = open_again(outlet->fd);
	outlet->kind = is_terminal ? CM_OUTLET_TERMINAL : CM_OUTLET_PIPE;
	if (fd >= 0)
		outlet->write_fd = fd;
	else
		outlet->kind = CM_OUTLET_OTHERS;
}

bool cm_outlet_is_full(const struct cm_outlet *outlet)
{
	return outlet->at < outlet->len;
}

int cm_outlet_splice_fd(struct cm_outlet *outlet)
{
	if (outlet->kind == CM_OUTLET_UNKNOWN)
		find_kind(outlet);
	/* a socket would be waited for, and a terminal cannot be spliced to */
	return outlet->kind == CM_OUTLET_FILE || outlet->kind == CM_OUTLET_PIPE ? outlet->write_fd
										: -1;
}

/* In the moment, not when it was found ready: somebody else may have filled it since. */
static ssize_t write_others(const struct cm_outlet *outlet, const char *bytes, size_t len)
{
	size_t most = isatty(outlet->fd) ? SMALL_PIECE : PIPE_BUF;
	struct pollfd p = { .fd = outlet->fd, .events = POLLOUT };

	if (poll(&p, 1, 0) <= 0) {
		errno = EAGAIN;
		return -1;
	}
	return write(outlet->fd, bytes, len < most ? len : most);
}

static ssize_t write_some(const struct cm_outlet *outlet, const char *bytes, size_t len)
{
	if (outlet->kind == CM_OUTLET_SOCKET)
		return send(outlet->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (outlet->kind == CM_OUTLET_OTHERS)
		return write_others(outlet, bytes, len);
	return write(outlet->write_fd, bytes, len);
}

/* Until it takes no more: *ret_n is how many bytes it took. 0 or -errno. */
static int write_most(const struct cm_outlet *outlet, const char *bytes, size_t len, size_t *ret_n)
{
	size_t done = 0;
	int r = 0;

	while (done < len) {
		ssize_t n = write_some(outlet, bytes + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			r = -errno;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	*ret_n = done;
	return r;
}

int cm_outlet_put(struct cm_outlet *outlet, const char *bytes, size_t len)
{
	size_t done = 0;
	int r;

	if (outlet->kind == CM_OUTLET_UNKNOWN)
		find_kind(outlet);
	r = write_most(outlet, bytes, len, &done);
	if (r < 0)
		return r;
	outlet->at = 0;
	outlet->len = len - done;
	memcpy(outlet->bytes, bytes + done, outlet->len);
	return 0;
}

int cm_outlet_flush(struct cm_outlet *outlet)
{
	size_t done = 0;
	int r = write_most(outlet, outlet->bytes + outlet->at, outlet->len - outlet->at, &done);

	outlet->at += done;
	if (r < 0 || outlet->at == outlet->len)
		outlet->at = outlet->len = 0;
	return r;
}
