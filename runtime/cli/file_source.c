/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input as a file's content. */
#include "runtime/cli/file_source.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fd.h"

static ssize_t give_up(struct cm_file_source *s, int code, int error, const char *what)
{
	(void)cm_error_set(s->why, code, error, "%s", what);
	return error != 0 ? -error : -ECANCELED;
}

/* 1: there is something to be read; 0: not yet; else as of fill. */
static ssize_t wait_some(struct cm_file_source *s)
{
	struct pollfd p[2] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = s->cancel_fd, .events = POLLIN },
	};

	if (s->is_file)
		return 1;
	if (poll(p, CM_ARRAY_SIZE(p), -1) < 0)
		return errno == EINTR
			       ? 0
			       : give_up(s, CM_E_SYS, errno, "cannot wait for standard input");
	if (p[1].revents != 0)
		return give_up(s, CM_E_CANCELLED, 0, "interrupted");
	return p[0].revents != 0;
}

/* How much of it may be asked for. */
static size_t room(const struct cm_file_source *s, size_t size)
{
	if (size > s->left)
		size = (size_t)s->left;
	if (s->knows_holes && size > (uint64_t)(s->data_end - s->at))
		size = (size_t)(s->data_end - s->at);
	return size;
}

/* What comes when it comes. */
static ssize_t fill(void *data, void *buf, size_t size)
{
	struct cm_file_source *s = data;
	/* one that grows is as long as it was, where that was said */
	size_t max = room(s, size);

	while (max > 0) {
		ssize_t n = wait_some(s);

		if (n < 0)
			return n;
		if (n == 0)
			continue;
		n = read(STDIN_FILENO, buf, max);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return give_up(s, CM_E_SYS, errno, "cannot read standard input");
		if (n == 0 && s->left != UINT64_MAX)
			return give_up(s, CM_E_SYS, EIO,
				       "cannot read standard input: it became shorter");
		if (s->left != UINT64_MAX)
			s->left -= (uint64_t)n;
		s->at += n;
		return n;
	}
	return 0;
}

static uint64_t pass_hole(void *data)
{
	struct cm_file_source *s = data;
	off_t from = s->at;
	off_t next;

	s->knows_holes = true;
	if (s->at < s->data_end || s->at >= s->end)
		return 0;
	next = lseek(STDIN_FILENO, s->at, SEEK_DATA);
	/* ENXIO: nothing but a hole follows */
	if (next < 0 || next > s->end)
		next = s->end;
	s->data_end = next < s->end ? lseek(STDIN_FILENO, next, SEEK_HOLE) : next;
	if (s->data_end < 0 || s->data_end > s->end)
		s->data_end = s->end;
	/* it could be looked for there: it can be read from there */
	(void)lseek(STDIN_FILENO, next, SEEK_SET);
	s->at = next;
	if (s->left != UINT64_MAX)
		s->left -= (uint64_t)(next - from);
	return (uint64_t)(next - from);
}

void cm_file_source_init(struct cm_file_source *s, int cancel_fd, bool wants_length,
			 struct cm_error *why, struct cm_write_request *ret)
{
	struct stat st;

	*s = (struct cm_file_source){ .cancel_fd = cancel_fd, .why = why, .left = UINT64_MAX };
	ret->fill = fill;
	ret->pass_hole = NULL;
	ret->data = s;
	ret->len = -1;
	s->is_file = fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode);
	ret->waits = !s->is_file;
	ret->wait_fd = STDIN_FILENO;
	if (!s->is_file)
		return;
	s->at = lseek(STDIN_FILENO, 0, SEEK_CUR);
	s->end = st.st_size;
	/* a size of procfs says nothing */
	if (s->at < 0 || s->at >= s->end)
		return;
	if (wants_length) {
		ret->len = s->end - s->at;
		s->left = (uint64_t)ret->len;
	}
	if ((uint64_t)st.st_blocks < (uint64_t)st.st_size / 512 &&
	    lseek(STDIN_FILENO, s->at, SEEK_HOLE) >= 0) {
		ret->pass_hole = pass_hole;
		s->data_end = s->at;
		(void)lseek(STDIN_FILENO, s->at, SEEK_SET);
	}
}
