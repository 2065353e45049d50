/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading events while they are written.
 *
 * Files are told apart by inode, and the one that is read stays open, so its number is nobody
 * else's: whatever is renamed meanwhile, the next one is the old log where that is another than
 * ours, else the log. Only whole lines are passed over, so a writer that takes back half a line is
 * not noticed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/store/events.h"
#include "runtime/store/watch.h"

#define BUF_SIZE (4U * CM_EVENT_MAX)

_Static_assert(BUF_SIZE > CM_EVENT_MAX, "a whole line fits");

static void init_reader(struct cm_event_reader *r)
{
	*r = (struct cm_event_reader){ .dir_fd = -1, .fd = -1, .next_fd = -1 };
}

void cm_event_reader_close(struct cm_event_reader *r)
{
	cm_fd_close(&r->dir_fd);
	cm_fd_close(&r->fd);
	cm_fd_close(&r->next_fd);
	free(r->buf);
	init_reader(r);
}

/* fd, -ENOENT, or another -errno */
static int open_log(int dir_fd, const char *name)
{
	CM_AUTO_FD int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? cm_fd_take(&fd) : -EINVAL;
}

static bool is_same(int fd, int other_fd)
{
	struct stat st;
	struct stat other;

	return fd >= 0 && other_fd >= 0 && fstat(fd, &st) == 0 && fstat(other_fd, &other) == 0 &&
	       st.st_ino == other.st_ino && st.st_dev == other.st_dev;
}

/*
 * The files after the one that is read, at most two, the older first; -1: none. The log is opened
 * before the old one: if it is renamed in between, both are the same.
 */
static int open_next(const struct cm_event_reader *r, int *ret_first, int *ret_second)
{
	CM_AUTO_FD int log_fd = open_log(r->dir_fd, CM_STORE_EVENTS);
	CM_AUTO_FD int old_fd = open_log(r->dir_fd, CM_STORE_EVENTS_OLD);

	if (log_fd < 0 && log_fd != -ENOENT)
		return log_fd;
	*ret_first = -1;
	*ret_second = -1;
	if (is_same(log_fd, r->fd))
		return 0;
	if (old_fd >= 0 && !is_same(old_fd, r->fd) && !is_same(old_fd, log_fd)) {
		*ret_first = cm_fd_take(&old_fd);
		*ret_second = log_fd < 0 ? -1 : cm_fd_take(&log_fd);
	} else if (log_fd >= 0) {
		*ret_first = cm_fd_take(&log_fd);
	}
	return 0;
}

int cm_event_reader_open(int dir_fd, struct cm_event_reader *ret)
{
	CM_AUTO_FD int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char *buf;

	if (fd < 0)
		return -errno;
	buf = cm_malloc(BUF_SIZE);
	if (!buf)
		return -ENOMEM;
	init_reader(ret);
	ret->dir_fd = cm_fd_take(&fd);
	ret->buf = buf;
	return 0;
}

/* The next whole line of what was read. */
static bool next_line(struct cm_event_reader *r, const char **ret, size_t *ret_len)
{
	const char *from = r->buf + r->taken;
	const char *end = memchr(from, '\n', r->len - r->taken);

	if (!end)
		return false;
	*ret = from;
	*ret_len = (size_t)(end - from);
	r->taken += *ret_len + 1;
	return true;
}

/* Read on from the first byte that was not given out. > 0: there is a line; 0: there is none. */
static ssize_t fill(struct cm_event_reader *r)
{
	size_t left = r->len - r->taken;
	ssize_t n;

	/* no writer writes that much without a newline; it is passed over */
	if (left == BUF_SIZE)
		left = 0;
	r->at += r->len - left;
	r->len = 0;
	r->taken = 0;
	do {
		n = pread(r->fd, r->buf, BUF_SIZE, (off_t)r->at);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	r->len = (size_t)n;
	return r->len == BUF_SIZE || memchr(r->buf, '\n', r->len) != NULL;
}

/* Go to the next file. > 0: there is one, or this one has more after all. */
static int step(struct cm_event_reader *r)
{
	struct stat st;
	int first = -1;
	int second = -1;
	int n;

	if (r->next_fd >= 0) {
		first = cm_fd_take(&r->next_fd);
	} else {
		n = open_next(r, &first, &second);
		if (n < 0)
			return n;
	}
	if (first < 0)
		return fstat(r->dir_fd, &st) == 0 && st.st_nlink == 0 ? -ESTALE : 0;
	/* what was written before it got its new name is there now, whenever we looked before */
	if (r->fd >= 0 && fill(r) > 0) {
		cm_fd_close(&first);
		cm_fd_close(&second);
		return 1;
	}
	cm_fd_close(&r->fd);
	r->fd = first;
	r->next_fd = second;
	r->at = 0;
	r->len = 0;
	r->taken = 0;
	return 1;
}

int cm_event_reader_next(struct cm_event_reader *r, const char **ret, size_t *ret_len)
{
	int n = 1;

	while (n > 0) {
		ssize_t got;

		if (next_line(r, ret, ret_len))
			return 1;
		got = r->fd >= 0 ? fill(r) : 0;
		n = got != 0 ? (int)got : step(r);
	}
	return n;
}

int cm_event_watch(const struct cm_event_reader *r)
{
	return cm_store_watch(r->dir_fd);
}
