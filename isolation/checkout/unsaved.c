/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a repository is nowhere else.
 *
 * Mustn't be run outside a jail, as all of --status. Whoever wrote the repository can make it look
 * saved, by a remote-tracking branch of its own making: it is about accidents, and what is lost is
 * the writer's own work.
 */
#include "isolation/checkout/unsaved.h"

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

static int start_walk(git_repository *repo, git_revwalk **ret)
{
	int r = git_revwalk_new(ret, repo);

	if (r == 0)
		r = git_revwalk_push_glob(*ret, "refs/heads/*");
	/* of a branch, or of none; there may be no commit yet */
	if (r == 0)
		r = git_repository_head_unborn(repo);
	if (r == 0)
		r = git_revwalk_push_head(*ret);
	else if (r == 1)
		r = 0;
	return r == 0 ? git_revwalk_hide_glob(*ret, "refs/remotes/*") : r;
}

static int count_commits(git_repository *repo, struct cm_status *status, struct cm_error *err)
{
	CM_AUTO_GIT(git_revwalk) git_revwalk *walk = NULL;
	git_oid id;
	int r = start_walk(repo, &walk);

	while (r == 0 && status->commits < CM_STATUS_MAX) {
		r = git_revwalk_next(&id, walk);
		status->commits += r == 0;
	}
	return r == 0 || r == GIT_ITEROVER ? CM_OK
					   : cm_library_error(err, "cannot read the history");
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
	walk->depth++;
	r = count_repository(repo, walk) == CM_OK ? 0 : GIT_EUSER;
	walk->depth--;
	return r;
}

static int count_repository(git_repository *repo, struct walk *walk)
{
	int r = count_stashes(repo, walk->status, walk->err);

	if (r == CM_OK)
		r = count_commits(repo, walk->status, walk->err);
	if (r != CM_OK || git_repository_is_bare(repo))
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
