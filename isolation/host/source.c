/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A repository that is to be checked out: where it is, and what else of the host has to be read for
 * it. A linked worktree has its objects elsewhere, in a directory that its .git file names. That
 * file is text which whoever made the tree chose, so it opens nothing by itself: the directory has
 * to name the tree back, from its place among the repository's worktrees (workspace_git.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/host/node.h"
#include "isolation/host/workspace_internal.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"

static int refuse_gitfile(const char *path, struct cm_error *err)
{
	cm_error_set(err, CM_E_CHECKOUT, 0,
		     "cannot check out '%s': the git directory that its '.git' file names is not "
		     "there, or does not name it back",
		     path);
	cm_error_hint(err, "'git worktree repair' in the repository that it belongs to mends one "
			   "that was moved; else give that repository and --ref");
	return CM_E_CHECKOUT;
}

static int refuse_below(const char *path, const char *top, struct cm_error *err)
{
	cm_error_set(err, CM_E_CHECKOUT, 0,
		     "cannot check out '%s': it is below the top level of its repository", path);
	cm_error_hint(err, "give the top level: --repo '%s'", top);
	return CM_E_CHECKOUT;
}

/* What is no repository, and lies in one, is a place in its tree. */
static int check_top(const struct cm_workspace_facts *facts, struct cm_error *err)
{
	CM_AUTO_FD int fd = cm_open(facts->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CM_AUTO_FREE char *top = NULL;
	struct stat st;

	if (fd < 0 || fstatat(fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0 || cm_looks_like_git(fd))
		return CM_OK;
	top = cm_path_git_top(facts->path);
	if (!top)
		return cm_facts_nomem(err);
	return strcmp(top, facts->path) == 0 ? CM_OK : refuse_below(facts->path, top, err);
}

/*
 * A linked worktree has two directories, of which the first must lie in the second: not only by
 * the names of links, since the second alone is shown.
 */
static int take_git_dir(const struct cm_workspace_facts *facts, struct cm_source_facts *source,
			struct cm_error *err)
{
	const struct cm_nodes *dirs = &facts->git_dirs;
	const char *shown = dirs->n > 0 ? dirs->v[dirs->n - 1].path : NULL;
	CM_AUTO_FREE char *worktrees = shown ? cm_path_join(shown, "worktrees") : NULL;

	if (!shown)
		return refuse_gitfile(facts->path, err);
	if (!worktrees)
		return cm_facts_nomem(err);
	if (dirs->n > 1 && !cm_path_is_below(dirs->v[0].path, worktrees))
		return refuse_gitfile(facts->path, err);
	if (cm_path_is_below(shown, facts->path))
		return CM_OK;
	source->git_dir = cm_strdup(shown);
	return source->git_dir ? CM_OK : cm_facts_nomem(err);
}

int cm_source_facts_read(const char *dir, struct cm_source_facts *ret, struct cm_error *err)
{
	struct cm_workspace_facts facts = { 0 };
	struct cm_source_facts source = { NULL, NULL };
	int r = cm_node_read(dir, &facts.node, err);

	if (r < 0)
		return r;
	facts.path = cm_strdup(facts.node.path);
	source.path = cm_strdup(facts.node.path);
	if (!facts.path || !source.path || cm_workspace_git_read(&facts) < 0)
		r = cm_facts_nomem(err);
	else
		r = facts.has_gitfile ? take_git_dir(&facts, &source, err) : check_top(&facts, err);
	cm_workspace_facts_clear(&facts);
	if (r < 0) {
		cm_source_facts_clear(&source);
		return r;
	}
	*ret = source;
	return CM_OK;
}

void cm_source_facts_clear(struct cm_source_facts *source)
{
	cm_ptr_free(&source->path);
	cm_ptr_free(&source->git_dir);
}
