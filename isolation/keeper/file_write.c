/* SPDX-License-Identifier: Apache-2.0 */
/* read and write. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "isolation/keeper/file_builtin.h"
#include "isolation/keeper/file_recv.h"
#include "isolation/keeper/file_send.h"
#include "runtime/base/fd.h"

#define MAX_LINKS 40

/* --- read ---------------------------------------------------------------------------------- */

static int seek(int fd, const struct stat *st, uint64_t offset)
{
	if (offset == 0)
		return 0;
	if (offset > INT64_MAX)
		return -EINVAL;
	/* behind its end there is nothing */
	if (S_ISREG(st->st_mode) && st->st_size > 0 && offset > (uint64_t)st->st_size)
		offset = (uint64_t)st->st_size;
	return lseek(fd, (off_t)offset, SEEK_SET) < 0 ? -errno : 0;
}

/* One of the three that carry the operation itself: a link to /proc/self/fd names them, too. */
static bool is_own_stream(int fd)
{
	struct stat st;
	struct stat own;

	for (int i = 0; i < 3 && fstat(fd, &st) == 0; i++) {
		if (fstat(i, &own) == 0 && S_ISFIFO(own.st_mode) && own.st_ino == st.st_ino &&
		    own.st_dev == st.st_dev)
			return true;
	}
	return false;
}

int cm_file_op_read(struct cm_file_request *q, uint64_t *ret_value)
{
	const char *path = q->paths[0];
	uint64_t length = (q->flags & CM_FILEF_LENGTH) != 0 ? q->length : UINT64_MAX;
	CM_AUTO_FD int fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	int error = 0;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return cm_file_fail(q, CM_FILE_STEP_READ, errno, path, 0);
	if (S_ISDIR(st.st_mode))
		return cm_file_fail(q, CM_FILE_STEP_READ, EISDIR, path, 0);
	if (is_own_stream(fd))
		return cm_file_fail(q, CM_FILE_STEP_READ, ELOOP, path, 0);
	r = seek(fd, &st, q->offset);
	if (r < 0)
		return cm_file_fail(q, CM_FILE_STEP_READ, -r, path, 0);
	r = cm_file_put_entry(&q->out, &st, "", NULL);
	if (r == 0)
		r = cm_file_send_content(&q->out, fd, length, &error);
	if (r < 0)
		return 1;
	if (error != 0)
		return cm_file_fail(q, CM_FILE_STEP_READ, error, path, 0);
	*ret_value = 0;
	return cm_file_put_plain(&q->out, CM_FRAME_END, 0) < 0;
}

/* --- write --------------------------------------------------------------------------------- */

struct target {
	int fd;
	/* --atomic: where it is and what it will be */
	int dir_fd;
	char name[NAME_MAX + 1];
	char temp[CM_FILE_TEMP_SIZE];
	uint64_t written;
	bool ends_with_hole;
};

static void drop(struct target *t)
{
	cm_fd_close(&t->fd);
	if (t->temp[0])
		(void)unlinkat(t->dir_fd, t->temp, 0);
	t->temp[0] = '\0';
	cm_fd_close(&t->dir_fd);
}

/* What is replaced is the file, and not a link to it. */
static int find_file(struct target *t, const char *path)
{
	char text[CM_FILE_PATH_MAX + 1];
	const char *base = NULL;

	if (strlen(path) > CM_FILE_PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(text, path, strlen(path) + 1);
	for (int i = 0; i < MAX_LINKS; i++) {
		int at = t->dir_fd;
		int fd = -1;
		ssize_t n;
		int r = cm_open_parent_at(at < 0 ? AT_FDCWD : at, text, &fd, &base);

		if (r < 0)
			return r == -EINVAL ? -EISDIR : r;
		if (fd < 0 && at < 0)
			fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 && at < 0)
			return -errno;
		if (strlen(base) > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(t->name, base, strlen(base) + 1);
		if (fd >= 0) {
			cm_fd_close(&t->dir_fd);
			t->dir_fd = fd;
		}
		n = readlinkat(t->dir_fd, t->name, text, sizeof(text) - 1);
		if (n < 0)
			return errno == EINVAL || errno == ENOENT ? 0 : -errno;
		text[n] = '\0';
	}
	return -ELOOP;
}

static int open_atomic(struct cm_file_request *q, struct target *t)
{
	mode_t mode = (q->flags & CM_FILEF_MODE) != 0 ? q->mode : cm_file_default_mode(0666);
	struct stat st;
	int r = find_file(t, q->paths[0]);

	if (r < 0)
		return r;
	if (fstatat(t->dir_fd, t->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (!S_ISREG(st.st_mode))
			return S_ISDIR(st.st_mode) ? -EISDIR : -EEXIST;
		if ((q->flags & CM_FILEF_MODE) == 0)
			mode = st.st_mode & CM_FILE_MODE_MASK;
	} else if (errno != ENOENT) {
		return -errno;
	}
	r = cm_file_open_temp(t->dir_fd, t->temp, &t->fd);
	if (r == 0 && fchmod(t->fd, mode) < 0)
		r = -errno;
	return r;
}

static int open_target(struct cm_file_request *q, struct target *t)
{
	int flags = O_WRONLY | O_CREAT | O_NOCTTY | O_CLOEXEC;
	int r = 0;

	if ((q->flags & CM_FILEF_PARENTS) != 0)
		r = cm_file_make_parents(q->paths[0], false);
	if (r < 0)
		return r;
	if ((q->flags & CM_FILEF_ATOMIC) != 0)
		return open_atomic(q, t);
	flags |= (q->flags & CM_FILEF_APPEND) != 0 ? O_APPEND : O_TRUNC;
	t->fd = open(q->paths[0], flags, 0666);
	if (t->fd < 0)
		return -errno;
	if (is_own_stream(t->fd))
		return -ELOOP;
	if ((q->flags & CM_FILEF_MODE) != 0 && fchmod(t->fd, q->mode) < 0)
		return -errno;
	return 0;
}

/* A hole is one in a file that is written from its beginning, else it is zeros. */
static int take_hole(struct target *t, uint64_t len, bool is_appended)
{
	static const char zeros[65536];
	int r = 0;

	if (!is_appended && len <= (uint64_t)INT64_MAX - t->written &&
	    lseek(t->fd, (off_t)(t->written + len), SEEK_SET) >= 0) {
		t->written += len;
		t->ends_with_hole = true;
		return 0;
	}
	while (len > 0 && r == 0) {
		size_t n = len < sizeof(zeros) ? (size_t)len : sizeof(zeros);

		r = cm_file_write_all(t->fd, zeros, n, &t->written);
		len -= n;
	}
	return r;
}

static int take_content(struct cm_file_request *q, struct target *t)
{
	for (;;) {
		int r = cm_file_next(q);

		if (r <= 0)
			return r < 0 ? r : -ECANCELED;
		switch (q->msg.type) {
		case CM_FRAME_DATA:
			t->ends_with_hole = false;
			r = cm_file_write_all(t->fd, q->msg.data, q->msg.len, &t->written);
			break;
		case CM_FRAME_HOLE:
			r = take_hole(t, q->msg.value, (q->flags & CM_FILEF_APPEND) != 0);
			break;
		case CM_FRAME_END:
			if ((q->msg.flags & CM_FRAMEF_FAILED) != 0)
				return -ECANCELED;
			if (t->ends_with_hole && ftruncate(t->fd, (off_t)t->written) < 0)
				return -errno;
			return 0;
		default:
			return -EBADMSG;
		}
		if (r < 0)
			return r;
	}
}

static int finish(struct target *t)
{
	int fd;

	if (!t->temp[0]) {
		fd = cm_fd_take(&t->fd);
		return close(fd) < 0 && errno != EINTR ? -errno : 0;
	}
	if (fsync(t->fd) < 0 || renameat(t->dir_fd, t->temp, t->dir_fd, t->name) < 0)
		return -errno;
	t->temp[0] = '\0';
	/* the name, too; not all file systems can */
	fd = openat(t->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		(void)fsync(fd);
	cm_fd_close(&fd);
	return 0;
}

int cm_file_op_write(struct cm_file_request *q, uint64_t *ret_value)
{
	struct target t = { .fd = -1, .dir_fd = -1 };
	enum cm_file_step step = CM_FILE_STEP_OPEN;
	int r = open_target(q, &t);

	if (r == 0) {
		step = CM_FILE_STEP_WRITE;
		r = take_content(q, &t);
	}
	if (r == 0)
		r = finish(&t);
	*ret_value = t.written;
	/* of a new file that is not to be there nothing was written */
	if (r < 0)
		(void)cm_file_fail(q, step, -r, q->paths[0], t.temp[0] ? 0 : t.written);
	drop(&t);
	return r < 0;
}
