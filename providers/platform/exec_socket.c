/* SPDX-License-Identifier: Apache-2.0 */
/* A command by the exec socket: a lease opens it, init_exec starts the command, an exit message ends it. */
#include <string.h>

#include "providers/platform/exec_internal.h"
#include "runtime/base/clock.h"
#include "runtime/base/json_write.h"

#define HANDSHAKE_MS 30000
#define ATTEMPTS 2
#define MESSAGE_MAX (16UL * 1024 * 1024)
/* what the first byte of a binary message says */
#define STREAM_STDOUT 1
#define STREAM_STDERR 3

static const char stdin_close[] = "{\"type\":\"stdin_close\"}";

/* --- start ----------------------------------------------------------------------------------- */

static int connect_socket(struct cm_platform_exec *e, const struct cm_call *call, int *ret_status,
			  struct cm_error *err)
{
	struct cm_platform_session *s = cm_platform_exec_session(e);
	struct cm_platform *p = cm_platform_of(s->base.provider);
	const char *protocols[] = { s->lease.subprotocol, s->lease.jwt, NULL };
	int64_t end = cm_clock_mono_ms() + HANDSHAKE_MS;
	struct cm_call own = { end < call->deadline_ms ? end : call->deadline_ms, call->cancel_fd };

	if (!cm_platform_settings_allow(&p->settings, s->lease.endpoint))
		return cm_error_set(
			err, CM_E_PROTOCOL, 0,
			"the platform names an address of this machine for its commands");
	return cm_ws_open(p->http, s->lease.endpoint, protocols, &own, &e->ws, ret_status, err);
}

/* Is the server still there? What it says before it was asked for anything is of no use. */
static int look_before_init(struct cm_platform_exec *e, struct cm_error *err)
{
	struct cm_ws_event event = { 0 };
	int r;

	do {
		struct cm_call now = { cm_clock_mono_ms(), -1 };

		r = cm_ws_read(e->ws, NULL, &now, &event, err);
	} while (r == CM_OK && event.kind != CM_WS_CUT && event.kind != CM_WS_CLOSE);
	if (r == CM_E_TIMEOUT)
		return CM_OK;
	return r < 0 ? r
		     : cm_error_set(err, CM_E_REMOTE, 0,
				    "the exec socket's server closed it unasked");
}

static int send_init(struct cm_platform_exec *e, const struct cm_call *call, struct cm_error *err)
{
	struct cm_buf message;
	int r;

	cm_buf_init(&message, MESSAGE_MAX);
	cm_buf_puts(&message, "{\"type\":\"init_exec\",\"data\":");
	cm_buf_append(&message, e->request.data, e->request.len);
	cm_buf_puts(&message, "}");
	r = cm_buf_status(&message) < 0
		    ? cm_error_set(err, CM_E_NOMEM, 0, "no memory for a command")
		    : cm_ws_send_text(e->ws, message.data, message.len, call, err);
	if (message.data)
		explicit_bzero(message.data, message.len);
	cm_buf_clear(&message);
	return r;
}

/* *ret_status: of a server that refused the handshake. */
static int start_once(struct cm_platform_exec *e, const struct cm_call *call, int *ret_status,
		      struct cm_error *err)
{
	int r = connect_socket(e, call, ret_status, err);

	if (r == CM_OK)
		r = look_before_init(e, err);
	if (r == CM_OK)
		r = send_init(e, call, err);
	if (r < 0) {
		cm_ws_close(e->ws);
		e->ws = NULL;
		return r;
	}
	/* The command may run: from here on a failure is for who waits for it. */
	(void)cm_ws_send_text(e->ws, stdin_close, sizeof(stdin_close) - 1, call, NULL);
	return CM_OK;
}

static int check_lease(const struct cm_platform_session *s, struct cm_error *err)
{
	if (strcmp(s->lease.provider, "e2b") == 0) {
		cm_error_set(
			err, CM_E_UNSUPPORTED, 0,
			"commands of SANDBOX_PROVIDER=e2b go through E2B's own client, and not "
			"through the platform");
		cm_error_hint(err, "set SANDBOX_PROVIDER=railway, or use the provider e2b with "
				   "E2B_API_KEY");
		return CM_E_UNSUPPORTED;
	}
	return CM_OK;
}

static bool is_final(int r, const struct cm_call *call)
{
	return r == CM_OK || r == CM_E_CANCELLED || r == CM_E_NOMEM || r == CM_E_INVALID ||
	       cm_clock_mono_ms() >= call->deadline_ms;
}

/* The address of the socket and the token in it are no part of a message. */
static int explain(int r, int status, struct cm_error *err)
{
	int code = status == 401 || status == 403   ? CM_E_DENIED
		   : status == 404 || status == 410 ? CM_E_NOT_FOUND
						    : r;

	if (status != 0)
		return cm_error_set(err, code, 0,
				    "cannot start a command: its socket was refused with %d",
				    status);
	cm_error_wrap(err, "cannot start a command");
	return r;
}

static const struct cm_platform_way socket_way;

int cm_platform_socket_start(struct cm_platform_exec *e, const struct cm_call *call,
			     struct cm_error *err)
{
	struct cm_platform_session *s = cm_platform_exec_session(e);

	for (unsigned int attempt = 1;; attempt++) {
		bool is_absent = false;
		int status = 0;
		int r = cm_platform_lease(s, call, &is_absent, err);

		if (is_absent)
			return CM_PLATFORM_OTHER_WAY;
		if (r == CM_OK)
			r = check_lease(s, err);
		if (r < 0)
			return r;
		r = start_once(e, call, &status, err);
		if (r == CM_OK) {
			e->way = &socket_way;
			e->stream = 0;
			return CM_OK;
		}
		/* nothing has been started: with another lease, once more */
		cm_platform_lease_drop(s);
		if (attempt == ATTEMPTS || is_final(r, call))
			return explain(r, status, err);
	}
}

/* --- while it runs --------------------------------------------------------------------------- */

static bool take_binary(struct cm_platform_exec *e, const struct cm_ws_event *event,
			struct cm_platform_news *ret)
{
	const char *bytes = event->bytes;
	size_t len = event->len;

	if (event->is_first) {
		e->stream = len == 0				     ? 0
			    : (unsigned char)*bytes == STREAM_STDOUT ? 1
			    : (unsigned char)*bytes == STREAM_STDERR ? 2
								     : 0;
		if (len > 0) {
			bytes++;
			len--;
		}
	}
	if (e->stream == 0 || len == 0)
		return false;
	*ret = (struct cm_platform_news){
		.kind = CM_PLATFORM_NEWS_OUTPUT, .stream = e->stream, .bytes = bytes, .len = len
	};
	return true;
}

static int take_text(struct cm_platform_exec *e, const struct cm_ws_event *event,
		     struct cm_platform_news *ret, struct cm_error *err)
{
	struct cm_platform_line line = { 0 };

	if (cm_platform_message_read(event->bytes, event->len, &line) < 0)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a message");
	if (line.kind == CM_PLATFORM_LINE_EXIT) {
		ret->kind = CM_PLATFORM_NEWS_EXIT;
		ret->exit_code = line.exit_code;
	} else if (line.kind == CM_PLATFORM_LINE_BAD_EXIT) {
		cm_platform_exec_why(e, "the platform says that it ended, and not how");
		ret->kind = CM_PLATFORM_NEWS_LOST;
	}
	return CM_OK;
}

static bool is_of_connection(int r)
{
	return r != CM_E_TIMEOUT && r != CM_E_CANCELLED && r != CM_E_NOMEM;
}

static int socket_next(struct cm_platform_exec *e, struct cm_wake *wake, const struct cm_call *call,
		       struct cm_platform_news *ret, struct cm_error *err)
{
	struct cm_platform_news news = { 0 };

	while (news.kind == 0) {
		struct cm_error why = CM_ERROR_INIT;
		struct cm_ws_event event = { 0 };
		int r = cm_ws_read(e->ws, wake, call, &event, &why);

		if (r < 0 && !is_of_connection(r))
			return cm_error_set(err, r, why.sys_errno, "%s", why.msg);
		if (r < 0) {
			cm_platform_exec_why(e, "%s", why.msg);
			news.kind = CM_PLATFORM_NEWS_LOST;
			break;
		}
		switch (event.kind) {
		case CM_WS_TEXT:
			r = take_text(e, &event, &news, err);
			if (r < 0)
				return r;
			break;
		case CM_WS_BINARY:
			(void)take_binary(e, &event, &news);
			break;
		case CM_WS_CLOSE:
			cm_platform_exec_why(e, "the platform closed its connection with code %u",
					     event.close_code);
			news.kind = CM_PLATFORM_NEWS_LOST;
			break;
		case CM_WS_CUT:
			cm_platform_exec_why(e, "its connection was cut off");
			news.kind = CM_PLATFORM_NEWS_LOST;
			break;
		case CM_WS_WOKEN:
			news.kind = CM_PLATFORM_NEWS_WOKEN;
			break;
		case CM_WS_NOTHING:
		case CM_WS_PING:
		case CM_WS_PONG:
			break;
		}
		/* messages that are no news, and no end of them */
		if (news.kind == 0 && cm_wake_is_set(wake))
			news.kind = CM_PLATFORM_NEWS_WOKEN;
	}
	*ret = news;
	return CM_OK;
}

static int socket_signal(struct cm_platform_exec *e, const char *name, const struct cm_call *call,
			 struct cm_error *err)
{
	struct cm_json_writer w;
	struct cm_buf message;
	int r;

	cm_buf_init(&message, 256);
	cm_jw_init(&w, &message, false);
	cm_jw_object(&w);
	cm_jw_kstring(&w, "type", "signal");
	cm_jw_key(&w, "data");
	cm_jw_object(&w);
	cm_jw_kstring(&w, "signal", name);
	cm_jw_end_object(&w);
	cm_jw_end_object(&w);
	r = cm_buf_status(&message) < 0
		    ? cm_error_set(err, CM_E_NOMEM, 0, "no memory for a signal")
		    : cm_ws_send_text(e->ws, message.data, message.len, call, err);
	cm_buf_clear(&message);
	return r;
}

static void socket_close(struct cm_platform_exec *e)
{
	cm_ws_close(e->ws);
	e->ws = NULL;
}

static const struct cm_platform_way socket_way = {
	.next = socket_next,
	.signal = socket_signal,
	.close = socket_close,
};
