/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/checkout/tracking.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

#define PREFIX "refs/remotes/origin/"
#define HEAD_NAME PREFIX "HEAD"

struct tracking {
	struct cm_existing *ex;
	const struct cm_refs *refs;
	bool keeps_branches;
	/* names here; the first ones are to be removed */
	struct cm_strv names;
	size_t n_removed;
	/* by the same index from n_removed on: what they are to be */
	const struct cm_ref **ref_of;
	size_t n_tags_kept;
};

static int out_of_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

/* As "a" and "a/b" are to each other: one of them alone can be there. */
static bool is_in_the_way(const struct cm_refs *refs, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < refs->n; i++) {
		const char *other = refs->v[i].name;
		size_t other_len = strlen(other);

		if (strncmp(name, other, len < other_len ? len : other_len) == 0 &&
		    (len < other_len ? other[len] : name[other_len]) == '/')
			return true;
	}
	return false;
}

/* Branches that the source has no more. */
static int find_removed(struct tracking *t, struct cm_error *err)
{
	CM_AUTO_GIT(git_reference_iterator) git_reference_iterator *it = NULL;
	const char *name;
	int r = git_reference_iterator_glob_new(&it, t->ex->repo, PREFIX "*");

	while (r == 0 && (r = git_reference_next_name(&name, it)) == 0) {
		CM_AUTO_FREE char *theirs = cm_asprintf("refs/heads/%s", name + strlen(PREFIX));

		if (!theirs)
			return out_of_memory(err);
		if (strcmp(name, HEAD_NAME) != 0 && !cm_refs_find(t->refs, theirs) &&
		    (!t->keeps_branches || is_in_the_way(t->refs, theirs)) &&
		    cm_strv_add(&t->names, name) != CM_OK)
			return out_of_memory(err);
	}
	t->n_removed = t->names.n;
	return r == GIT_ITEROVER
		       ? CM_OK
		       : cm_library_error(err, "cannot read the refs of '%s'", t->ex->path);
}

/* What the name is here; false: there is none, or one that cannot be read. */
static bool has_ref(const struct tracking *t, const char *name, git_oid *ret)
{
	CM_AUTO_GIT(git_reference) git_reference *ref = NULL;

	if (git_reference_lookup(&ref, t->ex->repo, name) < 0 ||
	    git_reference_type(ref) != GIT_REFERENCE_DIRECT)
		return false;
	*ret = *git_reference_target(ref);
	return true;
}

static int add_change(struct tracking *t, const char *name, const struct cm_ref *ref,
		      struct cm_error *err)
{
	git_oid has;

	if (has_ref(t, name, &has)) {
		if (git_oid_equal(&has, &ref->oid))
			return CM_OK;
		if (ref->kind == CM_REF_TAG) {
			t->n_tags_kept++;
			return CM_OK;
		}
	}
	if (cm_strv_add(&t->names, name) != CM_OK)
		return out_of_memory(err);
	t->ref_of[t->names.n - 1 - t->n_removed] = ref;
	return CM_OK;
}

static int find_changed(struct tracking *t, struct cm_error *err)
{
	int r = CM_OK;

	t->ref_of = cm_calloc(t->refs->n + 1, sizeof(const struct cm_ref *));
	if (!t->ref_of)
		return out_of_memory(err);
	for (size_t i = 0; i < t->refs->n && r == CM_OK; i++) {
		const struct cm_ref *ref = &t->refs->v[i];
		CM_AUTO_FREE char *name = NULL;

		if (ref->kind == CM_REF_TAG) {
			r = add_change(t, ref->name, ref, err);
			continue;
		}
		/* "HEAD" would stand in the way of the remote's own HEAD */
		if (ref->kind != CM_REF_BRANCH || strcmp(ref->short_name, "HEAD") == 0)
			continue;
		name = cm_asprintf(PREFIX "%s", ref->short_name);
		r = name ? add_change(t, name, ref, err) : out_of_memory(err);
	}
	return r;
}

static int cannot_write(const char *name, struct cm_error *err)
{
	int r = cm_library_error(err, "cannot write '%s' of the checkout", name);

	if (r == CM_E_CHECKOUT)
		cm_error_hint(err,
			      "another git may be at work in it, or a ref of its own be in the "
			      "way: look with 'git for-each-ref', and try again");
	return r;
}

static int apply(struct tracking *t, struct cm_error *err)
{
	for (size_t i = 0; i < t->names.n; i++) {
		const char *name = t->names.v[i];
		CM_AUTO_GIT(git_reference) git_reference *made = NULL;
		int r;

		if (i < t->n_removed) {
			r = git_reference_remove(t->ex->repo, name);
		} else {
			const struct cm_ref *ref = t->ref_of[i - t->n_removed];

			r = git_reference_create(&made, t->ex->repo, name, &ref->oid,
						 ref->kind != CM_REF_TAG, "fetch");
			/* one that was made just now by somebody else is theirs */
			if (r == GIT_EEXISTS && ref->kind == CM_REF_TAG)
				r = 0;
		}
		if (r < 0 && r != GIT_ENOTFOUND)
			return cannot_write(name, err);
	}
	return CM_OK;
}

static int set_head(struct tracking *t, struct cm_error *err)
{
	CM_AUTO_GIT(git_reference) git_reference *has = NULL;
	CM_AUTO_GIT(git_reference) git_reference *made = NULL;
	CM_AUTO_FREE char *target = NULL;

	if (!t->refs->head_name || t->refs->head_is_unborn)
		return CM_OK;
	target = cm_asprintf(PREFIX "%s", t->refs->head_name + strlen("refs/heads/"));
	if (!target)
		return out_of_memory(err);
	if (git_reference_lookup(&has, t->ex->repo, HEAD_NAME) == 0 &&
	    git_reference_type(has) == GIT_REFERENCE_SYMBOLIC &&
	    strcmp(git_reference_symbolic_target(has), target) == 0)
		return CM_OK;
	if (git_reference_symbolic_create(&made, t->ex->repo, HEAD_NAME, target, 1, NULL) < 0)
		return cannot_write(HEAD_NAME, err);
	return CM_OK;
}

/* What may be left locked when this is killed. */
static int tell_locks(struct tracking *t, struct cm_error *err)
{
	CM_AUTO_STRV struct cm_strv locked = { 0 };

	if (cm_strv_copy(&locked, &t->names) != CM_OK || cm_strv_add(&locked, HEAD_NAME) != CM_OK ||
	    cm_strv_add(&locked, "packed-refs") != CM_OK)
		return out_of_memory(err);
	return cm_existing_will_lock(t->ex, &locked, err);
}

int cm_tracking_update(struct cm_existing *ex, const struct cm_refs *refs, bool keeps_branches,
		       struct cm_report *rep, struct cm_error *err)
{
	struct tracking t = { .ex = ex, .refs = refs, .keeps_branches = keeps_branches };
	int r = find_removed(&t, err);

	if (r == CM_OK)
		r = find_changed(&t, err);
	if (r == CM_OK)
		r = tell_locks(&t, err);
	if (r == CM_OK)
		r = apply(&t, err);
	if (r == CM_OK)
		r = set_head(&t, err);
	if (r == CM_OK && t.n_tags_kept > 0)
		r = cm_report_note(rep, err,
				   "%zu tag%s of the source %s another one here, which stays",
				   t.n_tags_kept, t.n_tags_kept == 1 ? "" : "s",
				   t.n_tags_kept == 1 ? "is" : "are");
	cm_strv_clear(&t.names);
	free(t.ref_of);
	return r;
}
