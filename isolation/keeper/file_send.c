/* SPDX-License-Identifier: Apache-2.0 */
/* Files and trees as frames. */
#include "isolation/keeper/file_send.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/fd.h"

void cm_file_sender_init(struct cm_file_sender *s, struct cm_file_writer *writer, const char *path,
			 int (*failed)(void *, enum cm_file_step, int, const char *), void *data)
{
	memset(s, 0, sizeof(*s));
	s->writer = writer;
	s->failed = failed;
	s->data = data;
	s->path_len = strnlen(path, sizeof(s->path) - 1);
	memcpy(s->path, path, s->path_len);
}

static int tell(struct cm_file_sender *s, enum cm_file_step step, int error)
{
	s->has_failed = true;
	return s->failed(s->data, step, error, s->path);
}

/* --- content ------------------------------------------------------------------------------- */

/* Up to `length` bytes from where fd is. *ret_n: how many there were. */
static int send_data(struct cm_file_writer *w, int fd, uint64_t length, uint64_t *ret_n,
		     int *ret_error)
{
	*ret_n = 0;
	while (*ret_n < length) {
		uint64_t left = length - *ret_n;
		size_t size;
		void *to = cm_file_space(w, &size);
		ssize_t n;

		if (!to)
			return w->error;
		n = read(fd, to, left < size ? (size_t)left : size);
		if (n < 0 && errno == EINTR && (!w->wait || w->wait(w->data) == 0))
			continue;
		if (n < 0)
			*ret_error = errno;
		if (n <= 0)
			return 0;
		cm_file_commit(w, (size_t)n);
		*ret_n += (uint64_t)n;
		/* a pipe's or terminal's: more may be long in coming */
		if ((size_t)n < size && *ret_n < length && cm_file_flush(w) < 0)
			return w->error;
	}
	return 0;
}

static int send_hole(struct cm_file_writer *w, uint64_t len)
{
	return len > 0 ? cm_file_put_plain(w, CM_FRAME_HOLE, len) : 0;
}

/* A file with holes, from `at` to `end`. */
static int send_sparse(struct cm_file_writer *w, int fd, off_t at, off_t end, int *ret_error)
{
	while (at < end) {
		off_t data = lseek(fd, at, SEEK_DATA);
		off_t hole;
		uint64_t n;
		int r;

		/* ENXIO: nothing but a hole follows */
		if (data < 0 || data > end)
			data = end;
		r = send_hole(w, (uint64_t)(data - at));
		if (r < 0 || data == end)
			return r;
		hole = lseek(fd, data, SEEK_HOLE);
		if (hole < 0 || hole > end)
			hole = end;
		if (lseek(fd, data, SEEK_SET) < 0) {
			*ret_error = errno;
			return 0;
		}
		r = send_data(w, fd, (uint64_t)(hole - data), &n, ret_error);
		/* cut off meanwhile, or what cannot be read */
		if (r < 0 || *ret_error != 0 || n < (uint64_t)(hole - data))
			return r;
		at = hole;
	}
	return 0;
}

int cm_file_send_content(struct cm_file_writer *writer, int fd, uint64_t length, int *ret_error)
{
	struct stat st;
	uint64_t n;
	off_t at;

	*ret_error = 0;
	if (fstat(fd, &st) < 0) {
		*ret_error = errno;
		return 0;
	}
	at = S_ISREG(st.st_mode) ? lseek(fd, 0, SEEK_CUR) : -1;
	if (at >= 0 && at < st.st_size && (uint64_t)st.st_blocks < (uint64_t)st.st_size / 512 &&
	    lseek(fd, at, SEEK_HOLE) >= 0) {
		off_t end = length < (uint64_t)(st.st_size - at) ? at + (off_t)length : st.st_size;

		return send_sparse(writer, fd, at, end, ret_error);
	}
	return send_data(writer, fd, length, &n, ret_error);
}

/* --- trees --------------------------------------------------------------------------------- */

static size_t push_name(struct cm_file_sender *s, const char *name)
{
	size_t before = s->path_len;
	size_t len = strlen(name);

	if (before + 1 + len < sizeof(s->path)) {
		if (before > 0 && s->path[before - 1] != '/')
			s->path[s->path_len++] = '/';
		memcpy(s->path + s->path_len, name, len + 1);
		s->path_len += len;
	}
	return before;
}

static void pop_name(struct cm_file_sender *s, size_t before)
{
	s->path_len = before;
	s->path[before] = '\0';
}

static int send_link(struct cm_file_sender *s, int dirfd, const char *name, const char *sent_name,
		     const struct stat *st)
{
	char target[CM_FILE_PATH_MAX + 1];
	ssize_t n = readlinkat(dirfd, name, target, sizeof(target));

	if (n < 0 || (size_t)n >= sizeof(target))
		return tell(s, CM_FILE_STEP_READ, n < 0 ? errno : ENAMETOOLONG);
	target[n] = '\0';
	return cm_file_put_entry(s->writer, st, sent_name, target);
}

/* What was a file a moment ago is opened so that nothing waits, and has to be one still. */
static int open_same(int dirfd, const char *name, const struct stat *was, int flags, int *ret_fd)
{
	int fd = openat(dirfd, name,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || (st.st_mode & S_IFMT) != (was->st_mode & S_IFMT)) {
		cm_fd_close(&fd);
		return -EBUSY;
	}
	*ret_fd = fd;
	return 0;
}

static int send_file(struct cm_file_sender *s, int dirfd, const char *name, const char *sent_name,
		     const struct stat *st)
{
	struct cm_file_frame end = { .type = CM_FRAME_END };
	CM_AUTO_FD int fd = -1;
	int error = 0;
	int r = open_same(dirfd, name, st, 0, &fd);

	if (r < 0)
		return tell(s, CM_FILE_STEP_OPEN, -r);
	r = cm_file_put_entry(s->writer, st, sent_name, NULL);
	/* what grows as it is read has the size that it had; procfs says none */
	if (r == 0)
		r = cm_file_send_content(s->writer, fd,
					 st->st_size > 0 ? (uint64_t)st->st_size : UINT64_MAX,
					 &error);
	if (r == 0 && error != 0) {
		end.flags = CM_FRAMEF_FAILED;
		r = tell(s, CM_FILE_STEP_READ, error);
	}
	return r < 0 ? r : cm_file_put(s->writer, &end, NULL, 0, NULL, 0);
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

static int send_any(struct cm_file_sender *s, int dirfd, const char *name, const char *sent_name);

static int send_entries(struct cm_file_sender *s, DIR *dir)
{
	struct dirent *entry;
	int r = 0;

	for (;;) {
		size_t before;

		errno = 0;
		entry = readdir(dir);
		if (!entry)
			return errno != 0 ? tell(s, CM_FILE_STEP_LIST, errno) : 0;
		if (is_dots(entry->d_name))
			continue;
		before = push_name(s, entry->d_name);
		r = send_any(s, dirfd(dir), entry->d_name, entry->d_name);
		pop_name(s, before);
		if (r < 0)
			return r;
	}
}

static int send_directory(struct cm_file_sender *s, int at, const char *name, const char *sent_name,
			  const struct stat *st)
{
	int fd = -1;
	DIR *dir;
	int r;

	if (s->depth >= CM_FILE_DEPTH_MAX)
		return tell(s, CM_FILE_STEP_DEPTH, 0);
	r = open_same(at, name, st, O_DIRECTORY, &fd);
	if (r < 0)
		return tell(s, CM_FILE_STEP_OPEN, -r);
	dir = fdopendir(fd);
	if (!dir) {
		r = errno;
		cm_fd_close(&fd);
		return tell(s, CM_FILE_STEP_LIST, r);
	}
	s->depth++;
	r = cm_file_put_entry(s->writer, st, sent_name, NULL);
	if (r == 0)
		r = send_entries(s, dir);
	(void)closedir(dir);
	s->depth--;
	return r < 0 ? r : cm_file_put_plain(s->writer, CM_FRAME_LEAVE, 0);
}

static int send_any(struct cm_file_sender *s, int dirfd, const char *name, const char *sent_name)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return tell(s, CM_FILE_STEP_STAT, errno);
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		return send_file(s, dirfd, name, sent_name, &st);
	case S_IFDIR:
		return send_directory(s, dirfd, name, sent_name, &st);
	case S_IFLNK:
		return send_link(s, dirfd, name, sent_name, &st);
	default:
		return tell(s, CM_FILE_STEP_SPECIAL, 0);
	}
}

int cm_file_send_tree(struct cm_file_sender *s, int dirfd, const char *name, const char *sent_name)
{
	return send_any(s, dirfd, name, sent_name);
}
