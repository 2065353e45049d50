/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent of a sandbox tells, message by message. Pure. */
#ifndef CM_PROVIDERS_E2B_EVENTS_H
#define CM_PROVIDERS_E2B_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "casemate/error.h"
#include "providers/provider.h"
#include "runtime/base/buf.h"
#include "runtime/base/json.h"

enum cm_e2b_event_kind {
	/* a sign of life, or what a newer agent has to say */
	CM_E2B_EVENT_OTHER = 0,
	CM_E2B_EVENT_START,
	CM_E2B_EVENT_DATA,
	CM_E2B_EVENT_END,
};

struct cm_e2b_event {
	enum cm_e2b_event_kind kind;
	/* START */
	int64_t pid;
	/* DATA: 1 or 2; a terminal's is 1 */
	int stream;
	/* END */
	int exit_code;
	/* it ended by this signal; 0: it did not */
	int signal;
	/* no telling how: neither an exit code nor a signal that has a name */
	bool is_unknown;
};

/*
 * Of a command. What it printed is put into *out, in place of what was there. CM_OK, CM_E_PROTOCOL,
 * CM_E_LIMIT or CM_E_NOMEM.
 */
int cm_e2b_event_read(const char *json, size_t len, struct cm_buf *out, struct cm_e2b_event *ret,
		      struct cm_error *err);

enum cm_e2b_watch_kind {
	CM_E2B_WATCH_OTHER = 0,
	/* the watch stands */
	CM_E2B_WATCH_START,
	/* *ret_kind and the name are there */
	CM_E2B_WATCH_EVENT,
};
/* Of a watch. *ret_name is the caller's to free, and NULL but for an event. */
int cm_e2b_watch_read(const char *json, size_t len, enum cm_e2b_watch_kind *ret_what,
		      enum cm_watch_kind *ret_kind, char **ret_name, struct cm_error *err);

/* Of "signal: killed", as the agent's language names it; 0: it is none of these. */
int cm_e2b_signal_of(const char *status);
/* A number, as it stands or in a string. False: it is none. */
bool cm_e2b_number(const struct cm_json *v, int64_t *ret);
/* The member of either name, but null. */
const struct cm_json *cm_e2b_member(const struct cm_json *v, const char *name, const char *other);

#endif
