/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer that is read as it comes. libcurl puts what arrives into a buffer, whoever waits at that
 * moment; when that is full, the transfer is paused and its server has to wait.
 */
#include <stdlib.h>
#include <string.h>

#include "providers/http_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define BUFFER_SIZE (256UL * 1024)
_Static_assert(BUFFER_SIZE >= 4 * CURL_MAX_WRITE_SIZE, "what libcurl gives at once has room");

struct cm_http_stream {
	/* first: a transfer that libcurl gives us is this */
	struct cm_http_transfer t;
	bool is_paused;
	/* what is to be read: from start, len bytes, round the end */
	size_t start;
	size_t len;
	char buffer[BUFFER_SIZE];
};

static size_t on_bytes(struct cm_http_transfer *t, const char *bytes, size_t len)
{
	struct cm_http_stream *s = (struct cm_http_stream *)(void *)t;
	size_t end = (s->start + s->len) % BUFFER_SIZE;
	size_t first = BUFFER_SIZE - end;

	if (len > BUFFER_SIZE - s->len) {
		s->is_paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	if (first > len)
		first = len;
	memcpy(s->buffer + end, bytes, first);
	memcpy(s->buffer, bytes + first, len - first);
	s->len += len;
	return len;
}

static int open_once(struct cm_http_stream *s, struct cm_http *http,
		     const struct cm_http_request *request, const struct cm_call *call,
		     struct cm_error *err)
{
	int r = cm_http_transfer_init(&s->t, http, request, on_bytes, err);

	if (r == CM_OK)
		r = cm_http_transfer_run(&s->t, http->multi, true, call, err);
	/* what the caller lent us ends with this call */
	s->t.fill = NULL;
	return r;
}

int cm_http_stream_open(struct cm_http *http, const struct cm_http_request *request,
			const struct cm_call *call, struct cm_http_stream **ret,
			struct cm_error *err)
{
	struct cm_http_stream *s = cm_calloc(1, sizeof(*s));
	int r;

	if (!s)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	for (unsigned int attempt = 0;; attempt++) {
		int again;

		r = open_once(s, http, request, call, err);
		if (r == CM_OK) {
			*ret = s;
			return CM_OK;
		}
		if (!cm_http_transfer_may_start_again(&s->t))
			break;
		again = cm_http_before_again(http, attempt, -1, call, s->t.subject, err);
		if (again != CM_OK) {
			if (again != CM_E_LIMIT)
				r = again;
			break;
		}
		cm_http_transfer_clear(&s->t);
	}
	cm_http_stream_close(s);
	return r;
}

const struct cm_http_answer *cm_http_stream_answer(const struct cm_http_stream *stream)
{
	return &stream->t.answer;
}

/* More may come, now that there is room. */
static int go_on(struct cm_http_stream *s, struct cm_error *err)
{
	CURLcode code;

	if (!s->is_paused || s->len > BUFFER_SIZE / 2)
		return CM_OK;
	s->is_paused = false;
	/* the peer had no say while it was paused */
	s->t.active_ms = cm_clock_mono_ms();
	code = curl_easy_pause(s->t.easy, CURLPAUSE_CONT);
	/* a failure of the transfer itself comes with its end */
	if (code != CURLE_OUT_OF_MEMORY)
		return CM_OK;
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

static size_t get_bytes(struct cm_http_stream *s, char *buf, size_t size)
{
	size_t n = s->len < size ? s->len : size;
	size_t first = BUFFER_SIZE - s->start;

	if (first > n)
		first = n;
	memcpy(buf, s->buffer + s->start, first);
	memcpy(buf + first, s->buffer, n - first);
	s->start = (s->start + n) % BUFFER_SIZE;
	s->len -= n;
	return n;
}

/* It is over: CM_HTTP_END or why it is. */
static int end_of(const struct cm_http_stream *s, struct cm_error *err)
{
	int r = cm_http_transfer_error(&s->t, err);

	return r == CM_OK ? CM_HTTP_END : r;
}

int cm_http_stream_read(struct cm_http_stream *stream, void *buf, size_t size, struct cm_wake *wake,
			const struct cm_call *call, size_t *ret_len, struct cm_error *err)
{
	struct cm_http_transfer *t = &stream->t;
	struct cm_http_wait wait = {
		.multi = t->multi, .call = call, .wake = wake, .fd = -1, .subject = t->subject
	};
	bool is_woken = false;
	/* a peer that never stops sending keeps nobody */
	int r = cm_http_check_call(call, t->subject, err);

	if (r < 0)
		return r;
	for (;;) {
		if (stream->len == 0 && !t->is_done && t->fault == CM_HTTP_FAULT_NONE) {
			r = cm_http_run(t->multi, err);
			if (r != CM_OK)
				return r;
		}
		if (stream->len > 0) {
			*ret_len = get_bytes(stream, buf, size);
			(void)cm_http_look(wake);
			r = go_on(stream, err);
			return r == CM_OK ? CM_HTTP_DATA : r;
		}
		if (t->is_done || t->fault != CM_HTTP_FAULT_NONE)
			return end_of(stream, err);
		wait.until_ms = cm_http_transfer_limit(t);
		if (cm_clock_mono_ms() >= wait.until_ms) {
			t->fault = CM_HTTP_FAULT_SILENT;
			continue;
		}
		r = cm_http_wait(&wait, &is_woken, err);
		if (r != CM_OK)
			return r;
		if (is_woken)
			return CM_HTTP_WOKEN;
	}
}

void cm_http_stream_close(struct cm_http_stream *stream)
{
	if (!stream)
		return;
	cm_http_transfer_clear(&stream->t);
	explicit_bzero(stream->buffer, sizeof(stream->buffer));
	free(stream);
}
