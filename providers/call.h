/* SPDX-License-Identifier: Apache-2.0 */
/* How long an operation may take, and what ends a wait before that. */
#ifndef CM_PROVIDERS_CALL_H
#define CM_PROVIDERS_CALL_H

#include <poll.h>
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

#endif
