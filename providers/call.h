/* SPDX-License-Identifier: Apache-2.0 */
/* How long an operation may take, and what ends a wait before that. */
#ifndef CM_PROVIDERS_CALL_H
#define CM_PROVIDERS_CALL_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cm_call {
	/* CLOCK_MONOTONIC, milliseconds; INT64_MAX: none. Past it: CM_E_TIMEOUT */
	int64_t deadline_ms;
	/* readable when the caller gives up: CM_E_CANCELLED; -1: never */
	int cancel_fd;
};

/*
 * What else a caller waits for, in the waits that take one: they return as soon as one of them has an
 * event, and revents says which. NULL is allowed. At most CM_WAKE_MAX.
 */
#define CM_WAKE_MAX 8
struct cm_wake {
	struct pollfd *fds;
	size_t n;
};

/* Did the wait see an event of one of them? Who gets data that come to nothing asks, before it waits on. */
static inline bool cm_wake_is_set(const struct cm_wake *wake)
{
	for (size_t i = 0; wake && i < wake->n; i++) {
		if (wake->fds[i].revents != 0)
			return true;
	}
	return false;
}

#endif
