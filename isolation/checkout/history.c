/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgit2 before 1.7 does not know of shallow commits: its own answer is an error as soon as it comes
 * to where a history was cut off. Then what is there is gone through here.
 */
#include "isolation/checkout/history.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"

/* A set that is a list, too, in the order of adding: open addressing, at most half full. */
struct seen {
	git_oid *list;
	size_t n;
	/* index in list and 1; 0: free */
	size_t *slots;
	size_t n_slots;
};

/* An id is as good as random. */
static size_t slot_of(const struct seen *s, const git_oid *id)
{
	size_t at;

	memcpy(&at, id->id, sizeof(at));
	at &= s->n_slots - 1;
	while (s->slots[at] != 0 && !git_oid_equal(&s->list[s->slots[at] - 1], id))
		at = (at + 1) & (s->n_slots - 1);
	return at;
}

static bool grow(struct seen *s)
{
	size_t n_slots = s->n_slots ? 2 * s->n_slots : 1024;
	git_oid *list = cm_realloc(s->list, n_slots / 2 * sizeof(*list));
	size_t *slots = cm_calloc(n_slots, sizeof(*slots));

	if (list)
		s->list = list;
	if (!list || !slots) {
		free(slots);
		return false;
	}
	free(s->slots);
	s->slots = slots;
	s->n_slots = n_slots;
	for (size_t i = 0; i < s->n; i++)
		s->slots[slot_of(s, &s->list[i])] = i + 1;
	return true;
}

static bool add(struct seen *s, const git_oid *id)
{
	size_t at;

	if (2 * s->n >= s->n_slots && !grow(s))
		return false;
	at = slot_of(s, id);
	if (s->slots[at] != 0)
		return true;
	s->list[s->n++] = *id;
	s->slots[at] = s->n;
	return true;
}

static bool walk(git_repository *repo, struct seen *s, const git_oid *commit)
{
	for (size_t i = 0; i < s->n; i++) {
		CM_AUTO_GIT(git_commit) git_commit *found = NULL;
		unsigned int n;

		if (git_oid_equal(&s->list[i], commit))
			return true;
		if (git_commit_lookup(&found, repo, &s->list[i]) < 0)
			continue;
		n = git_commit_parentcount(found);
		for (unsigned int p = 0; p < n; p++) {
			if (!add(s, git_commit_parent_id(found, p)))
				return false;
		}
	}
	return false;
}

bool cm_history_has(git_repository *repo, const git_oid *tip, const git_oid *commit)
{
	struct seen s = { NULL };
	int r = git_graph_descendant_of(repo, tip, commit);
	bool has;

	if (r >= 0)
		return r > 0;
	has = add(&s, tip) && walk(repo, &s, commit);
	free(s.list);
	free(s.slots);
	return has;
}

bool cm_history_any_has(git_repository *repo, const git_oid *tips, size_t n, const git_oid *commit)
{
	struct seen s = { NULL };
	int r = n > 0 ? git_graph_reachable_from_any(repo, commit, tips, n) : 0;
	bool has = true;

	if (r >= 0)
		return r > 0;
	for (size_t i = 0; i < n && has; i++)
		has = add(&s, &tips[i]);
	has = has && walk(repo, &s, commit);
	free(s.list);
	free(s.slots);
	return has;
}
