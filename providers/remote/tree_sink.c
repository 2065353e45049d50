/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of an archive, each with a whole path and in any order, as the frames of a tree. A path is a
 * list of single names here, or is refused; directories in between are entered by name, which the
 * receiver does through no link. A hard link is a copy of a file that this archive made: which those are
 * is remembered, as what stands in the directory besides may be anybody's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "isolation/keeper/file_link.h"
#include "providers/remote/tree_internal.h"
#include "providers/remote/tree_made.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"

#define COPY_SIZE (128U * 1024)
/* of a directory that the archive has things in and does not have */
#define USUAL_MODE (S_IFDIR | 0755U)

struct cm_tree_sink {
	struct cm_file_receiver *to;
	const struct cm_call *call;
	struct cm_tree_made made;
	/* of files: what the stream had, and what links added to it */
	uint64_t n_carried;
	uint64_t n_linked;
	char top[NAME_MAX + 1];
	/* the directories that were entered, below the top */
	char *names[CM_FILE_DEPTH_MAX];
	size_t depth;
	bool is_in_top;
	/* the top is no directory, or the stream is over */
	bool is_over;
	struct cm_file_msg msg;
	/* of the path that is at work: its names, in text */
	char *parts[CM_FILE_DEPTH_MAX + 1];
	size_t n_parts;
	char text[CM_FILE_PATH_MAX + 1];
};

int cm_tree_sink_new(struct cm_file_receiver *to, const char *top, const struct cm_call *call,
		     struct cm_tree_sink **ret)
{
	struct cm_tree_sink *sink = cm_calloc(1, sizeof(*sink));

	if (!sink)
		return CM_E_NOMEM;
	sink->to = to;
	sink->call = call;
	(void)snprintf(sink->top, sizeof(sink->top), "%s", top);
	*ret = sink;
	return CM_OK;
}

void cm_tree_sink_free(struct cm_tree_sink *sink)
{
	if (!sink)
		return;
	for (size_t i = 0; i < sink->depth; i++)
		free(sink->names[i]);
	free(sink->made.slots);
	free(sink);
}

/* It is not made, by what is said of it; the rest is. */
static int refuse(struct cm_tree_sink *sink, enum cm_file_step step, int error, const char *path)
{
	sink->to->has_failed = true;
	return sink->to->failed(sink->to->data, step, error, path);
}

/* --- paths ----------------------------------------------------------------------------------- */

/* Single names, in sink->parts. 0; EINVAL: it leads elsewhere; ENAMETOOLONG; ELOOP: too deep. */
static int split(struct cm_tree_sink *sink, const char *path)
{
	char *at;

	sink->n_parts = 0;
	if (path[0] == '/')
		return EINVAL;
	if (strlen(path) >= sizeof(sink->text))
		return ENAMETOOLONG;
	memcpy(sink->text, path, strlen(path) + 1);
	at = sink->text;
	while (*at != '\0') {
		size_t len = strcspn(at, "/");
		char *next = at + len + (at[len] == '/' ? 1 : 0);

		at[len] = '\0';
		if (len > 0 && strcmp(at, ".") != 0) {
			if (len > NAME_MAX)
				return ENAMETOOLONG;
			if (!cm_file_name_is_single(at))
				return EINVAL;
			if (sink->n_parts == CM_ARRAY_SIZE(sink->parts))
				return ELOOP;
			sink->parts[sink->n_parts++] = at;
		}
		at = next;
	}
	return 0;
}

/* The same without the top's name; EINVAL: it is not below the top, too. */
static int split_below(struct cm_tree_sink *sink, const char *path)
{
	int error = split(sink, path);

	if (error != 0 || sink->top[0] == '\0')
		return error;
	if (sink->n_parts == 0 || strcmp(sink->parts[0], sink->top) != 0)
		return EINVAL;
	sink->n_parts--;
	memmove(&sink->parts[0], &sink->parts[1], sink->n_parts * sizeof(sink->parts[0]));
	return 0;
}

/* --- frames ---------------------------------------------------------------------------------- */

static int send_plain(struct cm_tree_sink *sink, enum cm_file_frame_type type, uint16_t flags,
		      uint64_t value)
{
	struct cm_file_msg *msg = &sink->msg;

	msg->type = (uint16_t)type;
	msg->flags = flags;
	msg->value = value;
	msg->data = NULL;
	msg->len = 0;
	return cm_file_receiver_take(sink->to, msg);
}

static int send_data(struct cm_tree_sink *sink, const void *bytes, size_t len)
{
	struct cm_file_msg *msg = &sink->msg;

	if (len == 0)
		return 0;
	msg->type = CM_FRAME_DATA;
	msg->flags = 0;
	msg->value = 0;
	msg->data = bytes;
	msg->len = len;
	return cm_file_receiver_take(sink->to, msg);
}

/* name: "" at the top, whose name is the receiver's */
static int send_entry(struct cm_tree_sink *sink, uint32_t mode, const char *name,
		      const char *target, int64_t sec, long nsec)
{
	struct cm_file_msg *msg = &sink->msg;

	msg->type = CM_FRAME_ENTRY;
	msg->flags = 0;
	msg->value = 0;
	msg->data = NULL;
	msg->len = 0;
	memset(&msg->body.entry, 0, sizeof(msg->body.entry));
	msg->body.entry.mode = mode;
	msg->body.entry.mtime_sec = sec;
	msg->body.entry.mtime_nsec = nsec >= 0 && nsec < 1000000000 ? (uint32_t)nsec : 0;
	(void)snprintf(msg->name, sizeof(msg->name), "%s", name);
	msg->name_len = strlen(msg->name);
	(void)snprintf(msg->target, sizeof(msg->target), "%s", target ? target : "");
	msg->target_len = strlen(msg->target);
	return cm_file_receiver_take(sink->to, msg);
}

static int send_like(struct cm_tree_sink *sink, struct archive_entry *entry, const char *name,
		     const char *target)
{
	uint32_t mode = (uint32_t)archive_entry_filetype(entry) |
			((uint32_t)archive_entry_perm(entry) & 07777U);

	return send_entry(sink, mode, name, target,
			  archive_entry_mtime_is_set(entry) ? archive_entry_mtime(entry) : 0,
			  archive_entry_mtime_is_set(entry) ? archive_entry_mtime_nsec(entry) : 0);
}

/* --- directories ----------------------------------------------------------------------------- */

static int leave_to(struct cm_tree_sink *sink, size_t depth)
{
	int e = 0;

	while (e == 0 && sink->depth > depth) {
		e = send_plain(sink, CM_FRAME_LEAVE, 0, 0);
		sink->depth--;
		free(cm_ptr_take(&sink->names[sink->depth]));
	}
	return e;
}

static int enter(struct cm_tree_sink *sink, const char *name, struct archive_entry *entry)
{
	char *copy = cm_strdup(name);
	int e;

	if (!copy)
		return -ENOMEM;
	e = entry ? send_like(sink, entry, name, NULL)
		  : send_entry(sink, USUAL_MODE, name, NULL, 0, 0);
	if (e < 0) {
		free(copy);
		return e;
	}
	sink->names[sink->depth++] = copy;
	return 0;
}

static int enter_top(struct cm_tree_sink *sink, struct archive_entry *entry)
{
	int e = entry ? send_like(sink, entry, "", NULL)
		      : send_entry(sink, USUAL_MODE, "", NULL, 0, 0);

	sink->is_in_top = e == 0;
	return e;
}

/* To the directory that holds the last of the parts. */
static int go_there(struct cm_tree_sink *sink)
{
	size_t same = 0;
	size_t wanted = sink->n_parts - 1;
	int e = sink->is_in_top ? 0 : enter_top(sink, NULL);

	while (same < sink->depth && same < wanted &&
	       strcmp(sink->names[same], sink->parts[same]) == 0)
		same++;
	if (e == 0)
		e = leave_to(sink, same);
	while (e == 0 && sink->depth < wanted)
		e = enter(sink, sink->parts[sink->depth], NULL);
	return e;
}

/* --- content --------------------------------------------------------------------------------- */

static int end_file(struct cm_tree_sink *sink, bool is_whole)
{
	const struct cm_file_receiver *to = sink->to;
	uint64_t before = to->n_entries;
	struct stat st = { .st_ino = 0 };
	int e;

	if (to->fd >= 0 && fstat(to->fd, &st) < 0)
		st.st_ino = 0;
	e = send_plain(sink, CM_FRAME_END, is_whole ? 0 : CM_FRAMEF_FAILED, 0);
	return e == 0 && to->n_entries > before ? cm_tree_made_add(&sink->made, &st) : e;
}

static int send_content(struct cm_tree_sink *sink, struct archive *a, struct archive_entry *entry)
{
	int64_t size = archive_entry_size(entry);
	int64_t at = 0;
	int e = 0;

	while (e == 0) {
		const void *bytes = NULL;
		size_t len = 0;
		la_int64_t offset = 0;
		int r;

		e = cm_tree_check(sink->call);
		if (e < 0)
			return e;
		r = archive_read_data_block(a, &bytes, &len, &offset);
		if (r == ARCHIVE_EOF)
			break;
		if (r < ARCHIVE_WARN) {
			e = end_file(sink, false);
			return e < 0 ? e : -EIO;
		}
		if (offset < at || (uint64_t)offset > (uint64_t)INT64_MAX - len) {
			e = end_file(sink, false);
			return e < 0 ? e : -EBADMSG;
		}
		if (offset > at)
			e = send_plain(sink, CM_FRAME_HOLE, 0, (uint64_t)(offset - at));
		if (e == 0)
			e = send_data(sink, bytes, len);
		at = offset + (int64_t)len;
		sink->n_carried += len;
	}
	if (e == 0 && size > at)
		e = send_plain(sink, CM_FRAME_HOLE, 0, (uint64_t)(size - at));
	return e < 0 ? e : end_file(sink, true);
}

/* --- hard links ------------------------------------------------------------------------------ */

/* A directory of a path below the top. A descriptor, or -errno. */
static int open_above(struct cm_tree_sink *sink)
{
	const char *top = sink->to->top_name;
	int dir = openat(sink->to->top_fd, top[0] ? top : ".",
			 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	for (size_t i = 0; dir >= 0 && i + 1 < sink->n_parts; i++) {
		int below = openat(dir, sink->parts[i],
				   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		int error = errno;

		cm_fd_close(&dir);
		errno = error;
		dir = below;
	}
	return dir < 0 ? -errno : dir;
}

/*
 * What an earlier entry of this archive made, by its path below the top. A descriptor; -EXDEV: it made
 * nothing of that name; or -errno.
 */
static int open_made(struct cm_tree_sink *sink, const char *path, struct stat *ret)
{
	CM_AUTO_FD int dir = -1;
	CM_AUTO_FD int fd = -1;
	const char *name;

	if (split_below(sink, path) != 0 || sink->n_parts == 0)
		return -EXDEV;
	name = sink->parts[sink->n_parts - 1];
	dir = open_above(sink);
	if (dir < 0)
		return dir == -EMFILE || dir == -ENFILE || dir == -EACCES ? dir : -EXDEV;
	/* before it is opened: what is somebody else's is not even touched */
	if (fstatat(dir, name, ret, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(ret->st_mode) ||
	    !cm_tree_made_has(&sink->made, ret))
		return -EXDEV;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, ret) < 0)
		return -errno;
	return S_ISREG(ret->st_mode) && cm_tree_made_has(&sink->made, ret) ? cm_fd_take(&fd)
									   : -EXDEV;
}

static bool may_add(const struct cm_tree_sink *sink, uint64_t len)
{
	return sink->n_linked + len <= sink->n_carried + CM_TREE_LINKED_MORE;
}

/* Data at `at` or behind it; without any both are the end. Where holes are not known all is data. */
static void find_data(int fd, off_t at, off_t size, off_t *ret_from, off_t *ret_to)
{
	off_t from = lseek(fd, at, SEEK_DATA);
	off_t to;

	if (from < 0)
		from = errno == ENXIO ? size : at;
	if (from > size)
		from = size;
	to = lseek(fd, from, SEEK_HOLE);
	*ret_from = from;
	*ret_to = to <= from || to > size ? size : to;
}

/* 0; a positive errno: the file cannot be had, and the rest goes on; -errno: nothing does. */
static int copy_data(struct cm_tree_sink *sink, int fd, char *buf, off_t from, off_t to)
{
	int e = 0;

	while (e == 0 && from < to) {
		size_t len = to - from < (off_t)COPY_SIZE ? (size_t)(to - from) : COPY_SIZE;
		ssize_t n;

		e = cm_tree_check(sink->call);
		if (e < 0)
			return e;
		if (!may_add(sink, len))
			return EFBIG;
		n = pread(fd, buf, len, from);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : EIO;
		sink->n_linked += (uint64_t)n;
		from += n;
		e = send_data(sink, buf, (size_t)n);
	}
	return e;
}

/* Holes stay holes. As copy_data. */
static int copy_content(struct cm_tree_sink *sink, int fd, off_t size)
{
	CM_AUTO_FREE char *buf = cm_malloc(COPY_SIZE);
	off_t at = 0;
	int e = buf ? 0 : -ENOMEM;

	/* it has failed, which was told: nothing of it is needed */
	while (e == 0 && at < size && sink->to->fd >= 0) {
		off_t from;
		off_t to;

		find_data(fd, at, size, &from, &to);
		e = cm_tree_check(sink->call);
		if (e == 0 && from > at)
			e = send_plain(sink, CM_FRAME_HOLE, 0, (uint64_t)(from - at));
		if (e == 0)
			e = copy_data(sink, fd, buf, from, to);
		at = to;
	}
	return e;
}

/* name: as send_entry has it */
static int take_hard_link(struct cm_tree_sink *sink, const char *name, const char *target,
			  const char *path)
{
	/* the parts that name points into are those of another path afterwards */
	CM_AUTO_FREE char *copy = cm_strdup(name);
	CM_AUTO_FD int fd = -1;
	struct stat st;
	uint64_t allocated;
	int error;
	int e;

	if (!copy)
		return -ENOMEM;
	fd = open_made(sink, target, &st);
	if (fd < 0)
		return refuse(sink, CM_FILE_STEP_LINK, -fd, path);
	/* a guess, to begin none that will not be whole */
	allocated = (uint64_t)st.st_blocks * 512;
	if (!may_add(sink, allocated < (uint64_t)st.st_size ? allocated : (uint64_t)st.st_size))
		return refuse(sink, CM_FILE_STEP_LINK, EFBIG, path);
	e = send_entry(sink, st.st_mode, copy, NULL, st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	if (e < 0)
		return e;
	error = copy_content(sink, fd, st.st_size);
	if (error < 0)
		return error;
	e = end_file(sink, error == 0);
	return e < 0 || error == 0 ? e : refuse(sink, CM_FILE_STEP_LINK, error, path);
}

/* --- entries --------------------------------------------------------------------------------- */

static int take_file(struct cm_tree_sink *sink, struct archive *a, struct archive_entry *entry,
		     const char *name)
{
	int e = send_like(sink, entry, name, NULL);

	return e < 0 ? e : send_content(sink, a, entry);
}

/* One that is no directory and no hard link. */
static int take_leaf(struct cm_tree_sink *sink, struct archive *a, struct archive_entry *entry,
		     const char *name, const char *path)
{
	const char *target = archive_entry_symlink(entry);

	switch (archive_entry_filetype(entry)) {
	case AE_IFREG:
		return take_file(sink, a, entry, name);
	case AE_IFLNK:
		if (!target || target[0] == '\0' || strlen(target) > CM_FILE_PATH_MAX)
			return refuse(sink, CM_FILE_STEP_LINK, EINVAL, path);
		return send_like(sink, entry, name, target);
	default:
		return refuse(sink, CM_FILE_STEP_SPECIAL, 0, path);
	}
}

static int take_top(struct cm_tree_sink *sink, struct archive *a, struct archive_entry *entry,
		    const char *path)
{
	int e;

	if (sink->is_in_top || archive_entry_hardlink(entry))
		return refuse(sink, CM_FILE_STEP_CREATE, EEXIST, path);
	if (archive_entry_filetype(entry) == AE_IFDIR)
		return enter_top(sink, entry);
	e = take_leaf(sink, a, entry, "", path);
	sink->is_over = true;
	return e;
}

static int take_below(struct cm_tree_sink *sink, struct archive *a, struct archive_entry *entry,
		      const char *path)
{
	const char *target = archive_entry_hardlink(entry);
	const char *name = sink->parts[sink->n_parts - 1];
	bool is_directory = archive_entry_filetype(entry) == AE_IFDIR;
	int e;

	/* the top and this one included */
	if (sink->n_parts + (is_directory ? 1 : 0) > CM_FILE_DEPTH_MAX)
		return refuse(sink, CM_FILE_STEP_DEPTH, 0, path);
	e = go_there(sink);
	if (e < 0)
		return e;
	if (target)
		return take_hard_link(sink, name, target, path);
	if (!is_directory)
		return take_leaf(sink, a, entry, name, path);
	/* it is in it already */
	if (sink->depth == sink->n_parts && strcmp(sink->names[sink->depth - 1], name) == 0)
		return 0;
	e = leave_to(sink, sink->n_parts - 1);
	return e < 0 ? e : enter(sink, name, entry);
}

int cm_tree_sink_take(struct cm_tree_sink *sink, struct archive *a, struct archive_entry *entry)
{
	const char *path = archive_entry_pathname(entry);
	int e;

	/* a name that is not UTF-8 where it has to be */
	if (!path || path[0] == '\0')
		return refuse(sink, CM_FILE_STEP_CREATE, EILSEQ, "?");
	e = cm_tree_check(sink->call);
	if (e < 0)
		return e;
	e = split_below(sink, path);
	if (e == ELOOP)
		return refuse(sink, CM_FILE_STEP_DEPTH, 0, path);
	/* it is the name that leads out: there is no link to be kept as it is */
	if (e != 0)
		return refuse(sink, CM_FILE_STEP_CREATE, e, path);
	if (sink->is_over)
		return -EBADMSG;
	return sink->n_parts == 0 ? take_top(sink, a, entry, path)
				  : take_below(sink, a, entry, path);
}

int cm_tree_sink_end(struct cm_tree_sink *sink)
{
	int e = leave_to(sink, 0);

	if (e == 0 && sink->is_in_top) {
		sink->is_in_top = false;
		e = send_plain(sink, CM_FRAME_LEAVE, 0, 0);
	} else if (e == 0 && !sink->is_over) {
		e = -EBADMSG;
	}
	return e;
}
