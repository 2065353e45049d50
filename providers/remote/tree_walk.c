/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree of this host as the bytes of a tar stream, made as they are asked for: one directory entry, or
 * one piece of a file, at a time. Below the top only single names are opened, and no link is followed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/keeper/file_link.h"
#include "providers/remote/tree_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"

#define PIECE (256U * 1024)
#define OUT_MAX (4UL * 1024 * 1024)
/* of one file: who has more holes gets them filled */
#define SEGMENTS_MAX 4096

struct level {
	DIR *dir;
	size_t path_len;
	size_t shown_len;
};

struct cm_tree_walk {
	const struct cm_tree_source *source;
	const struct cm_call *call;
	struct cm_tree_sent *sent;
	/* what cm_tree_check ended it with */
	int stopped;
	bool is_gnu;
	struct archive *a;
	struct archive_entry *entry;
	/* made, and not asked for yet, from `at` on */
	struct cm_buf out;
	size_t at;
	bool is_over;
	bool has_begun;
	/* the file that is being sent; -1: none */
	int fd;
	uint64_t left;
	char *piece;
	/* of the paths, when it is sent */
	size_t path_after;
	size_t shown_after;
	unsigned int depth;
	struct level levels[CM_FILE_DEPTH_MAX];
	/* in the archive; and as the caller names it */
	size_t path_len;
	char path[CM_FILE_PATH_MAX + 1];
	size_t shown_len;
	char shown[CM_FILE_PATH_MAX + 1];
};

static la_ssize_t keep(struct archive *a, void *data, const void *bytes, size_t len)
{
	struct cm_tree_walk *w = data;

	cm_buf_append(&w->out, bytes, len);
	if (cm_buf_status(&w->out) != CM_OK) {
		archive_set_error(a, ENOMEM, "out of memory");
		return -1;
	}
	return (la_ssize_t)len;
}

/* GNU's tar reads the one format, busybox's the other; both leave names as they are. */
static bool open_archive(struct cm_tree_walk *w)
{
	int r = w->is_gnu ? archive_write_set_format_pax(w->a)
			  : archive_write_set_format_gnutar(w->a);

	if (r == ARCHIVE_OK && w->is_gnu)
		r = archive_write_set_options(w->a, "pax:hdrcharset=BINARY");
	return r == ARCHIVE_OK && archive_write_set_bytes_per_block(w->a, 0) == ARCHIVE_OK &&
	       archive_write_open(w->a, w, NULL, keep, NULL) == ARCHIVE_OK;
}

int cm_tree_walk_new(const struct cm_tree_source *source, const char *to_name, bool is_gnu,
		     const struct cm_call *call, struct cm_tree_sent *sent,
		     struct cm_tree_walk **ret)
{
	struct cm_tree_walk *w = cm_calloc(1, sizeof(*w));

	if (!w)
		return CM_E_NOMEM;
	w->source = source;
	w->call = call;
	w->sent = sent;
	w->is_gnu = is_gnu;
	w->fd = -1;
	cm_buf_init(&w->out, OUT_MAX);
	(void)snprintf(w->path, sizeof(w->path), "%s", to_name);
	w->path_len = strlen(w->path);
	(void)snprintf(w->shown, sizeof(w->shown), "%s", source->path);
	w->shown_len = strlen(w->shown);
	w->a = archive_write_new();
	w->entry = archive_entry_new();
	w->piece = cm_malloc(PIECE);
	if (!w->a || !w->entry || !w->piece || !open_archive(w)) {
		cm_tree_walk_free(w);
		return CM_E_NOMEM;
	}
	*ret = w;
	return CM_OK;
}

void cm_tree_walk_free(struct cm_tree_walk *w)
{
	if (!w)
		return;
	while (w->depth > 0)
		(void)closedir(w->levels[--w->depth].dir);
	cm_fd_close(&w->fd);
	if (w->entry)
		archive_entry_free(w->entry);
	if (w->a)
		(void)archive_write_free(w->a);
	cm_buf_clear(&w->out);
	free(w->piece);
	free(w);
}

static int tell(struct cm_tree_walk *w, enum cm_file_step step, int error)
{
	w->sent->has_failed = true;
	return w->source->failed(w->source->data, step, error, w->shown);
}

/* --- paths ----------------------------------------------------------------------------------- */

static bool push(char *path, size_t *len, size_t size, const char *name)
{
	bool has_slash = *len == 0 || path[*len - 1] == '/';
	size_t more = strlen(name) + (has_slash ? 0 : 1);

	if (*len + more >= size)
		return false;
	if (!has_slash)
		path[(*len)++] = '/';
	memcpy(path + *len, name, strlen(name) + 1);
	*len += strlen(name);
	return true;
}

static void pop(struct cm_tree_walk *w, size_t path_len, size_t shown_len)
{
	w->path_len = path_len;
	w->path[path_len] = '\0';
	w->shown_len = shown_len;
	w->shown[shown_len] = '\0';
}

/* --- entries --------------------------------------------------------------------------------- */

/* 0; 1: it cannot be sent, which was told; -errno: of the stream. */
static int send_header(struct cm_tree_walk *w, const struct stat *st, const char *target)
{
	struct archive_entry *entry = w->entry;
	int r;

	archive_entry_set_filetype(entry, st->st_mode & S_IFMT);
	archive_entry_set_perm(entry, st->st_mode & CM_FILE_MODE_MASK);
	archive_entry_set_mtime(entry, st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
	archive_entry_set_size(entry, S_ISREG(st->st_mode) ? st->st_size : 0);
	archive_entry_copy_pathname(entry, w->path);
	if (target)
		archive_entry_copy_symlink(entry, target);
	r = archive_write_header(w->a, entry);
	archive_entry_clear(entry);
	if (r == ARCHIVE_FATAL)
		return archive_errno(w->a) == ENOMEM ? -ENOMEM : -EIO;
	if (r < ARCHIVE_WARN) {
		int e = tell(w, CM_FILE_STEP_READ, ENAMETOOLONG);

		return e < 0 ? e : 1;
	}
	w->sent->n_entries++;
	if ((st->st_mode & 07000) != 0)
		w->sent->n_stripped++;
	return 0;
}

/* Where it has data; what of it is not there is a hole. */
static void add_segments(struct cm_tree_walk *w, int fd, const struct stat *st)
{
	off_t at = 0;

	/* what is beyond its size is not taken */
	archive_entry_set_size(w->entry, st->st_size);
	if (!w->is_gnu || (uint64_t)st->st_blocks * 512 >= (uint64_t)st->st_size)
		return;
	for (int i = 0; at < st->st_size; i++) {
		off_t data = lseek(fd, at, SEEK_DATA);
		off_t hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);

		if (data < 0 && errno == ENXIO)
			break;
		if (data < 0 || hole < 0 || i == SEGMENTS_MAX) {
			archive_entry_sparse_clear(w->entry);
			return;
		}
		if (hole > st->st_size)
			hole = st->st_size;
		if (data < hole)
			archive_entry_sparse_add_entry(w->entry, data, hole - data);
		at = hole;
	}
	/* all of it a hole: the end of it is said */
	if (archive_entry_sparse_count(w->entry) == 0)
		archive_entry_sparse_add_entry(w->entry, st->st_size, 0);
}

static int begin_file(struct cm_tree_walk *w, int dirfd, const char *name)
{
	CM_AUTO_FD int fd =
		openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	int e;

	if (fd < 0)
		return tell(w, CM_FILE_STEP_OPEN, errno);
	if (fstat(fd, &st) < 0)
		return tell(w, CM_FILE_STEP_READ, errno);
	/* another one by now */
	if (!S_ISREG(st.st_mode))
		return tell(w, CM_FILE_STEP_SPECIAL, 0);
	add_segments(w, fd, &st);
	if (lseek(fd, 0, SEEK_SET) < 0)
		return tell(w, CM_FILE_STEP_READ, errno);
	e = send_header(w, &st, NULL);
	if (e != 0)
		return e < 0 ? e : 0;
	w->left = (uint64_t)st.st_size;
	w->fd = cm_fd_take(&fd);
	return 0;
}

static int send_link(struct cm_tree_walk *w, int dirfd, const char *name, const struct stat *st)
{
	char target[CM_FILE_PATH_MAX + 1];
	ssize_t n = readlinkat(dirfd, name, target, sizeof(target));
	int e;

	if (n < 0 || (size_t)n >= sizeof(target))
		return tell(w, CM_FILE_STEP_LINK, n < 0 ? errno : ENAMETOOLONG);
	target[n] = '\0';
	if (!w->source->keeps_links && (w->depth == 0 || !cm_file_link_stays(target, w->depth - 1)))
		return tell(w, CM_FILE_STEP_LEADS_OUT, 0);
	e = send_header(w, st, target);
	return e < 0 ? e : 0;
}

/* path_len, shown_len: what they are when it is left */
static int enter(struct cm_tree_walk *w, int dirfd, const char *name, size_t path_len,
		 size_t shown_len)
{
	CM_AUTO_FD int fd = -1;
	struct stat st;
	DIR *dir;
	int e = 0;

	if (w->depth == CM_FILE_DEPTH_MAX)
		return tell(w, CM_FILE_STEP_DEPTH, 0);
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return tell(w, CM_FILE_STEP_LIST, errno);
	/* "": the session's directory is what it is */
	if (w->path_len > 0)
		e = send_header(w, &st, NULL);
	if (e != 0)
		return e < 0 ? e : 0;
	dir = fdopendir(fd);
	if (!dir)
		return tell(w, CM_FILE_STEP_LIST, errno);
	(void)cm_fd_take(&fd);
	w->levels[w->depth++] =
		(struct level){ .dir = dir, .path_len = path_len, .shown_len = shown_len };
	return 0;
}

/* *ret_is_inside: it was entered, and its path stays. */
static int take(struct cm_tree_walk *w, int dirfd, const char *name, size_t path_len,
		size_t shown_len)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return tell(w, CM_FILE_STEP_STAT, errno);
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		return begin_file(w, dirfd, name);
	case S_IFDIR:
		return enter(w, dirfd, name, path_len, shown_len);
	case S_IFLNK:
		return send_link(w, dirfd, name, &st);
	default:
		return tell(w, CM_FILE_STEP_SPECIAL, 0);
	}
}

/* --- steps ----------------------------------------------------------------------------------- */

static int leave(struct cm_tree_walk *w)
{
	struct level *level = &w->levels[--w->depth];

	(void)closedir(level->dir);
	pop(w, level->path_len, level->shown_len);
	return 0;
}

static int next_entry(struct cm_tree_walk *w)
{
	struct level *level = &w->levels[w->depth - 1];
	size_t path_len = w->path_len;
	size_t shown_len = w->shown_len;
	unsigned int depth = w->depth;
	const struct dirent *entry;
	int e;

	errno = 0;
	entry = readdir(level->dir);
	if (!entry && errno != 0) {
		e = tell(w, CM_FILE_STEP_LIST, errno);
		return e < 0 ? e : leave(w);
	}
	if (!entry)
		return leave(w);
	if (!cm_file_name_is_single(entry->d_name))
		return 0;
	if (!push(w->path, &w->path_len, sizeof(w->path), entry->d_name) ||
	    !push(w->shown, &w->shown_len, sizeof(w->shown), entry->d_name)) {
		pop(w, path_len, shown_len);
		return tell(w, CM_FILE_STEP_OPEN, ENAMETOOLONG);
	}
	e = take(w, dirfd(level->dir), entry->d_name, path_len, shown_len);
	w->path_after = path_len;
	w->shown_after = shown_len;
	if (w->depth == depth && w->fd < 0)
		pop(w, path_len, shown_len);
	return e;
}

/* The size was promised: what is missing is zeros, and told. */
static int next_piece(struct cm_tree_walk *w)
{
	size_t want = w->left < PIECE ? (size_t)w->left : PIECE;
	ssize_t n = want > 0 ? read(w->fd, w->piece, want) : 0;
	int e = 0;

	if (n < 0 && errno == EINTR)
		return 0;
	if (n <= 0) {
		if (want > 0)
			e = tell(w, CM_FILE_STEP_READ, n < 0 ? errno : EIO);
		cm_fd_close(&w->fd);
		if (w->depth > 0)
			pop(w, w->path_after, w->shown_after);
		/* libarchive fills the entry up at the next header */
		return e;
	}
	if (archive_write_data(w->a, w->piece, (size_t)n) < 0)
		return -ENOMEM;
	w->left -= (uint64_t)n;
	w->sent->n_bytes += (uint64_t)n;
	return 0;
}

static int begin(struct cm_tree_walk *w)
{
	struct stat st;

	w->has_begun = true;
	/* without a name it is what is in a directory */
	if (w->path_len == 0 &&
	    (fstatat(w->source->dirfd, w->source->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	     !S_ISDIR(st.st_mode)))
		return tell(w, CM_FILE_STEP_LIST, ENOTDIR);
	return take(w, w->source->dirfd, w->source->name, w->path_len, w->shown_len);
}

static int step(struct cm_tree_walk *w)
{
	if (!w->has_begun)
		return begin(w);
	if (w->fd >= 0)
		return next_piece(w);
	if (w->depth > 0)
		return next_entry(w);
	w->is_over = true;
	return archive_write_close(w->a) < ARCHIVE_WARN ? -ENOMEM : 0;
}

int cm_tree_walk_stopped(const struct cm_tree_walk *w)
{
	return w->stopped;
}

ssize_t cm_tree_walk_fill(void *data, void *buf, size_t size)
{
	struct cm_tree_walk *w = data;
	size_t n;

	while (w->at == w->out.len && !w->is_over) {
		int e;

		cm_buf_reset(&w->out);
		w->at = 0;
		/* a hole makes no bytes for as long as it lasts */
		w->stopped = cm_tree_check(w->call);
		e = w->stopped < 0 ? w->stopped : step(w);
		if (e < 0)
			return e;
	}
	n = w->out.len - w->at;
	if (n > size)
		n = size;
	if (n > 0)
		memcpy(buf, w->out.data + w->at, n);
	w->at += n;
	return (ssize_t)n;
}
