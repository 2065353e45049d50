/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content of LFS files is copied into the checkout as other objects are: files, never links, under
 * the name that is its digest. git-lfs then finds it without a network, and checks it against what the
 * pointer says of its size.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/checkout/host_git_tree.h"
#include "isolation/checkout/pulse.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"

#define ID_LEN 64
#define CHUNK (8UL << 20)

struct copy {
	const struct cm_host_git_tree *tree;
	struct cm_report *rep;
	/* <source>/lfs/objects, -1: there is none; and the target's */
	int from_fd;
	int to_fd;
	/* "ID PATH", the files that are going to be there */
	struct cm_strv files;
};

static int not_here(const char *path, struct cm_error *err)
{
	cm_error_set(err, CM_E_NOT_FOUND, 0, "the LFS content of '%s' is not in the source", path);
	cm_error_hint(err, "run 'git lfs fetch' in it first, or leave --lfs out");
	return CM_E_NOT_FOUND;
}

static int copy_bytes(int from, int to, struct cm_error *err)
{
	/* in every jail sendfile is refused without one, as it may hold a pipe then */
	off_t at = 0;

	for (;;) {
		ssize_t n = sendfile(to, from, &at, CHUNK);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return cm_library_sys_error(err, errno, "cannot copy LFS content");
		if (n == 0)
			return CM_OK;
		cm_pulse_beat();
	}
}

/* dir/name below fd, made where it is not there. */
static int make_dir(int fd, const char *name, int *ret, struct cm_error *err)
{
	if (mkdirat(fd, name, 0777) < 0 && errno != EEXIST)
		return cm_library_sys_error(err, errno, "cannot create '%s' for LFS content", name);
	*ret = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret < 0 ? cm_library_sys_error(err, errno, "cannot open '%s'", name) : CM_OK;
}

/* "ab/cd", one component at a time, so that no link is followed. -1: it is not there. */
static int open_fan_out(int fd, const char *id)
{
	const char first[] = { id[0], id[1], '\0' };
	const char second[] = { id[2], id[3], '\0' };
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	CM_AUTO_FD int top = fd < 0 ? -1 : openat(fd, first, flags);

	return top < 0 ? -1 : openat(top, second, flags);
}

static int make_fan_out(int fd, const char *id, int *ret, struct cm_error *err)
{
	const char first[] = { id[0], id[1], '\0' };
	const char second[] = { id[2], id[3], '\0' };
	CM_AUTO_FD int top = -1;
	int r = make_dir(fd, first, &top, err);

	return r == CM_OK ? make_dir(top, second, ret, err) : r;
}

static int copy_one(const struct copy *c, const char *id, const char *path, struct cm_error *err)
{
	CM_AUTO_FD int from_dir = open_fan_out(c->from_fd, id);
	CM_AUTO_FD int to_dir = -1;
	CM_AUTO_FD int from = -1;
	CM_AUTO_FD int to = -1;
	/* the name without what comes after it */
	CM_AUTO_FREE char *name = cm_asprintf("%.*s", ID_LEN, id);
	struct stat st;
	int r;

	if (!name)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	if (from_dir >= 0)
		from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
		return not_here(path, err);
	r = make_fan_out(c->to_fd, id, &to_dir, err);
	if (r < 0)
		return r;
	to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	/* two files of the same content */
	if (to < 0 && errno == EEXIST)
		return CM_OK;
	if (to < 0)
		return cm_library_sys_error(err, errno, "cannot create LFS content");
	return copy_bytes(from, to, err);
}

/* "ID - PATH": a pointer, "ID * PATH" a file that is there. */
static int take_file(void *data, const char *line, size_t len)
{
	struct copy *c = data;

	if (len < ID_LEN + 4 || strspn(line, "0123456789abcdef") != ID_LEN || line[ID_LEN] != ' ' ||
	    line[ID_LEN + 2] != ' ')
		return CM_OK;
	if (!cm_host_git_is_in_cone(c->tree->wants->sparse, line + ID_LEN + 3))
		return CM_OK;
	return cm_strv_addf(&c->files, "%.*s %s", ID_LEN, line, line + ID_LEN + 3);
}

static int list_files(struct cm_host_git *g, struct copy *c, struct cm_error *err)
{
	const char *const argv[] = { "-C",     c->tree->dir,	"lfs", "ls-files",
				     "--long", c->tree->commit, NULL };
	struct cm_host_git_call call = {
		.argv = argv, .on_part = take_file, .data = c, .end = '\n'
	};
	int r = cm_host_git_run(g, &call, err);

	if (r == CM_OK && call.status != 0)
		r = cm_host_git_failed(&call, "list the LFS files", err);
	cm_buf_clear(&call.said);
	return r;
}

static int open_stores(struct copy *c, struct cm_error *err)
{
	CM_AUTO_FREE char *from = cm_path_join(c->tree->source, "lfs/objects");
	CM_AUTO_FREE char *git_dir = cm_path_join(c->tree->dir, ".git");
	CM_AUTO_FD int git_fd = -1;
	CM_AUTO_FD int lfs_fd = -1;
	int r;

	if (!from || !git_dir)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	c->from_fd = open(from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	git_fd = open(git_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (git_fd < 0)
		return cm_library_sys_error(err, errno, "cannot open '%s'", git_dir);
	r = make_dir(git_fd, "lfs", &lfs_fd, err);
	return r == CM_OK ? make_dir(lfs_fd, "objects", &c->to_fd, err) : r;
}

int cm_host_git_copy_lfs(struct cm_host_git *g, const struct cm_host_git_tree *tree,
			 struct cm_error *err)
{
	struct copy c = { .tree = tree, .rep = g->rep, .from_fd = -1, .to_fd = -1 };
	int r = list_files(g, &c, err);

	if (r == CM_OK && c.files.n > 0)
		r = open_stores(&c, err);
	for (size_t i = 0; i < c.files.n && r == CM_OK; i++) {
		r = copy_one(&c, c.files.v[i], c.files.v[i] + ID_LEN + 1, err);
		cm_report_progress(c.rep, "lfs", i + 1, c.files.n);
	}
	cm_fd_close(&c.from_fd);
	cm_fd_close(&c.to_fd);
	cm_strv_clear(&c.files);
	return r;
}
