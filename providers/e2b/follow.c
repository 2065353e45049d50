/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a command, its end in time, and what to do when the connection is lost.
 *
 * A lost connection does not end a command. The sandbox says whether it lives; then the command is
 * followed again by its pid. What it printed in between is not to be had, and a note says so.
 */
#include <signal.h>
#include <string.h>

#include "providers/e2b/exec.h"
#include "runtime/base/clock.h"

#define CUTS_MAX 3
/* what is killed is over after that, whoever still holds its output open */
#define GIVE_UP_MS 5000
/* what has not answered by then is tried again, so that a command's own time is kept */
#define AGAIN_MS 15000
#define TIMED_OUT_STATUS 124

static int64_t earliest(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* --- the end ------------------------------------------------------------------------------------------ */

static void end_as(struct cm_e2b_exec *e, enum cm_exec_end_kind kind, int exit_code, int sig)
{
	e->has_ended = true;
	e->end = (struct cm_exec_end){
		.kind = e->is_timed_out ? CM_EXEC_TIMED_OUT : kind,
		.exit_code = e->is_timed_out ? TIMED_OUT_STATUS : exit_code,
		.signal = sig,
		.wall_ms = (uint64_t)(cm_clock_mono_ms() - e->started_ms),
	};
}

static void end_by_event(struct cm_e2b_exec *e, const struct cm_e2b_event *event)
{
	if (event->signal > 0)
		end_as(e, event->signal == e->asked_signal ? CM_EXEC_KILLED : CM_EXEC_SIGNALLED,
		       128 + event->signal, event->signal);
	else if (event->is_unknown)
		end_as(e, CM_EXEC_LOST, 0, 0);
	else
		end_as(e, e->is_not_executed ? CM_EXEC_NOT_EXECUTED : CM_EXEC_EXITED,
		       event->exit_code, 0);
}

/* --- a lost connection ---------------------------------------------------------------------------------- */

/* CM_OK: it is followed again, or it is known to be lost. */
static int recover(struct cm_e2b_exec *e, const struct cm_call *call, struct cm_error *err)
{
	struct cm_e2b_session *s = cm_e2b_exec_session(e);
	enum cm_e2b_health health = CM_E2B_SILENT;
	struct cm_call own = *call;
	int r;

	cm_e2b_stream_close(e->stream);
	e->stream = NULL;
	if (++e->n_cuts > CUTS_MAX) {
		end_as(e, CM_EXEC_LOST, 0, 0);
		return CM_OK;
	}
	r = cm_e2b_health(s, call, &health, err);
	if (r < 0)
		return r;
	if (health != CM_E2B_ALIVE) {
		end_as(e, CM_EXEC_LOST, 0, 0);
		return CM_OK;
	}
	own.deadline_ms = earliest(call->deadline_ms, cm_clock_mono_ms() + AGAIN_MS);
	r = cm_e2b_command_open(e, false, &own, err);
	if (r == CM_E_CANCELLED || r == CM_E_NOMEM ||
	    (r == CM_E_TIMEOUT && cm_clock_mono_ms() >= call->deadline_ms))
		return r;
	cm_error_clear(err);
	if (r == CM_OK)
		cm_e2b_command_note(e);
	else if (r == CM_E_NOT_FOUND)
		end_as(e, CM_EXEC_LOST, 0, 0);
	/* else the next call tries again */
	return CM_OK;
}

/* --- time -------------------------------------------------------------------------------------------------- */

/* What of its time is over. Whether a signal could be sent is seen by what follows, or by the next step. */
static void enforce_time(struct cm_e2b_exec *e, const struct cm_call *call)
{
	int64_t now = cm_clock_mono_ms();

	if (now >= e->give_up_ms) {
		e->give_up_ms = INT64_MAX;
		end_as(e, CM_EXEC_TIMED_OUT, TIMED_OUT_STATUS, SIGKILL);
	} else if (now >= e->kill_ms) {
		e->kill_ms = INT64_MAX;
		e->give_up_ms = now + GIVE_UP_MS;
		(void)cm_e2b_command_signal(e, SIGKILL, call, NULL);
	} else if (now >= e->term_ms) {
		e->term_ms = INT64_MAX;
		e->is_timed_out = true;
		e->kill_ms = e->grace_ms > INT32_MAX ? INT64_MAX : now + (int64_t)e->grace_ms;
		if (e->grace_ms > 0)
			(void)cm_e2b_command_signal(e, SIGTERM, call, NULL);
	}
}

/* --- events ------------------------------------------------------------------------------------------------- */

/* How many bytes of what was printed belong to the mark; *ret_is_broken: it is none after all. */
static size_t match_mark(struct cm_e2b_exec *e, const char *bytes, size_t len, bool *ret_is_broken)
{
	size_t size = strlen(e->mark);
	size_t n = 0;

	while (n < len && e->mark_at < size && bytes[n] == e->mark[e->mark_at]) {
		n++;
		e->mark_at++;
	}
	*ret_is_broken = e->mark_at < size && n < len;
	if (e->mark_at == size)
		e->is_not_executed = true;
	if (e->mark_at == size || *ret_is_broken)
		e->is_mark_over = true;
	return n;
}

/* What looked like the mark, and was not, goes before it. */
static int put_back(struct cm_e2b_exec *e, size_t from, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf whole = { 0 };
	int r;

	cm_buf_init(&whole, e->out.max);
	cm_buf_append(&whole, e->mark, e->mark_at);
	cm_buf_append(&whole, e->out.data + from, e->out.len - from);
	r = cm_buf_status(&whole);
	if (r < 0)
		return cm_error_set(err, r, 0, "no memory for what a command printed");
	cm_buf_clear(&e->out);
	e->out = whole;
	whole = (struct cm_buf){ 0 };
	return CM_OK;
}

/* CM_OK, and ret->len is 0 where nothing is the command's. */
static int tell_output(struct cm_e2b_exec *e, int stream, struct cm_exec_event *ret,
		       struct cm_error *err)
{
	bool is_broken = false;
	size_t from = 0;
	int r;

	if (!e->is_mark_over && stream == (e->is_tty ? 1 : 2)) {
		from = match_mark(e, e->out.data, e->out.len, &is_broken);
		if (is_broken) {
			r = put_back(e, from, err);
			if (r < 0)
				return r;
			from = 0;
		}
	}
	*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_OUTPUT,
				       .stream = stream,
				       .bytes = e->out.data + from,
				       .len = e->out.len - from };
	return CM_OK;
}

static void tell_end(struct cm_e2b_exec *e, struct cm_exec_event *ret)
{
	/* a command that printed the beginning of it, and no more */
	if (!e->is_mark_over && e->mark_at > 0) {
		e->is_mark_over = true;
		*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_OUTPUT,
					       .stream = e->is_tty ? 1 : 2,
					       .bytes = e->mark,
					       .len = e->mark_at };
		return;
	}
	e->has_told_end = true;
	*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_ENDED, .end = e->end };
	/* who takes what was printed for all there was would be told so by a plain success */
	if (e->is_noted && e->end.kind == CM_EXEC_EXITED)
		ret->end.kind = CM_EXEC_LOST;
}

/* One message: CM_OK, and ret->kind is 0 where it is nothing to tell. */
static int take_message(struct cm_e2b_exec *e, struct cm_exec_event *ret, struct cm_error *err)
{
	const struct cm_buf *body = &e->stream->envelopes.body;
	struct cm_e2b_event event = { 0 };
	int r = cm_e2b_event_read(body->data ? body->data : "", body->len, &e->out, &event, err);

	if (r < 0)
		return r;
	switch (event.kind) {
	case CM_E2B_EVENT_OTHER:
		e->n_cuts = 0;
		break;
	case CM_E2B_EVENT_START:
		break;
	case CM_E2B_EVENT_DATA:
		e->n_cuts = 0;
		r = tell_output(e, event.stream, ret, err);
		if (r == CM_OK && ret->len == 0)
			*ret = (struct cm_exec_event){ 0 };
		break;
	case CM_E2B_EVENT_END:
		end_by_event(e, &event);
		cm_e2b_stream_finish(e->stream);
		break;
	}
	return r;
}

/* One step: CM_OK, and ret->kind is 0 where there is nothing to tell yet. */
static int step(struct cm_e2b_exec *e, struct cm_wake *wake, const struct cm_call *call,
		struct cm_exec_event *ret, struct cm_error *err)
{
	struct cm_call own = *call;
	int end = CM_OK;
	int64_t now;
	int r;

	if (!e->stream)
		return recover(e, call, err);
	own.deadline_ms = earliest(earliest(call->deadline_ms, e->term_ms),
				   earliest(e->kill_ms, e->give_up_ms));
	own.deadline_ms = earliest(own.deadline_ms, cm_e2b_exec_session(e)->refresh_ms);
	r = cm_e2b_stream_next(e->stream, wake, &own, &end, err);
	switch (r) {
	case CM_E2B_STREAM_MESSAGE:
		return take_message(e, ret, err);
	case CM_E2B_STREAM_WOKEN:
		ret->kind = CM_EXEC_WOKEN;
		return CM_OK;
	case CM_E2B_STREAM_END:
	case CM_E2B_STREAM_CUT:
		/* without a word of how the command ended, neither is its end */
		cm_error_clear(err);
		return recover(e, call, err);
	default:
		break;
	}
	now = cm_clock_mono_ms();
	if (r == CM_E_TIMEOUT && now < call->deadline_ms && now >= own.deadline_ms) {
		cm_error_clear(err);
		return CM_OK;
	}
	return r;
}

int cm_e2b_follow_next(struct cm_exec *exec, struct cm_wake *wake, const struct cm_call *call,
		       struct cm_exec_event *ret, struct cm_error *err)
{
	struct cm_e2b_exec *e = cm_e2b_exec_of(exec);
	struct cm_exec_event event = { 0 };
	int r = CM_OK;

	if (!e->has_told_start) {
		e->has_told_start = true;
		*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_STARTED };
		return CM_OK;
	}
	if (e->has_told_end)
		return cm_error_set(err, CM_E_NOT_FOUND, 0, "the command has ended");
	while (r == CM_OK && event.kind == 0) {
		if (e->has_ended) {
			tell_end(e, &event);
			break;
		}
		cm_e2b_session_keep(cm_e2b_exec_session(e), call);
		enforce_time(e, call);
		if (!e->has_ended)
			r = step(e, wake, call, &event, err);
		/* messages that are no events, and no end of them */
		if (r == CM_OK && event.kind == 0 && cm_wake_is_set(wake))
			event.kind = CM_EXEC_WOKEN;
	}
	if (r == CM_OK)
		*ret = event;
	return r;
}
