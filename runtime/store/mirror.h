/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mirrors on disk: what was fetched from a remote repository, kept for the next session.
 *
 *	<cache>/mirrors/<32 hex>/lock   flock of whoever fetches into it or reads from it
 *	                        /data/  the checkout helper's, in its jail; never opened by anybody else
 *
 * cache: /var/cache/casemate as root, else $XDG_CACHE_HOME/casemate. A mirror may go at any time
 * that nobody has its lock.
 */
#ifndef CM_RUNTIME_STORE_MIRROR_H
#define CM_RUNTIME_STORE_MIRROR_H

#include "runtime/store/store.h"

struct cm_store_mirror {
	/* real path of data/ */
	char *dir;
	int lock_fd;
};

#define CM_STORE_MIRROR_INIT                                                                       \
	{                                                                                          \
		NULL, -1                                                                           \
	}

/*
 * The mirror of identity, a text of any length that says whose it is; made when absent, data/ then
 * belongs to owner (0: the caller). CM_E_BUSY when somebody has its lock: try again later.
 */
int cm_store_mirror_open(struct cm_store *store, const char *identity, uint32_t owner,
			 struct cm_store_mirror *ret, struct cm_error *err);
void cm_store_mirror_close(struct cm_store_mirror *mirror);

#endif
