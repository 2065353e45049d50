/* SPDX-License-Identifier: Apache-2.0 */
/* How long an operation may take, in the terms of what carries it out here. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "providers/local/vtable_internal.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

static int add(int epoll_fd, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int add_timer(struct cm_lv_call *c)
{
	int64_t ms = c->call->deadline_ms;
	struct itimerspec at = { .it_value = { .tv_sec = ms / 1000,
					       .tv_nsec = ms % 1000 * 1000000 } };

	c->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (c->timer_fd < 0 || timerfd_settime(c->timer_fd, TFD_TIMER_ABSTIME, &at, NULL) < 0)
		return -errno;
	return add(c->fd, c->timer_fd);
}

int cm_lv_call_open(struct cm_lv_call *c, const struct cm_call *call, struct cm_error *err)
{
	int r = 0;

	*c = (struct cm_lv_call){ .call = call, .fd = -1, .timer_fd = -1 };
	/* one alone is waited for as it is */
	if (call->deadline_ms == INT64_MAX) {
		c->fd = call->cancel_fd;
		return CM_OK;
	}
	c->fd = epoll_create1(EPOLL_CLOEXEC);
	if (c->fd < 0)
		r = -errno;
	if (r == 0 && call->cancel_fd >= 0)
		r = add(c->fd, call->cancel_fd);
	if (r == 0)
		r = add_timer(c);
	if (r == 0)
		return CM_OK;
	cm_lv_call_close(c);
	return cm_error_set(err, CM_E_SYS, -r, "cannot watch the time of a call");
}

void cm_lv_call_close(struct cm_lv_call *c)
{
	cm_fd_close(&c->timer_fd);
	if (c->fd != c->call->cancel_fd)
		cm_fd_close(&c->fd);
	c->fd = -1;
}

int cm_lv_call_check(const struct cm_call *call, struct cm_error *err)
{
	struct pollfd p = { .fd = call->cancel_fd, .events = POLLIN };

	if (call->cancel_fd >= 0 && poll(&p, 1, 0) > 0)
		return cm_error_set(err, CM_E_CANCELLED, 0, "given up on request");
	if (call->deadline_ms != INT64_MAX && cm_clock_mono_ms() >= call->deadline_ms)
		return cm_error_set(err, CM_E_TIMEOUT, 0, "the time for it is over");
	return CM_OK;
}

int cm_lv_call_result(const struct cm_lv_call *c, int r, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;

	if (r != CM_E_CANCELLED || cm_lv_call_check(c->call, &why) != CM_E_TIMEOUT)
		return r;
	return cm_error_set(err, CM_E_TIMEOUT, 0, "%s", why.msg);
}

int cm_lv_poll_ms(const struct cm_call *call, int64_t due_ms)
{
	int64_t until = call->deadline_ms < due_ms ? call->deadline_ms : due_ms;
	int64_t left;

	if (until == INT64_MAX)
		return -1;
	left = until - cm_clock_mono_ms();
	if (left < 0)
		return 0;
	return left < INT_MAX ? (int)left : INT_MAX;
}

int64_t cm_lv_deadline(const struct cm_call *call, int64_t ms)
{
	int64_t until = cm_clock_mono_ms() + ms;

	return call->deadline_ms < until ? call->deadline_ms : until;
}

void cm_lv_quiet_begin(struct cm_lv_quiet *q)
{
	sigset_t pipe;
	sigset_t pending;

	(void)sigemptyset(&pipe);
	(void)sigaddset(&pipe, SIGPIPE);
	(void)sigemptyset(&pending);
	(void)sigpending(&pending);
	q->was_pending = sigismember(&pending, SIGPIPE) == 1;
	(void)pthread_sigmask(SIG_BLOCK, &pipe, &q->before);
}

void cm_lv_quiet_end(const struct cm_lv_quiet *q)
{
	const struct timespec now = { 0 };
	sigset_t pipe;

	(void)sigemptyset(&pipe);
	(void)sigaddset(&pipe, SIGPIPE);
	/* of a write of ours: that was told as an error */
	if (!q->was_pending) {
		while (sigtimedwait(&pipe, NULL, &now) < 0 && errno == EINTR)
			;
	}
	(void)pthread_sigmask(SIG_SETMASK, &q->before, NULL);
}
