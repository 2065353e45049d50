/* SPDX-License-Identifier: Apache-2.0 */
/* Resolving what the user called a ref. */
#include "isolation/checkout/resolve.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "isolation/checkout/history.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

#define HEX_MIN 4
#define CANDIDATES_MAX 8
#define SUGGESTIONS_MAX 3

struct matches {
	const struct cm_ref *v[CANDIDATES_MAX];
	size_t n;
};

static int out_of_memory(struct cm_error *err)
{
	cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return CM_E_NOMEM;
}

static void add_match(struct matches *m, const struct cm_ref *ref)
{
	for (size_t i = 0; i < m->n; i++) {
		if (m->v[i] == ref)
			return;
	}
	if (ref && m->n < CANDIDATES_MAX)
		m->v[m->n++] = ref;
}

/* "origin/topic" -> "topic"; NULL when there is no branch in it. */
static const char *branch_of_remote(const struct cm_ref *ref)
{
	const char *slash = strchr(ref->short_name, '/');

	return slash && slash[1] != '\0' ? slash + 1 : NULL;
}

static void find_by_name(const struct cm_refs *refs, const char *wanted, struct matches *m)
{
	static const char *const prefixes[] = { "refs/tags/", "refs/heads/", "refs/remotes/",
						"refs/", "" };

	for (size_t i = 0; i < CM_ARRAY_SIZE(prefixes); i++) {
		CM_AUTO_FREE char *name = cm_asprintf("%s%s", prefixes[i], wanted);

		if (name)
			add_match(m, cm_refs_find(refs, name));
	}
	if (m->n > 0)
		return;
	/* as git checkout does: the only remote branch of that name is meant */
	for (size_t i = 0; i < refs->n; i++) {
		const char *branch;

		if (refs->v[i].kind != CM_REF_REMOTE)
			continue;
		branch = branch_of_remote(&refs->v[i]);
		if (branch && strcmp(branch, wanted) == 0)
			add_match(m, &refs->v[i]);
	}
}

static int fail_ambiguous(const char *wanted, const struct matches *m, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf list = { 0 };

	cm_buf_init(&list, 4UL * CM_ERROR_MSG_SIZE);
	for (size_t i = 0; i < m->n; i++)
		cm_buf_printf(&list, "%s'%s'", i == 0 ? "" : ", ", m->v[i]->name);
	cm_error_set(err, CM_E_INVALID, 0, "ref '%s' is ambiguous: %s", wanted,
		     cm_buf_status(&list) == CM_OK ? list.data : "too many to list");
	cm_error_hint(err, "give the full name, such as '%s'", m->v[0]->name);
	return CM_E_INVALID;
}

/* Insert by distance, nearest first. */
static void add_suggestion(const struct cm_ref **best, unsigned int *distances, size_t *n,
			   const struct cm_ref *ref, unsigned int distance)
{
	size_t at = *n;

	for (size_t i = 0; i < *n; i++) {
		if (strcmp(best[i]->short_name, ref->short_name) == 0)
			return;
	}
	while (at > 0 && distances[at - 1] > distance)
		at--;
	if (at >= SUGGESTIONS_MAX)
		return;
	if (*n < SUGGESTIONS_MAX)
		(*n)++;
	for (size_t i = *n - 1; i > at; i--) {
		best[i] = best[i - 1];
		distances[i] = distances[i - 1];
	}
	best[at] = ref;
	distances[at] = distance;
}

static void hint_nearest(const struct cm_refs *refs, const char *wanted, struct cm_error *err)
{
	const struct cm_ref *best[SUGGESTIONS_MAX] = { NULL };
	unsigned int distances[SUGGESTIONS_MAX] = { 0 };
	unsigned int max = 1 + (unsigned int)(strnlen(wanted, 60) / 3);
	CM_AUTO_BUF struct cm_buf list = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < refs->n; i++) {
		const struct cm_ref *ref = &refs->v[i];
		const char *branch = ref->kind == CM_REF_REMOTE ? branch_of_remote(ref) : NULL;
		unsigned int d = cm_text_distance(wanted, ref->short_name, max);

		if (branch && d > max)
			d = cm_text_distance(wanted, branch, max);
		if (strcasecmp(wanted, ref->short_name) == 0 ||
		    /* as it is called in a clone */
		    (cm_text_has_prefix(wanted, "origin/") &&
		     strcmp(wanted + strlen("origin/"), ref->short_name) == 0))
			d = 0;
		if (d <= max)
			add_suggestion(best, distances, &n, ref, d);
	}
	if (n == 0) {
		cm_error_hint(err,
			      "give a branch, a tag or a commit id of at least %d digits: 'git "
			      "ls-remote REPOSITORY' lists names",
			      HEX_MIN);
		return;
	}
	cm_buf_init(&list, 4UL * CM_ERROR_HINT_SIZE);
	for (size_t i = 0; i < n; i++)
		cm_buf_printf(&list, "%s'%s'",
			      i == 0	   ? ""
			      : i + 1 == n ? " or "
					   : ", ",
			      best[i]->short_name);
	if (cm_buf_status(&list) == CM_OK)
		cm_error_hint(err, "did you mean %s?", list.data);
}

static int fail_unknown(const struct cm_refs *refs, const char *wanted, struct cm_error *err)
{
	cm_error_set(err, CM_E_NOT_FOUND, 0, "ref '%s' is not in the source", wanted);
	if (strpbrk(wanted, "~^:") || strstr(wanted, "..") || strstr(wanted, "@{"))
		cm_error_hint(err, "give a branch, a tag or a commit id; expressions are not "
				   "evaluated: use 'git rev-parse' for the id");
	else
		hint_nearest(refs, wanted, err);
	return CM_E_NOT_FOUND;
}

static int use_ref(const struct cm_ref *ref, struct cm_resolved *res, struct cm_error *err)
{
	const char *branch = NULL;

	if (ref->type != GIT_OBJECT_COMMIT) {
		cm_error_set(err, CM_E_INVALID, 0, "tag '%s' names a %s, not a commit",
			     ref->short_name, git_object_type2string(ref->type));
		cm_error_hint(err, "give a branch, a tag of a commit, or a commit id");
		return CM_E_INVALID;
	}
	if (ref->kind == CM_REF_BRANCH)
		branch = ref->short_name;
	else if (ref->kind == CM_REF_REMOTE)
		branch = branch_of_remote(ref);
	res->commit = ref->peeled;
	res->has_upstream = ref->kind == CM_REF_BRANCH;
	res->ref = cm_strdup(ref->name);
	res->branch = cm_strdup(branch);
	if (!res->ref || (branch && !res->branch))
		return out_of_memory(err);
	return CM_OK;
}

static int use_head(const struct cm_refs *refs, struct cm_resolved *res, struct cm_error *err)
{
	res->commit = refs->head;
	res->is_unborn = refs->head_is_unborn;
	if (!refs->head_name)
		return CM_OK;
	res->has_upstream = !refs->head_is_unborn;
	res->ref = cm_strdup(refs->head_name);
	res->branch = cm_strdup(refs->head_name + strlen("refs/heads/"));
	return res->ref && res->branch ? CM_OK : out_of_memory(err);
}

struct prefix_search {
	git_repository *repo;
	git_oid prefix;
	size_t digits;
	git_oid commits[CANDIDATES_MAX];
	size_t n;
};

static int collect_commit(const git_oid *id, void *payload)
{
	struct prefix_search *s = payload;
	CM_AUTO_GIT(git_object) git_object *found = NULL;

	if (git_oid_ncmp(id, &s->prefix, s->digits) != 0)
		return 0;
	for (size_t i = 0; i < s->n; i++) {
		if (git_oid_equal(&s->commits[i], id))
			return 0;
	}
	if (git_object_lookup(&found, s->repo, id, GIT_OBJECT_COMMIT) < 0)
		return 0;
	s->commits[s->n++] = *id;
	return s->n == CANDIDATES_MAX;
}

/* Several objects begin like this; git's rule is that only the commits among them count. */
static int use_only_commit(git_repository *repo, const char *wanted, struct cm_resolved *res,
			   struct cm_error *err)
{
	struct prefix_search s = { .repo = repo, .digits = strlen(wanted) };
	CM_AUTO_GIT(git_odb) git_odb *odb = NULL;
	CM_AUTO_BUF struct cm_buf list = { 0 };
	int r;

	if (git_oid_fromstrn(&s.prefix, wanted, s.digits) < 0 || git_repository_odb(&odb, repo) < 0)
		return cm_library_error(err, "cannot look up '%s'", wanted);
	r = git_odb_foreach(odb, collect_commit, &s);
	if (r < 0)
		return cm_library_error(err, "cannot look up '%s'", wanted);
	if (s.n == 1) {
		res->commit = s.commits[0];
		return CM_OK;
	}
	cm_buf_init(&list, CM_ERROR_MSG_SIZE);
	for (size_t i = 0; i < s.n; i++) {
		char hex[CM_OID_HEX_SIZE];

		git_oid_tostr(hex, sizeof(hex), &s.commits[i]);
		cm_buf_printf(&list, "%s%s", i == 0 ? "" : ", ", hex);
	}
	if (s.n == 0)
		cm_error_set(err, CM_E_INVALID, 0,
			     "'%s' begins several ids, and none is that of a commit", wanted);
	else
		cm_error_set(err, CM_E_INVALID, 0, "commit id '%s' is ambiguous: %s", wanted,
			     cm_buf_status(&list) == CM_OK ? list.data : "too many to list");
	cm_error_hint(err, "give more digits of the id");
	return CM_E_INVALID;
}

/* As few digits as git shortens ids to; what is shorter may as well be a name that is misspelt. */
#define HEX_USUAL 7

static int fail_no_commit(git_repository *repo, const struct cm_refs *refs, const char *wanted,
			  struct cm_error *err)
{
	if (strlen(wanted) < HEX_USUAL)
		return fail_unknown(refs, wanted, err);
	cm_error_set(err, CM_E_NOT_FOUND, 0, "commit '%s' is not in the source", wanted);
	if (git_repository_is_shallow(repo) == 1)
		cm_error_hint(err, "older commits are not there: leave --depth out, or complete a "
				   "shallow source with 'git fetch --unshallow'");
	else
		cm_error_hint(err, "check its digits; a commit that no branch and no tag leads to "
				   "is not fetched: push one that does");
	return CM_E_NOT_FOUND;
}

static int use_id(git_repository *repo, const struct cm_refs *refs, const char *wanted,
		  struct cm_resolved *res, struct cm_error *err)
{
	CM_AUTO_GIT(git_object) git_object *found = NULL;
	CM_AUTO_GIT(git_object) git_object *commit = NULL;
	size_t digits = strlen(wanted);
	git_oid prefix;
	int r;

	if (git_oid_fromstrn(&prefix, wanted, digits) < 0)
		return fail_unknown(refs, wanted, err);
	r = git_object_lookup_prefix(&found, repo, &prefix, digits, GIT_OBJECT_ANY);
	if (r == GIT_EAMBIGUOUS)
		return use_only_commit(repo, wanted, res, err);
	if (r == GIT_ENOTFOUND)
		return fail_no_commit(repo, refs, wanted, err);
	if (r < 0)
		return cm_library_error(err, "cannot look up '%s'", wanted);
	if (git_object_peel(&commit, found, GIT_OBJECT_COMMIT) < 0) {
		cm_error_set(err, CM_E_INVALID, 0, "'%s' is the id of a %s, not of a commit",
			     wanted, git_object_type2string(git_object_type(found)));
		cm_error_hint(err, "give a branch, a tag or a commit id");
		return CM_E_INVALID;
	}
	res->commit = *git_object_id(commit);
	return CM_OK;
}

static bool is_id(const char *s)
{
	size_t len = strlen(s);

	return len >= HEX_MIN && len <= GIT_OID_HEXSZ && strspn(s, "0123456789abcdefABCDEF") == len;
}

static int resolve(git_repository *repo, const struct cm_refs *refs, const char *wanted,
		   struct cm_resolved *res, struct cm_error *err)
{
	struct matches m = { .n = 0 };

	if (!wanted || strcmp(wanted, "HEAD") == 0 || strcmp(wanted, "@") == 0)
		return use_head(refs, res, err);
	/* git's order: a full id is an id, whatever refs there are; shorter, a ref wins */
	if (is_id(wanted) && strlen(wanted) == GIT_OID_HEXSZ)
		return use_id(repo, refs, wanted, res, err);
	find_by_name(refs, wanted, &m);
	if (m.n > 1)
		return fail_ambiguous(wanted, &m, err);
	if (m.n == 1)
		return use_ref(m.v[0], res, err);
	if (is_id(wanted))
		return use_id(repo, refs, wanted, res, err);
	return fail_unknown(refs, wanted, err);
}

int cm_resolve(git_repository *repo, const struct cm_refs *refs, const char *wanted,
	       struct cm_resolved *ret, struct cm_error *err)
{
	struct cm_resolved res = CM_RESOLVED_INIT;
	int r = resolve(repo, refs, wanted, &res, err);

	if (r != CM_OK) {
		cm_resolved_clear(&res);
		return r;
	}
	*ret = res;
	return CM_OK;
}

int cm_resolve_check_reachable(git_repository *repo, const struct cm_refs *refs, const char *wanted,
			       const struct cm_resolved *res, struct cm_error *err)
{
	CM_AUTO_FREE git_oid *tips = cm_calloc(refs->n + 1, sizeof(*tips));
	size_t n = 0;

	if (!tips)
		return out_of_memory(err);
	if (!refs->head_is_unborn)
		tips[n++] = refs->head;
	for (size_t i = 0; i < refs->n; i++) {
		if (refs->v[i].type == GIT_OBJECT_COMMIT)
			tips[n++] = refs->v[i].peeled;
	}
	return cm_history_any_has(repo, tips, n, &res->commit)
		       ? CM_OK
		       : fail_no_commit(repo, refs, wanted, err);
}

static const struct cm_ref *find_request(const struct cm_refs *refs, unsigned int number)
{
	const struct cm_ref *ref = NULL;

	for (size_t i = 0; i < CM_REFS_REQUEST_NAMES && !ref; i++) {
		CM_AUTO_FREE char *name = cm_refs_request_name(number, i);

		ref = name ? cm_refs_find(refs, name) : NULL;
	}
	return ref;
}

int cm_resolve_request(const struct cm_refs *refs, unsigned int number, struct cm_resolved *ret,
		       struct cm_error *err)
{
	struct cm_resolved res = CM_RESOLVED_INIT;
	const struct cm_ref *ref = find_request(refs, number);

	if (!ref) {
		cm_error_set(err, CM_E_NOT_FOUND, 0, "there is no pull or merge request %u",
			     number);
		cm_error_hint(err, "check its number, and that the repository is the one that it "
				   "was made in");
		return CM_E_NOT_FOUND;
	}
	res.commit = ref->peeled;
	res.ref = cm_strdup(ref->name);
	res.branch = cm_asprintf("pr-%u", number);
	if (!res.ref || !res.branch) {
		cm_resolved_clear(&res);
		return out_of_memory(err);
	}
	*ret = res;
	return CM_OK;
}

int cm_resolve_branch(const struct cm_refs *refs, const char *branch, struct cm_resolved *res,
		      bool *ret_has, struct cm_error *err)
{
	CM_AUTO_FREE char *name = cm_asprintf("refs/heads/%s", branch);
	const struct cm_ref *ref;
	int r;

	if (!name)
		return out_of_memory(err);
	ref = cm_refs_find(refs, name);
	r = ref ? use_ref(ref, res, err) : CM_OK;
	if (r != CM_OK)
		cm_resolved_clear(res);
	*ret_has = ref != NULL;
	return r;
}

int cm_resolve_new_branch(const char *branch, struct cm_resolved *res, struct cm_error *err)
{
	char *copy = cm_strdup(branch);

	if (!copy)
		return out_of_memory(err);
	free(res->branch);
	res->branch = copy;
	res->has_upstream = false;
	res->is_new_branch = true;
	return CM_OK;
}

/* Where a branch is there already, what it would have begun at does not matter. */
int cm_resolve_wanted(git_repository *repo, const struct cm_refs *refs,
		      const struct cm_wanted *wanted, struct cm_resolved *res, struct cm_error *err)
{
	bool has_branch = false;
	int r = CM_OK;

	if (wanted->branch)
		r = cm_resolve_branch(refs, wanted->branch, res, &has_branch, err);
	if (r != CM_OK || has_branch)
		return r;
	if (wanted->pr > 0)
		r = cm_resolve_request(refs, wanted->pr, res, err);
	else
		r = cm_resolve(repo, refs, wanted->ref, res, err);
	/* the id of a commit, or a HEAD that is detached */
	if (r == CM_OK && wanted->is_mirror && wanted->ref && !res->ref)
		r = cm_resolve_check_reachable(repo, refs, wanted->ref, res, err);
	return r == CM_OK && wanted->branch ? cm_resolve_new_branch(wanted->branch, res, err) : r;
}

void cm_resolved_clear(struct cm_resolved *res)
{
	free(res->ref);
	free(res->branch);
	res->ref = NULL;
	res->branch = NULL;
}
