/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a session may be idle, and how long it may live. CLOCK_BOOTTIME: a machine that slept was
 * idle meanwhile. A session without either has no timer, and so no wake-ups.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "isolation/keeper/keeper.h"
#include "runtime/base/clock.h"
#include "runtime/store/keeper_lock.h"

/* What a command has left running counts, too. */
static bool is_busy(const struct cm_keeper *k)
{
	for (size_t i = 0; i < CM_MAX_EXECS; i++) {
		if (k->execs[i].is_used)
			return true;
	}
	return false;
}

/* When it has been idle for too long; INT64_MAX: it is not idle, or may be. */
static int64_t idle_due(const struct cm_keeper *k)
{
	uint64_t idle = k->plan.header->idle_ms;

	return idle == 0 || is_busy(k) ? INT64_MAX : k->active_ms + (int64_t)idle;
}

static int64_t lifetime_due(const struct cm_keeper *k)
{
	uint64_t lifetime = k->plan.header->lifetime_ms;

	return lifetime == 0 ? INT64_MAX : k->began_ms + (int64_t)lifetime;
}

static void arm(const struct cm_keeper *k)
{
	int64_t due = idle_due(k) < lifetime_due(k) ? idle_due(k) : lifetime_due(k);
	struct itimerspec when = { 0 };

	if (k->age_fd < 0)
		return;
	if (due != INT64_MAX) {
		when.it_value.tv_sec = due / 1000;
		when.it_value.tv_nsec = due % 1000 * 1000000 + 1;
	}
	(void)timerfd_settime(k->age_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void on_age(struct cm_loop *loop, int fd, uint32_t events, void *data)
{
	struct cm_keeper *k = data;
	int64_t now = cm_clock_boot_ms();
	uint64_t n;

	(void)loop;
	(void)events;
	(void)!read(fd, &n, sizeof(n));
	if (now >= lifetime_due(k))
		cm_keeper_stop(k, CM_ENDED_LIFETIME);
	else if (now >= idle_due(k))
		cm_keeper_stop(k, CM_ENDED_IDLE);
	else
		arm(k);
}

int cm_keeper_age_begin(struct cm_keeper *k, struct cm_error *err)
{
	k->began_ms = k->active_ms = cm_clock_boot_ms();
	if (k->plan.header->idle_ms == 0 && k->plan.header->lifetime_ms == 0)
		return CM_OK;
	k->age_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (k->age_fd < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a timer");
	arm(k);
	return cm_loop_add(&k->loop, k->age_fd, EPOLLIN, on_age, k, err);
}

void cm_keeper_was_active(struct cm_keeper *k)
{
	if (k->age_fd < 0)
		return;
	k->active_ms = cm_clock_boot_ms();
	arm(k);
}
