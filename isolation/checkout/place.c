/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/checkout/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/buf.h"
#include "runtime/base/fd.h"
#include "runtime/base/submodule.h"
#include "runtime/base/text.h"

#define MODULES "modules"

static int out_of_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

static int is_in_the_way(struct cm_error *err, const char *what, const char *path)
{
	cm_error_set(err, CM_E_INVALID, 0, "%s '%s'", what, path);
	cm_error_hint(err, "rename the submodule, or what is in its way, in the repository");
	return CM_E_INVALID;
}

int cm_place_check(const struct cm_place *place, struct cm_error *err)
{
	static const char prefix[] = ".git/" MODULES "/";

	if (!cm_submodule_is_path(place->path) || !cm_submodule_is_name(place->name) ||
	    (strcmp(place->git_dir, ".git") != 0 &&
	     (!cm_text_has_prefix(place->git_dir, prefix) ||
	      !cm_submodule_is_path(place->git_dir + sizeof(prefix) - 1))))
		return cm_error_set(err, CM_E_INVALID, 0, "there can be no such submodule");
	return CM_OK;
}

/* One component after the other: a jail's filter does not know openat2. */
static int open_below(int dir_fd, const char *path, int *ret_fd, struct cm_error *err)
{
	CM_AUTO_FREE char *copy = cm_strdup(path);
	CM_AUTO_FD int fd = -1;
	char *rest = copy;

	if (!copy)
		return out_of_memory(err);
	while (rest) {
		const char *component = strsep(&rest, "/");
		int next = openat(fd >= 0 ? fd : dir_fd, component,
				  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (next < 0 && (errno == ELOOP || errno == ENOTDIR))
			return is_in_the_way(err, "no directory of the checkout is at", path);
		if (next < 0)
			return cm_library_sys_error(err, errno, "cannot open '%s' in the checkout",
						    path);
		cm_fd_close(&fd);
		fd = next;
	}
	*ret_fd = cm_fd_take(&fd);
	return CM_OK;
}

/* One component of where git directories are; a git directory holds those of its own submodules. */
static int enter(int *fd, const char *component, const char *name, struct cm_error *err)
{
	int next;

	if (faccessat(*fd, "HEAD", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return is_in_the_way(err, "another submodule's git directory is in the way of",
				     name);
	if (mkdirat(*fd, component, 0777) < 0 && errno != EEXIST)
		return cm_library_sys_error(err, errno, "cannot make a directory for '%s'", name);
	next = openat(*fd, component, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (next < 0)
		return cm_library_sys_error(err, errno, "cannot open a directory for '%s'", name);
	cm_fd_close(fd);
	*fd = next;
	return CM_OK;
}

/* Makes what is missing of modules/NAME but its last component, which is *ret_base. */
static int open_modules(int checkout_fd, const struct cm_place *place, int *ret_fd,
			const char **ret_base, struct cm_error *err)
{
	CM_AUTO_FD int fd = -1;
	CM_AUTO_FD int super_fd = -1;
	CM_AUTO_FREE char *copy = cm_strdup(place->name);
	const char *slash = strrchr(place->name, '/');
	char *rest = copy;
	int r;

	if (!copy)
		return out_of_memory(err);
	if (slash)
		copy[slash - place->name] = '\0';
	r = open_below(checkout_fd, place->git_dir, &super_fd, err);
	if (r < 0)
		return r;
	if (mkdirat(super_fd, MODULES, 0777) < 0 && errno != EEXIST)
		return cm_library_sys_error(err, errno, "cannot make '%s/" MODULES "'",
					    place->git_dir);
	r = open_below(super_fd, MODULES, &fd, err);
	while (r == CM_OK && slash && rest)
		r = enter(&fd, strsep(&rest, "/"), place->name, err);
	if (r < 0)
		return r;
	if (faccessat(fd, "HEAD", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return is_in_the_way(err, "another submodule's git directory is in the way of",
				     place->name);
	*ret_fd = cm_fd_take(&fd);
	*ret_base = slash ? slash + 1 : place->name;
	return CM_OK;
}

static int open_work_parent(int checkout_fd, const char *path, int *ret_fd, const char **ret_base,
			    struct cm_error *err)
{
	const char *slash = strrchr(path, '/');
	CM_AUTO_FREE char *parent = cm_strdup(slash ? path : ".");

	if (!parent)
		return out_of_memory(err);
	if (slash)
		parent[slash - path] = '\0';
	*ret_base = slash ? slash + 1 : path;
	return open_below(checkout_fd, parent, ret_fd, err);
}

static void add_ups(struct cm_buf *out, const char *path)
{
	cm_buf_puts(out, "../");
	for (const char *s = path; *s != '\0'; s++) {
		if (*s == '/')
			cm_buf_puts(out, "../");
	}
}

static int set(git_config *config, const char *key, const char *value, struct cm_error *err)
{
	if (!key)
		return out_of_memory(err);
	if (git_config_set_string(config, key, value) < 0)
		return cm_library_error(err, "cannot write the submodule's configuration");
	return CM_OK;
}

/* Where its files are: relative, since a checkout may be moved. */
static int write_worktree(git_repository *repo, const struct cm_place *place, struct cm_error *err)
{
	CM_AUTO_GIT(git_config) git_config *config = NULL;
	CM_AUTO_BUF struct cm_buf value = { 0 };

	cm_buf_init(&value, 16384);
	add_ups(&value, place->git_dir);
	add_ups(&value, MODULES);
	add_ups(&value, place->name);
	cm_buf_puts(&value, place->path);
	if (cm_buf_status(&value) != CM_OK)
		return out_of_memory(err);
	if (git_repository_config(&config, repo) < 0)
		return cm_library_error(err, "cannot open the submodule's configuration");
	return set(config, "core.worktree", value.data, err);
}

/* What "git submodule init" writes; the file has nothing in it that this program did not write. */
static int write_super_config(const struct cm_place *place, const char *url, struct cm_error *err)
{
	CM_AUTO_GIT(git_config) git_config *config = NULL;
	CM_AUTO_FREE char *path = cm_asprintf("%s/%s/config", place->checkout, place->git_dir);
	CM_AUTO_FREE char *active = cm_asprintf("submodule.%s.active", place->name);
	CM_AUTO_FREE char *address = cm_asprintf("submodule.%s.url", place->name);
	int r;

	if (!path)
		return out_of_memory(err);
	if (git_config_open_ondisk(&config, path) < 0)
		return cm_library_error(err, "cannot open the superproject's configuration");
	r = set(config, active, "true", err);
	return r == CM_OK ? set(config, address, url, err) : r;
}

static int write_git_file(int dir_fd, const struct cm_place *place, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	int r;

	cm_buf_init(&text, 16384);
	cm_buf_puts(&text, "gitdir: ");
	add_ups(&text, place->path);
	cm_buf_printf(&text, "%s/" MODULES "/%s\n", place->git_dir, place->name);
	if (cm_buf_status(&text) != CM_OK)
		return out_of_memory(err);
	r = cm_replace_file_at(dir_fd, ".git", text.data, text.len, 0644, false);
	return r < 0 ? cm_library_sys_error(err, -r, "cannot write '%s/.git'", place->path) : CM_OK;
}

/* Not over a git directory that is there, and not into it either. */
static int move_git_dir(const struct cm_target *t, int modules_fd, const char *base,
			const struct cm_place *place, struct cm_error *err)
{
	struct stat st;

	if (fstatat(modules_fd, base, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return is_in_the_way(err, "there is a submodule's git directory already for",
				     place->name);
	if (renameat(t->partial_fd, ".git", modules_fd, base) < 0)
		return cm_library_sys_error(err, errno, "cannot move the git directory of '%s'",
					    place->path);
	return CM_OK;
}

/* rename(2) takes the place of a directory that is empty, and of nothing else. */
static int move_files(struct cm_target *t, int work_fd, const char *base,
		      const struct cm_place *place, struct cm_error *err)
{
	int r = write_git_file(t->partial_fd, place, err);

	if (r < 0)
		return r;
	if (renameat(t->parent_fd, t->partial_name, work_fd, base) == 0) {
		cm_fd_close(&t->partial_fd);
		return CM_OK;
	}
	if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR)
		return is_in_the_way(err, "something of the commit is in the submodule's place",
				     place->path);
	return cm_library_sys_error(err, errno, "cannot move the files of '%s'", place->path);
}

int cm_place_finish(struct cm_target *t, const struct cm_place *place, const char *url,
		    struct cm_error *err)
{
	CM_AUTO_FD int checkout_fd =
		open(place->checkout, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CM_AUTO_FD int modules_fd = -1;
	CM_AUTO_FD int work_fd = -1;
	const char *git_base = "";
	const char *work_base = "";
	int r;

	if (checkout_fd < 0)
		return cm_library_sys_error(err, errno, "cannot open '%s'", place->checkout);
	r = open_modules(checkout_fd, place, &modules_fd, &git_base, err);
	if (r == CM_OK)
		r = open_work_parent(checkout_fd, place->path, &work_fd, &work_base, err);
	if (r == CM_OK)
		r = write_worktree(t->repo, place, err);
	/* first: what says that it is initialized and is not there yet is completed by git itself */
	if (r == CM_OK)
		r = write_super_config(place, url, err);
	if (r == CM_OK)
		r = move_git_dir(t, modules_fd, git_base, place, err);
	if (r < 0)
		return r;
	r = move_files(t, work_fd, work_base, place, err);
	if (r < 0)
		(void)cm_remove_tree_at(modules_fd, git_base);
	return r;
}
