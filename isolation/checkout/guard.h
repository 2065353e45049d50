/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds on what a server and a repository can cost: time, memory, disk. guard.c has the numbers and
 * their reasons.
 */
#ifndef CM_ISOLATION_CHECKOUT_GUARD_H
#define CM_ISOLATION_CHECKOUT_GUARD_H

#include <stdint.h>

#include "casemate/error.h"
#include "isolation/checkout/report.h"

/* What this process does: which bounds hold. */
enum cm_guard_phase {
	/* work on this host alone */
	CM_GUARD_LOCAL,
	/* connecting, until the refs are there */
	CM_GUARD_REFS,
	/* objects were asked for; the server looks for them */
	CM_GUARD_PREPARING,
	/* they come */
	CM_GUARD_OBJECTS,
	/* all are there */
	CM_GUARD_INDEXING,
};

/* Id, the reason's name in the report (stable), error code. The texts are in guard.c. */
#define CM_GUARD_BOUNDS(X)                                                                         \
	X(SILENT, "silent", TIMEOUT)                                                               \
	X(SLOW, "too-slow", TIMEOUT)                                                               \
	X(LONG, "too-long", TIMEOUT)                                                               \
	X(TALK, "too-much-talk", LIMIT)                                                            \
	X(WORK, "too-much-work", LIMIT)                                                            \
	X(MEMORY, "too-much-memory", LIMIT)                                                        \
	X(DISK, "disk-full", LIMIT)

enum cm_guard_bound {
	CM_GUARD_NONE = 0,
#define X(id, name, code) CM_GUARD_##id,
	CM_GUARD_BOUNDS(X)
#undef X
};

/*
 * From now on the bounds hold, for a process that writes below dir. What exceeds one finds its
 * connections ended and its writes failing, so that it cleans up on its way out; what does not heed
 * that ends with a report within seconds. Once a process; other threads than the caller's are none.
 */
int cm_guard_start(const char *dir, struct cm_report *rep, struct cm_error *err);
void cm_guard_phase(enum cm_guard_phase phase);
/* Something got on that is neither bytes nor processor time. */
void cm_guard_progress(void);
/* Some of the server's text came. Negative: it is too much. */
int cm_guard_talk(uint64_t bytes);
/* For who sees a bound exceeded itself. The first one counts. */
void cm_guard_exceed(enum cm_guard_bound bound);
enum cm_guard_bound cm_guard_exceeded(void);
/* What was exceeded as an error, and rep->reason; returns err's code, CM_OK when nothing was. */
int cm_guard_error(struct cm_report *rep, struct cm_error *err);
/* Before the last word. */
void cm_guard_stop(void);

#endif
