/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/checkout/host_git_resolve.h"

#include <stdlib.h>
#include <string.h>

#include "isolation/checkout/refs.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

#define NAME_SIZE 1200

struct resolve {
	struct cm_host_git *g;
	const char *source;
	const struct cm_host_git_take *take;
	bool is_mirror;
	struct cm_host_git_taken taken;
};

static int out_of_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

/* The commit that a full name, an id or HEAD leads to; "" for none. */
static int commit_of(struct resolve *s, const char *name, char commit[CM_HOST_GIT_HEX_SIZE],
		     struct cm_error *err)
{
	CM_AUTO_FREE char *rev = cm_asprintf("%s^{commit}", name);
	const char *const argv[] = { "-C",	s->source,	    "rev-parse", "--verify",
				     "--quiet", "--end-of-options", rev,	 NULL };

	if (!rev)
		return out_of_memory(err);
	return cm_host_git_line(s->g, argv, commit, CM_HOST_GIT_HEX_SIZE, err);
}

/* One candidate; where it is there, it is taken. */
static int try_name(struct resolve *s, const char *name, struct cm_error *err)
{
	static const char heads[] = "refs/heads/";
	bool is_branch = cm_text_has_prefix(name, heads);
	int r = commit_of(s, name, s->taken.commit, err);

	if (r < 0 || s->taken.commit[0] == '\0')
		return r;
	s->taken.ref = cm_strdup(name);
	s->taken.branch = is_branch ? cm_strdup(name + strlen(heads)) : NULL;
	s->taken.has_upstream = is_branch;
	return !s->taken.ref || (is_branch && !s->taken.branch) ? out_of_memory(err) : CM_OK;
}

static int not_there(const struct resolve *s, struct cm_error *err)
{
	if (s->take->ref)
		cm_error_set(err, CM_E_NOT_FOUND, 0, "ref '%s' is not in the source", s->take->ref);
	else
		cm_error_set(err, CM_E_NOT_FOUND, 0, "there is no pull or merge request %u",
			     s->take->pr);
	cm_error_hint(err, "'git ls-remote' lists what there is");
	return CM_E_NOT_FOUND;
}

static bool is_id(const char *text)
{
	size_t len = strlen(text);

	return len >= 4 && len < CM_HOST_GIT_HEX_SIZE &&
	       strspn(text, "0123456789abcdefABCDEF") == len;
}

/* Of a mirror: whatever an earlier fetch left there, what the remote has now leads to it. */
static int check_reachable(struct resolve *s, struct cm_error *err)
{
	const char *const argv[] = { "-C",	  s->source,	"for-each-ref",
				     "--count=1", "--contains", s->taken.commit,
				     NULL };
	char line[NAME_SIZE];
	int r = s->is_mirror ? cm_host_git_line(s->g, argv, line, sizeof(line), err) : CM_OK;

	if (r < 0 || !s->is_mirror || line[0] != '\0')
		return r;
	s->taken.commit[0] = '\0';
	cm_error_set(err, CM_E_NOT_FOUND, 0, "commit '%s' is not in the source", s->take->ref);
	cm_error_hint(err, "no branch and no tag leads to it");
	return CM_E_NOT_FOUND;
}

static int resolve_ref(struct resolve *s, struct cm_error *err)
{
	const char *ref = s->take->ref;
	CM_AUTO_FREE char *tag = cm_asprintf("refs/tags/%s", ref);
	CM_AUTO_FREE char *head = cm_asprintf("refs/heads/%s", ref);
	char other[CM_HOST_GIT_HEX_SIZE] = "";
	int r;

	if (!tag || !head)
		return out_of_memory(err);
	if (cm_text_has_prefix(ref, "refs/"))
		return try_name(s, ref, err);
	r = try_name(s, tag, err);
	if (r == CM_OK && s->taken.commit[0] != '\0') {
		r = commit_of(s, head, other, err);
		if (r < 0 || other[0] == '\0')
			return r;
		cm_error_set(err, CM_E_INVALID, 0, "'%s' is a tag and a branch", ref);
		cm_error_hint(err, "name the one that is meant: --ref %s", head);
		return CM_E_INVALID;
	}
	if (r == CM_OK)
		r = try_name(s, head, err);
	if (r < 0 || s->taken.commit[0] != '\0' || !is_id(ref))
		return r;
	r = commit_of(s, ref, s->taken.commit, err);
	return r == CM_OK && s->taken.commit[0] != '\0' ? check_reachable(s, err) : r;
}

static int resolve_request(struct resolve *s, struct cm_error *err)
{
	int r = CM_OK;

	for (size_t i = 0; i < CM_REFS_REQUEST_NAMES && r == CM_OK && s->taken.commit[0] == '\0';
	     i++) {
		CM_AUTO_FREE char *name = cm_refs_request_name(s->take->pr, i);

		r = name ? try_name(s, name, err) : out_of_memory(err);
	}
	if (r < 0 || s->taken.commit[0] == '\0')
		return r;
	s->taken.branch = cm_asprintf("pr-%u", s->take->pr);
	return s->taken.branch ? CM_OK : out_of_memory(err);
}

static int resolve_head(struct resolve *s, struct cm_error *err)
{
	const char *const argv[] = { "-C", s->source, "symbolic-ref", "--quiet", "HEAD", NULL };
	char name[NAME_SIZE];
	int r = cm_host_git_line(s->g, argv, name, sizeof(name), err);

	if (r < 0)
		return r;
	if (name[0] == '\0')
		return commit_of(s, "HEAD", s->taken.commit, err);
	r = try_name(s, name, err);
	if (r < 0 || s->taken.commit[0] != '\0' || !cm_text_has_prefix(name, "refs/heads/"))
		return r;
	s->taken.is_unborn = true;
	s->taken.branch = cm_strdup(name + strlen("refs/heads/"));
	return s->taken.branch ? CM_OK : out_of_memory(err);
}

static int resolve_branch(struct resolve *s, struct cm_error *err)
{
	CM_AUTO_FREE char *name = cm_asprintf("refs/heads/%s", s->take->branch);

	return name ? try_name(s, name, err) : out_of_memory(err);
}

static int resolve(struct resolve *s, struct cm_error *err)
{
	int r = s->take->branch ? resolve_branch(s, err) : CM_OK;

	if (r < 0 || s->taken.commit[0] != '\0')
		return r;
	if (s->take->pr > 0)
		r = resolve_request(s, err);
	else if (s->take->ref && strcmp(s->take->ref, "HEAD") != 0)
		r = resolve_ref(s, err);
	else
		r = resolve_head(s, err);
	if (r == CM_OK && s->taken.commit[0] == '\0' && !s->taken.is_unborn)
		r = not_there(s, err);
	if (r < 0 || !s->take->branch)
		return r;
	free(s->taken.branch);
	s->taken.branch = cm_strdup(s->take->branch);
	s->taken.has_upstream = false;
	s->taken.is_new_branch = true;
	return s->taken.branch ? CM_OK : out_of_memory(err);
}

int cm_host_git_resolve(struct cm_host_git *g, const char *source,
			const struct cm_host_git_take *take, bool is_mirror,
			struct cm_host_git_taken *ret, struct cm_error *err)
{
	struct resolve s = { .g = g, .source = source, .take = take, .is_mirror = is_mirror };
	int r = resolve(&s, err);

	if (r < 0)
		cm_host_git_taken_clear(&s.taken);
	else
		*ret = s.taken;
	return r;
}

void cm_host_git_taken_clear(struct cm_host_git_taken *taken)
{
	free(cm_ptr_take(&taken->ref));
	free(cm_ptr_take(&taken->branch));
}

int cm_host_git_find(struct cm_host_git *g, const char *source, const struct cm_host_git_take *take,
		     char commit[CM_HOST_GIT_HEX_SIZE], struct cm_error *err)
{
	struct cm_host_git_taken taken = { 0 };
	struct cm_error why = CM_ERROR_INIT;
	int r = cm_host_git_resolve(g, source, take, true, &taken, &why);

	commit[0] = '\0';
	if (r == CM_E_NOT_FOUND || r == CM_E_INVALID)
		return CM_OK;
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	memcpy(commit, taken.commit, sizeof(taken.commit));
	cm_host_git_taken_clear(&taken);
	return CM_OK;
}
