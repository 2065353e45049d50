/* SPDX-License-Identifier: Apache-2.0 */
/* Commands: how they are started, how their time ends, and what their end is taken for. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/platform/command.h"
#include "providers/platform/exec_internal.h"
#include "providers/platform/keep.h"
#include "providers/remote/background.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define REQUEST_MAX (12UL * 1024 * 1024)
/* what a command that was killed is waited for */
#define KILLED_MS 2000
/* of a command that nobody waits for any more: how long it is asked to end before it is made to */
#define RELEASE_GRACE_MS 2000
#define RELEASE_KILLED_MS 500
#define SIGNAL_MS 5000
#define EXIT_TIMED_OUT 124
#define EXIT_SIGNAL 128

static const struct cm_exec_ops exec_ops;

static struct cm_platform_exec *exec_of(struct cm_exec *e)
{
	return (struct cm_platform_exec *)(void *)e;
}

struct cm_platform_session *cm_platform_exec_session(const struct cm_platform_exec *e)
{
	return cm_platform_session_of(e->base.session);
}

void cm_platform_exec_why(struct cm_platform_exec *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(e->why, sizeof(e->why), fmt, ap);
	va_end(ap);
}

static void note(const struct cm_platform_exec *e, const char *what)
{
	cm_provider_note(e->base.session->provider, "command '%s' of session '%s' %s%s%s%s",
			 e->base.name, e->base.session->id, what, e->why[0] ? " (" : "", e->why,
			 e->why[0] ? ")" : "");
}

static void close_way(struct cm_platform_exec *e)
{
	if (e->way)
		e->way->close(e);
	e->way = NULL;
}

static void release(struct cm_platform_exec *e)
{
	close_way(e);
	/* variables may be secrets */
	if (e->request.data)
		explicit_bzero(e->request.data, e->request.len);
	cm_buf_clear(&e->request);
	free(e);
}

/* --- start ----------------------------------------------------------------------------------- */

/*
 * The socket first: it has the command's bytes as they are, and signals. The others have text alone, for
 * which bytes that are none are replaced.
 */
static int start_by_some_way(struct cm_platform_exec *e, const struct cm_call *call,
			     struct cm_error *err)
{
	struct cm_platform_session *s = cm_platform_exec_session(e);
	int r = cm_platform_socket_start(e, call, err);

	/* no lease: of a proxy that has none, or of a sandbox that is gone */
	if (r == CM_PLATFORM_OTHER_WAY) {
		s->seen_until_ms = 0;
		r = cm_platform_session_look(s, call, err);
		if (r == CM_OK)
			r = cm_platform_sidecar_start(e, call, err);
	}
	if (r == CM_PLATFORM_OTHER_WAY) {
		cm_platform_legacy_start(e);
		r = CM_OK;
	}
	if (r == CM_OK) {
		cm_error_clear(err);
		e->base.ops = &exec_ops;
	}
	return r;
}

static int write_request(struct cm_platform_exec *e, const struct cm_exec_request *request,
			 struct cm_error *err)
{
	const struct cm_platform_session *s = cm_platform_exec_session(e);
	struct cm_json_writer w;
	int r;

	cm_buf_init(&e->request, REQUEST_MAX);
	cm_jw_init(&w, &e->request, false);
	cm_jw_object(&w);
	r = cm_platform_command_write(&w, request, &s->env, s->workdir, err);
	cm_jw_end_object(&w);
	if (r == CM_OK && cm_buf_status(&e->request) < 0)
		r = cm_error_set(err, cm_buf_status(&e->request), 0, "a command is too long");
	return r;
}

/* For messages: the platform has no name for a command. */
static int name_it(struct cm_platform_exec *e, struct cm_error *err)
{
	char digits[CM_PROVIDER_HEX_SIZE];
	int r = cm_provider_random_hex(digits, err);

	if (r == CM_OK)
		(void)snprintf(e->base.name, sizeof(e->base.name), "exec-%s", digits);
	return r;
}

static int refuse_unsupported(const struct cm_exec_request *request, struct cm_error *err)
{
	const char *what = request->has_input	? "standard input"
			   : request->wants_tty ? "a terminal"
			   : request->is_root	? "a command as root"
						: NULL;

	if (!what)
		return CM_OK;
	cm_error_set(err, CM_E_UNSUPPORTED, 0, "the platform has no way for %s", what);
	if (request->has_input)
		cm_error_hint(err, "write a file with 'casemate cp', and let the command read it");
	return CM_E_UNSUPPORTED;
}

static int make(struct cm_session *s, const struct cm_exec_request *request,
		const struct cm_call *call, struct cm_platform_exec *e, struct cm_error *err)
{
	int r;

	e->base.session = s;
	e->is_idempotent = request->is_idempotent;
	e->timeout_ms = request->timeout_ms;
	e->grace_ms = request->grace_ms;
	e->started_ms = cm_clock_mono_ms();
	e->until_ms = request->timeout_ms == 0 ||
				      request->timeout_ms > (uint64_t)(INT64_MAX - e->started_ms)
			      ? INT64_MAX
			      : e->started_ms + (int64_t)request->timeout_ms;
	r = name_it(e, err);
	if (r == CM_OK)
		r = write_request(e, request, err);
	return r < 0 ? r : start_by_some_way(e, call, err);
}

static int does_not_run(const struct cm_session *s, struct cm_error *err)
{
	cm_error_set(err, CM_E_REMOTE, 0, "session '%s' does not run", s->id);
	cm_error_hint(err, "start it with 'casemate start %s'", s->id);
	return CM_E_REMOTE;
}

/* What others have done to it meanwhile. CM_E_REMOTE: it was stopped. *ret_has_moved: into a new sandbox. */
static int look_again(struct cm_platform_session *s, bool *ret_has_moved, struct cm_error *err)
{
	CM_AUTO_FREE char *before = cm_strdup(s->sandbox.id);
	int r = cm_platform_session_reload(s, err);

	if (r < 0)
		return r;
	if (s->is_stopped)
		return does_not_run(&s->base, err);
	*ret_has_moved = before && s->sandbox.id && strcmp(before, s->sandbox.id) != 0;
	return CM_OK;
}

static int start(struct cm_session *s, const struct cm_exec_request *request,
		 const struct cm_call *call, struct cm_exec **ret, struct cm_error *err)
{
	struct cm_platform_exec *e = cm_calloc(1, sizeof(*e));
	int r;

	if (!e)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a command");
	r = make(s, request, call, e, err);
	if (r < 0)
		release(e);
	else
		*ret = &e->base;
	return r;
}

int cm_platform_exec_start(struct cm_session *s, const struct cm_exec_request *request,
			   const struct cm_call *call, struct cm_exec **ret, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;
	bool has_moved = false;
	int r = refuse_unsupported(request, err);

	if (r < 0)
		return r;
	if (request->is_detached)
		return cm_background_start(s, request, call, ret, err);
	if (!cm_platform_session_of(s)->sandbox.id) {
		cm_error_set(err, CM_E_NOT_FOUND, 0, "session '%s' does not run", s->id);
		cm_error_hint(err, "start it with 'casemate start %s'", s->id);
		return CM_E_NOT_FOUND;
	}
	/* as far as is known here: somebody else may have started it since */
	if (cm_platform_session_of(s)->is_stopped)
		r = look_again(cm_platform_session_of(s), &has_moved, err);
	if (r < 0)
		return r;
	r = start(s, request, call, ret, err);
	if (r != CM_E_NOT_FOUND)
		return r;
	r = look_again(cm_platform_session_of(s), &has_moved, &why);
	if (r == CM_OK && has_moved) {
		cm_error_clear(err);
		return start(s, request, call, ret, err);
	}
	if (r == CM_E_REMOTE)
		return does_not_run(s, err);
	return CM_E_NOT_FOUND;
}

/* --- its end --------------------------------------------------------------------------------- */

static void end_as(struct cm_platform_exec *e, enum cm_exec_end_kind kind, int exit_code, int sig)
{
	e->has_ended = true;
	e->end = (struct cm_exec_end){ .kind = kind,
				       .exit_code = exit_code,
				       .signal = sig,
				       .wall_ms = (uint64_t)(cm_clock_mono_ms() - e->started_ms) };
	close_way(e);
}

static void end_by_exit(struct cm_platform_exec *e, const struct cm_platform_news *news)
{
	if (e->stage != CM_PLATFORM_RUNS || news->is_timed_out)
		end_as(e, CM_EXEC_TIMED_OUT, EXIT_TIMED_OUT, 0);
	else if (e->sent_signal != 0 && news->exit_code == EXIT_SIGNAL + e->sent_signal)
		end_as(e, CM_EXEC_KILLED, news->exit_code, e->sent_signal);
	else
		end_as(e, CM_EXEC_EXITED, news->exit_code, 0);
}

static void end_by_loss(struct cm_platform_exec *e)
{
	if (e->stage != CM_PLATFORM_RUNS) {
		note(e, "took too long, and whether it has ended is not known");
		end_as(e, CM_EXEC_TIMED_OUT, EXIT_TIMED_OUT, 0);
		return;
	}
	note(e, "was lost: it may have run, and may still run");
	end_as(e, CM_EXEC_LOST, 0, 0);
}

/* Once more, for what does no harm twice and has shown nothing yet. */
static bool start_again(struct cm_platform_exec *e, const struct cm_call *call)
{
	if (!e->is_idempotent || e->has_given_output || e->has_been_lost ||
	    e->stage != CM_PLATFORM_RUNS)
		return false;
	e->has_been_lost = true;
	close_way(e);
	cm_platform_lease_drop(cm_platform_exec_session(e));
	return start_by_some_way(e, call, NULL) == CM_OK &&
	       (!e->way->begin || e->way->begin(e, call, NULL) == CM_OK);
}

/* --- its time -------------------------------------------------------------------------------- */

static void send_signal(struct cm_platform_exec *e, const char *name)
{
	struct cm_call own = { cm_clock_mono_ms() + SIGNAL_MS, -1 };

	/* a connection that cannot take it is at its end, which the next read sees */
	(void)e->way->signal(e, name, &own, NULL);
}

static int64_t later(uint64_t ms)
{
	int64_t now = cm_clock_mono_ms();

	return ms > (uint64_t)(INT64_MAX - now) ? INT64_MAX : now + (int64_t)ms;
}

/* The time of the stage is over. */
static void end_stage(struct cm_platform_exec *e)
{
	enum cm_platform_stage stage = e->stage;

	e->stage = stage == CM_PLATFORM_RUNS ? CM_PLATFORM_TERMINATED : CM_PLATFORM_KILLED;
	if (!e->way) {
		end_by_loss(e);
	} else if (stage == CM_PLATFORM_RUNS) {
		send_signal(e, "TERM");
		e->until_ms = later(e->grace_ms);
	} else if (stage == CM_PLATFORM_TERMINATED) {
		send_signal(e, "KILL");
		e->until_ms = later(KILLED_MS);
	} else {
		cm_platform_exec_why(e, "it did not end when it was killed");
		end_by_loss(e);
	}
}

/* --- what its user sees ---------------------------------------------------------------------- */

static struct cm_call within_stage(const struct cm_platform_exec *e, const struct cm_call *call)
{
	return (struct cm_call){ e->until_ms < call->deadline_ms ? e->until_ms : call->deadline_ms,
				 call->cancel_fd };
}

/* Is it the command's time that is over, and not the caller's? */
static bool is_own_timeout(const struct cm_platform_exec *e, int r)
{
	return r == CM_E_TIMEOUT && cm_clock_mono_ms() >= e->until_ms;
}

static int tell_start(struct cm_platform_exec *e, const struct cm_call *call,
		      struct cm_exec_event *ret, struct cm_error *err)
{
	struct cm_call own = within_stage(e, call);
	int r = e->way && e->way->begin ? e->way->begin(e, &own, err) : CM_OK;

	if (r < 0)
		return r;
	e->has_told_start = true;
	*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_STARTED };
	return CM_OK;
}

static bool take_news(struct cm_platform_exec *e, const struct cm_platform_news *news,
		      const struct cm_call *call, struct cm_exec_event *ret)
{
	switch (news->kind) {
	case CM_PLATFORM_NEWS_OUTPUT:
		e->has_given_output = true;
		*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_OUTPUT,
					       .stream = news->stream,
					       .bytes = news->bytes,
					       .len = news->len };
		return true;
	case CM_PLATFORM_NEWS_EXIT:
		end_by_exit(e, news);
		return false;
	case CM_PLATFORM_NEWS_LOST:
		if (cm_clock_mono_ms() >= e->until_ms && e->stage == CM_PLATFORM_RUNS)
			e->stage = CM_PLATFORM_TERMINATED;
		if (!start_again(e, call))
			end_by_loss(e);
		return false;
	case CM_PLATFORM_NEWS_WOKEN:
		*ret = (struct cm_exec_event){ .kind = CM_EXEC_WOKEN };
		return true;
	}
	return false;
}

static int exec_next(struct cm_exec *base, struct cm_wake *wake, const struct cm_call *call,
		     struct cm_exec_event *ret, struct cm_error *err)
{
	struct cm_platform_exec *e = exec_of(base);

	if (!e->has_told_start)
		return tell_start(e, call, ret, err);
	while (!e->has_ended) {
		struct cm_platform_news news = { 0 };
		struct cm_call own = within_stage(e, call);
		int r = CM_E_TIMEOUT;

		if (!e->way) {
			end_by_loss(e);
			break;
		}
		/* one that prints without end leaves no wait in which its time could be over */
		if (cm_clock_mono_ms() < e->until_ms)
			r = e->way->next(e, wake, &own, &news, err);
		if (is_own_timeout(e, r))
			end_stage(e);
		else if (r < 0)
			return r;
		else if (take_news(e, &news, call, ret))
			return CM_OK;
	}
	*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_ENDED, .end = e->end };
	return CM_OK;
}

static int exec_signal(struct cm_exec *base, int sig, const struct cm_call *call,
		       struct cm_error *err)
{
	struct cm_platform_exec *e = exec_of(base);
	const char *name = cm_platform_signal_name(sig);
	int r;

	if (e->has_ended || !e->way)
		return cm_error_set(err, CM_E_NOT_FOUND, 0, "the command has ended");
	if (!name)
		return cm_error_set(err, CM_E_UNSUPPORTED, 0, "the platform has no signal %d", sig);
	r = e->way->signal(e, name, call, err);
	if (r == CM_OK)
		e->sent_signal = sig;
	return r;
}

/* Until it has ended, or so long; what it prints is nobody's. */
static void drain(struct cm_platform_exec *e, uint64_t ms)
{
	struct cm_call call = { later(ms), -1 };

	while (!e->has_ended && cm_clock_mono_ms() < call.deadline_ms) {
		struct cm_platform_news news = { 0 };

		if (e->way->next(e, NULL, &call, &news, NULL) < 0)
			return;
		if (news.kind == CM_PLATFORM_NEWS_EXIT || news.kind == CM_PLATFORM_NEWS_LOST)
			e->has_ended = true;
	}
}

static void exec_release(struct cm_exec *base)
{
	struct cm_platform_exec *e = exec_of(base);

	if (e->way && !e->has_ended) {
		uint64_t grace_ms = e->grace_ms < RELEASE_GRACE_MS ? e->grace_ms : RELEASE_GRACE_MS;

		send_signal(e, "TERM");
		drain(e, grace_ms);
		if (!e->has_ended)
			send_signal(e, "KILL");
		if (!e->has_ended)
			drain(e, RELEASE_KILLED_MS);
	}
	release(e);
}

static const struct cm_exec_ops exec_ops = {
	.next = exec_next,
	.signal = exec_signal,
	.release = exec_release,
};
