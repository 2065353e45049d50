/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the git directories of a workspace are. A .git file is text that whoever wrote the tree
 * chose, so a directory outside the workspace counts only when it names the workspace back: a
 * linked worktree's by its gitdir file and by its place in the common directory, a submodule's by
 * its core.worktree. No git library is asked and no configuration but that key is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "isolation/host/gitconfig.h"
#include "isolation/host/node.h"
#include "isolation/host/workspace_internal.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"

#define MAX_GITFILE 8192

bool cm_gitfile_parse(const char *text, const char *prefix, char *buf, size_t size)
{
	size_t n = strlen(prefix);
	size_t len;

	if (strncmp(text, prefix, n) != 0)
		return false;
	text += n;
	len = strcspn(text, "\n");
	if (text[len] == '\n' && text[len + 1] != '\0')
		return false;
	while (len > 0 && text[len - 1] == '\r')
		len--;
	if (len == 0 || len >= size)
		return false;
	memcpy(buf, text, len);
	buf[len] = '\0';
	return true;
}

/* Opens the directory that the file dir_fd/name names, relative to dir_fd; -1. */
static int open_named(int dir_fd, const char *name, const char *prefix)
{
	CM_AUTO_FREE char *text = NULL;
	char path[PATH_MAX];

	if (cm_read_text_at(dir_fd, name, MAX_GITFILE, &text) < 0 ||
	    !cm_gitfile_parse(text, prefix, path, sizeof(path)))
		return -1;
	return openat(dir_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool cm_looks_like_git(int fd)
{
	struct stat st;

	return fstatat(fd, "HEAD", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(fd, "objects", &st, 0) == 0 && S_ISDIR(st.st_mode) &&
	       fstatat(fd, "refs", &st, 0) == 0 && S_ISDIR(st.st_mode);
}

static int add_fd(struct cm_workspace_facts *facts, int fd)
{
	CM_AUTO_FREE char *path = cm_fd_real_path(fd);
	struct stat st;

	if (!path || fstat(fd, &st) < 0)
		return errno == ENOMEM ? CM_E_NOMEM : CM_OK;
	return cm_nodes_add(&facts->git_dirs, path, &st, NULL);
}

/* Does git_fd/gitdir name the workspace's .git file? */
static bool names_back(int git_fd, const struct stat *gitfile)
{
	CM_AUTO_FREE char *text = NULL;
	char path[PATH_MAX];
	struct stat st;

	return cm_read_text_at(git_fd, "gitdir", MAX_GITFILE, &text) == 0 &&
	       cm_gitfile_parse(text, "", path, sizeof(path)) &&
	       fstatat(git_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_same(&st, gitfile);
}

/*
 * A linked worktree's directory lies in <common>/worktrees: whoever could put it there could write
 * the common directory anyway. A commondir file alone could name any directory of the host.
 */
static int open_common(int git_fd)
{
	CM_AUTO_FD int common_fd = open_named(git_fd, "commondir", "");
	CM_AUTO_FREE char *path = cm_fd_real_path(git_fd);
	struct stat git;
	struct stat st;
	char name[NAME_MAX + sizeof("worktrees/")];

	if (common_fd < 0 || !path || fstat(git_fd, &git) < 0)
		return -1;
	(void)snprintf(name, sizeof(name), "worktrees/%s", cm_path_base(path));
	if (fstatat(common_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !is_same(&st, &git) ||
	    !cm_looks_like_git(common_fd))
		return -1;
	return cm_fd_take(&common_fd);
}

static int take_worktree(const struct cm_gitconfig_item *item, void *data)
{
	char *path = data;

	if (strcmp(item->section, "core") == 0 && item->subsection[0] == '\0' &&
	    strcmp(item->key, "worktree") == 0 && strlen(item->value) < PATH_MAX)
		(void)memcpy(path, item->value, strlen(item->value) + 1);
	return 0;
}

/* A submodule's directory names its worktree in its configuration. */
static bool is_submodule_of(int git_fd, const struct cm_node *workspace)
{
	CM_AUTO_FREE char *text = NULL;
	char path[PATH_MAX] = "";
	struct stat st;

	if (!cm_looks_like_git(git_fd) ||
	    cm_read_text_at(git_fd, "config", CM_GITCONFIG_MAX_BYTES, &text) < 0)
		return false;
	(void)cm_gitconfig_parse(text, strlen(text), take_worktree, path);
	return path[0] != '\0' && fstatat(git_fd, path, &st, 0) == 0 &&
	       st.st_dev == workspace->dev && st.st_ino == workspace->ino;
}

/* A git directory of the tree itself, which is shown and can be written anyway. */
static bool is_inside(const struct cm_workspace_facts *facts, int git_fd)
{
	CM_AUTO_FREE char *path = git_fd < 0 ? NULL : cm_fd_real_path(git_fd);

	return path && strcmp(path, facts->path) != 0 && cm_path_is_below(path, facts->path) &&
	       cm_looks_like_git(git_fd);
}

static int read_gitfile(struct cm_workspace_facts *facts, int fd, const struct stat *gitfile)
{
	CM_AUTO_FD int git_fd = open_named(fd, ".git", "gitdir: ");
	CM_AUTO_FD int common_fd = -1;
	int r;

	if (git_fd < 0)
		return cm_strv_addf(&facts->notes, "'%s/.git' names no git directory", facts->path);
	if (names_back(git_fd, gitfile))
		common_fd = open_common(git_fd);
	if (common_fd < 0 && !is_inside(facts, git_fd) && !is_submodule_of(git_fd, &facts->node))
		return cm_strv_addf(&facts->notes,
				    "'%s/.git' names a git directory that does not name it back: "
				    "it is not shown",
				    facts->path);
	r = add_fd(facts, git_fd);
	if (r == CM_OK && common_fd >= 0)
		r = add_fd(facts, common_fd);
	return r;
}

/*
 * What .git leads to is a git directory like another one as long as it lies in the workspace, where
 * the command could write it. The link itself cannot be made a mount.
 */
static int read_link(struct cm_workspace_facts *facts, int fd)
{
	CM_AUTO_FD int git_fd = openat(fd, ".git", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool is_ours = is_inside(facts, git_fd);
	int r = is_ours ? add_fd(facts, git_fd) : CM_OK;

	if (r < 0)
		return r;
	return cm_strv_addf(
		&facts->notes,
		is_ours ? "'%s/.git' is a symbolic link: what it leads to is protected, "
			  "but the command can put another one in its place"
			: "'%s/.git' is a symbolic link that leads to no git directory "
			  "in the workspace: it is not protected",
		facts->path);
}

int cm_workspace_git_read(struct cm_workspace_facts *facts)
{
	CM_AUTO_FREE char *path = NULL;
	CM_AUTO_FD int fd = -1;
	struct stat st;
	int r;

	fd = cm_open(facts->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstatat(fd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return CM_OK;
	if (S_ISDIR(st.st_mode)) {
		path = cm_path_join(facts->path, ".git");
		if (!path || cm_nodes_add(&facts->git_dirs, path, &st, NULL) < 0)
			return CM_E_NOMEM;
	} else if (S_ISREG(st.st_mode)) {
		facts->has_gitfile = true;
		r = read_gitfile(facts, fd, &st);
		if (r < 0)
			return r;
	} else if (S_ISLNK(st.st_mode)) {
		r = read_link(facts, fd);
		if (r < 0)
			return r;
	} else {
		return cm_strv_addf(&facts->notes,
				    "'%s/.git' is neither a directory nor a file: it is not "
				    "protected",
				    facts->path);
	}
	return CM_OK;
}
