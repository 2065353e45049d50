/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which branches and tags of a server a shallow fetch brings: the commits of each cost a tree, and a
 * server may have thousands. What the mirror has already is kept up to date with it: a checkout that
 * was made of it once goes by that.
 *
 * Order of use: init, want and had, offer each of the server's refs, end; then the rest.
 */
#ifndef CM_ISOLATION_CHECKOUT_NAMES_H
#define CM_ISOLATION_CHECKOUT_NAMES_H

#include <stdbool.h>

#include "runtime/base/buf.h"

struct cm_names {
	/* what --ref says, borrowed; NULL: nothing but HEAD */
	const char *ref;
	/* full names that ref may be short for */
	struct cm_strv candidates;
	/* full names that are fetched where the server has them */
	struct cm_strv wanted;
	/* those of the mirror; in order once something was offered */
	struct cm_strv had;
	bool is_had_sorted;
	bool has_ref;
	/* the server's that are fetched; in order after the end */
	struct cm_strv chosen;
	/* all branches and tags are: chosen has no say */
	bool is_all;
};

/* All return CM_OK or CM_E_NOMEM. Zero-initialised; ref and branch as a checkout has them, or NULL. */
int cm_names_init(struct cm_names *names, const char *ref, const char *branch);
int cm_names_want(struct cm_names *names, const char *name);
/* What is neither a branch nor a tag is passed over. */
int cm_names_had(struct cm_names *names, const char *name);
/* id: in hex. Names that end in "^{}" tell what a tag leads to, as servers have it. */
int cm_names_offer(struct cm_names *names, const char *offered, const char *id);
void cm_names_end(struct cm_names *names);
/* A branch or a tag: is it fetched? */
bool cm_names_has(const struct cm_names *names, const char *name);
void cm_names_clear(struct cm_names *names);

#endif
