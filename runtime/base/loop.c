/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event loop over epoll.
 *
 * An event names its slot and the slot's generation, so that events that epoll_wait already
 * returned for a source removed (or replaced) by an earlier callback are dropped.
 */
#include "runtime/base/loop.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define EVENTS_PER_WAIT 64
/* A timer's id is its slot and as many bits of its generation as an int has left. */
#define TIMER_SLOT_BITS 6
#define TIMER_GENERATION_MASK (UINT32_MAX >> (TIMER_SLOT_BITS + 1))

_Static_assert(CM_LOOP_MAX_TIMERS == 1 << TIMER_SLOT_BITS, "a timer's id holds its slot");

int cm_loop_init(struct cm_loop *loop, struct cm_error *err)
{
	loop->is_stopped = false;
	loop->generation = 0;
	loop->n_sources = 0;
	memset(loop->timers, 0, sizeof(loop->timers));
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make an event queue");
	return CM_OK;
}

void cm_loop_clear(struct cm_loop *loop)
{
	cm_fd_close(&loop->epoll_fd);
	loop->n_sources = 0;
	for (size_t i = 0; i < CM_LOOP_MAX_TIMERS; i++)
		loop->timers[i].due_ms = 0;
}

/* The slot of fd, or with -1 one that is free again; NULL when there is none. */
static struct cm_loop_source *find_source(struct cm_loop *loop, int fd)
{
	for (size_t i = 0; i < loop->n_sources; i++) {
		if (loop->sources[i].fd == fd)
			return &loop->sources[i];
	}
	return NULL;
}

static struct cm_loop_source *free_source(struct cm_loop *loop)
{
	struct cm_loop_source *s = find_source(loop, -1);

	if (s || loop->n_sources == CM_LOOP_MAX_SOURCES)
		return s;
	s = &loop->sources[loop->n_sources++];
	s->fd = -1;
	return s;
}

static struct epoll_event event_of(struct cm_loop *loop, const struct cm_loop_source *s,
				   uint32_t events)
{
	uint64_t slot = (uint64_t)(s - loop->sources);

	return (struct epoll_event){ .events = events,
				     .data.u64 = (uint64_t)s->generation << 32 | slot };
}

int cm_loop_add(struct cm_loop *loop, int fd, uint32_t events, cm_loop_fd_fn fn, void *data,
		struct cm_error *err)
{
	struct cm_loop_source *s;
	struct epoll_event event;

	if (fd < 0)
		return cm_error_set(err, CM_E_INVALID, EBADF, "cannot watch descriptor %d", fd);
	if (find_source(loop, fd))
		return cm_error_set(err, CM_E_EXISTS, 0, "descriptor %d is watched already", fd);
	s = free_source(loop);
	if (!s)
		return cm_error_set(err, CM_E_LIMIT, 0, "cannot watch more than %d descriptors",
				    CM_LOOP_MAX_SOURCES);
	s->generation = ++loop->generation;
	event = event_of(loop, s, events);
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot watch descriptor %d", fd);
	s->fd = fd;
	s->fn = fn;
	s->data = data;
	return CM_OK;
}

int cm_loop_modify(struct cm_loop *loop, int fd, uint32_t events, struct cm_error *err)
{
	struct cm_loop_source *s = fd < 0 ? NULL : find_source(loop, fd);
	struct epoll_event event;

	if (!s)
		return cm_error_set(err, CM_E_NOT_FOUND, 0, "descriptor %d is not watched", fd);
	event = event_of(loop, s, events);
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, fd, &event) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot change watched descriptor %d",
				    fd);
	return CM_OK;
}

void cm_loop_remove(struct cm_loop *loop, int fd)
{
	struct cm_loop_source *s = fd < 0 ? NULL : find_source(loop, fd);
	int saved = errno;

	if (!s)
		return;
	/* fails when the caller closed it first, and then there is nothing left to remove */
	(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	s->fd = -1;
	errno = saved;
}

int cm_loop_timer_add(struct cm_loop *loop, int64_t due_ms, cm_loop_timer_fn fn, void *data)
{
	for (unsigned int i = 0; i < CM_LOOP_MAX_TIMERS; i++) {
		struct cm_loop_timer *t = &loop->timers[i];

		if (t->due_ms != 0)
			continue;
		/* 0 marks a free slot, and what is overdue is due */
		t->due_ms = due_ms > 0 ? due_ms : 1;
		t->generation = (t->generation + 1) & TIMER_GENERATION_MASK;
		t->fn = fn;
		t->data = data;
		return (int)(t->generation << TIMER_SLOT_BITS | i);
	}
	return CM_E_LIMIT;
}

static int timer_id(const struct cm_loop *loop, const struct cm_loop_timer *t)
{
	return (int)(t->generation << TIMER_SLOT_BITS | (uint32_t)(t - loop->timers));
}

void cm_loop_timer_cancel(struct cm_loop *loop, int timer)
{
	struct cm_loop_timer *t;

	if (timer < 0)
		return;
	t = &loop->timers[timer & (CM_LOOP_MAX_TIMERS - 1)];
	if (timer_id(loop, t) == timer)
		t->due_ms = 0;
}

static struct cm_loop_timer *earliest_timer(struct cm_loop *loop)
{
	struct cm_loop_timer *first = NULL;

	for (size_t i = 0; i < CM_LOOP_MAX_TIMERS; i++) {
		struct cm_loop_timer *t = &loop->timers[i];

		if (t->due_ms != 0 && (!first || t->due_ms < first->due_ms))
			first = t;
	}
	return first;
}

static int next_timeout(struct cm_loop *loop)
{
	const struct cm_loop_timer *first = earliest_timer(loop);
	int64_t now = cm_clock_mono_ms();

	if (!first)
		return -1;
	if (first->due_ms <= now)
		return 0;
	return first->due_ms - now > INT_MAX ? INT_MAX : (int)(first->due_ms - now);
}

static void run_timers(struct cm_loop *loop)
{
	int64_t now = cm_clock_mono_ms();

	/* as many as there can be: timers that re-arm themselves must not starve descriptors */
	for (size_t i = 0; i < CM_LOOP_MAX_TIMERS && !loop->is_stopped; i++) {
		struct cm_loop_timer *t = earliest_timer(loop);

		if (!t || t->due_ms > now)
			break;
		/* free before the call: a one-shot timer's callback may need its slot */
		t->due_ms = 0;
		t->fn(loop, timer_id(loop, t), t->data);
	}
}

static void run_events(struct cm_loop *loop, const struct epoll_event *events, size_t n)
{
	for (size_t i = 0; i < n && !loop->is_stopped; i++) {
		struct cm_loop_source *s = &loop->sources[events[i].data.u64 & UINT32_MAX];

		if (s >= &loop->sources[loop->n_sources] || s->fd < 0 ||
		    s->generation != events[i].data.u64 >> 32)
			continue;
		s->fn(loop, s->fd, events[i].events, s->data);
	}
}

int cm_loop_run(struct cm_loop *loop, struct cm_error *err)
{
	struct epoll_event events[EVENTS_PER_WAIT];

	while (!loop->is_stopped) {
		int n = epoll_wait(loop->epoll_fd, events, EVENTS_PER_WAIT, next_timeout(loop));

		if (n < 0 && errno != EINTR)
			return cm_error_set(err, CM_E_SYS, errno, "cannot wait for events");
		if (n > 0)
			run_events(loop, events, (size_t)n);
		run_timers(loop);
	}
	/* cleared at the end, so that a stop asked for before the loop ran is not lost */
	loop->is_stopped = false;
	return CM_OK;
}

void cm_loop_stop(struct cm_loop *loop)
{
	loop->is_stopped = true;
}
