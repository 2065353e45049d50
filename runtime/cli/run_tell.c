/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a run while it is made ready, and kept for who looks later. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/cli/run_internal.h"
#include "runtime/store/events.h"

#define HEARD_MS 500

bool cm_run_is_heard(const struct run *run)
{
	struct pollfd p[] = { { .fd = STDERR_FILENO, .events = POLLOUT },
			      { .fd = run->end_fd > 0 ? run->end_fd : -1, .events = POLLIN } };
	int r;

	do {
		r = poll(p, CM_ARRAY_SIZE(p), run->relay.signal != 0 ? HEARD_MS : -1);
	} while (r < 0 && errno == EINTR);
	return p[0].revents != 0 || (r > 0 && poll(p, 1, HEARD_MS) > 0);
}

static void on_note(void *data, const char *text)
{
	struct run *run = data;

	if (!cm_run_is_heard(run))
		return;
	cm_progress_clear(&run->progress);
	cm_cli_note(run->cli, "%s", text);
}

static void on_progress(void *data, const char *stage, uint64_t received, uint64_t total,
			uint64_t bytes)
{
	struct run *run = data;
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

	if (poll(&p, 1, 0) <= 0)
		return;
	cm_progress_tell(&run->progress, stage, received, total, bytes);
}

static void keep_phase(struct run *run, const char *name, uint64_t duration_us)
{
	struct cm_result_phase *phase = &run->result.phases[run->result.n_phases];

	if (run->result.n_phases >= CM_RESULT_PHASES_MAX)
		return;
	(void)snprintf(phase->name, sizeof(phase->name), "%s", name);
	phase->duration_us = duration_us;
	run->result.n_phases++;
}

/* Of a session that lasts: who looks later finds when it was made, and how long what took. */
static struct cm_event_log event_log_of(const struct run *run)
{
	const struct cm_local *l = &run->local;

	return (struct cm_event_log){
		.dir_fd = l->has_session && !l->is_temporary ? l->session.dir_fd : -1,
		.session = l->session.record.id,
	};
}

static void note_phase(const struct run *run, const char *name, uint64_t duration_us)
{
	struct cm_event_log log = event_log_of(run);
	struct cm_event event;

	cm_event_begin(&event, &log, "phase.done", 0);
	cm_jw_kstring(&event.w, "name", name);
	cm_jw_kuint(&event.w, "durationMs", duration_us / 1000);
	cm_event_end(&event);
}

void cm_run_note_failure(const struct run *run)
{
	const struct cm_result *result = &run->result;
	struct cm_event_log log = event_log_of(run);
	struct cm_event event;

	cm_event_begin(&event, &log, "phase.failed", 0);
	cm_jw_kstring(&event.w, "name", result->phase);
	cm_jw_kstring(&event.w, "code", cm_error_name(result->error.code));
	cm_jw_kstring(&event.w, "reason", result->reason->name);
	if (result->reason->detail)
		cm_jw_kstring(&event.w, "detail", result->reason->detail);
	cm_jw_kstring(&event.w, "message", result->error.msg);
	cm_jw_kstring(&event.w, "hint", result->error.hint);
	cm_event_end(&event);
}

void cm_run_phase(struct run *run, const char *name, uint64_t duration_us, bool is_quiet)
{
	char duration[32];

	keep_phase(run, name, duration_us);
	note_phase(run, name, duration_us);
	if (!cm_run_is_heard(run))
		return;
	cm_progress_clear(&run->progress);
	if (run->cli->is_quiet || is_quiet)
		return;
	cm_format_duration(duration_us / 1000, duration, sizeof(duration));
	(void)fprintf(stderr, "casemate: %s %s\n", name, duration);
}

void cm_run_on_phase(void *data, const char *name, uint64_t duration_us)
{
	const struct run *run = data;

	/* a note has said what it did not do */
	cm_run_phase(data, name, duration_us, run->local.is_held && strcmp(name, "update") == 0);
}

struct cm_local_events cm_run_events(struct run *run)
{
	return (struct cm_local_events){ .note = on_note,
					 .phase = cm_run_on_phase,
					 .progress = on_progress,
					 .data = run,
					 .cancel_fd = run->end_fd };
}
