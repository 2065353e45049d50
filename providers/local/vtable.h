/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Local sessions as a provider. A session that was asked for without a name is one that lasts, under a
 * name made up for it: its user destroys it. Whatever needs a session that does not run starts it.
 */
#ifndef CM_PROVIDERS_LOCAL_VTABLE_H
#define CM_PROVIDERS_LOCAL_VTABLE_H

#include "providers/local/jail.h"
#include "providers/provider.h"

extern const struct cm_provider_ops cm_local_ops;

/* A session that runs, as its caller has reached it. */
struct cm_local_reached {
	/* connected to it */
	struct cm_jail *jail;
	const char *id;
	uint64_t generation;
	/* what relative paths are below */
	const char *cwd;
};
/*
 * A handle of it for file operations, which go over that connection, as long as it lasts: one after the
 * other, without a look at the session in between. Borrowed, until the handle is released.
 */
int cm_local_session_of(struct cm_provider *p, const struct cm_local_reached *reached,
			struct cm_session **ret, struct cm_error *err);

#endif
