/* SPDX-License-Identifier: Apache-2.0 */
/* A command of the local vtable: shared between what is read of it and what is done with it. */
#ifndef CM_PROVIDERS_LOCAL_VTABLE_EXEC_H
#define CM_PROVIDERS_LOCAL_VTABLE_EXEC_H

#include <poll.h>

#include "providers/local/vtable_internal.h"

#define CM_LV_CHUNK 65536
/* of what is printed while somebody writes */
#define CM_LV_HELD_MAX (64UL * 1024 * 1024)

enum cm_lv_slot {
	CM_LV_SLOT_JAIL,
	CM_LV_SLOT_OUT,
	CM_LV_SLOT_ERR,
	CM_LV_SLOT_CANCEL,
	/* what is written to; or the caller's own from here on */
	CM_LV_SLOT_MORE,
	CM_LV_SLOT_COUNT = CM_LV_SLOT_MORE + CM_WAKE_MAX,
};

/* A request, with copies of what its caller had. */
struct cm_lv_request {
	struct cm_exec_request request;
	struct cm_strv argv;
	struct cm_strv env;
	char *cwd;
};

struct cm_lv_exec {
	struct cm_exec base;
	/* the session as it was reached, and the connection to it; NULL while is_not_taken, or after why */
	struct cm_local *l;
	/* nothing is under way on it any more */
	bool is_free;
	/* what was asked on a connection that was kept, whose keeper may be ending; else NULL. Owned. */
	struct cm_lv_request *again;
	int64_t answer_due_ms;
	/* it did not take the request: nothing was done of that */
	bool is_not_taken;
	uint64_t id;
	char *cwd;
	bool is_tty;
	/* -1: closed, or none. A terminal is all three. */
	int in_fd;
	int out_fd[2];
	struct cm_buf held[2];
	/* the stream whose held bytes the caller has; -1: none */
	int lent;
	bool is_started;
	bool is_started_told;
	bool has_ended;
	/* the caller's own were asked last, and have their turn after output */
	bool is_output_told;
	struct cm_rec_end end;
	/* of each stream, bytes that were there when it ended */
	uint64_t due[2];
	/* nobody has the terminal's other end open; to be looked at again then. 0: it is open */
	int64_t hung_until_ms;
	int64_t drain_until_ms;
	/* a bit each that was sent by us */
	uint64_t signals;
	struct cm_error why;
	char chunk[CM_LV_CHUNK];
};

/* vtable_exec.c: descriptors to wait for, but those that are written to and the caller's own. */
void cm_lv_exec_prepare(const struct cm_lv_exec *e, const struct cm_call *call,
			struct pollfd p[CM_LV_SLOT_COUNT]);
/* One poll, and what the keeper had to say. CM_OK, or why it is over for the caller. */
int cm_lv_exec_look(struct cm_lv_exec *e, const struct cm_call *call, struct pollfd *p, size_t n,
		    int64_t due_ms, struct cm_error *err);
/* What the keeper has said; never waits. */
void cm_lv_exec_hear(struct cm_lv_exec *e);
/* Nobody has it, and that stays so: `why`, now and whenever it is asked about. Returns its code. */
int cm_lv_exec_fail(struct cm_lv_exec *e, const struct cm_error *why, struct cm_error *err);
/* Until it has started, or ended. */
int cm_lv_exec_await_start(struct cm_lv_exec *e, const struct cm_call *call, struct cm_error *err);
/* Bytes in e->chunk; 0: it is at its end, or nothing is there now. */
size_t cm_lv_exec_read(struct cm_lv_exec *e, int i);
/* Held output that the caller had is forgotten. */
void cm_lv_exec_take_back(struct cm_lv_exec *e);

void cm_lv_exec_close_streams(struct cm_lv_exec *e);

extern const struct cm_exec_ops cm_lv_exec_ops;

/* vtable_start.c */

/* e->again is asked for anew, in the session as it is then; what comes of that is in e as well. */
int cm_lv_exec_again(struct cm_lv_exec *e, const struct cm_call *call, struct cm_error *err);
/* NULL is allowed. */
void cm_lv_request_free(struct cm_lv_request *request);

/* vtable_input.c: as struct cm_exec_ops has them */
int cm_lv_exec_input(struct cm_exec *exec, const void *bytes, size_t len,
		     const struct cm_call *call, struct cm_error *err);
int cm_lv_exec_signal(struct cm_exec *exec, int sig, const struct cm_call *call,
		      struct cm_error *err);
int cm_lv_exec_resize(struct cm_exec *exec, uint16_t rows, uint16_t cols,
		      const struct cm_call *call, struct cm_error *err);

static inline bool cm_lv_is_ready(const struct pollfd *p)
{
	return p->fd >= 0 && p->revents != 0;
}

#endif
