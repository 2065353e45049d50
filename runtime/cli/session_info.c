/* SPDX-License-Identifier: Apache-2.0 */
/* See session_info.h. When it was used and when it will be stopped: from its events. */
#include "runtime/cli/session_info.h"

#include <string.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/cli/sessions.h"
#include "runtime/store/events.h"

/* All in CLOCK_REALTIME milliseconds; 0: never. */
struct use {
	int64_t started_ms;
	/* a command began or ended, else the session itself did */
	int64_t used_ms;
	/* commands that began and have not ended since the last start */
	int64_t n_running;
};

/* "2026-01-31T12:00:00.000Z"; 0 for what is none */
static int64_t parse_time(const char *text)
{
	struct tm tm = { 0 };
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	int64_t ms = 0;

	if (!end || end[0] != '.')
		return 0;
	for (int i = 1; i <= 3; i++) {
		if (end[i] < '0' || end[i] > '9')
			return 0;
		ms = ms * 10 + (end[i] - '0');
	}
	return (int64_t)timegm(&tm) * 1000 + ms;
}

/*
 * The text of a member that every event has. There may be 8 MiB of them, so they are not parsed: the
 * writer's first members are always the same, and no id has a quote in it.
 */
static bool copy_member(const char *line, size_t len, const char *key, char *buf, size_t size)
{
	const char *at = memmem(line, len, key, strlen(key));
	const char *end;

	if (!at)
		return false;
	at += strlen(key);
	end = memchr(at, '"', len - (size_t)(at - line));
	if (!end || (size_t)(end - at) >= size)
		return false;
	memcpy(buf, at, (size_t)(end - at));
	buf[end - at] = '\0';
	return true;
}

static void take_event(struct use *use, const char *line, size_t len)
{
	char type[32];
	char ts[CM_CLOCK_RFC3339_SIZE];
	int64_t at_ms;
	bool is_start;

	if (!copy_member(line, len, "\"type\":\"", type, sizeof(type)) ||
	    !copy_member(line, len, "\"ts\":\"", ts, sizeof(ts)))
		return;
	is_start = strcmp(type, "session.started") == 0;
	if (!is_start && strcmp(type, "exec.started") != 0 && strcmp(type, "exec.ended") != 0)
		return;
	at_ms = parse_time(ts);
	if (at_ms == 0)
		return;
	use->used_ms = at_ms;
	if (is_start) {
		use->started_ms = at_ms;
		use->n_running = 0;
	} else {
		use->n_running += strcmp(type, "exec.started") == 0 ? 1 : -1;
	}
}

static void read_use(const struct cm_store_session *s, struct use *ret)
{
	struct cm_event_reader reader;
	const char *line;
	size_t len;

	memset(ret, 0, sizeof(*ret));
	if (cm_event_reader_open(s->dir_fd, &reader) < 0)
		return;
	while (cm_event_reader_next(&reader, &line, &len) == 1)
		take_event(ret, line, len);
	cm_event_reader_close(&reader);
}

static int64_t limit_ms(const struct cm_json *started, const char *key)
{
	const struct cm_json *limit = cm_json_get(started, key);

	return limit ? cm_json_int(limit, "max", 0) : 0;
}

/* When the session will be stopped if nothing more happens in it; 0: never, or not known. */
static int64_t timeout_at(const struct cm_session_record *r, const struct use *use)
{
	struct cm_json_doc *doc = NULL;
	int64_t idle_ms = 0;
	int64_t lifetime_ms = 0;
	int64_t at_ms = 0;

	if (!r->started_json || cm_json_parse(r->started_json, strlen(r->started_json), "started",
					      0, &doc, NULL) != CM_OK)
		return 0;
	idle_ms = limit_ms(cm_json_root(doc), "idleMs");
	lifetime_ms = limit_ms(cm_json_root(doc), "lifetimeMs");
	cm_json_free(doc);
	if (lifetime_ms > 0 && use->started_ms > 0)
		at_ms = use->started_ms + lifetime_ms;
	if (idle_ms > 0 && use->used_ms > 0 && use->n_running <= 0 &&
	    (at_ms == 0 || use->used_ms + idle_ms < at_ms))
		at_ms = use->used_ms + idle_ms;
	return at_ms;
}

static void write_metadata(struct cm_json_writer *w, const struct cm_store_session *s)
{
	const struct cm_session_record *r = &s->record;
	const char *dir = r->checkout ? r->checkout : r->workspace;

	cm_jw_key(w, "metadata");
	cm_jw_object(w);
	cm_jw_kstring(w, "workingDirectory", dir ? dir : s->session_dir);
	cm_jw_kstring(w, "platform", "linux");
	cm_jw_kstring(w, "isolation", r->level);
	cm_jw_end_object(w);
}

void cm_cli_write_session_info(struct cm_json_writer *w, const struct cm_store_session *s,
			       enum cm_session_status status)
{
	struct use use;

	read_use(s, &use);
	/* a session has no other name than its id */
	cm_jw_kstring(w, "name", s->record.id);
	cm_jw_kstring(w, "provider", "local");
	cm_cli_write_time(w, "createdAt", s->record.created_ms);
	cm_cli_write_time(w, "lastUsedAt", use.used_ms);
	cm_cli_write_time(w, "timeoutAt",
			  status == CM_STATUS_RUNNING ? timeout_at(&s->record, &use) : 0);
	write_metadata(w, s);
}
