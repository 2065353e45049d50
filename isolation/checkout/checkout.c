/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of a checkout: what can fail for the user's reasons (the source, the ref, the place)
 * comes before anything is written; refs are read before objects are copied (objects.c says why);
 * the name is given last.
 */
#include "isolation/checkout/checkout.h"

#include <string.h>

#include "isolation/checkout/host_git_tree.h"
#include "isolation/checkout/modules.h"
#include "isolation/checkout/objects.h"
#include "isolation/checkout/refs.h"
#include "isolation/checkout/resolve.h"
#include "isolation/checkout/source.h"
#include "isolation/checkout/target.h"
#include "isolation/checkout/tree.h"
#include "runtime/base/fd.h"

struct run {
	const struct cm_checkout_options *opts;
	struct cm_report *rep;
	struct cm_source source;
	struct cm_refs refs;
	struct cm_resolved resolved;
	struct cm_target target;
	bool is_partial_clone;
};

/* Of a mirror it was said when that was fetched, but for what is no matter of fetching. */
static int note_git(const struct run *run, struct cm_error *err)
{
	const struct cm_host_git_wants *wants = &run->opts->wants;
	const char *reasons[3];
	size_t n = 0;

	if (wants->has_lfs && !run->opts->origin)
		reasons[n++] = "Git LFS";
	if (wants->filters_blobs && !run->opts->origin)
		reasons[n++] = "partial clones";
	if (wants->sparse)
		reasons[n++] = "sparse checkouts";
	return n > 0 ? cm_host_git_note(run->rep, reasons, n, err) : CM_OK;
}

static int step_source(struct run *run, struct cm_error *err)
{
	int r = CM_OK;

	if (cm_host_git_is_wanted(&run->opts->wants))
		r = cm_host_git_check(run->opts->wants.has_lfs, err);
	if (r == CM_OK)
		r = cm_source_open(run->opts->source, &run->source, err);
	if (r == CM_OK)
		r = note_git(run, err);
	if (r == CM_OK && run->opts->wants_modules)
		r = cm_modules_want(run->rep, err);
	if (r != CM_OK)
		return r;
	r = cm_target_locate(run->opts->target, run->source.path, &run->target, err);
	if (r == CM_OK)
		cm_report_progress(run->rep, "open", 1, 1);
	return r;
}

static int step_refs(struct run *run, struct cm_error *err)
{
	const struct cm_wanted wanted = { .ref = run->opts->ref,
					  .pr = run->opts->pr,
					  .branch = run->opts->branch,
					  .is_mirror = run->opts->origin != NULL };
	int r = cm_refs_read(run->source.repo, &run->refs, err);

	if (r == CM_OK)
		r = cm_resolve_wanted(run->source.repo, &run->refs, &wanted, &run->resolved, err);
	if (r == CM_OK)
		cm_report_progress(run->rep, "refs", run->refs.n, run->refs.n);
	return r;
}

static int step_objects(struct run *run, struct cm_error *err)
{
	CM_AUTO_GIT_BUF git_buf path = GIT_BUF_INIT;
	CM_AUTO_FD int fd = -1;
	bool is_shallow = false;
	int r = cm_target_begin(&run->target, &run->resolved, err);

	if (r != CM_OK)
		return r;
	if (git_repository_item_path(&path, run->source.repo, GIT_REPOSITORY_ITEM_OBJECTS) < 0)
		return cm_library_error(err, "cannot find the objects of the source");
	r = cm_target_open_objects(&run->target, &fd, err);
	if (r == CM_OK)
		r = cm_objects_copy(path.ptr, fd, NULL, run->rep, &run->is_partial_clone, err);
	if (r == CM_OK)
		r = cm_target_copy_shallow(&run->target, git_repository_commondir(run->source.repo),
					   &is_shallow, err);
	if (r == CM_OK && is_shallow)
		r = cm_report_note(run->rep, err,
				   "the source is shallow: older commits are not there");
	return r;
}

/* Cheap, and it turns a store that was torn while we copied into an error now and not later. */
static int check_refs_arrived(struct run *run, struct cm_error *err)
{
	CM_AUTO_GIT(git_odb) git_odb *odb = NULL;

	if (git_repository_odb(&odb, run->target.repo) < 0)
		return cm_library_error(err, "cannot open the copied objects");
	for (size_t i = 0; i < run->refs.n; i++) {
		const struct cm_ref *ref = &run->refs.v[i];

		if (ref->kind == CM_REF_REMOTE || git_odb_exists(odb, &ref->oid))
			continue;
		cm_error_set(err, CM_E_CHECKOUT, 0, "object of '%s' is missing from the copy",
			     ref->name);
		cm_error_hint(err, "try again when nothing writes to the source; then check it "
				   "with 'git fsck'");
		return CM_E_CHECKOUT;
	}
	return CM_OK;
}

static const char *origin_of(const struct run *run)
{
	return run->opts->origin ? run->opts->origin : run->source.path;
}

static int write_by_git(struct run *run, struct cm_error *err)
{
	const struct cm_host_git_access access = { .has_lfs = run->opts->wants.has_lfs };
	const char *git_dir = git_repository_path(run->target.repo);
	struct cm_host_git git = CM_HOST_GIT_INIT;
	char hex[CM_HOST_GIT_HEX_SIZE];
	const struct cm_host_git_tree tree = {
		.wants = &run->opts->wants,
		.source = git_repository_commondir(run->source.repo),
		.dir = run->target.partial_path,
		.commit = git_oid_tostr(hex, sizeof(hex), &run->resolved.commit),
	};
	int r = cm_host_git_open(&git, &access, run->rep, err);

	if (r == CM_OK)
		r = cm_host_git_tree_checkout(&git, &tree, run->rep, err);
	cm_host_git_close(&git);
	return r == CM_OK
		       ? cm_tree_modules(git_dir, run->opts->wants_modules ? origin_of(run) : NULL,
					 run->rep, err)
		       : r;
}

static int step_write(struct run *run, struct cm_error *err)
{
	int r = check_refs_arrived(run, err);

	if (r == CM_OK)
		r = cm_target_write_refs(&run->target, origin_of(run), &run->refs, &run->resolved,
					 err);
	if (r != CM_OK || run->resolved.is_unborn)
		return r;
	if (cm_host_git_is_wanted(&run->opts->wants))
		return write_by_git(run, err);
	r = cm_tree_checkout(git_repository_path(run->target.repo), run->target.partial_path,
			     &run->resolved.commit,
			     run->opts->wants_modules ? origin_of(run) : NULL, run->rep, err);
	if (r == CM_E_CHECKOUT && run->is_partial_clone)
		cm_error_hint(err, "the source is a partial clone: run 'git fetch --refetch' in it "
				   "to have all objects there");
	return r;
}

/* Which of the two it was that --branch meant. */
static int note_branch(struct run *run, struct cm_error *err)
{
	const struct cm_checkout_options *opts = run->opts;
	const struct cm_resolved *res = &run->resolved;
	char hex[CM_OID_HEX_SIZE];

	if (!opts->branch || res->is_unborn)
		return CM_OK;
	if (!res->is_new_branch)
		return cm_report_note(
			run->rep, err,
			"branch '%s' exists in the source: it is checked out as it is "
			"there%s",
			res->branch, opts->ref || opts->pr > 0 ? ", and is not made anew" : "");
	git_oid_tostr(hex, sizeof(hex), &res->commit);
	return cm_report_note(run->rep, err,
			      "branch '%s' is new: it begins at '%s', with no upstream",
			      res->branch, res->ref ? res->ref : hex);
}

static int note_unborn(struct run *run, struct cm_error *err)
{
	const char *head = run->refs.head_name + strlen("refs/heads/");
	const char *branch = run->resolved.branch;
	bool is_other = strcmp(head, branch) != 0;

	return cm_report_note(run->rep, err,
			      "branch '%s' of the source has no commits: the checkout is "
			      "empty%s%s%s",
			      head, is_other ? ", on branch '" : "", is_other ? branch : "",
			      is_other ? "'" : "");
}

static int note_refs(struct run *run, struct cm_error *err)
{
	const struct cm_resolved *res = &run->resolved;
	int r = CM_OK;

	if (run->refs.broken > 0)
		r = cm_report_note(run->rep, err,
				   "%zu refs of the source name missing objects and are left out",
				   run->refs.broken);
	if (r == CM_OK && res->is_unborn)
		r = note_unborn(run, err);
	if (r == CM_OK)
		r = note_branch(run, err);
	if (r == CM_OK && !res->is_unborn && !res->branch && !res->ref && !run->opts->ref)
		r = cm_report_note(run->rep, err, "HEAD of the source is detached, so it is here");
	if (r == CM_OK && res->branch && res->ref && !res->has_upstream && !res->is_unborn &&
	    !res->is_new_branch && run->opts->pr == 0)
		r = cm_report_note(
			run->rep, err,
			"'%s' is not a branch of the source itself: '%s' has no upstream", res->ref,
			res->branch);
	return r;
}

static int step_finish(struct run *run, struct cm_error *err)
{
	struct cm_report *rep = run->rep;
	int r = note_refs(run, err);

	if (r != CM_OK)
		return r;
	rep->ref = cm_ptr_take(&run->resolved.ref);
	rep->branch = cm_ptr_take(&run->resolved.branch);
	if (!run->resolved.is_unborn)
		git_oid_tostr(rep->commit, sizeof(rep->commit), &run->resolved.commit);
	if (run->opts->place.checkout)
		r = cm_place_finish(&run->target, &run->opts->place, origin_of(run), err);
	else if (rep->n_modules > 0)
		r = cm_target_mark_incomplete(&run->target, err);
	if (r == CM_OK && !run->opts->place.checkout)
		r = cm_target_finish(&run->target, err);
	if (r == CM_OK)
		cm_report_progress(rep, "done", rep->files, rep->files);
	return r;
}

static int (*const steps[])(struct run *, struct cm_error *) = {
	step_source, step_refs, step_objects, step_write, step_finish,
};

int cm_checkout(const struct cm_checkout_options *opts, struct cm_report *rep, struct cm_error *err)
{
	struct run run = {
		.opts = opts,
		.rep = rep,
		.source = CM_SOURCE_INIT,
		.refs = CM_REFS_INIT,
		.resolved = CM_RESOLVED_INIT,
		.target = CM_TARGET_INIT,
	};
	int r = CM_OK;

	if (cm_host_git_is_sha256(opts->source))
		return cm_host_git_checkout(opts, rep, err);
	for (size_t i = 0; i < CM_ARRAY_SIZE(steps) && r == CM_OK; i++)
		r = steps[i](&run, err);
	cm_target_clear(&run.target);
	cm_resolved_clear(&run.resolved);
	cm_refs_clear(&run.refs);
	cm_source_clear(&run.source);
	return r;
}
