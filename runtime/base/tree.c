/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removal of a tree that hostile code may have made.
 *
 * Theory of operation: depth first over a fixed number of frames, each a directory descriptor and
 * its position.  A directory deeper than that is renamed into the top one, which is scanned again
 * until nothing is left: 100,000 levels cost no more descriptors, stack or memory than 64.  Only
 * single names below a descriptor are ever used, and every directory is opened with the kernel
 * refusing symbolic links and mount points, so nothing outside the tree can be reached.
 */
#include <errno.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"

#define MAX_FRAMES 64
#define LISTING_SIZE 4096
#define MAX_SWAPS 64

#define ENTRY_DIRECTORY 4

struct frame {
	int fd;
	/* something in it was removed, or moved into it, since its listing was begun */
	bool has_changed;
	size_t pos;
	size_t len;
	char name[NAME_MAX + 1];
	_Alignas(struct cm_dirent) char listing[LISTING_SIZE];
};

struct remover {
	/* the directory that holds the tree, borrowed */
	int at;
	dev_t dev;
	int first_error;
	uint64_t serial;
	size_t n_frames;
	struct frame *frames;
};

static void note_error(struct remover *r, int e)
{
	if (r->first_error == 0)
		r->first_error = e;
}

/* A directory below dirfd on the same mount and not through a link. Descriptor or -errno. */
static int open_strict(const struct remover *r, int dirfd, const char *name, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned int)(flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
		.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH,
	};
	struct stat st;
	int fd = cm_sys_openat2(dirfd, name, &how);

	if (fd >= 0)
		return fd;
	/* a filter of a container manager may answer either for a call it does not know */
	if (errno != ENOSYS && errno != EPERM)
		return -errno;
	fd = openat(dirfd, name, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || st.st_dev != r->dev) {
		cm_fd_close(&fd);
		return -EXDEV;
	}
	return fd;
}

/* An O_PATH descriptor has no fchmod(2). */
static int chmod_path_fd(int fd, mode_t mode)
{
	char proc[64];

	if (cm_sys_fchmodat2(fd, "", mode, AT_EMPTY_PATH) == 0)
		return 0;
	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	return chmod(proc, mode) < 0 ? -errno : 0;
}

/* Give ourselves back the access that hostile code took from its own directory. */
static int open_locked(const struct remover *r, int dirfd, const char *name)
{
	CM_AUTO_FD int path_fd = open_strict(r, dirfd, name, O_PATH);
	int fd;

	if (path_fd < 0)
		return path_fd;
	if (chmod_path_fd(path_fd, 0700) < 0)
		return -EACCES;
	fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_dir(const struct remover *r, int dirfd, const char *name)
{
	int fd = open_strict(r, dirfd, name, O_RDONLY);
	struct stat st;

	if (fd == -EACCES)
		return open_locked(r, dirfd, name);
	/* readable is not enough: names go away only with write and search permission */
	if (fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700)
		(void)fchmod(fd, 0700);
	return fd;
}

static int parent_fd(const struct remover *r)
{
	return r->n_frames > 1 ? r->frames[r->n_frames - 2].fd : r->at;
}

static int push(struct remover *r, int dirfd, const char *name)
{
	struct frame *f = &r->frames[r->n_frames];
	int fd = open_dir(r, dirfd, name);

	if (fd < 0)
		return fd;
	f->fd = fd;
	f->has_changed = false;
	f->pos = 0;
	f->len = 0;
	(void)snprintf(f->name, sizeof(f->name), "%s", name);
	r->n_frames++;
	return 0;
}

/* Rename dirfd/name into the top directory under a name that is free there. 0 or -errno. */
static int move_to_top(struct remover *r, int dirfd, const char *name)
{
	int top_fd = r->frames[0].fd;
	char free_name[48];
	/* changing its ".." needs write permission on the directory itself: open_dir sees to it */
	int fd = open_dir(r, dirfd, name);

	if (fd < 0 && fd != -EMFILE && fd != -ENFILE)
		return fd;
	cm_fd_close(&fd);
	do {
		(void)snprintf(free_name, sizeof(free_name), ".cm-remove-%llu",
			       (unsigned long long)r->serial++);
		if (cm_sys_renameat2(dirfd, name, top_fd, free_name, RENAME_NOREPLACE) == 0) {
			r->frames[0].has_changed = true;
			return 0;
		}
	} while (errno == EEXIST);
	return -errno;
}

/* 0 when it is gone or its turn comes later, else -errno. */
static int remove_directory(struct remover *r, int dirfd, const char *name)
{
	int e;

	if (r->n_frames < MAX_FRAMES) {
		e = push(r, dirfd, name);
		if (e == 0)
			return 0;
		if (r->n_frames > 1 && (e == -EMFILE || e == -ENFILE))
			e = move_to_top(r, dirfd, name);
	} else {
		e = move_to_top(r, dirfd, name);
	}
	/* one that cannot be entered may yet be empty */
	if (e == 0 || unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	return e;
}

/* Remove what is no directory. -EISDIR when it is one. */
static int remove_file(const struct remover *r, int dirfd, const char *name)
{
	int fd;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	/* EPERM: what POSIX and some network file systems say for a directory */
	if (errno != EPERM)
		return -errno;
	fd = open_strict(r, dirfd, name, O_PATH);
	if (fd < 0)
		return -EPERM;
	cm_fd_close(&fd);
	return -EISDIR;
}

/* 0 when it is gone, or a directory whose turn comes, else -errno. */
static int remove_entry(struct remover *r, int dirfd, const char *name, bool is_directory)
{
	int e = -EISDIR;

	/* somebody may swap it for something else behind our back, and again */
	for (int i = 0; i < MAX_SWAPS; i++) {
		if (!is_directory)
			e = remove_file(r, dirfd, name);
		if (e != -EISDIR)
			return e;
		e = remove_directory(r, dirfd, name);
		if (e != -ENOTDIR && e != -ELOOP)
			return e == -ENOENT ? 0 : e;
		is_directory = false;
	}
	return e;
}

/* The frame's next entry; NULL at its end or when it cannot be listed. */
static const struct cm_dirent *next_entry(struct remover *r, struct frame *f)
{
	const struct cm_dirent *e;

	if (f->pos >= f->len) {
		ssize_t n = cm_sys_getdents64(f->fd, f->listing, sizeof(f->listing));

		if (n < 0 && errno != ENOENT)
			note_error(r, -errno);
		if (n <= 0)
			return NULL;
		f->pos = 0;
		f->len = (size_t)n;
	}
	e = (const struct cm_dirent *)(const void *)(f->listing + f->pos);
	f->pos += e->record_len;
	return e;
}

/* The top frame's listing is at its end: remove the directory, or list it again. */
static void finish_frame(struct remover *r)
{
	struct frame *f = &r->frames[r->n_frames - 1];
	int e = 0;

	if (unlinkat(parent_fd(r), f->name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		e = -errno;
	/* swapped for a link or a file while we were in it, and perhaps back again */
	if (e == -ENOTDIR)
		e = remove_file(r, parent_fd(r), f->name);
	if (e == -EISDIR)
		e = -ENOTEMPTY;
	/*
	 * What was moved here, and what a file system skipped because names went away while it
	 * was listed, is found by another round; rounds end because each must change something.
	 */
	if ((e == -ENOTEMPTY || e == -EEXIST) && f->has_changed && lseek(f->fd, 0, SEEK_SET) == 0) {
		f->has_changed = false;
		f->pos = 0;
		f->len = 0;
		return;
	}
	if (e < 0)
		note_error(r, e);
	cm_fd_close(&f->fd);
	r->n_frames--;
	if (e == 0 && r->n_frames > 0)
		r->frames[r->n_frames - 1].has_changed = true;
}

static void remove_frames(struct remover *r)
{
	while (r->n_frames > 0) {
		size_t depth = r->n_frames;
		struct frame *f = &r->frames[depth - 1];
		const struct cm_dirent *entry = next_entry(r, f);
		int e;

		if (!entry) {
			finish_frame(r);
			continue;
		}
		if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
			continue;
		e = remove_entry(r, f->fd, entry->name, entry->type == ENTRY_DIRECTORY);
		if (e < 0)
			note_error(r, e);
		else if (r->n_frames == depth)
			f->has_changed = true;
	}
}

int cm_remove_tree_at(int dirfd, const char *name)
{
	CM_AUTO_FD int own_fd = -1;
	CM_AUTO_FREE struct frame *frames = NULL;
	struct remover r = { 0 };
	const char *base;
	struct stat st;
	int e;

	e = cm_open_parent_at(dirfd, name, &own_fd, &base);
	if (e < 0)
		return e == -ENOENT ? 0 : e;
	r.at = own_fd >= 0 ? own_fd : dirfd;
	if (strlen(base) > NAME_MAX)
		return -ENAMETOOLONG;
	if (fstatat(r.at, ".", &st, 0) < 0)
		return -errno;
	r.dev = st.st_dev;
	/* touched only as deep as the tree is */
	frames = cm_malloc(MAX_FRAMES * sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	r.frames = frames;
	e = remove_entry(&r, r.at, base, false);
	if (e < 0)
		return e;
	remove_frames(&r);
	/* what could not be removed at first may be gone by now, and that is what was asked for */
	if (r.first_error < 0 && faccessat(r.at, base, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
	    errno == ENOENT)
		return 0;
	return r.first_error;
}
