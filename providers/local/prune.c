/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chosen without their locks, from what each says at that moment; then locked one by one and looked at
 * again, so that what was used meanwhile stays.
 */
#include "providers/local/prune.h"

#include <stdlib.h>
#include <string.h>

#include "providers/local/local.h"
#include "providers/local/unsaved.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/store/usage.h"

/* a start, a checkout or a setup holds the lock: then it is used */
#define LOCK_MS 50

struct candidate {
	char *id;
	int64_t used_ms;
};

struct candidates {
	struct candidate *v;
	size_t n;
};

static void clear_candidates(struct candidates *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->v[i].id);
	free(c->v);
	*c = (struct candidates){ NULL, 0 };
}

/* Does it not run, and is it one of those that are meant? With when it was used last. */
static bool is_meant(const struct cm_prune *prune, const struct cm_store_session *s,
		     int64_t *ret_used_ms)
{
	struct cm_end_record end = { 0 };
	bool is_alive = s->record.is_temporary || cm_store_keeper_alive(s);
	bool has_end = !is_alive && cm_store_read_end(s, &end) == CM_OK;
	enum cm_session_status status =
		cm_session_status(&s->record, is_alive, has_end ? &end : NULL);

	*ret_used_ms = cm_store_session_used_ms(s, has_end ? &end : NULL);
	return !is_alive && cm_session_filter_has_name(prune->filter, s->record.id) &&
	       cm_session_filter_matches(prune->filter, &s->record, status);
}

static bool is_old(const struct cm_prune *prune, int64_t used_ms)
{
	int64_t age_ms = cm_clock_real_ms() - used_ms;

	/* a clock that was set back makes nobody old */
	return prune->older_ms == 0 || (age_ms > 0 && (uint64_t)age_ms > prune->older_ms);
}

static int add_candidate(struct candidates *c, const char *id, int64_t used_ms)
{
	c->v[c->n].id = cm_strdup(id);
	c->v[c->n].used_ms = used_ms;
	return c->v[c->n].id ? (c->n++, CM_OK) : CM_E_NOMEM;
}

static int latest_first(const void *a, const void *b)
{
	const struct candidate *x = a;
	const struct candidate *y = b;

	if (x->used_ms != y->used_ms)
		return x->used_ms > y->used_ms ? -1 : 1;
	return strcmp(x->id, y->id);
}

static int choose(struct cm_store *store, const struct cm_prune *prune, struct candidates *ret,
		  struct cm_error *err)
{
	CM_AUTO_STRV struct cm_strv ids = { 0 };
	int r = cm_store_list_lasting(store, &ids, err);

	if (r == CM_OK)
		ret->v = cm_calloc(ids.n + 1, sizeof(*ret->v));
	for (size_t i = 0; r == CM_OK && ret->v && i < ids.n; i++) {
		struct cm_store_session s;
		int64_t used_ms;

		/* gone meanwhile; or damaged, and nobody can say whether it is meant */
		if (cm_store_session_open_as(store, ids.v[i], CM_STORE_ANY_ROOT, 0, &s, NULL) !=
		    CM_OK)
			continue;
		if (is_meant(prune, &s, &used_ms))
			r = add_candidate(ret, ids.v[i], used_ms);
		cm_store_session_close(&s);
	}
	if (r == CM_E_NOMEM || (r == CM_OK && !ret->v))
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	if (r == CM_OK && ret->n > 1)
		qsort(ret->v, ret->n, sizeof(*ret->v), latest_first);
	return r;
}

static int remove_one(struct cm_store *store, const struct cm_prune *prune,
		      struct cm_store_session *s, const struct cm_config *config,
		      struct cm_pruned *pruned, struct cm_error *err)
{
	int r = CM_OK;

	/* one that worked elsewhere made none */
	pruned->with_files = prune->with_files && cm_store_session_has_dir(&s->record);
	if (pruned->with_files && !prune->is_forced)
		r = cm_local_check_unsaved(s, config, prune->look_ms, err);
	if (r != CM_OK)
		return r;
	if (prune->wants_size)
		cm_store_session_size(s, pruned->with_files, &pruned->size);
	if (prune->is_dry)
		return CM_OK;
	if (!pruned->with_files)
		(void)cm_store_kept_note(store, s, NULL);
	return cm_local_remove(store, s, pruned->with_files, config, err);
}

static void tell(const struct cm_prune *prune, struct cm_pruned *pruned, int r,
		 const struct cm_error *why)
{
	pruned->outcome = CM_PRUNE_REMOVED;
	if (r == CM_E_EXISTS)
		pruned->outcome = CM_PRUNE_KEPT;
	else if (r != CM_OK)
		pruned->outcome = CM_PRUNE_FAILED;
	pruned->why = r == CM_OK ? NULL : why;
	if (prune->tell)
		prune->tell(prune->data, pruned);
}

/* false: it is not meant any more */
static bool prune_one(struct cm_store *store, const struct cm_prune *prune, const char *id,
		      const struct cm_config *config)
{
	struct cm_error why = CM_ERROR_INIT;
	struct cm_store_session s;
	struct cm_pruned pruned = { .s = &s };
	int64_t used_ms;
	bool is_still;
	int r = cm_store_session_open_as(store, id, CM_STORE_CHANGE | CM_STORE_ANY_ROOT,
					 cm_clock_mono_ms() + LOCK_MS, &s, &why);

	if (r != CM_OK)
		return false;
	is_still = is_meant(prune, &s, &used_ms) && is_old(prune, used_ms);
	if (is_still) {
		r = remove_one(store, prune, &s, config, &pruned, &why);
		tell(prune, &pruned, r, &why);
	}
	cm_store_session_close(&s);
	return is_still;
}

static bool is_over(const struct cm_prune *prune, size_t n, int64_t deadline_ms)
{
	return (prune->max != 0 && n >= prune->max) || cm_clock_mono_ms() >= deadline_ms;
}

/* The number of those that are left, from the front on, when those up to prune->after are passed over. */
static size_t begin_at(const struct cm_prune *prune, const struct candidates *chosen)
{
	for (size_t i = chosen->n; prune->after && i > 0; i--) {
		if (strcmp(chosen->v[i - 1].id, prune->after) == 0)
			return i - 1;
	}
	return chosen->n;
}

int cm_local_prune(struct cm_store *store, const struct cm_prune *prune,
		   const struct cm_config *config, struct cm_error *err)
{
	struct candidates chosen = { NULL, 0 };
	size_t n = 0;
	int r = choose(store, prune, &chosen, err);
	int64_t deadline_ms = prune->span_ms != 0 ? cm_clock_mono_ms() + prune->span_ms : INT64_MAX;

	/* the longest unused goes first, so that what is bounded gets on */
	for (size_t i = begin_at(prune, &chosen); r == CM_OK && i > prune->keep_last; i--) {
		if (!is_old(prune, chosen.v[i - 1].used_ms))
			break;
		if (is_over(prune, n, deadline_ms))
			r = CM_PRUNE_LEFT;
		else
			n += prune_one(store, prune, chosen.v[i - 1].id, config);
	}
	clear_candidates(&chosen);
	return r;
}
