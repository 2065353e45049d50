/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/websocket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "providers/websocket_handshake.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define READ_SIZE (64UL * 1024)
/* of a frame: a text of the caller's, and its header */
#define FRAME_MAX (16UL * 1024 * 1024)
/* how long the end of a connection may take: nobody waits for what it brings */
#define CLOSE_MS 250
#define PONG_MS 10000
#define REQUEST_MAX (64UL * 1024)

struct cm_ws {
	struct cm_http_conn *conn;
	struct cm_ws_parser parser;
	struct cm_buf frame;
	/* what was read and is not parsed yet */
	size_t begin;
	size_t end;
	/* a close frame came or was sent: nothing more is written */
	bool is_closing;
	/* a write failed, or the peer is gone */
	bool is_broken;
	char bytes[READ_SIZE];
};

static int fill_random(void *bytes, size_t len, struct cm_error *err)
{
	ssize_t n;

	/* up to 256 bytes come whole */
	do
		n = getrandom(bytes, len, 0);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)len)
		return cm_error_set(err, CM_E_SYS, errno, "cannot get random bytes");
	return CM_OK;
}

/* --- the handshake --------------------------------------------------------------------------- */

static int send_request(struct cm_ws *ws, const char *url, const char *key,
			const char *const *protocols, const struct cm_call *call,
			struct cm_error *err)
{
	struct cm_buf request;
	int r;

	cm_buf_init(&request, REQUEST_MAX);
	r = cm_ws_request(&request, url, key, protocols, err);
	if (r == CM_OK)
		r = cm_http_conn_write(ws->conn, request.data, request.len, call, err);
	if (request.data)
		explicit_bzero(request.data, request.len);
	cm_buf_clear(&request);
	return r;
}

/* What comes after the head stays in ws->bytes. */
static int read_answer(struct cm_ws *ws, const char *key, const char *const *protocols,
		       const struct cm_call *call, int *ret_status, struct cm_error *err)
{
	size_t head_len = 0;

	while (head_len == 0) {
		size_t n = 0;
		int r;

		if (ws->end >= CM_WS_HEAD_MAX)
			return cm_error_set(err, CM_E_PROTOCOL, 0,
					    "the WebSocket's server sent a head too long");
		r = cm_http_conn_read(ws->conn, ws->bytes + ws->end, CM_WS_HEAD_MAX - ws->end, NULL,
				      call, &n, err);
		if (r < 0)
			return r;
		if (r == CM_HTTP_END)
			return cm_error_set(err, CM_E_REMOTE, 0,
					    "the WebSocket's server closed the connection unasked");
		ws->end += n;
		head_len = cm_ws_head_len(ws->bytes, ws->end);
	}
	ws->begin = head_len;
	return cm_ws_check_answer(ws->bytes, head_len, key, protocols, ret_status, err);
}

static int shake_hands(struct cm_ws *ws, const char *url, const char *const *protocols,
		       const struct cm_call *call, int *ret_status, struct cm_error *err)
{
	unsigned char nonce[CM_WS_NONCE_SIZE];
	CM_AUTO_BUF struct cm_buf key = { 0 };
	int r = fill_random(nonce, sizeof(nonce), err);

	if (r < 0)
		return r;
	cm_buf_init(&key, 64);
	cm_ws_key(&key, nonce);
	if (cm_buf_status(&key) < 0)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a WebSocket");
	r = send_request(ws, url, key.data, protocols, call, err);
	if (r < 0)
		return r;
	return read_answer(ws, key.data, protocols, call, ret_status, err);
}

/* The address without what may be secret. */
static int connect_to(struct cm_ws *ws, struct cm_http *http, const char *url,
		      const struct cm_call *call, struct cm_error *err)
{
	size_t scheme_len = strcspn(url, ":") + 3;
	size_t len = scheme_len + strcspn(url + scheme_len, "/?");
	CM_AUTO_FREE char *origin = cm_asprintf("%.*s/", (int)len, url);

	if (!origin)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a WebSocket");
	return cm_http_connect(http, origin, call, &ws->conn, err);
}

int cm_ws_open(struct cm_http *http, const char *url, const char *const *protocols,
	       const struct cm_call *call, struct cm_ws **ret, int *ret_status,
	       struct cm_error *err)
{
	struct cm_ws *ws;
	int r = cm_ws_check_url(url, err);

	*ret_status = 0;
	if (r < 0)
		return r;
	ws = cm_calloc(1, sizeof(*ws));
	if (!ws)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a WebSocket");
	cm_ws_parser_init(&ws->parser);
	cm_buf_init(&ws->frame, FRAME_MAX);
	r = connect_to(ws, http, url, call, err);
	if (r == CM_OK)
		r = shake_hands(ws, url, protocols, call, ret_status, err);
	if (r < 0) {
		ws->is_broken = true;
		cm_ws_close(ws);
		return r;
	}
	*ret = ws;
	return CM_OK;
}

/* --- writing --------------------------------------------------------------------------------- */

static int send_frame(struct cm_ws *ws, enum cm_ws_opcode opcode, const void *payload, size_t len,
		      const struct cm_call *call, struct cm_error *err)
{
	unsigned char mask[CM_WS_MASK_SIZE];
	int r;

	if (ws->is_broken || ws->is_closing)
		return cm_error_set(err, CM_E_REMOTE, 0, "the WebSocket is closed");
	r = fill_random(mask, sizeof(mask), err);
	if (r < 0)
		return r;
	cm_buf_reset(&ws->frame);
	cm_ws_frame(&ws->frame, opcode, payload, len, mask);
	r = cm_buf_status(&ws->frame);
	if (r < 0)
		return cm_error_set(err, r, 0,
				    r == CM_E_LIMIT ? "a message is too long"
						    : "no memory for a message");
	r = cm_http_conn_write(ws->conn, ws->frame.data, ws->frame.len, call, err);
	/* part of a frame may be out */
	if (r < 0)
		ws->is_broken = true;
	return r;
}

int cm_ws_send_text(struct cm_ws *ws, const char *text, size_t len, const struct cm_call *call,
		    struct cm_error *err)
{
	return send_frame(ws, CM_WS_OP_TEXT, text, len, call, err);
}

/* Once, for what that is worth: it says nothing that the end of the connection does not. */
static void send_close(struct cm_ws *ws, unsigned int code)
{
	const unsigned char payload[2] = { (unsigned char)(code >> 8), (unsigned char)code };
	struct cm_call call = { cm_clock_mono_ms() + CLOSE_MS, -1 };

	if (!ws->is_closing)
		(void)send_frame(ws, CM_WS_OP_CLOSE, payload, code == CM_WS_CLOSE_NO_CODE ? 0 : 2,
				 &call, NULL);
	ws->is_closing = true;
}

/* --- reading --------------------------------------------------------------------------------- */

/* A read that is out of time may still answer a ping; and what was read comes before a failure to. */
static int send_pong(struct cm_ws *ws, const struct cm_ws_event *ping, const struct cm_call *call,
		     struct cm_error *err)
{
	struct cm_call own = { cm_clock_mono_ms() + PONG_MS, call->cancel_fd };
	int r;

	if (ws->is_closing || ws->is_broken)
		return CM_OK;
	r = send_frame(ws, CM_WS_OP_PONG, ping->bytes, ping->len, &own, err);
	return r == CM_E_CANCELLED ? r : CM_OK;
}

/* What is the client's own business; *ret is left NOTHING then. */
static int handle(struct cm_ws *ws, struct cm_ws_event *ret, const struct cm_call *call,
		  struct cm_error *err)
{
	int r = CM_OK;

	switch (ret->kind) {
	case CM_WS_PING:
		r = send_pong(ws, ret, call, err);
		ret->kind = CM_WS_NOTHING;
		break;
	case CM_WS_PONG:
		ret->kind = CM_WS_NOTHING;
		break;
	case CM_WS_CLOSE:
		send_close(ws, ret->close_code);
		ws->is_broken = true;
		break;
	case CM_WS_NOTHING:
	case CM_WS_TEXT:
	case CM_WS_BINARY:
	case CM_WS_CUT:
	case CM_WS_WOKEN:
		break;
	}
	return r;
}

static int parse_read(struct cm_ws *ws, const struct cm_call *call, struct cm_ws_event *ret,
		      struct cm_error *err)
{
	size_t used = 0;
	int r = cm_ws_parse(&ws->parser, ws->bytes + ws->begin, ws->end - ws->begin, &used, ret,
			    err);

	if (r < 0) {
		send_close(ws, ws->parser.wrong);
		ws->is_broken = true;
		return r;
	}
	ws->begin += used;
	return handle(ws, ret, call, err);
}

static int read_more(struct cm_ws *ws, struct cm_wake *wake, const struct cm_call *call,
		     struct cm_ws_event *ret, struct cm_error *err)
{
	size_t n = 0;
	int r = cm_http_conn_read(ws->conn, ws->bytes, sizeof(ws->bytes), wake, call, &n, err);

	if (r == CM_HTTP_DATA) {
		ws->begin = 0;
		ws->end = n;
	} else if (r == CM_HTTP_WOKEN) {
		ret->kind = CM_WS_WOKEN;
	} else if (r == CM_HTTP_END) {
		ret->kind = CM_WS_CUT;
		ws->is_broken = true;
	}
	return r < 0 ? r : CM_OK;
}

int cm_ws_read(struct cm_ws *ws, struct cm_wake *wake, const struct cm_call *call,
	       struct cm_ws_event *ret, struct cm_error *err)
{
	struct cm_ws_event event = { 0 };
	int r = CM_OK;

	while (r == CM_OK && event.kind == CM_WS_NOTHING) {
		if (ws->begin < ws->end)
			r = parse_read(ws, call, &event, err);
		else if (ws->is_broken)
			event.kind = CM_WS_CUT;
		else
			r = read_more(ws, wake, call, &event, err);
		/* frames that are nobody's business, and no end of them */
		if (r == CM_OK && event.kind == CM_WS_NOTHING && cm_wake_is_set(wake))
			event.kind = CM_WS_WOKEN;
	}
	if (r == CM_OK)
		*ret = event;
	return r;
}

/*
 * Until the server's close frame, for a moment. A connection that is closed with something unread in it
 * is reset, and then the server may never read ours.
 */
static void drain(struct cm_ws *ws)
{
	struct cm_call call = { cm_clock_mono_ms() + CLOSE_MS, -1 };
	struct cm_ws_event event = { 0 };

	while (event.kind != CM_WS_CLOSE && event.kind != CM_WS_CUT &&
	       cm_clock_mono_ms() < call.deadline_ms) {
		if (cm_ws_read(ws, NULL, &call, &event, NULL) < 0)
			return;
	}
}

void cm_ws_close(struct cm_ws *ws)
{
	if (!ws)
		return;
	if (ws->conn && !ws->is_broken && !ws->is_closing) {
		send_close(ws, CM_WS_CLOSE_NORMAL);
		drain(ws);
	}
	if (ws->conn)
		cm_http_conn_close(ws->conn);
	cm_ws_parser_clear(&ws->parser);
	if (ws->frame.data)
		explicit_bzero(ws->frame.data, ws->frame.len);
	cm_buf_clear(&ws->frame);
	free(ws);
}
