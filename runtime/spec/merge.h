/* SPDX-License-Identifier: Apache-2.0 */
/* Layers -> spec: precedence, contradictions, ceilings; and where each value came from. Pure. */
#ifndef CM_RUNTIME_SPEC_MERGE_H
#define CM_RUNTIME_SPEC_MERGE_H

#include "runtime/spec/layer.h"

/*
 * One string a value, in the order of the spec's own list for keys that are lists. An empty
 * vector: the built-in value holds.
 */
struct cm_origins {
	struct cm_strv of[CM_KEY_COUNT];
};

void cm_origins_clear(struct cm_origins *origins);
#define CM_AUTO_ORIGINS __attribute__((cleanup(cm_origins_clear)))

/* What the pure parts must know about the caller. Borrowed. */
struct cm_caller {
	/* absolute */
	const char *cwd;
	/* NULL: not known, and '~' is refused */
	const char *home;
	/* "NAME=value": what `-e NAME` passes */
	const struct cm_strv *env;
};

struct cm_merge {
	struct cm_spec *spec;
	struct cm_origins *origins;
	const struct cm_caller *caller;
	/* layers from here on are what the command line asks for (asked in spec.h) */
	bool is_asked;
	/* the repository is the session's, which has one or is refused: --ref and the like need no
	 * --repo */
	bool is_of_session;
	/* lines for the user; what a ceiling changed or refused to widen */
	struct cm_strv notes;
};

/* Lay a layer over the spec: scalars are replaced, lists grow. */
int cm_merge_layer(struct cm_merge *m, const struct cm_layer *layer, struct cm_error *err);
/* Contradictions, and values that follow from others. After the layers, before the ceilings. */
int cm_merge_check(struct cm_merge *m, struct cm_error *err);
/*
 * Tighten the spec to a ceiling. is_repository: the layer is .casemate.json of a repository, whose
 * keys that are no ceiling, and values that are looser than the spec's, are noted and ignored; in
 * the administrator's the former are an error, when the file is read.
 */
int cm_merge_ceiling(struct cm_merge *m, const struct cm_layer *ceiling, bool is_repository,
		     struct cm_error *err);
/* Last: what follows from the final values (swap, read-only volumes). */
void cm_merge_finish(struct cm_merge *m);
void cm_merge_clear(struct cm_merge *m);

/*
 * One setting onto a spec. n_volumes_before: how many volumes there were before this layer, since
 * two at one place contradict each other within a layer and replace each other across layers.
 */
int cm_spec_apply(struct cm_spec *spec, struct cm_origins *origins,
		  const struct cm_setting *setting, const char *base,
		  const struct cm_caller *caller, size_t n_volumes_before, struct cm_error *err);

#endif
