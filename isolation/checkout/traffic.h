/* SPDX-License-Identifier: Apache-2.0 */
/* What came over this process's TCP connections, whoever reads from them. */
#ifndef CM_ISOLATION_CHECKOUT_TRAFFIC_H
#define CM_ISOLATION_CHECKOUT_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

/* A helper has a handful of descriptors; libgit2 opens few packs at a time. */
#define CM_TRAFFIC_FDS 256

struct cm_traffic {
	/* bytes, since the first look */
	uint64_t total;
	/* some came that nobody has read yet: it is not the other end that is waited for */
	bool has_unread;
	/* there is one */
	bool has_connection;
	/* by descriptor */
	uint64_t seen[CM_TRAFFIC_FDS];
};

/* Look again. System calls alone: right in any thread. */
void cm_traffic_look(struct cm_traffic *traffic);
/* Whoever waits for one of the connections finds that it has ended. */
void cm_traffic_end(void);

#endif
