/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/checkout/update.h"

#include <stdlib.h>
#include <string.h>

#include "isolation/checkout/existing.h"
#include "isolation/checkout/history.h"
#include "isolation/checkout/host_git_tree.h"
#include "isolation/checkout/incoming.h"
#include "isolation/checkout/source.h"
#include "isolation/checkout/switch.h"
#include "isolation/checkout/tracking.h"
#include "isolation/checkout/upstream.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

struct run {
	const struct cm_update_options *opts;
	struct cm_report *rep;
	struct cm_source source;
	struct cm_refs refs;
	struct cm_existing ex;
	/* of the source; nothing where only a branch of the checkout's own is wanted */
	struct cm_resolved resolved;
	/* its own branch that is wanted, and where that is */
	bool has_local;
	git_oid local;
};

static int out_of_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

static bool wants_switch(const struct run *run)
{
	const struct cm_wanted *wanted = &run->opts->wanted;

	return wanted->ref || wanted->pr > 0 || wanted->branch;
}

static int step_source(struct run *run, struct cm_error *err)
{
	int r;

	if (cm_host_git_is_sha256(run->opts->source)) {
		cm_error_set(err, CM_E_UNSUPPORTED, 0,
			     "a checkout of a SHA-256 repository is not updated from outside");
		cm_error_hint(err, "fetch and switch with git, in the session (--git rw, --network "
				   "host)");
		return CM_E_UNSUPPORTED;
	}
	r = cm_source_open(run->opts->source, &run->source, err);
	return r == CM_OK ? cm_refs_read(run->source.repo, &run->refs, err) : r;
}

static int step_open(struct run *run, struct cm_error *err)
{
	bool is_left;
	int r = cm_existing_open(run->opts->checkout, &run->ex, err);

	if (r < 0)
		return r;
	cm_report_progress(run->rep, "open", 1, 1);
	r = cm_existing_begin(&run->ex, &is_left, err);
	if (r == CM_OK && is_left)
		r = cm_switch_finish(&run->ex, run->rep, err);
	return r == CM_OK && is_left ? cm_existing_reset(&run->ex, err) : r;
}

/* false: there is no such branch in the checkout */
static bool find_local(struct run *run, const char *branch)
{
	CM_AUTO_FREE char *name = cm_asprintf("refs/heads/%s", branch);

	return name && git_reference_name_to_id(&run->local, run->ex.repo, name) == 0;
}

/* A branch that only the checkout has is no mistake in --branch, and one in --ref. */
static int step_resolve(struct run *run, struct cm_error *err)
{
	const struct cm_wanted *wanted = &run->opts->wanted;
	bool has_branch = false;
	int r = CM_OK;

	if (wanted->branch && find_local(run, wanted->branch))
		r = cm_resolve_branch(&run->refs, wanted->branch, &run->resolved, &has_branch, err);
	else if (wants_switch(run))
		r = cm_resolve_wanted(run->source.repo, &run->refs, wanted, &run->resolved, err);
	if (r == CM_E_NOT_FOUND && wanted->ref && !wanted->branch && find_local(run, wanted->ref))
		cm_error_hint(err, "the checkout has a branch of its own so called: --branch %s",
			      wanted->ref);
	if (r == CM_OK)
		cm_report_progress(run->rep, "refs", run->refs.n, run->refs.n);
	return r;
}

static int check_shallow(struct run *run, struct cm_error *err)
{
	if (!run->opts->is_unshallow)
		return CM_OK;
	if (!cm_incoming_is_shallow(&run->ex)) {
		cm_error_set(err, CM_E_INVALID, 0, "the checkout has all of its history");
		cm_error_hint(err, "leave --unshallow out");
		return CM_E_INVALID;
	}
	if (git_repository_is_shallow(run->source.repo) != 1)
		return CM_OK;
	cm_error_set(err, CM_E_INVALID, 0, "the repository itself lacks older commits");
	cm_error_hint(err, "complete it with 'git fetch --unshallow', or leave --unshallow out");
	return CM_E_INVALID;
}

static int step_objects(struct run *run, struct cm_error *err)
{
	int r = check_shallow(run, err);

	if (r == CM_OK)
		r = cm_incoming_objects(&run->ex, run->source.repo, &run->refs, run->rep, err);
	if (r == CM_OK && run->opts->is_unshallow)
		r = cm_incoming_unshallow(&run->ex, err);
	return r;
}

static int step_refs(struct run *run, struct cm_error *err)
{
	return cm_tracking_update(&run->ex, &run->refs, run->opts->keeps_branches, run->rep, err);
}

/* A branch is moved where it leads to what was asked for, so that nothing of it is lost. */
static int choose_tip(struct run *run, struct cm_switch *sw, struct cm_error *err)
{
	const struct cm_resolved *res = &run->resolved;

	sw->tip = sw->to = run->local;
	sw->has_tip = true;
	if (!res->ref || git_oid_equal(&run->local, &res->commit))
		return CM_OK;
	if (cm_history_has(run->ex.repo, &res->commit, &run->local)) {
		sw->to = res->commit;
		return CM_OK;
	}
	if (cm_history_has(run->ex.repo, &run->local, &res->commit))
		return CM_OK;
	run->rep->is_held = true;
	return cm_report_note(run->rep, err,
			      "branch '%s' has commits that '%s' of the source has not, and the "
			      "reverse: it stays where it is",
			      sw->branch, res->ref);
}

static int choose(struct run *run, struct cm_switch *sw, struct cm_error *err)
{
	const struct cm_wanted *wanted = &run->opts->wanted;
	const struct cm_resolved *res = &run->resolved;

	sw->branch = wanted->branch ? wanted->branch : res->branch;
	run->has_local = sw->branch && find_local(run, sw->branch);
	if (run->has_local)
		return choose_tip(run, sw, err);
	sw->to = res->commit;
	return CM_OK;
}

/* Where HEAD is: *ret_branch is owned, NULL when it is on none. */
static int read_head(struct run *run, struct cm_switch *sw, char **ret_branch, struct cm_error *err)
{
	CM_AUTO_GIT(git_reference) git_reference *head = NULL;
	const char *target;
	int r = git_reference_lookup(&head, run->ex.repo, "HEAD");

	if (r < 0)
		return cm_library_error(err, "cannot read HEAD of '%s'", run->ex.path);
	target = git_reference_symbolic_target(head);
	if (target && cm_text_has_prefix(target, "refs/heads/")) {
		*ret_branch = cm_strdup(target + strlen("refs/heads/"));
		if (!*ret_branch)
			return out_of_memory(err);
	}
	r = git_reference_name_to_id(&sw->from, run->ex.repo, "HEAD");
	sw->is_unborn = r == GIT_ENOTFOUND;
	return r == 0 || r == GIT_ENOTFOUND
		       ? CM_OK
		       : cm_library_error(err, "cannot read HEAD of '%s'", run->ex.path);
}

static bool is_there(const struct cm_switch *sw, const char *branch)
{
	return !sw->is_unborn && git_oid_equal(&sw->from, &sw->to) &&
	       (sw->branch ? branch && strcmp(branch, sw->branch) == 0 : !branch);
}

/* The commits that refs name. The caller frees them. */
static int list_tips(struct run *run, git_oid **ret, size_t *ret_n, struct cm_error *err)
{
	CM_AUTO_GIT(git_reference_iterator) git_reference_iterator *it = NULL;
	git_reference *ref = NULL;
	CM_AUTO_FREE git_oid *tips = NULL;
	size_t capacity = 0;
	size_t n = 0;

	if (git_reference_iterator_new(&it, run->ex.repo) < 0)
		return cm_library_error(err, "cannot read the refs of '%s'", run->ex.path);
	while (git_reference_next(&ref, it) == 0) {
		CM_AUTO_GIT(git_object) git_object *commit = NULL;
		bool is_commit = git_reference_peel(&commit, ref, GIT_OBJECT_COMMIT) == 0;

		git_reference_free(ref);
		if (is_commit && n == capacity) {
			git_oid *more;

			capacity = capacity ? 2 * capacity : 64;
			more = cm_realloc(tips, capacity * sizeof(*more));
			if (!more)
				return out_of_memory(err);
			tips = more;
		}
		if (is_commit)
			tips[n++] = *git_object_id(commit);
	}
	*ret = cm_ptr_take(&tips);
	*ret_n = n;
	return CM_OK;
}

/* Commits on no branch are found again by who knows what they were called. */
static int note_left_behind(struct run *run, const struct cm_switch *sw, struct cm_error *err)
{
	CM_AUTO_FREE git_oid *tips = NULL;
	char hex[CM_OID_HEX_SIZE];
	size_t n = 0;
	int r = list_tips(run, &tips, &n, err);

	if (r < 0 || (n > 0 && git_graph_reachable_from_any(run->ex.repo, &sw->from, tips, n) != 0))
		return r;
	git_oid_tostr(hex, sizeof(hex), &sw->from);
	return cm_report_note(run->rep, err,
			      "commit %s was on no branch: 'git branch NAME %.12s' keeps it", hex,
			      hex);
}

static int tell(struct run *run, const struct cm_switch *sw, struct cm_error *err)
{
	char hex[CM_OID_HEX_SIZE];

	if (!sw->branch || run->has_local)
		return CM_OK;
	git_oid_tostr(hex, sizeof(hex), &sw->to);
	if (run->resolved.is_new_branch)
		return cm_report_note(run->rep, err,
				      "branch '%s' is new: it begins at '%s', with no upstream",
				      sw->branch, run->resolved.ref ? run->resolved.ref : hex);
	return run->resolved.has_upstream ? cm_upstream_set(&run->ex, sw->branch, err) : CM_OK;
}

static int switch_to(struct run *run, struct cm_switch *sw, const char *branch,
		     struct cm_error *err)
{
	bool is_done;
	int r;

	if (is_there(sw, branch))
		return CM_OK;
	r = cm_switch(&run->ex, sw, run->rep, &is_done, err);
	run->rep->is_held = run->rep->is_held || (r == CM_OK && !is_done);
	if (r == CM_OK && is_done && !branch && !sw->is_unborn)
		r = note_left_behind(run, sw, err);
	return r == CM_OK && is_done ? tell(run, sw, err) : r;
}

/* Who asks for nothing fetches alone, and may have meant more. */
static int note_behind(struct run *run, struct cm_error *err)
{
	struct cm_switch sw = { .branch = NULL };
	CM_AUTO_FREE char *branch = NULL;
	CM_AUTO_FREE char *name = NULL;
	git_oid upstream;
	int r = read_head(run, &sw, &branch, err);

	if (r < 0 || sw.is_unborn || !branch)
		return r;
	name = cm_asprintf("refs/remotes/origin/%s", branch);
	if (!name)
		return out_of_memory(err);
	if (git_reference_name_to_id(&upstream, run->ex.repo, name) < 0 ||
	    git_oid_equal(&upstream, &sw.from) ||
	    !cm_history_has(run->ex.repo, &upstream, &sw.from))
		return CM_OK;
	return cm_report_note(run->rep, err,
			      "branch '%s' is behind 'origin/%s': --ref %s moves it there", branch,
			      branch, branch);
}

static int step_switch(struct run *run, struct cm_error *err)
{
	struct cm_switch sw = { .branch = NULL };
	CM_AUTO_FREE char *branch = NULL;
	int r;

	if (!wants_switch(run))
		return note_behind(run, err);
	if (run->resolved.is_unborn)
		return cm_report_note(run->rep, err, "the source has no commits yet");
	r = read_head(run, &sw, &branch, err);
	if (r == CM_OK)
		r = choose(run, &sw, err);
	return r == CM_OK ? switch_to(run, &sw, branch, err) : r;
}

static int step_report(struct run *run, struct cm_error *err)
{
	struct cm_switch sw = { .branch = NULL };
	struct cm_report *rep = run->rep;
	int r = read_head(run, &sw, &rep->branch, err);

	if (r < 0)
		return r;
	if (!sw.is_unborn)
		git_oid_tostr(rep->commit, sizeof(rep->commit), &sw.from);
	rep->ref = cm_ptr_take(&run->resolved.ref);
	cm_report_progress(rep, "done", rep->files, rep->files);
	return CM_OK;
}

/* What is wrong with the checkout itself is not made better by another source. */
static const struct {
	int (*run)(struct run *run, struct cm_error *err);
	bool is_of_checkout;
	/* also where there is no source */
	bool is_of_finish;
} steps[] = {
	{ step_source, false, false },	{ step_open, true, true },  { step_resolve, false, false },
	{ step_objects, false, false }, { step_refs, true, false }, { step_switch, true, false },
	{ step_report, true, true },
};

static int run_step(struct run *run, size_t i, struct cm_error *err)
{
	bool is_left_out = run->opts->is_finish && !steps[i].is_of_finish;
	int r = is_left_out ? CM_OK : steps[i].run(run, err);

	if (r == CM_E_CHECKOUT && steps[i].is_of_checkout)
		r = err->code = CM_E_INVALID;
	return r;
}

int cm_update(const struct cm_update_options *opts, struct cm_report *rep, struct cm_error *err)
{
	struct run run = {
		.opts = opts,
		.rep = rep,
		.source = CM_SOURCE_INIT,
		.refs = CM_REFS_INIT,
		.ex = CM_EXISTING_INIT,
		.resolved = CM_RESOLVED_INIT,
	};
	int r = CM_OK;

	for (size_t i = 0; i < CM_ARRAY_SIZE(steps) && r == CM_OK; i++)
		r = run_step(&run, i, err);
	cm_existing_clear(&run.ex);
	cm_resolved_clear(&run.resolved);
	cm_refs_clear(&run.refs);
	cm_source_clear(&run.source);
	return r;
}
