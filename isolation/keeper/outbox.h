/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records for a peer that may not be reading just now, in order.
 *
 * Keeper and init tell each other things, and neither may ever wait until the other reads: what the
 * socket has no room for is kept, and sent from the loop when it has. Both go on reading meanwhile.
 * What is kept is bounded by who fills it: init has a few records a command to tell, and the keeper
 * reads no more from a client as long as a request of it is kept.
 */
#ifndef CM_ISOLATION_KEEPER_OUTBOX_H
#define CM_ISOLATION_KEEPER_OUTBOX_H

#include <stdbool.h>

#include "isolation/keeper/proto.h"
#include "runtime/base/loop.h"

struct cm_outbox_item;

struct cm_outbox {
	struct cm_loop *loop;
	int sock;
	/* while something is kept that the kernel refused for another reason than room */
	int timer;
	struct cm_outbox_item *first;
	struct cm_outbox_item *last;
	/* from the loop, when all that was kept is sent, whichever event that was of; NULL: nobody waits */
	void (*emptied)(void *data);
	void *data;
};

/*
 * The socket becomes non-blocking. The loop must watch it for EPOLLIN by the time that something is
 * sent; who is called then calls cm_outbox_flush as well.
 */
int cm_outbox_init(struct cm_outbox *box, struct cm_loop *loop, int sock, struct cm_error *err);
/* As cm_proto_send. 0: sent, or kept with copies of blob and descriptors; else -errno. */
int cm_outbox_send(struct cm_outbox *box, struct cm_rec *rec, const void *blob, const int *fds,
		   unsigned int n_fds);
/* Send what there is room for. 0, also when something stays; -errno when the peer is gone. */
int cm_outbox_flush(struct cm_outbox *box);
bool cm_outbox_is_empty(const struct cm_outbox *box);
/* Wait until all is sent: only for who has nothing to read any more. */
void cm_outbox_drain(struct cm_outbox *box);
/* Forget what was not sent. Nothing to do for one that is all zeroes. */
void cm_outbox_clear(struct cm_outbox *box);

#endif
