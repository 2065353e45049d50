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

#include "isolation/checkout/library.h"
#include "runtime/base/buf.h"

struct counter {
	/* paths of the first comparison, in the order of libgit2 */
	struct cm_strv staged;
	uint64_t n;
	bool is_second;
	bool is_out_of_memory;
};

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* 1: do not keep the delta, only its being there counts. Negative: stop. */
static int count_delta(const git_diff *diff, const git_diff_delta *delta, const char *pathspec,
		       void *payload)
{
	struct counter *c = payload;
	const char *path = delta->new_file.path ? delta->new_file.path : delta->old_file.path;

	(void)diff;
	(void)pathspec;
	if (c->is_second && c->staged.n > 0 &&
	    bsearch(&path, c->staged.v, c->staged.n, sizeof(*c->staged.v), compare_strings))
		return 1;
	if (!c->is_second && cm_strv_add(&c->staged, path) != CM_OK) {
		c->is_out_of_memory = true;
		return GIT_EUSER;
	}
	c->n++;
	return c->n >= CM_STATUS_MAX ? GIT_EUSER : 1;
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

static int compare(git_repository *repo, struct counter *c, struct cm_error *err)
{
	CM_AUTO_GIT(git_tree) git_tree *tree = NULL;
	CM_AUTO_GIT(git_diff) git_diff *staged = NULL;
	CM_AUTO_GIT(git_diff) git_diff *changed = NULL;
	git_diff_options opts = GIT_DIFF_OPTIONS_INIT;
	int r = head_tree(repo, &tree, err);

	if (r != CM_OK)
		return r;
	opts.flags = GIT_DIFF_IGNORE_SUBMODULES | GIT_DIFF_INCLUDE_UNTRACKED;
	opts.notify_cb = count_delta;
	opts.payload = c;
	r = git_diff_tree_to_index(&staged, repo, tree, NULL, &opts);
	if (r < 0 && r != GIT_EUSER)
		return cm_library_error(err, "cannot compare the index with HEAD");
	if (c->staged.n > 1)
		qsort(c->staged.v, c->staged.n, sizeof(*c->staged.v), compare_strings);
	c->is_second = true;
	r = c->n < CM_STATUS_MAX ? git_diff_index_to_workdir(&changed, repo, NULL, &opts) : 0;
	if (r < 0 && r != GIT_EUSER)
		return cm_library_error(err, "cannot compare the work tree with the index");
	return c->is_out_of_memory ? cm_error_set(err, CM_E_NOMEM, 0, "out of memory") : CM_OK;
}

int cm_status_count(const struct cm_source *src, uint64_t *ret, struct cm_error *err)
{
	CM_AUTO_GIT(git_repository) git_repository *repo = NULL;
	struct counter c = { .n = 0 };
	int r;

	/* src->repo was opened without its work tree */
	if (git_repository_open_ext(&repo, src->path, GIT_REPOSITORY_OPEN_NO_SEARCH, NULL) < 0)
		return cm_library_error(err, "cannot open repository '%s'", src->path);
	r = git_repository_is_bare(repo) ? CM_OK : compare(repo, &c, err);
	cm_strv_clear(&c.staged);
	if (r == CM_OK)
		*ret = c.n;
	return r;
}
