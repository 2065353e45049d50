/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a repository is nowhere else.
 *
 * Mustn't be run outside a jail, as all of --status. Whoever wrote the repository can make it look
 * saved, by a remote-tracking branch of its own making: it is about accidents, and what is lost is
 * the writer's own work.
 */
#include "isolation/checkout/unsaved.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/path.h"

#define MODULE_DEPTH 4

CM_DEFINE_AUTO_GIT(git_revwalk)

struct walk {
	struct cm_status *status;
	unsigned int depth;
	struct cm_error *err;
};

static int count_repository(git_repository *repo, struct walk *walk);

/* So that a repository with a million of them costs no more than one with a thousand. */
static int add_stash(size_t index, const char *message, const git_oid *id, void *payload)
{
	struct cm_status *status = payload;

	(void)index;
	(void)message;
	(void)id;
	status->stashes++;
	return status->stashes >= CM_STATUS_MAX ? GIT_EUSER : 0;
}

static int count_stashes(git_repository *repo, struct cm_status *status, struct cm_error *err)
{
	int r = git_stash_foreach(repo, add_stash, status);

	if (r < 0 && r != GIT_EUSER && r != GIT_ENOTFOUND)
		return cm_library_error(err, "cannot read the stashes");
	return CM_OK;
}

/* What was fetched is elsewhere; a ref to anything else may be the only one. */
static bool is_saved(const char *name, bool has_stashes)
{
	return strncmp(name, "refs/remotes/", strlen("refs/remotes/")) == 0 ||
	       (has_stashes && strcmp(name, "refs/stash") == 0);
}

static int push_refs(git_repository *repo, git_revwalk *walk, bool has_stashes,
		     struct cm_error *err)
{
	CM_AUTO_GIT(git_reference_iterator) git_reference_iterator *refs = NULL;
	const char *name = NULL;
	git_oid id;
	int r = git_reference_iterator_new(&refs, repo);

	while (r == 0 && (r = git_reference_next_name(&name, refs)) == 0) {
		if (is_saved(name, has_stashes))
			continue;
		r = git_reference_name_to_id(&id, repo, name);
		/* a symbolic one may name a branch that is not there */
		if (r == GIT_ENOTFOUND)
			r = 0;
		else if (r == 0 && git_revwalk_push(walk, &id) < 0)
			return cm_library_error(err, "cannot read the history of '%s'", name);
	}
	return r == GIT_ITEROVER ? CM_OK : cm_library_error(err, "cannot read the refs");
}

static int push_head(git_repository *repo, git_revwalk *walk)
{
	/* of a branch, or of none; there may be no commit yet */
	int r = git_repository_head_unborn(repo);

	if (r == 0)
		return git_revwalk_push_head(walk);
	return r == 1 ? 0 : r;
}

static int count_commits(git_repository *repo, bool has_stashes, struct cm_status *status,
			 struct cm_error *err)
{
	CM_AUTO_GIT(git_revwalk) git_revwalk *walk = NULL;
	git_oid id;
	int r = git_revwalk_new(&walk, repo);

	if (r == 0 && push_refs(repo, walk, has_stashes, err) != CM_OK)
		return err ? err->code : CM_E_CHECKOUT;
	if (r == 0)
		r = push_head(repo, walk);
	if (r == 0)
		r = git_revwalk_hide_glob(walk, "refs/remotes/*");
	while (r == 0 && status->commits < CM_STATUS_MAX) {
		r = git_revwalk_next(&id, walk);
		status->commits += r == 0;
	}
	return r == 0 || r == GIT_ITEROVER ? CM_OK
					   : cm_library_error(err, "cannot read the history");
}

/* Their files and HEADs are anywhere, and maybe not shown here. */
static int check_worktrees(const git_repository *repo, struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_path_join(git_repository_commondir(repo), "worktrees");
	const struct dirent *e;
	size_t n = 0;
	DIR *dir = path ? opendir(path) : NULL;

	if (!path)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	if (!dir)
		return errno == ENOENT ? CM_OK
				       : cm_library_sys_error(err, errno,
							      "cannot list its linked worktrees");
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
	while ((e = readdir(dir)) != NULL)
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	(void)closedir(dir);
	return n == 0 ? CM_OK
		      : cm_error_set(err, CM_E_UNSUPPORTED, 0,
				     "it has linked worktrees, which are not looked at");
}

/* Such files were left out when work tree and index were compared. */
static int check_index(git_repository *repo, struct cm_error *err)
{
	CM_AUTO_GIT(git_index) git_index *index = NULL;
	size_t n;

	if (git_repository_index(&index, repo) < 0)
		return cm_library_error(err, "cannot read the index");
	n = git_index_entrycount(index);
	for (size_t i = 0; i < n; i++) {
		const git_index_entry *e = git_index_get_byindex(index, i);

		if ((e->flags & GIT_INDEX_ENTRY_VALID) != 0 ||
		    (e->flags_extended & GIT_INDEX_ENTRY_SKIP_WORKTREE) != 0)
			return cm_error_set(err, CM_E_UNSUPPORTED, 0,
					    "git is told not to look at '%s' (assume-unchanged, "
					    "skip-worktree, a sparse checkout)",
					    e->path);
	}
	return CM_OK;
}

/* Is its work tree, of which alone its superproject tells, where its superproject has it? */
static int check_place(git_submodule *module, const git_repository *repo, struct cm_error *err)
{
	const char *above = git_repository_workdir(git_submodule_owner(module));
	CM_AUTO_FREE char *path = above ? cm_path_join(above, git_submodule_path(module)) : NULL;

	if (path && cm_status_is_tree_at(repo, path))
		return CM_OK;
	return cm_error_set(err, CM_E_UNSUPPORTED, 0,
			    "the work tree of submodule '%s' is elsewhere",
			    git_submodule_path(module));
}

static int look_into(git_submodule *module, const char *name, void *payload)
{
	CM_AUTO_GIT(git_repository) git_repository *repo = NULL;
	struct walk *walk = payload;
	int r = git_submodule_open(&repo, module);

	(void)name;
	/* one that was never checked out has nothing to lose */
	if (r == GIT_ENOTFOUND)
		return 0;
	if (r < 0) {
		(void)cm_library_error(walk->err, "cannot open a submodule");
		return GIT_EUSER;
	}
	if (walk->depth == MODULE_DEPTH) {
		(void)cm_error_set(walk->err, CM_E_LIMIT, 0, "submodules deeper than %d",
				   MODULE_DEPTH);
		return GIT_EUSER;
	}
	if (check_place(module, repo, walk->err) != CM_OK)
		return GIT_EUSER;
	walk->depth++;
	r = count_repository(repo, walk) == CM_OK ? 0 : GIT_EUSER;
	walk->depth--;
	return r;
}

static int count_repository(git_repository *repo, struct walk *walk)
{
	const uint64_t stashes = walk->status->stashes;
	int r = check_worktrees(repo, walk->err);

	if (r == CM_OK)
		r = count_stashes(repo, walk->status, walk->err);
	/* refs/stash without its log is one that no list has */
	if (r == CM_OK)
		r = count_commits(repo, walk->status->stashes > stashes, walk->status, walk->err);
	if (r != CM_OK || git_repository_is_bare(repo))
		return r;
	r = check_index(repo, walk->err);
	if (r != CM_OK)
		return r;
	r = git_submodule_foreach(repo, look_into, walk);
	/* who ended it has said why */
	if (r == GIT_EUSER)
		return walk->err ? walk->err->code : CM_E_CHECKOUT;
	return r < 0 ? cm_library_error(walk->err, "cannot read the submodules") : CM_OK;
}

int cm_unsaved_count(git_repository *repo, struct cm_status *status, struct cm_error *err)
{
	struct walk walk = { status, 0, err };

	return count_repository(repo, &walk);
}
