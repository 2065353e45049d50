/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mirrors on disk: what was fetched from a remote repository, kept for the next session.
 *
 *	<cache>/mirrors/<32 hex>/lock   flock of whoever fetches into it or reads from it
 *	                        /used   its time is that of the last fetch into it that went well
 *	                        /data/  the checkout helper's, in its jail; never opened by anybody else
 *	<cache>/mirrors/salt            sixteen random hex digits, which the names are made with
 *	<cache>/mirrors/pruned          its time is that of the last look for those that can go
 *
 * cache: /var/cache/casemate as root, else $XDG_CACHE_HOME/casemate. A mirror may go at any time
 * that nobody has its lock.
 */
#ifndef CM_RUNTIME_STORE_MIRROR_H
#define CM_RUNTIME_STORE_MIRROR_H

#include "runtime/store/store.h"

/* 32 hex digits */
#define CM_STORE_MIRROR_KEY_SIZE 33

struct cm_store_mirror {
	/* real path of data/ */
	char *dir;
	int lock_fd;
	/* mirrors/, and the mirror in it */
	int mirrors_fd;
	char key[CM_STORE_MIRROR_KEY_SIZE];
};

#define CM_STORE_MIRROR_INIT                                                                       \
	{                                                                                          \
		.lock_fd = -1, .mirrors_fd = -1                                                    \
	}

/*
 * The mirror of identity, a text of any length that says whose it is; made when absent, data/ then
 * belongs to owner (0: the caller). CM_E_BUSY when somebody has its lock: try again later.
 */
int cm_store_mirror_open(struct cm_store *store, const char *identity, uint32_t owner,
			 struct cm_store_mirror *ret, struct cm_error *err);
/* A fetch went well: the mirror is worth keeping. */
int cm_store_mirror_used(struct cm_store_mirror *mirror, struct cm_error *err);
/* One that was never fetched into well is removed. */
void cm_store_mirror_close(struct cm_store_mirror *mirror);

/*
 * Remove mirrors that were not used for CM_STORE_MIRROR_DAYS, and of the others the oldest, until all
 * take at most CM_STORE_MIRRORS_MAX bytes. Those in use stay. Looks at most once a day, so that it
 * can be called after each fetch; what cannot be removed stays for another day.
 */
void cm_store_mirrors_prune(struct cm_store *store);
#define CM_STORE_MIRROR_DAYS 30
#define CM_STORE_MIRRORS_MAX (10ULL * 1024 * 1024 * 1024)
/* The same with other bounds, and at once. */
void cm_store_mirrors_prune_to(struct cm_store *store, uint64_t max_bytes, int64_t max_age_s);

#endif
