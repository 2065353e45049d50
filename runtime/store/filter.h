/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which sessions are meant: what `ls --filter` and `prune` choose by.
 *
 *	state=created|running|stopped|error   level=GLOB   label=KEY[=VALUE]
 *	name=PREFIX|GLOB                      repo=GLOB    root=DIR
 *
 * Of several of one key one has to hold, of labels all; and every key has to.
 */
#ifndef CM_RUNTIME_STORE_FILTER_H
#define CM_RUNTIME_STORE_FILTER_H

#include "runtime/store/store.h"

struct cm_session_filter {
	/* bits 1 << enum cm_session_status; 0: any */
	unsigned int states;
	struct cm_strv names;
	struct cm_strv levels;
	struct cm_strv labels;
	struct cm_strv repos;
	struct cm_strv roots;
};

void cm_session_filter_clear(struct cm_session_filter *filter);
/* text: "KEY=VALUE". CM_E_INVALID with a hint that says which there are. */
int cm_session_filter_add(struct cm_session_filter *filter, const char *text, struct cm_error *err);
/* The part that is known before the session is opened. */
bool cm_session_filter_has_name(const struct cm_session_filter *filter, const char *id);
bool cm_session_filter_is_of_names(const struct cm_session_filter *filter);
/* The rest of it. */
bool cm_session_filter_matches(const struct cm_session_filter *filter,
			       const struct cm_session_record *record,
			       enum cm_session_status status);

#endif
