/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's events: one JSON object a line, in <state>/sessions/<id>/events.ndjson, and before
 * that in events.ndjson.1 (4 MiB each). Additive only: keys are added, none changes its meaning.
 *
 *	{"v":1,"seq":17,"ts":"2026-01-31T12:00:00.000Z","mono":123456,"session":"x","type":"exec.ended",
 *	 "exec":"3.17", ...}
 *
 * Writers are the keeper while it lives, and clients for what there is no keeper for (checkout,
 * setup, removal); each line is written whole, under the lock of events.seq, which has the number
 * of the last one. Numbers ascend and are never used twice; a death on the way leaves one out. A
 * writer never waits long: what cannot be written is dropped, and the next event that can says how
 * many were ("dropped"). Nothing is synced.
 */
#ifndef CM_RUNTIME_STORE_EVENTS_H
#define CM_RUNTIME_STORE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "casemate/error.h"
#include "runtime/base/buf.h"
#include "runtime/base/json_write.h"

#define CM_STORE_EVENTS "events.ndjson"
#define CM_STORE_EVENTS_OLD "events.ndjson.1"
#define CM_STORE_EVENTS_SEQ "events.seq"
#define CM_EVENTS_MAX (4UL * 1024 * 1024)
/* of one line; a longer one is dropped */
#define CM_EVENT_MAX 16384U

struct cm_event_log {
	/* the session's state directory, borrowed; -1: nothing is kept */
	int dir_fd;
	/* borrowed */
	const char *session;
	uint64_t dropped;
};

struct cm_event {
	struct cm_event_log *log;
	struct cm_buf text;
	/* for the type's own keys, between begin and end */
	struct cm_json_writer w;
};

/* type: a constant, "exec.started". exec_id 0: not of a command. */
void cm_event_begin(struct cm_event *e, struct cm_event_log *log, const char *type,
		    uint64_t exec_id);
/* Writes it. The event is cleared. */
void cm_event_end(struct cm_event *e);

/* Reading: anybody who may open the state directory, any number at once; nothing is locked. */
struct cm_event_reader {
	int dir_fd;
	/* the file that is read, and the one after it where that is known; -1: none */
	int fd;
	int next_fd;
	/* in fd, of the first byte of buf */
	uint64_t at;
	/* in buf: bytes, and those that were given out already */
	size_t len;
	size_t taken;
	char *buf;
};

/* From the oldest event on that is kept. 0 or -errno. */
int cm_event_reader_open(int dir_fd, struct cm_event_reader *ret);
void cm_event_reader_close(struct cm_event_reader *r);
/*
 * The next line, without its newline, borrowed until the next call: 1; 0: there is none now;
 * -ESTALE: nor will there be, the session was removed; -errno. A line is what a writer wrote, or
 * what a power cut made of it.
 */
int cm_event_reader_next(struct cm_event_reader *r, const char **ret, size_t *ret_len);
/* As cm_journal_watch, of the session's events: readable also when nothing changed for readers. */
int cm_event_watch(const struct cm_event_reader *r);

#endif
