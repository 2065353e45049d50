/* SPDX-License-Identifier: Apache-2.0 */
/*
 * git writes the files, in a jail without network and credential. It runs no hook and no filter but
 * git-lfs (host_git_config.c), which finds the content where it was copied to.
 */
#include "isolation/checkout/host_git_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/checkout/guard.h"
#include "isolation/checkout/lfs.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"

/* "git -C DIR CONFIG...", one key. */
static int set_key(struct cm_host_git *g, const char *dir, const char *key, const char *value,
		   struct cm_error *err)
{
	const char *const argv[] = { "-C", dir, "config", "--local", key, value, NULL };

	return cm_host_git_must(g, argv, err);
}

/* git in the session, and on the host, then keeps pointers in its commits as it should. */
static int keep_lfs(struct cm_host_git *g, const char *dir, struct cm_error *err)
{
	static const char *const keys[][2] = {
		{ "filter.lfs.clean", "git-lfs clean -- %f" },
		{ "filter.lfs.smudge", "git-lfs smudge -- %f" },
		{ "filter.lfs.process", "git-lfs filter-process" },
		{ "filter.lfs.required", "true" },
	};
	int r = CM_OK;

	for (size_t i = 0; i < CM_ARRAY_SIZE(keys) && r == CM_OK; i++)
		r = set_key(g, dir, keys[i][0], keys[i][1], err);
	return r;
}

static int mark_pack(int fd, const char *name, struct cm_error *err)
{
	CM_AUTO_FD int file = -1;

	if (!cm_text_matches("pack-*.promisor", name))
		return CM_OK;
	file = openat(fd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0444);
	return file < 0 ? cm_library_sys_error(err, errno, "cannot mark a pack of the checkout")
			: CM_OK;
}

/* The mark that what a pack names and lacks is with the remote: an empty file beside it. */
static int mark_packs(const struct cm_host_git_tree *tree, struct cm_error *err)
{
	CM_AUTO_FREE char *from = cm_path_join(tree->source, "objects/pack");
	CM_AUTO_FREE char *to = cm_path_join(tree->dir, ".git/objects/pack");
	CM_AUTO_FD int to_fd = -1;
	const struct dirent *entry;
	DIR *dir;
	int r = CM_OK;

	if (!from || !to)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	to_fd = open(to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dir = to_fd >= 0 ? opendir(from) : NULL;
	if (!dir)
		return cm_library_sys_error(err, errno, "cannot open the packs of the checkout");
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): a directory of this function's own */
	while (r == CM_OK && (entry = readdir(dir)) != NULL)
		r = mark_pack(to_fd, entry->d_name, err);
	(void)closedir(dir);
	return r;
}

static int keep_filter(struct cm_host_git *g, const struct cm_host_git_tree *tree,
		       struct cm_error *err)
{
	int r = set_key(g, tree->dir, "remote.origin.promisor", "true", err);

	if (r == CM_OK)
		r = set_key(g, tree->dir, "remote.origin.partialclonefilter", "blob:none", err);
	if (r == CM_OK)
		r = mark_packs(tree, err);
	if (r == CM_OK)
		r = cm_report_note(
			g->rep, err,
			"other versions of files, and files that are not checked out, are "
			"fetched by git in the session when it needs them: that takes "
			"--network host, --git rw and, of a private repository, a credential "
			"that is given to the session");
	return r;
}

/* Of a name that is not there git would make a checkout of the top's files alone. */
static int check_directory(struct cm_host_git *g, const struct cm_host_git_tree *tree,
			   const char *path, struct cm_error *err)
{
	CM_AUTO_FREE char *name = cm_asprintf("%s:%s", tree->commit, path);
	const char *const argv[] = { "-C", tree->dir, "cat-file", "-t", name, NULL };
	char type[16];
	int r;

	if (!name)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	r = cm_host_git_line(g, argv, type, sizeof(type), err);
	if (r < 0 || strcmp(type, "tree") == 0)
		return r;
	cm_error_set(err, CM_E_NOT_FOUND, 0, "there is no directory '%s' in what is checked out",
		     path);
	cm_error_hint(err, "%s",
		      type[0] == '\0' ? "--sparse takes directories, from the repository's top"
				      : "it is a file: name the directory that it is in");
	return CM_E_NOT_FOUND;
}

static int make_sparse(struct cm_host_git *g, const struct cm_host_git_tree *tree,
		       struct cm_error *err)
{
	CM_AUTO_FREE char *list = cm_strdup(tree->wants->sparse);
	CM_AUTO_BUF struct cm_buf in = { 0 };
	const char *const set[] = { "-C",     tree->dir,	   "sparse-checkout", "set",
				    "--cone", "--no-sparse-index", "--stdin",	      NULL };
	struct cm_host_git_call call = { .argv = set, .in = &in };
	char *rest = list;
	char *path;
	int r = list ? CM_OK : cm_error_set(err, CM_E_NOMEM, 0, "out of memory");

	cm_buf_init(&in, 2 * strlen(tree->wants->sparse) + 2);
	while (r == CM_OK && (path = strsep(&rest, "\n")) != NULL) {
		r = check_directory(g, tree, path, err);
		cm_buf_printf(&in, "%s\n", path);
	}
	if (r == CM_OK && cm_buf_status(&in) < 0)
		r = cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	if (r == CM_OK)
		r = cm_host_git_run(g, &call, err);
	if (r == CM_OK && call.status != 0)
		r = cm_host_git_failed(&call, "make a sparse checkout", err);
	cm_buf_clear(&call.said);
	return r;
}

static int write_files(struct cm_host_git *g, const struct cm_host_git_tree *tree,
		       struct cm_error *err)
{
	const char *const argv[] = { "-C",	   tree->dir, "checkout",
				     "--progress", "--force", "--no-recurse-submodules",
				     NULL };
	struct cm_host_git_call call = { .argv = argv };
	int r = cm_host_git_run(g, &call, err);

	if (r == CM_OK && call.status != 0)
		r = cm_host_git_failed(&call, "write the files", err);
	cm_buf_clear(&call.said);
	return r;
}

/* "TAG MODE ID STAGE\tPATH"; S: it is not in the work tree */
static int count_entry(void *data, const char *entry, size_t len)
{
	struct cm_report *rep = data;

	if (len < 8 || entry[0] == 'S')
		return CM_OK;
	if (cm_text_has_prefix(entry + 2, "160000 "))
		rep->submodules++;
	else
		rep->files++;
	return CM_OK;
}

/* What has its attribute, is small enough and begins like one. */
struct pointers {
	struct cm_report *rep;
	int dir_fd;
};

static bool is_pointer(int dir_fd, const char *path)
{
	char text[CM_LFS_POINTER_MAX + 1];
	CM_AUTO_FD int fd = -1;
	CM_AUTO_FD int parent = -1;
	const char *base;
	struct stat st;
	ssize_t n;

	if (cm_open_parent_at(dir_fd, path, &parent, &base) < 0)
		return false;
	fd = openat(parent >= 0 ? parent : dir_fd, base,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > CM_LFS_POINTER_MAX)
		return false;
	n = cm_read_all(fd, text, sizeof(text));
	return n > 0 && cm_lfs_is_pointer(text, (size_t)n);
}

static int count_pointer(void *data, const char *path, size_t len)
{
	struct pointers *p = data;

	if (len > 0 && is_pointer(p->dir_fd, path))
		p->rep->lfs_pointers++;
	return CM_OK;
}

static int count(struct cm_host_git *g, const struct cm_host_git_tree *tree, struct cm_error *err)
{
	const char *const all[] = { "-C", tree->dir, "ls-files", "-s", "-t", "-z", NULL };
	const char *const lfs[] = { "-C", tree->dir, "ls-files", "-z", "--", ":(attr:filter=lfs)",
				    NULL };
	CM_AUTO_FD int dir_fd = open(tree->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct pointers pointers = { g->rep, dir_fd };
	struct cm_host_git_call entries = { .argv = all, .on_part = count_entry, .data = g->rep };
	struct cm_host_git_call files = { .argv = lfs,
					  .on_part = count_pointer,
					  .data = &pointers };
	int r = cm_host_git_run(g, &entries, err);

	if (r == CM_OK && entries.status != 0)
		r = cm_host_git_failed(&entries, "list the files", err);
	if (r == CM_OK)
		r = cm_host_git_run(g, &files, err);
	cm_buf_clear(&entries.said);
	cm_buf_clear(&files.said);
	return r;
}

int cm_host_git_tree_checkout(struct cm_host_git *g, const struct cm_host_git_tree *tree,
			      struct cm_report *rep, struct cm_error *err)
{
	const struct cm_host_git_wants *wants = tree->wants;
	int r = CM_OK;

	cm_guard_phase(CM_GUARD_LOCAL);
	if (wants->filters_blobs)
		r = keep_filter(g, tree, err);
	if (r == CM_OK && wants->sparse)
		r = make_sparse(g, tree, err);
	if (r == CM_OK && wants->has_lfs)
		r = cm_host_git_copy_lfs(g, tree, err);
	if (r == CM_OK && wants->has_lfs)
		r = keep_lfs(g, tree->dir, err);
	if (r == CM_OK)
		r = write_files(g, tree, err);
	if (r == CM_OK)
		r = count(g, tree, err);
	return r == CM_OK ? cm_report_lfs(rep, err) : r;
}
