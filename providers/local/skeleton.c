/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan's skeleton on this host: looked up by its name, made when it is not there.
 *
 * Made here with the caller's rights and before anything of the jail exists. Every name is made
 * below a directory that was opened without following a link, since a step may stand below a link
 * that another one makes.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/local/local_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"

/* a file that is copied is at most this large: the planner's own bound is lower */
#define COPY_MAX (64UL * 1024)

struct making {
	const struct cm_plan_builder *b;
	const struct cm_skeleton *skeleton;
	int root_fd;
	struct cm_error *err;
	int (*may_make)(void *data, struct cm_error *err);
	void *data;
};

static int fail(const struct making *m, const char *what, const char *path)
{
	cm_error_set(m->err, CM_E_SYS, errno, "cannot %s '%s' of the root file system", what, path);
	if (errno == ENOSPC || errno == EDQUOT)
		cm_error_hint(m->err, "free space on the file system of Casemate's runtime "
				      "directory");
	return CM_E_SYS;
}

/* Whatever the caller's umask. */
static int make_dir(const struct making *m, int dir_fd, const char *name, mode_t mode,
		    const char *path)
{
	if (mkdirat(dir_fd, name, 0700) < 0)
		return errno == EEXIST ? CM_OK : fail(m, "make", path);
	return fchmodat(dir_fd, name, mode, 0) < 0 ? fail(m, "set the mode of", path) : CM_OK;
}

/* The directory of an absolute path, each made that is missing; *ret_name is the last name. */
static int open_parent(const struct making *m, const char *path, int *ret_fd, const char **ret_name)
{
	CM_AUTO_FD int fd = openat(m->root_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *at = path + 1;

	for (;;) {
		char name[NAME_MAX + 1];
		size_t n = strcspn(at, "/");
		int next;
		int r;

		if (fd < 0)
			return fail(m, "open the directory of", path);
		if (at[n] == '\0')
			break;
		if (n >= sizeof(name)) {
			errno = ENAMETOOLONG;
			return fail(m, "make", path);
		}
		memcpy(name, at, n);
		name[n] = '\0';
		r = make_dir(m, fd, name, 0755, path);
		if (r < 0)
			return r;
		next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		cm_fd_close(&fd);
		fd = next;
		at += n + 1;
	}
	*ret_fd = cm_fd_take(&fd);
	*ret_name = at;
	return CM_OK;
}

static int make_file(const struct making *m, int dir_fd, const char *name,
		     const struct cm_plan_op *op, const void *data, size_t len, const char *path)
{
	const int flags = O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC;
	bool is_mount_point = (op->flags & CM_OPF_OPTIONAL) != 0;
	CM_AUTO_FD int fd = openat(dir_fd, name, flags, 0600);
	int r;

	if (fd < 0 && errno == EEXIST && is_mount_point)
		return CM_OK;
	/* what comes later wins */
	if (fd < 0 && errno == EEXIST && unlinkat(dir_fd, name, 0) == 0)
		fd = openat(dir_fd, name, flags, 0600);
	if (fd < 0)
		return fail(m, "make", path);
	r = cm_write_all(fd, data, len);
	if (r < 0) {
		errno = -r;
		return fail(m, "write", path);
	}
	return fchmod(fd, op->mode) < 0 ? fail(m, "set the mode of", path) : CM_OK;
}

/* The file that the planner saw, and no other; as root only what everybody may read. */
static bool is_planned(const struct cm_plan_op *op, const struct stat *st)
{
	return S_ISREG(st->st_mode) && (st->st_mode & S_IROTH) != 0 &&
	       st->st_dev == op->expect_dev && st->st_ino == op->expect_ino &&
	       cm_stat_changed_ns(st) == op->expect_ctime_ns &&
	       (uint64_t)st->st_size == op->expect_bytes;
}

static int make_copy(const struct making *m, int dir_fd, const char *name,
		     const struct cm_plan_op *op, const char *path)
{
	const char *source = m->b->strings.data + op->source;
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
				.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	CM_AUTO_FD int fd = cm_sys_openat2(AT_FDCWD, source, &how);
	CM_AUTO_FREE char *content = cm_malloc(COPY_MAX);
	struct stat st;
	ssize_t n;

	if (!content)
		return cm_error_set(m->err, CM_E_NOMEM, 0, "no memory for '%s'", source);
	if (fd < 0 || fstat(fd, &st) < 0)
		return cm_error_set(m->err, CM_E_ISOLATION, errno, "cannot read '%s'", source);
	n = cm_read_all(fd, content, COPY_MAX);
	if (!is_planned(op, &st) || n != (ssize_t)op->expect_bytes) {
		cm_error_set(m->err, CM_E_ISOLATION, 0, "'%s' was replaced while the jail was made",
			     source);
		cm_error_hint(m->err, "run the command again");
		return CM_E_ISOLATION;
	}
	return make_file(m, dir_fd, name, op, content, (size_t)n, path);
}

static int make_link(const struct making *m, int dir_fd, const char *name,
		     const struct cm_plan_op *op, const char *path)
{
	const char *text = m->b->strings.data + op->source;

	if (symlinkat(text, dir_fd, name) == 0)
		return CM_OK;
	if (errno != EEXIST || unlinkat(dir_fd, name, 0) < 0 || symlinkat(text, dir_fd, name) < 0)
		return fail(m, "make the link", path);
	return CM_OK;
}

static int make_node(const struct making *m, const struct cm_plan_op *op)
{
	const char *path = m->b->strings.data + op->target;
	CM_AUTO_FD int dir_fd = -1;
	const char *name = NULL;
	int r = open_parent(m, path, &dir_fd, &name);

	if (r < 0)
		return r;
	if (op->kind == CM_OP_DIR)
		return make_dir(m, dir_fd, name, op->mode, path);
	if (op->kind == CM_OP_COPY)
		return make_copy(m, dir_fd, name, op, path);
	if (op->kind == CM_OP_SYMLINK)
		return make_link(m, dir_fd, name, op, path);
	return make_file(m, dir_fd, name, op, m->b->strings.data + op->content, op->content_len,
			 path);
}

static int make_empties(const struct making *m, int dir_fd)
{
	const struct cm_plan_op unreadable = { .mode = 0 };
	int r = make_dir(m, dir_fd, CM_SKELETON_EMPTY_DIR, 0, CM_SKELETON_EMPTY_DIR);

	return r < 0 ? r
		     : make_file(m, dir_fd, CM_SKELETON_EMPTY_FILE, &unreadable, "", 0,
				 CM_SKELETON_EMPTY_FILE);
}

static int fill(int dir_fd, void *data, struct cm_error *err)
{
	struct making *m = data;
	CM_AUTO_FD int root_fd = -1;
	int r;

	m->err = err;
	r = m->may_make(m->data, err);
	if (r == CM_OK)
		r = make_empties(m, dir_fd);
	if (r == CM_OK)
		r = make_dir(m, dir_fd, CM_SKELETON_ROOT, 0755, "/");
	if (r < 0)
		return r;
	root_fd = openat(dir_fd, CM_SKELETON_ROOT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root_fd < 0)
		return fail(m, "open", "/");
	m->root_fd = root_fd;
	for (uint32_t i = 0; i < m->skeleton->n_ops && r == CM_OK; i++)
		r = make_node(m, &m->skeleton->ops[i]);
	return r;
}

int cm_local_skeleton(struct cm_local *l, struct cm_plan_builder *b, struct cm_skeleton *skeleton,
		      int (*may_make)(void *data, struct cm_error *err), void *data,
		      struct cm_error *err)
{
	struct cm_store_skeleton *found = &l->jail.skeleton;
	struct making m = { .b = b, .skeleton = skeleton, .may_make = may_make, .data = data };
	CM_AUTO_BUF struct cm_buf key = { 0 };
	int r = cm_skeleton_take(b, skeleton, err);

	if (r < 0)
		return r;
	cm_buf_init(&key, 2UL * CM_PLAN_MAX_STRINGS);
	cm_skeleton_key(b, skeleton, &key);
	r = cm_buf_status(&key);
	if (r < 0)
		return cm_error_set(err, r, 0, "no memory for the plan");
	cm_store_skeleton_close(found);
	r = cm_store_skeleton_open(&l->store, &key, fill, &m, found, err);
	if (r == CM_OK)
		cm_skeleton_use(b, found->dir);
	return r;
}
