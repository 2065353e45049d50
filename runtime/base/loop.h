/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event loop: epoll, and timers by epoll_wait's timeout, so an idle loop has no wake-ups.
 *
 * Fixed capacity, no allocation after init, usable in pid 1. One thread. A callback may remove
 * any source or timer, its own included, and add others.
 */
#ifndef CM_RUNTIME_BASE_LOOP_H
#define CM_RUNTIME_BASE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "casemate/error.h"

#define CM_LOOP_MAX_SOURCES 1024
#define CM_LOOP_MAX_TIMERS 64

struct cm_loop;

/* events: EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR as delivered */
typedef void (*cm_loop_fd_fn)(struct cm_loop *loop, int fd, uint32_t events, void *data);
typedef void (*cm_loop_timer_fn)(struct cm_loop *loop, int timer, void *data);

struct cm_loop_source {
	int fd;
	uint32_t generation;
	cm_loop_fd_fn fn;
	void *data;
};

struct cm_loop_timer {
	/* CLOCK_MONOTONIC milliseconds; 0: free slot */
	int64_t due_ms;
	/* part of the id, so that a stale id does not cancel the slot's next timer */
	uint32_t generation;
	cm_loop_timer_fn fn;
	void *data;
};

struct cm_loop {
	int epoll_fd;
	bool is_stopped;
	uint32_t generation;
	/* those from here on were never used: not even their memory is touched */
	size_t n_sources;
	struct cm_loop_timer timers[CM_LOOP_MAX_TIMERS];
	struct cm_loop_source sources[CM_LOOP_MAX_SOURCES];
};

int cm_loop_init(struct cm_loop *loop, struct cm_error *err);
void cm_loop_clear(struct cm_loop *loop);
/* Watch fd; the loop does not own it. CM_E_LIMIT when full, CM_E_EXISTS when it is watched. */
int cm_loop_add(struct cm_loop *loop, int fd, uint32_t events, cm_loop_fd_fn fn, void *data,
		struct cm_error *err);
/* Change the events of a watched fd. 0 keeps it registered for HUP and ERR only. */
int cm_loop_modify(struct cm_loop *loop, int fd, uint32_t events, struct cm_error *err);
/* Stop watching; a no-op for an fd that is not watched. Call before closing the fd. */
void cm_loop_remove(struct cm_loop *loop, int fd);
/* One-shot timer at CLOCK_MONOTONIC due_ms; its id (>= 0), or CM_E_LIMIT. */
int cm_loop_timer_add(struct cm_loop *loop, int64_t due_ms, cm_loop_timer_fn fn, void *data);
/* A no-op for -1 or an id that has fired. */
void cm_loop_timer_cancel(struct cm_loop *loop, int timer);
/* Runs until cm_loop_stop (at once when that was called before). CM_OK or CM_E_SYS. */
int cm_loop_run(struct cm_loop *loop, struct cm_error *err);
void cm_loop_stop(struct cm_loop *loop);

#endif
