/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a source's refs, and writing them as those of a clone. */
#include "isolation/checkout/refs.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

static const struct {
	const char *prefix;
	enum cm_ref_kind kind;
} kinds[] = {
	{ "refs/heads/", CM_REF_BRANCH },	    { "refs/tags/", CM_REF_TAG },
	{ "refs/remotes/", CM_REF_REMOTE },	    { "refs/pull/", CM_REF_REQUEST },
	{ "refs/merge-requests/", CM_REF_REQUEST }, { "refs/pull-requests/", CM_REF_REQUEST },
};

/* GitHub and Gitea, GitLab, Bitbucket */
static const char *const request_names[][2] = {
	{ "refs/pull/", "/head" },
	{ "refs/merge-requests/", "/head" },
	{ "refs/pull-requests/", "/from" },
};
_Static_assert(CM_ARRAY_SIZE(request_names) == CM_REFS_REQUEST_NAMES, "told in the header");

char *cm_refs_request_name(unsigned int number, size_t i)
{
	return i < CM_REFS_REQUEST_NAMES
		       ? cm_asprintf("%s%u%s", request_names[i][0], number, request_names[i][1])
		       : NULL;
}

static int out_of_memory(struct cm_error *err)
{
	cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return CM_E_NOMEM;
}

static int grow(struct cm_refs *refs, struct cm_error *err)
{
	size_t capacity = refs->capacity ? refs->capacity * 2 : 64;
	struct cm_ref *v;

	if (refs->v && refs->n < refs->capacity)
		return CM_OK;
	if (refs->n >= CM_REFS_MAX) {
		cm_error_set(err, CM_E_LIMIT, 0, "the source has more than %d refs", CM_REFS_MAX);
		cm_error_hint(err, "remove refs that nobody needs, or clone it with git first");
		return CM_E_LIMIT;
	}
	v = cm_realloc(refs->v, capacity * sizeof(*v));
	if (!v)
		return out_of_memory(err);
	refs->v = v;
	refs->capacity = capacity;
	return CM_OK;
}

/* What does it name, through tags? False when an object is missing or not what it should be. */
static bool peel(git_repository *repo, git_odb *odb, struct cm_ref *ref)
{
	CM_AUTO_GIT(git_object) git_object *tag = NULL;
	CM_AUTO_GIT(git_object) git_object *peeled = NULL;
	size_t len;

	if (git_odb_read_header(&len, &ref->type, odb, &ref->oid) < 0)
		return false;
	ref->peeled = ref->oid;
	if (ref->type == GIT_OBJECT_TAG && ref->kind == CM_REF_TAG) {
		if (git_object_lookup(&tag, repo, &ref->oid, GIT_OBJECT_TAG) < 0 ||
		    git_object_peel(&peeled, tag, GIT_OBJECT_ANY) < 0)
			return false;
		ref->peeled = *git_object_id(peeled);
		ref->type = git_object_type(peeled);
	}
	return ref->kind == CM_REF_TAG || ref->type == GIT_OBJECT_COMMIT;
}

static int add_ref(struct cm_refs *refs, git_repository *repo, git_odb *odb,
		   const git_reference *found, struct cm_error *err)
{
	CM_AUTO_GIT(git_reference) git_reference *resolved = NULL;
	const char *name = git_reference_name(found);
	struct cm_ref ref = { 0 };
	size_t i = 0;
	int r;

	while (i < CM_ARRAY_SIZE(kinds) && !cm_text_has_prefix(name, kinds[i].prefix))
		i++;
	if (i == CM_ARRAY_SIZE(kinds))
		return CM_OK;
	ref.kind = kinds[i].kind;
	/* a remote's HEAD only repeats one of its branches */
	if (ref.kind == CM_REF_REMOTE && git_reference_type(found) == GIT_REFERENCE_SYMBOLIC)
		return CM_OK;
	if (git_reference_resolve(&resolved, found) < 0 || !git_reference_target(resolved)) {
		refs->broken++;
		return CM_OK;
	}
	ref.oid = *git_reference_target(resolved);
	if (!peel(repo, odb, &ref)) {
		refs->broken++;
		return CM_OK;
	}
	r = grow(refs, err);
	if (r != CM_OK)
		return r;
	ref.name = cm_strdup(name);
	if (!ref.name)
		return out_of_memory(err);
	ref.short_name = ref.name + strlen(kinds[i].prefix);
	refs->v[refs->n++] = ref;
	return CM_OK;
}

static int compare_refs(const void *a, const void *b)
{
	const struct cm_ref *x = a;
	const struct cm_ref *y = b;

	return strcmp(x->name, y->name);
}

static int read_head(git_repository *repo, struct cm_refs *refs, struct cm_error *err)
{
	CM_AUTO_GIT(git_reference) git_reference *head = NULL;
	CM_AUTO_GIT(git_reference) git_reference *resolved = NULL;
	const char *target;
	int r;

	if (git_reference_lookup(&head, repo, "HEAD") < 0)
		return cm_library_error(err, "cannot read HEAD of the source");
	target = git_reference_symbolic_target(head);
	if (target && cm_text_has_prefix(target, "refs/heads/")) {
		refs->head_name = cm_strdup(target);
		if (!refs->head_name)
			return out_of_memory(err);
	}
	r = git_reference_resolve(&resolved, head);
	if (r == GIT_ENOTFOUND && refs->head_name) {
		refs->head_is_unborn = true;
		return CM_OK;
	}
	if (r < 0)
		return cm_library_error(err, "cannot resolve HEAD of the source");
	refs->head = *git_reference_target(resolved);
	return CM_OK;
}

static int read_all(git_repository *repo, git_odb *odb, struct cm_refs *refs, struct cm_error *err)
{
	CM_AUTO_GIT(git_reference_iterator) git_reference_iterator *it = NULL;
	int r;

	if (git_reference_iterator_new(&it, repo) < 0)
		return cm_library_error(err, "cannot list the refs of the source");
	for (;;) {
		CM_AUTO_GIT(git_reference) git_reference *found = NULL;

		r = git_reference_next(&found, it);
		if (r == GIT_ITEROVER)
			break;
		if (r < 0)
			return cm_library_error(err, "cannot read the refs of the source");
		r = add_ref(refs, repo, odb, found, err);
		if (r != CM_OK)
			return r;
	}
	if (refs->n > 1)
		qsort(refs->v, refs->n, sizeof(*refs->v), compare_refs);
	return CM_OK;
}

int cm_refs_read(git_repository *repo, struct cm_refs *ret, struct cm_error *err)
{
	struct cm_refs refs = CM_REFS_INIT;
	CM_AUTO_GIT(git_odb) git_odb *odb = NULL;
	int r;

	if (git_repository_odb(&odb, repo) < 0)
		return cm_library_error(err, "cannot open the objects of the source");
	r = read_head(repo, &refs, err);
	if (r == CM_OK)
		r = read_all(repo, odb, &refs, err);
	if (r != CM_OK) {
		cm_refs_clear(&refs);
		return r;
	}
	*ret = refs;
	return CM_OK;
}

void cm_refs_clear(struct cm_refs *refs)
{
	static const struct cm_refs empty = CM_REFS_INIT;

	for (size_t i = 0; i < refs->n; i++)
		free(refs->v[i].name);
	free(refs->v);
	free(refs->head_name);
	*refs = empty;
}

const struct cm_ref *cm_refs_find(const struct cm_refs *refs, const char *name)
{
	size_t low = 0;
	size_t high = refs->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(refs->v[middle].name, name);

		if (order == 0)
			return &refs->v[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/*
 * One file instead of one a ref: a repository with 10,000 tags costs one write. The order is that
 * of the new names, as the "sorted" trait promises, and both prefixes keep the order of refs->v.
 */
int cm_refs_pack(const struct cm_refs *refs, struct cm_buf *out, struct cm_error *err)
{
	char hex[CM_OID_HEX_SIZE];
	int r;

	cm_buf_puts(out, "# pack-refs with: peeled fully-peeled sorted \n");
	for (size_t i = 0; i < refs->n; i++) {
		const struct cm_ref *ref = &refs->v[i];

		git_oid_tostr(hex, sizeof(hex), &ref->oid);
		/* "HEAD" would stand in the way of the remote's own HEAD */
		if (ref->kind == CM_REF_BRANCH && strcmp(ref->short_name, "HEAD") != 0)
			cm_buf_printf(out, "%s refs/remotes/origin/%s\n", hex, ref->short_name);
		else if (ref->kind == CM_REF_TAG)
			cm_buf_printf(out, "%s %s\n", hex, ref->name);
		if (ref->kind == CM_REF_TAG && !git_oid_equal(&ref->oid, &ref->peeled)) {
			git_oid_tostr(hex, sizeof(hex), &ref->peeled);
			cm_buf_printf(out, "^%s\n", hex);
		}
	}
	r = cm_buf_status(out);
	return r == CM_OK ? CM_OK
			  : cm_error_set(err, r, 0, "cannot write the refs of the checkout");
}
