/* SPDX-License-Identifier: Apache-2.0 */
/* A tree out of frames. */
#include "isolation/keeper/file_recv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "isolation/keeper/file_link.h"
#include "runtime/base/fd.h"

#define TEMP_TRIES 64U

static void push_name(struct cm_file_receiver *r, const char *name)
{
	size_t len = strlen(name);

	if (r->path_len + 1 + len >= sizeof(r->path))
		return;
	if (r->path_len > 0 && r->path[r->path_len - 1] != '/')
		r->path[r->path_len++] = '/';
	memcpy(r->path + r->path_len, name, len + 1);
	r->path_len += len;
}

void cm_file_receiver_init(struct cm_file_receiver *r, int dirfd, const char *name,
			   const char *path, bool adds_name)
{
	memset(r, 0, sizeof(*r));
	r->top_fd = dirfd;
	r->fd = -1;
	(void)snprintf(r->top_name, sizeof(r->top_name), "%s", name);
	r->path_len = strnlen(path, sizeof(r->path) - 1);
	memcpy(r->path, path, r->path_len);
	if (adds_name && name[0] != '\0')
		push_name(r, name);
}

static void pop_name(struct cm_file_receiver *r, size_t before)
{
	r->path_len = before;
	r->path[before] = '\0';
}

static int tell(struct cm_file_receiver *r, enum cm_file_step step, int error)
{
	r->has_failed = true;
	return r->failed(r->data, step, error, r->path);
}

/* What every further file would meet, too. */
static bool is_final(int error)
{
	return error == ENOSPC || error == EDQUOT || error == EIO || error == EROFS;
}

static int fail(struct cm_file_receiver *r, enum cm_file_step step, int error)
{
	int e = tell(r, step, error);

	return e < 0 || !is_final(error) ? e : -error;
}

static mode_t take_mode(struct cm_file_receiver *r, uint32_t mode)
{
	if ((mode & 07000) != 0)
		r->n_stripped++;
	return mode & CM_FILE_MODE_MASK;
}

static struct timespec take_time(const struct cm_file_msg *msg)
{
	return (struct timespec){ .tv_sec = msg->body.entry.mtime_sec,
				  .tv_nsec = msg->body.entry.mtime_nsec };
}

static int set_attributes(struct cm_file_receiver *r, int fd, mode_t mode,
			  const struct timespec *mtime)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, *mtime };

	/* times first: without the right to write they could not be set by some file systems */
	if (futimens(fd, times) < 0 || fchmod(fd, mode) < 0)
		return tell(r, CM_FILE_STEP_ATTRIBUTES, errno);
	return 0;
}

/* --- files --------------------------------------------------------------------------------- */

int cm_file_write_all(int fd, const void *bytes, size_t len, uint64_t *written)
{
	const unsigned char *p = bytes;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		p += n;
		len -= (size_t)n;
		*written += (uint64_t)n;
	}
	return 0;
}

int cm_file_open_temp(int dirfd, char name[CM_FILE_TEMP_SIZE], int *ret_fd)
{
	static unsigned int serial;

	for (unsigned int i = 0; i < TEMP_TRIES; i++) {
		int fd;

		(void)snprintf(name, CM_FILE_TEMP_SIZE, ".casemate-%d-%u.tmp", (int)getpid(),
			       ++serial);
		fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0600);
		if (fd >= 0) {
			*ret_fd = fd;
			return 0;
		}
		if (errno != EEXIST)
			break;
	}
	name[0] = '\0';
	return -errno;
}

/* What is there is replaced when the new file is whole; a directory or a device is not. */
static int open_beside(struct cm_file_receiver *r, int dirfd)
{
	struct stat st;

	if (fstatat(dirfd, r->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	/* at the top it is what the caller named, and may stand for something else */
	if (!S_ISREG(st.st_mode) && (!S_ISLNK(st.st_mode) || r->depth == 0))
		return S_ISLNK(st.st_mode) ? -ELOOP : -EEXIST;
	return cm_file_open_temp(dirfd, r->temp, &r->fd);
}

static int begin_file(struct cm_file_receiver *r, int dirfd, const char *name,
		      const struct cm_file_msg *msg)
{
	int e = 0;

	r->is_in_file = true;
	r->fd = -1;
	r->file_dir = dirfd;
	r->temp[0] = '\0';
	r->at = 0;
	r->ends_with_hole = false;
	r->mode = take_mode(r, msg->body.entry.mode);
	r->mtime = take_time(msg);
	if (dirfd < 0)
		return 0;
	(void)snprintf(r->name, sizeof(r->name), "%s", name);
	r->fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (r->fd < 0)
		e = errno == EEXIST ? open_beside(r, dirfd) : -errno;
	return e < 0 ? fail(r, CM_FILE_STEP_CREATE, -e) : 0;
}

static void drop_file(struct cm_file_receiver *r)
{
	if (r->fd >= 0)
		(void)unlinkat(r->file_dir, r->temp[0] ? r->temp : r->name, 0);
	cm_fd_close(&r->fd);
}

static int take_content(struct cm_file_receiver *r, const struct cm_file_msg *msg)
{
	int e = 0;

	if (r->fd < 0)
		return 0;
	if (msg->type == CM_FRAME_HOLE) {
		if (msg->value > (uint64_t)INT64_MAX - r->at)
			e = -EFBIG;
		else if (lseek(r->fd, (off_t)(r->at + msg->value), SEEK_SET) < 0)
			e = -errno;
		r->at += e < 0 ? 0 : msg->value;
		r->ends_with_hole = true;
	} else {
		e = cm_file_write_all(r->fd, msg->data, msg->len, &r->at);
		r->n_bytes += msg->len;
		r->ends_with_hole = false;
	}
	if (e == 0)
		return 0;
	drop_file(r);
	return fail(r, CM_FILE_STEP_WRITE, -e);
}

/* The last write can be told of at close alone. */
static int finish_file(struct cm_file_receiver *r)
{
	int fd;
	int e;

	if (r->ends_with_hole && ftruncate(r->fd, (off_t)r->at) < 0)
		return -errno;
	e = set_attributes(r, r->fd, r->mode, &r->mtime);
	if (e < 0)
		return e;
	fd = cm_fd_take(&r->fd);
	e = close(fd) < 0 && errno != EINTR ? -errno : 0;
	if (e == 0 && r->temp[0] && renameat(r->file_dir, r->temp, r->file_dir, r->name) < 0)
		e = -errno;
	if (e < 0)
		(void)unlinkat(r->file_dir, r->temp[0] ? r->temp : r->name, 0);
	return e;
}

static int end_file(struct cm_file_receiver *r, const struct cm_file_msg *msg)
{
	int e;

	r->is_in_file = false;
	if (r->fd < 0)
		return 0;
	/* told by who could not read it */
	if ((msg->flags & CM_FRAMEF_FAILED) != 0) {
		r->has_failed = true;
		drop_file(r);
		return 0;
	}
	e = finish_file(r);
	if (e == 0) {
		r->n_entries++;
		return 0;
	}
	drop_file(r);
	return fail(r, CM_FILE_STEP_WRITE, -e);
}

/* --- links and directories ----------------------------------------------------------------- */

static int make_link(struct cm_file_receiver *r, int dirfd, const char *name,
		     const struct cm_file_msg *msg)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, take_time(msg) };
	struct stat st;
	int e;

	if (dirfd < 0)
		return 0;
	/* one that is all of the tree leads out of it wherever it leads to */
	if (r->checks_links && (r->depth == 0 || !cm_file_link_stays(msg->target, r->depth - 1)))
		return tell(r, CM_FILE_STEP_LEADS_OUT, 0);
	e = symlinkat(msg->target, dirfd, name) < 0 ? errno : 0;
	if (e == EEXIST && fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (S_ISLNK(st.st_mode) || (S_ISREG(st.st_mode) && r->depth > 0)) &&
	    unlinkat(dirfd, name, 0) == 0)
		e = symlinkat(msg->target, dirfd, name) < 0 ? errno : 0;
	if (e != 0)
		return fail(r, CM_FILE_STEP_LINK, e);
	r->n_entries++;
	(void)utimensat(dirfd, name, times, AT_SYMLINK_NOFOLLOW);
	return 0;
}

static int open_directory(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* A descriptor, or -errno. */
static int make_directory(int dirfd, const char *name, bool *ret_is_new)
{
	*ret_is_new = false;
	if (name[0] == '\0')
		return open_directory(dirfd, ".");
	if (mkdirat(dirfd, name, 0700) == 0)
		*ret_is_new = true;
	else if (errno != EEXIST)
		return -errno;
	return open_directory(dirfd, name);
}

static bool is_same(const struct cm_file_msg *msg, uint64_t device, uint64_t inode)
{
	return inode != 0 && msg->body.entry.inode == inode && msg->body.entry.device == device;
}

/* The first one is where the tree goes; is this it, or is it copied onto itself? */
static bool is_itself(struct cm_file_receiver *r, int fd, const struct cm_file_msg *msg)
{
	struct stat st;

	if (r->depth == 0 && fstat(fd, &st) == 0) {
		r->device = st.st_dev;
		r->inode = st.st_ino;
	}
	return is_same(msg, r->device, r->inode);
}

static int enter_directory(struct cm_file_receiver *r, int dirfd, const char *name,
			   size_t path_before, const struct cm_file_msg *msg)
{
	struct cm_file_directory *d = &r->dirs[r->depth];
	int fd = -1;

	*d = (struct cm_file_directory){ .fd = -1, .path_len = path_before };
	if (dirfd >= 0 && r->depth > 0 && is_same(msg, r->device, r->inode)) {
		r->depth++;
		return tell(r, CM_FILE_STEP_ITSELF, 0);
	}
	if (dirfd >= 0) {
		fd = make_directory(dirfd, name, &d->is_new);
		d->mode = take_mode(r, msg->body.entry.mode);
		d->mtime = take_time(msg);
	}
	if (fd >= 0 && is_itself(r, fd, msg)) {
		cm_fd_close(&fd);
		r->depth++;
		return tell(r, CM_FILE_STEP_ITSELF, 0);
	}
	r->depth++;
	if (fd >= 0) {
		d->fd = fd;
		r->n_entries++;
	}
	return fd >= 0 || dirfd < 0 ? 0 : fail(r, CM_FILE_STEP_MKDIR, -fd);
}

static int leave_directory(struct cm_file_receiver *r)
{
	struct cm_file_directory *d;
	int e = 0;

	if (r->depth == 0)
		return -EBADMSG;
	d = &r->dirs[--r->depth];
	/* times after what is in it */
	if (d->fd >= 0 && d->is_new)
		e = set_attributes(r, d->fd, d->mode, &d->mtime);
	cm_fd_close(&d->fd);
	pop_name(r, d->path_len);
	return e;
}

/* --- frames -------------------------------------------------------------------------------- */

static int take_below(struct cm_file_receiver *r, int dirfd, const char *name, size_t path_before,
		      const struct cm_file_msg *msg)
{
	bool is_directory = S_ISDIR(msg->body.entry.mode);

	/* what is a file goes nowhere as "", nor as "x/" */
	if (r->depth == 0 && !is_directory && (name[0] == '\0' || r->wants_directory)) {
		r->is_in_file = S_ISREG(msg->body.entry.mode);
		return fail(r, CM_FILE_STEP_CREATE, name[0] == '\0' ? EISDIR : ENOTDIR);
	}
	switch (msg->body.entry.mode & S_IFMT) {
	case S_IFREG:
		return begin_file(r, dirfd, name, msg);
	case S_IFDIR:
		if (r->depth >= CM_FILE_DEPTH_MAX)
			return -EBADMSG;
		return enter_directory(r, dirfd, name, path_before, msg);
	case S_IFLNK:
		return make_link(r, dirfd, name, msg);
	default:
		return -EBADMSG;
	}
}

static int take_entry(struct cm_file_receiver *r, const struct cm_file_msg *msg)
{
	size_t before = r->path_len;
	int e;

	if (r->depth == 0) {
		if (r->has_top)
			return -EBADMSG;
		r->has_top = true;
		r->file_path_len = before;
		return take_below(r, r->top_fd, r->top_name, before, msg);
	}
	if (msg->name_len > NAME_MAX || !cm_file_name_is_single(msg->name))
		return -EBADMSG;
	push_name(r, msg->name);
	r->file_path_len = before;
	e = take_below(r, r->dirs[r->depth - 1].fd, msg->name, before, msg);
	/* a directory's stays until it is left, a file's until it ends */
	if (e < 0 || S_ISLNK(msg->body.entry.mode))
		pop_name(r, before);
	return e;
}

static int take_in_file(struct cm_file_receiver *r, const struct cm_file_msg *msg)
{
	int e;

	switch (msg->type) {
	case CM_FRAME_DATA:
	case CM_FRAME_HOLE:
		return take_content(r, msg);
	case CM_FRAME_END:
		e = end_file(r, msg);
		pop_name(r, r->file_path_len);
		return e;
	default:
		return -EBADMSG;
	}
}

int cm_file_receiver_take(struct cm_file_receiver *r, const struct cm_file_msg *msg)
{
	if (r->is_in_file)
		return take_in_file(r, msg);
	switch (msg->type) {
	case CM_FRAME_ENTRY:
		return take_entry(r, msg);
	case CM_FRAME_LEAVE:
		return leave_directory(r);
	default:
		return -EBADMSG;
	}
}

bool cm_file_receiver_is_done(const struct cm_file_receiver *r)
{
	return r->has_top && r->depth == 0 && !r->is_in_file;
}

void cm_file_receiver_close(struct cm_file_receiver *r)
{
	if (r->is_in_file)
		drop_file(r);
	r->is_in_file = false;
	while (r->depth > 0)
		cm_fd_close(&r->dirs[--r->depth].fd);
}
