/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that nobody uses any more go; one that runs never does. */
#ifndef CM_PROVIDERS_LOCAL_PRUNE_H
#define CM_PROVIDERS_LOCAL_PRUNE_H

#include "runtime/base/tree_size.h"
#include "runtime/spec/config.h"
#include "runtime/store/filter.h"
#include "runtime/store/store.h"

enum cm_prune_outcome {
	CM_PRUNE_REMOVED = 1,
	/* work would be lost with its directory */
	CM_PRUNE_KEPT,
	CM_PRUNE_FAILED,
};

struct cm_pruned {
	const struct cm_store_session *s;
	enum cm_prune_outcome outcome;
	/* its directory went, or would go, too */
	bool with_files;
	/* with wants_size: what went */
	struct cm_tree_size size;
	/* KEPT and FAILED */
	const struct cm_error *why;
};

struct cm_prune {
	const struct cm_session_filter *filter;
	/* not used for so long; 0: whenever */
	uint64_t older_ms;
	/* of those that were chosen so the last ones used stay */
	size_t keep_last;
	/* their directories, too; those with work that is nowhere else only if is_forced */
	bool with_files;
	bool is_forced;
	/* everything but the removal */
	bool is_dry;
	bool wants_size;
	/* no more are begun after so many, nor so long after they were chosen; 0: no bound */
	size_t max;
	unsigned int span_ms;
	/* begin behind this one, where it is among them; NULL: with the one that was unused longest */
	const char *after;
	/* how long git may look at one session's directory; 0: the usual time */
	unsigned int look_ms;
	/* of each that was chosen; may be NULL. s and why are lent. */
	void (*tell)(void *data, const struct cm_pruned *pruned);
	void *data;
};

/* The bounds ended it before the last one. */
#define CM_PRUNE_LEFT 1
/* CM_OK also when some could not be removed, which tell says; or CM_PRUNE_LEFT. */
int cm_local_prune(struct cm_store *store, const struct cm_prune *prune,
		   const struct cm_config *config, struct cm_error *err);

/*
 * What the configuration's retention says, at the start of a session: at most once an hour for all
 * starts of a user, and no longer than a fraction of a second. Nothing of it is an error.
 */
void cm_local_retention(struct cm_store *store, const char *retention,
			const struct cm_config *config);

#endif
