/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cap of sessions that run at once.
 *
 * Counted under a lock of all starts that have a cap, which is held until what is started counts
 * itself: a temporary session from when it is made, a lasting one from when its keeper is up. So of
 * two starts at the limit one passes. The kernel lets go of the lock of a start that dies.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>

#include "providers/local/local_internal.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

/* a start that hangs has the lock for long */
#define LOCK_WAIT_MS 30000
#define PAUSE_MS 5
/* a session that ends meanwhile is waited for so long */
#define ENDING_MS 150

static bool is_given_up_after(const struct cm_local *l, int pause_ms)
{
	struct pollfd p = { .fd = cm_local_cancel_fd(l), .events = POLLIN };

	return poll(&p, 1, pause_ms) > 0;
}

static int take_lock(struct cm_local *l, struct cm_error *err)
{
	int64_t deadline = cm_clock_mono_ms() + LOCK_WAIT_MS;
	int r;

	while ((r = cm_store_starts_lock(&l->store, &l->cap_fd)) == 1) {
		if (is_given_up_after(l, PAUSE_MS))
			return cm_error_set(err, CM_E_CANCELLED, 0,
					    "stopped while another session was started");
		if (cm_clock_mono_ms() < deadline)
			continue;
		(void)cm_error_set(err, CM_E_BUSY, 0, "another start does not come to an end");
		cm_error_hint(err, "'casemate ls -a' shows what runs; with --max-sessions one "
				   "starts after the other");
		return CM_E_BUSY;
	}
	return r < 0 ? cm_error_set(err, CM_E_SYS, -r, "cannot lock '%s/starts'", l->store.state)
		     : CM_OK;
}

static int refuse(uint64_t max, struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_SESSIONS, 0,
			   "%" PRIu64 " session%s run%s already, and no more may (--max-sessions)",
			   max, max == 1 ? "" : "s", max == 1 ? "s" : "");
	cm_error_hint(err, "'casemate ls -a --filter state=running' lists them, 'casemate stop ID' "
			   "stops one");
	return CM_E_SESSIONS;
}

int cm_local_cap(struct cm_local *l, struct cm_error *err)
{
	const struct cm_limit *limit = &l->spec.limits.sessions;
	int64_t deadline = cm_clock_mono_ms() + ENDING_MS;
	int r;

	if (!limit->is_set || limit->value == CM_UNLIMITED || l->cap_fd >= 0)
		return CM_OK;
	r = take_lock(l, err);
	while (r == CM_OK && cm_store_count_live(&l->store, limit->value) >= limit->value) {
		if (is_given_up_after(l, PAUSE_MS) || cm_clock_mono_ms() >= deadline)
			r = refuse(limit->value, err);
	}
	if (r != CM_OK)
		cm_local_uncap(l);
	return r;
}

void cm_local_uncap(struct cm_local *l)
{
	cm_fd_close(&l->cap_fd);
}
