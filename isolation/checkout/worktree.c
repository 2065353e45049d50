/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/checkout/worktree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/fd.h"

/* in the scratch */
#define FILE_NAME "file"
#define DEPTH_MAX 64

/* What is in the way is left there: 1, as what could not be written */
#define LEFT 1

static int cannot_write(const char *path, int sys_errno, struct cm_error *err)
{
	return cm_library_sys_error(err, sys_errno, "cannot write '%s'", path);
}

/* Is it what was looked at? */
static bool is_still(const struct cm_change *c, int dir_fd, const char *name)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT && c->state == CM_CHANGE_ABSENT;
	if (c->state == CM_CHANGE_ABSENT)
		return S_ISDIR(st.st_mode);
	return st.st_ino == c->st.st_ino && st.st_size == c->st.st_size &&
	       st.st_mtim.tv_sec == c->st.st_mtim.tv_sec &&
	       st.st_mtim.tv_nsec == c->st.st_mtim.tv_nsec && st.st_mode == c->st.st_mode;
}

/* Directories that hold nothing any more, up to the top. */
static void remove_parents(const struct cm_existing *ex, const char *path)
{
	char dir[PATH_MAX];
	char *slash;

	(void)snprintf(dir, sizeof(dir), "%s", path);
	while ((slash = strrchr(dir, '/')) != NULL) {
		CM_AUTO_FD int parent_fd = -1;
		const char *base;

		int r;

		*slash = '\0';
		r = cm_changes_parent(ex, dir, &parent_fd, &base);
		if (r == 0 && unlinkat(parent_fd, base, AT_REMOVEDIR) < 0)
			r = -errno;
		if (r < 0 && r != -ENOENT)
			return;
	}
}

static int remove_file(const struct cm_change *c, int dir_fd, const char *name,
		       struct cm_error *err)
{
	/* a submodule with files stays, as git has it */
	if (c->old_mode == GIT_FILEMODE_COMMIT) {
		(void)unlinkat(dir_fd, name, AT_REMOVEDIR);
		return CM_OK;
	}
	if (!is_still(c, dir_fd, name))
		return LEFT;
	if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
		return cannot_write(c->path, errno, err);
	return CM_OK;
}

static int remove_old(struct cm_existing *ex, const struct cm_change *c, struct cm_error *err)
{
	CM_AUTO_FD int dir_fd = -1;
	const char *name;
	int r = cm_changes_parent(ex, c->path, &dir_fd, &name);

	if (r < 0 && r != -ENOENT && r != -ENOTDIR)
		return cannot_write(c->path, -r, err);
	if (r == 0 && c->state != CM_CHANGE_ABSENT)
		r = remove_file(c, dir_fd, name, err);
	if (r == LEFT || (r < 0 && dir_fd >= 0))
		return r;
	/* also of what is gone already: perhaps since a moment before a death */
	remove_parents(ex, c->path);
	return CM_OK;
}

/* One component after the other; no link is followed. 0, LEFT, or -errno. */
static int make_parents(struct cm_existing *ex, const char *path, int *ret_fd,
			const char **ret_base)
{
	char dir[PATH_MAX];

	for (const char *at = strchr(path, '/'); at; at = strchr(at + 1, '/')) {
		CM_AUTO_FD int parent_fd = -1;
		const char *base;
		int r;

		(void)snprintf(dir, sizeof(dir), "%.*s", (int)(at - path), path);
		r = cm_changes_parent(ex, dir, &parent_fd, &base);
		if (r < 0)
			return r == -ENOTDIR ? LEFT : r;
		if (mkdirat(parent_fd, base, 0777) < 0 && errno != EEXIST)
			return -errno;
	}
	*ret_fd = -1;
	return cm_changes_parent(ex, path, ret_fd, ret_base) == 0 ? 0 : LEFT;
}

/* Directories without files, in the place of one. Not empty: somebody was quicker, and it stays. */
static void remove_empty(int parent_fd, const char *name, int depth)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d) {
		if (fd >= 0)
			(void)close(fd);
		return;
	}
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): each directory is one thread's */
	while (depth < DEPTH_MAX && (e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			remove_empty(fd, e->d_name, depth + 1);
	}
	(void)closedir(d);
	(void)unlinkat(parent_fd, name, AT_REMOVEDIR);
}

/* In the scratch; 0 or -errno. */
static int make_file(struct cm_existing *ex, uint32_t mode, const struct cm_content *content)
{
	CM_AUTO_FD int fd = -1;

	(void)unlinkat(ex->scratch_fd, FILE_NAME, 0);
	if (mode == GIT_FILEMODE_LINK) {
		char target[PATH_MAX];

		if (content->len == 0 || content->len >= sizeof(target) ||
		    memchr(content->data, '\0', content->len))
			return -EINVAL;
		memcpy(target, content->data, content->len);
		target[content->len] = '\0';
		return symlinkat(target, ex->scratch_fd, FILE_NAME) < 0 ? -errno : 0;
	}
	fd = openat(ex->scratch_fd, FILE_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    mode == GIT_FILEMODE_BLOB_EXECUTABLE ? 0777 : 0666);
	return fd < 0 ? -errno : cm_write_all(fd, content->data, content->len);
}

/* 0, LEFT or -errno */
static int put(struct cm_existing *ex, const struct cm_change *c, int dir_fd, const char *name)
{
	int r;

	if (!is_still(c, dir_fd, name))
		return LEFT;
	if (c->state != CM_CHANGE_ABSENT && !S_ISDIR(c->st.st_mode))
		return renameat(ex->scratch_fd, FILE_NAME, dir_fd, name) < 0 ? -errno : 0;
	remove_empty(dir_fd, name, 0);
	r = renameat2(ex->scratch_fd, FILE_NAME, dir_fd, name, RENAME_NOREPLACE);
	if (r < 0 && errno == EEXIST)
		return LEFT;
	/* file systems without that flag: the look is then a moment older than the rename */
	if (r < 0 && (errno == EINVAL || errno == ENOSYS))
		r = renameat(ex->scratch_fd, FILE_NAME, dir_fd, name);
	return r < 0 ? -errno : 0;
}

static int make_submodule(const struct cm_change *c, int dir_fd, const char *name)
{
	if (c->state == CM_CHANGE_OLD && !S_ISDIR(c->st.st_mode) &&
	    (!is_still(c, dir_fd, name) || unlinkat(dir_fd, name, 0) < 0))
		return LEFT;
	return mkdirat(dir_fd, name, 0777) < 0 && errno != EEXIST ? -errno : 0;
}

static int write_file(struct cm_existing *ex, const struct cm_changes *changes,
		      const struct cm_change *c, int dir_fd, const char *name, struct cm_error *err)
{
	struct cm_content content;
	int r = cm_changes_content(ex, changes, c, true, &content, err);

	if (r == CM_OK) {
		r = make_file(ex, c->new_mode, &content);
		if (r == 0)
			r = put(ex, c, dir_fd, name);
		if (r < 0)
			r = cannot_write(c->path, -r, err);
	}
	cm_content_clear(&content);
	return r;
}

/* Fills in c->st. */
static int write_new(struct cm_existing *ex, const struct cm_changes *changes, struct cm_change *c,
		     struct cm_error *err)
{
	CM_AUTO_FD int dir_fd = -1;
	const char *name = "";
	int r = make_parents(ex, c->path, &dir_fd, &name);

	if (r == 0 && c->new_mode == GIT_FILEMODE_COMMIT)
		r = make_submodule(c, dir_fd, name);
	if (r < 0)
		return cannot_write(c->path, -r, err);
	if (r != LEFT && c->new_mode != GIT_FILEMODE_COMMIT && c->state != CM_CHANGE_NEW)
		r = write_file(ex, changes, c, dir_fd, name, err);
	if (r == 0 && fstatat(dir_fd, name, &c->st, AT_SYMLINK_NOFOLLOW) < 0)
		r = LEFT;
	return r;
}

static int forget_entry(git_index *index, const struct cm_change *c, struct cm_error *err)
{
	int r = git_index_remove(index, c->path, 0);

	if (r < 0 && r != GIT_ENOTFOUND)
		return cm_library_error(err, "cannot take '%s' out of the index", c->path);
	return CM_OK;
}

/* has_file: c->st is that of the file as the commit has it; else git is to look at it again. */
static int set_entry(git_index *index, const struct cm_change *c, bool has_file,
		     struct cm_error *err)
{
	git_index_entry e = { .mode = c->new_mode, .id = c->new_id, .path = c->path };

	if (has_file && c->new_mode != GIT_FILEMODE_COMMIT) {
		e.ctime = (git_index_time){ (int32_t)c->st.st_ctim.tv_sec,
					    (uint32_t)c->st.st_ctim.tv_nsec };
		e.mtime = (git_index_time){ (int32_t)c->st.st_mtim.tv_sec,
					    (uint32_t)c->st.st_mtim.tv_nsec };
		e.dev = (uint32_t)c->st.st_dev;
		e.ino = (uint32_t)c->st.st_ino;
		e.uid = c->st.st_uid;
		e.gid = c->st.st_gid;
		e.file_size = (uint32_t)c->st.st_size;
	}
	if (git_index_add(index, &e) < 0)
		return cm_library_error(err, "cannot add '%s' to the index", c->path);
	return CM_OK;
}

/* Of what stays the index says what the commit has, so that it shows as changed. */
static int index_left(git_index *index, const struct cm_change *c, struct cm_error *err)
{
	if (c->is_blocked && !c->is_old_in_index)
		return CM_OK;
	return c->new_mode != 0 ? set_entry(index, c, false, err) : forget_entry(index, c, err);
}

static int remove_one(struct cm_existing *ex, git_index *index, const struct cm_change *c,
		      struct cm_error *err)
{
	int r = c->is_blocked ? LEFT : remove_old(ex, c, err);

	if (r == LEFT)
		return index_left(index, c, err);
	return r == CM_OK ? forget_entry(index, c, err) : r;
}

static int write_one(struct cm_existing *ex, const struct cm_changes *changes, git_index *index,
		     struct cm_change *c, struct cm_error *err)
{
	int r = c->is_blocked ? LEFT : write_new(ex, changes, c, err);

	if (r == LEFT)
		return index_left(index, c, err);
	return r == CM_OK ? set_entry(index, c, true, err) : r;
}

int cm_worktree_write(struct cm_existing *ex, struct cm_changes *changes, git_index *index,
		      struct cm_report *rep, struct cm_error *err)
{
	uint64_t done = 0;
	int r = CM_OK;

	/* before anything comes in their place; what is below a directory comes before it so */
	for (size_t i = changes->n; i > 0 && r == CM_OK; i--) {
		if (changes->v[i - 1].new_mode != 0)
			continue;
		r = remove_one(ex, index, &changes->v[i - 1], err);
		cm_report_progress(rep, "files", ++done, changes->n);
	}
	for (size_t i = 0; i < changes->n && r == CM_OK; i++) {
		if (changes->v[i].new_mode == 0)
			continue;
		r = write_one(ex, changes, index, &changes->v[i], err);
		cm_report_progress(rep, "files", ++done, changes->n);
	}
	return r;
}

static bool is_racy(const git_index_entry *e, const struct stat *st)
{
	return e->file_size != 0 && (e->mtime.seconds > (int32_t)st->st_mtim.tv_sec ||
				     (e->mtime.seconds == (int32_t)st->st_mtim.tv_sec &&
				      e->mtime.nanoseconds >= (uint32_t)st->st_mtim.tv_nsec));
}

/* As git does it: of what has no size it looks at the content. */
int cm_worktree_keep_racy(git_index *index, const struct stat *st, struct cm_error *err)
{
	for (size_t i = 0; i < git_index_entrycount(index); i++) {
		const git_index_entry *e = git_index_get_byindex(index, i);
		git_index_entry copy = *e;

		if (GIT_INDEX_ENTRY_STAGE(e) != 0 || e->mode == GIT_FILEMODE_COMMIT ||
		    !is_racy(e, st))
			continue;
		copy.file_size = 0;
		if (git_index_add(index, &copy) < 0)
			return cm_library_error(err, "cannot write the index");
	}
	return CM_OK;
}
