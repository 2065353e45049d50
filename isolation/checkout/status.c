/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting uncommitted files.
 *
 * Mustn't be run outside a jail: here the work tree's own configuration is used (excludes,
 * attributes, line ends), because the answer would be wrong without it.
 */
#include "isolation/checkout/status.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "isolation/checkout/library.h"
#include "isolation/checkout/unsaved.h"

/* So that a tree with a million untracked files costs no more than one with a thousand. */
static int stop_at_limit(const git_diff *so_far, const git_diff_delta *delta, const char *pathspec,
			 void *payload)
{
	(void)delta;
	(void)pathspec;
	(void)payload;
	return git_diff_num_deltas(so_far) >= CM_STATUS_MAX ? GIT_EUSER : 0;
}

static const char *path_of(const git_diff *diff, size_t i)
{
	const git_diff_delta *delta = git_diff_get_delta(diff, i);

	return delta->new_file.path ? delta->new_file.path : delta->old_file.path;
}

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A file that is staged and then changed again is in both, and counts once. */
static uint64_t count_either(const git_diff *staged, const git_diff *changed)
{
	const char *paths[CM_STATUS_MAX] = { NULL };
	size_t n = git_diff_num_deltas(staged);
	size_t n_changed = git_diff_num_deltas(changed);
	uint64_t count = n;

	for (size_t i = 0; i < n; i++)
		paths[i] = path_of(staged, i);
	/* libgit2's own order depends on the source's core.ignorecase */
	qsort(paths, n, sizeof(*paths), compare_strings);
	for (size_t i = 0; i < n_changed; i++) {
		const char *path = path_of(changed, i);

		if (!bsearch(&path, paths, n, sizeof(*paths), compare_strings))
			count++;
	}
	return count < CM_STATUS_MAX ? count : CM_STATUS_MAX;
}

static int head_tree(git_repository *repo, git_tree **ret, struct cm_error *err)
{
	CM_AUTO_GIT(git_reference) git_reference *head = NULL;
	int r = git_repository_head(&head, repo);

	/* no commits: everything in the index is uncommitted */
	if (r == GIT_EUNBORNBRANCH || r == GIT_ENOTFOUND)
		return CM_OK;
	if (r < 0 || git_reference_peel((git_object **)ret, head, GIT_OBJECT_TREE) < 0)
		return cm_library_error(err, "cannot read HEAD");
	return CM_OK;
}

static uint64_t count_untracked(const git_diff *changed)
{
	size_t n = git_diff_num_deltas(changed);
	uint64_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += git_diff_get_delta(changed, i)->status == GIT_DELTA_UNTRACKED;
	return count;
}

static int compare(git_repository *repo, bool with_submodules, struct cm_status *ret,
		   struct cm_error *err)
{
	CM_AUTO_GIT(git_tree) git_tree *tree = NULL;
	CM_AUTO_GIT(git_diff) git_diff *staged = NULL;
	CM_AUTO_GIT(git_diff) git_diff *changed = NULL;
	git_diff_options opts = GIT_DIFF_OPTIONS_INIT;
	int r = head_tree(repo, &tree, err);

	if (r != CM_OK)
		return r;
	opts.flags = GIT_DIFF_INCLUDE_UNTRACKED;
	/* whatever the repository says of them itself */
	opts.ignore_submodules =
		with_submodules ? GIT_SUBMODULE_IGNORE_NONE : GIT_SUBMODULE_IGNORE_ALL;
	if (!with_submodules)
		opts.flags |= GIT_DIFF_IGNORE_SUBMODULES;
	opts.notify_cb = stop_at_limit;
	r = git_diff_tree_to_index(&staged, repo, tree, NULL, &opts);
	if (r == 0)
		r = git_diff_index_to_workdir(&changed, repo, NULL, &opts);
	if (r < 0 && r != GIT_EUSER)
		return cm_library_error(err, "cannot compare the work tree with HEAD");
	ret->uncommitted = r == GIT_EUSER ? CM_STATUS_MAX : count_either(staged, changed);
	ret->untracked = changed ? count_untracked(changed) : 0;
	return CM_OK;
}

static bool is_same(const char *a_path, const char *b_path)
{
	struct stat a;
	struct stat b;

	return stat(a_path, &a) == 0 && stat(b_path, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

bool cm_status_is_tree_at(const git_repository *repo, const char *path)
{
	const char *tree = git_repository_workdir(repo);

	return tree && is_same(tree, path);
}

int cm_status_read(const struct cm_source *src, bool with_unsaved, struct cm_status *ret,
		   struct cm_error *err)
{
	CM_AUTO_GIT(git_repository) git_repository *repo = NULL;
	int r = CM_OK;

	*ret = (struct cm_status){ .is_tree_known = true };
	/* src->repo was opened without its work tree */
	if (git_repository_open_ext(&repo, src->path, GIT_REPOSITORY_OPEN_NO_SEARCH, NULL) < 0)
		return cm_library_error(err, "cannot open repository '%s'", src->path);
	/*
	 * Is the work tree what was named? One that is elsewhere, as that of a git directory, is not
	 * shown in a jail: all its files would seem to be deleted. Nor has a ".git" that says it is
	 * bare no files beside it.
	 */
	if (cm_status_is_tree_at(repo, src->path))
		r = compare(repo, with_unsaved, ret, err);
	else
		ret->is_tree_known = git_repository_is_bare(repo) &&
				     is_same(git_repository_path(repo), src->path);
	return r == CM_OK && with_unsaved ? cm_unsaved_count(repo, ret, err) : r;
}
