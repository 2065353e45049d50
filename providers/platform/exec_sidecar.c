/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command by the program that runs beside the sandbox, where the platform says that there is one: lines
 * of JSON, as they come. Its protocol has no signal: see exec_wrap.c.
 */
#include <stdlib.h>
#include <string.h>

#include "providers/platform/exec_internal.h"
#include "providers/platform/keep.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define HEALTH_MS 1000
#define HEALTH_EVERY_MS 250
/* what a command waits for it before it goes by another way */
#define HEALTH_FIRST_MS 5000
#define LINE_MAX_BYTES CM_JSON_MAX_BYTES
#define READ_SIZE (64UL * 1024)
#define BODY_MAX (16UL * 1024 * 1024)

static const struct cm_platform_way sidecar_way;

static bool is_healthy(struct cm_platform *p, const char *url, const struct cm_call *call)
{
	CM_AUTO_FREE char *address = cm_asprintf("%s/health", url);
	int64_t end = cm_clock_mono_ms() + HEALTH_MS;
	struct cm_call own = { end < call->deadline_ms ? end : call->deadline_ms, call->cancel_fd };
	struct cm_http_request request = { .method = "GET", .url = address, .is_idempotent = true };
	struct cm_http_answer answer = { 0 };
	int status;

	if (!address || cm_http_send(p->http, &request, &own, &answer, NULL) < 0)
		return false;
	status = answer.status;
	cm_http_answer_clear(&answer);
	return status >= 200 && status < 300;
}

/* It may still be starting when the first command comes. */
static bool ask_health(struct cm_platform *p, struct cm_platform_session *s,
		       const struct cm_call *call)
{
	int64_t end = cm_clock_mono_ms() + (s->has_asked_sidecar ? 0 : HEALTH_FIRST_MS);
	bool is_good;

	/* what it is sent goes in clear text, unless it says https or is of this host */
	if (cm_http_check_url(s->sandbox.instance_url, "instanceUrl", NULL) < 0 ||
	    !cm_platform_settings_allow(&p->settings, s->sandbox.instance_url))
		return false;
	do
		is_good = is_healthy(p, s->sandbox.instance_url, call);
	while (!is_good && cm_clock_mono_ms() + HEALTH_EVERY_MS < end &&
	       cm_call_sleep(call, HEALTH_EVERY_MS, NULL) == CM_OK);
	return is_good;
}

static const char *const headers[] = { "content-type: application/json", NULL };

static int open_answer(struct cm_platform_exec *e, const struct cm_call *call, struct cm_error *err)
{
	struct cm_platform_session *s = cm_platform_exec_session(e);
	CM_AUTO_FREE char *address = cm_asprintf("%s/exec", s->sandbox.instance_url);
	struct cm_call own = { e->until_ms < call->deadline_ms ? e->until_ms : call->deadline_ms,
			       call->cancel_fd };
	struct cm_http_request request = {
		.method = "POST",
		.url = address,
		.headers = headers,
		.first_byte_ms = UINT32_MAX,
		.idle_ms = UINT32_MAX,
	};

	struct cm_buf body;
	int r;

	if (!address)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a command");
	cm_buf_init(&body, BODY_MAX);
	r = cm_platform_wrap_write(e, &body, err);
	request.body = body.data;
	request.body_len = body.len;
	if (r == CM_OK)
		r = cm_http_stream_open(cm_platform_of(s->base.provider)->http, &request, &own,
					&e->answer, err);
	/* variables may be secrets */
	if (body.data)
		explicit_bzero(body.data, body.len);
	cm_buf_clear(&body);
	return r;
}

/* The exit status among the lines of a whole answer; -1: there is none. */
static int find_exit(const char *text, size_t len)
{
	int code = -1;

	while (len > 0 && code < 0) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;
		struct cm_platform_line line = { 0 };

		if (cm_platform_line_read(text, n, &line) == CM_OK &&
		    line.kind == CM_PLATFORM_LINE_EXIT)
			code = line.exit_code;
		free(line.data);
		n += end ? 1 : 0;
		text += n;
		len -= n;
	}
	return code;
}

/* Another command, beside the one that may run. */
static int run_other(struct cm_platform_exec *e, const struct cm_buf *body,
		     const struct cm_call *call, int *ret_exit_code, struct cm_error *err)
{
	struct cm_platform_session *s = cm_platform_exec_session(e);
	CM_AUTO_FREE char *address = cm_asprintf("%s/exec", s->sandbox.instance_url);
	struct cm_http_request request = { .method = "POST",
					   .url = address,
					   .headers = headers,
					   .body = body->data,
					   .body_len = body->len };
	struct cm_http_answer answer = { 0 };
	int r;

	if (!address)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a signal");
	r = cm_http_send(cm_platform_of(s->base.provider)->http, &request, call, &answer, err);
	if (r < 0)
		return r;
	*ret_exit_code = answer.status == 200 ? find_exit(answer.body.data, answer.body.len) : -1;
	cm_http_answer_clear(&answer);
	return *ret_exit_code < 0 ? cm_error_set(err, CM_E_REMOTE, 0,
						 "the sandbox's sidecar did not send a signal")
				  : CM_OK;
}

static int sidecar_signal(struct cm_platform_exec *e, const char *name, const struct cm_call *call,
			  struct cm_error *err)
{
	return cm_platform_wrap_signal(e, run_other, name, call, err);
}

/* The request broke: whether it was started is not known, and it is not to run twice. */
static int after_failure(struct cm_platform_exec *e, int r, const struct cm_call *call,
			 struct cm_error *err)
{
	struct cm_platform_session *s = cm_platform_exec_session(e);

	/* nobody waits for it any more, and it may run */
	if (r == CM_E_CANCELLED || r == CM_E_TIMEOUT)
		cm_platform_wrap_end(e, run_other);
	if (r == CM_E_CANCELLED || r == CM_E_NOMEM)
		return r;
	if (r == CM_E_TIMEOUT && cm_clock_mono_ms() < call->deadline_ms) {
		/* its own time: it is over */
		cm_platform_exec_why(e, "it took too long");
		e->way = &sidecar_way;
		return CM_OK;
	}
	s->has_sidecar = false;
	if (e->is_idempotent)
		return CM_PLATFORM_OTHER_WAY;
	return cm_error_wrap(err, "it is not known whether the command was started");
}

int cm_platform_sidecar_start(struct cm_platform_exec *e, const struct cm_call *call,
			      struct cm_error *err)
{
	struct cm_platform_session *s = cm_platform_exec_session(e);
	int r;

	if (!s->sandbox.instance_url || (s->has_asked_sidecar && !s->has_sidecar))
		return CM_PLATFORM_OTHER_WAY;
	s->has_sidecar = ask_health(cm_platform_of(s->base.provider), s, call);
	s->has_asked_sidecar = true;
	if (!s->has_sidecar) {
		/* so that not every command waits for it; what cannot be kept is asked again */
		cm_platform_keep_no_sidecar(s);
		return CM_PLATFORM_OTHER_WAY;
	}
	r = open_answer(e, call, err);
	if (r < 0)
		return after_failure(e, r, call, err);
	if (cm_http_stream_answer(e->answer)->status != 200) {
		cm_http_stream_close(e->answer);
		e->answer = NULL;
		return CM_PLATFORM_OTHER_WAY;
	}
	cm_buf_init(&e->lines, LINE_MAX_BYTES + READ_SIZE);
	e->lines_used = 0;
	e->way = &sidecar_way;
	return CM_OK;
}

/* --- while it runs --------------------------------------------------------------------------- */

static int take_line(struct cm_platform_exec *e, const char *text, size_t len,
		     struct cm_platform_news *ret, struct cm_error *err)
{
	struct cm_platform_line line = { 0 };

	if (cm_platform_line_read(text, len, &line) < 0)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a line");
	free(e->line_data);
	e->line_data = line.data;
	switch (line.kind) {
	case CM_PLATFORM_LINE_STDOUT:
	case CM_PLATFORM_LINE_STDERR:
		if (*line.data)
			*ret = (struct cm_platform_news){
				.kind = CM_PLATFORM_NEWS_OUTPUT,
				.stream = line.kind == CM_PLATFORM_LINE_STDOUT ? 1 : 2,
				.bytes = line.data,
				.len = strlen(line.data)
			};
		break;
	case CM_PLATFORM_LINE_EXIT:
		ret->kind = CM_PLATFORM_NEWS_EXIT;
		ret->exit_code = line.exit_code;
		break;
	case CM_PLATFORM_LINE_BAD_EXIT:
	case CM_PLATFORM_LINE_OTHER:
		break;
	}
	return CM_OK;
}

static void lose(struct cm_platform_exec *e, struct cm_platform_news *ret, const char *why)
{
	cm_platform_exec_why(e, "%s", why);
	cm_platform_exec_session(e)->has_sidecar = false;
	ret->kind = CM_PLATFORM_NEWS_LOST;
}

/* The bytes that were read up to here go. */
static void forget_used(struct cm_platform_exec *e)
{
	size_t rest = e->lines.len - e->lines_used;

	if (e->lines_used == 0 || !e->lines.data)
		return;
	memmove(e->lines.data, e->lines.data + e->lines_used, rest);
	e->lines.len = rest;
	e->lines.data[rest] = '\0';
	e->lines_used = 0;
}

/* CM_OK: some came, or news did. */
static int read_more(struct cm_platform_exec *e, struct cm_wake *wake, const struct cm_call *call,
		     struct cm_platform_news *ret, struct cm_error *err)
{
	char bytes[READ_SIZE / 4];
	struct cm_error why = CM_ERROR_INIT;
	size_t n = 0;
	int r;

	forget_used(e);
	if (e->lines.len > LINE_MAX_BYTES) {
		lose(e, ret, "its output has a line that is too long");
		return CM_OK;
	}
	r = cm_http_stream_read(e->answer, bytes, sizeof(bytes), wake, call, &n, &why);
	if (r == CM_E_TIMEOUT || r == CM_E_CANCELLED || r == CM_E_NOMEM)
		return cm_error_set(err, r, why.sys_errno, "%s", why.msg);
	if (r < 0) {
		lose(e, ret, why.msg);
	} else if (r == CM_HTTP_WOKEN) {
		ret->kind = CM_PLATFORM_NEWS_WOKEN;
	} else if (r == CM_HTTP_DATA) {
		cm_buf_append(&e->lines, bytes, n);
		if (cm_buf_status(&e->lines) < 0)
			return cm_error_set(err, CM_E_NOMEM, 0, "no memory for output");
	} else {
		/* the last line may lack its end */
		r = take_line(e, e->lines.data ? e->lines.data : "", e->lines.len, ret, err);
		cm_buf_reset(&e->lines);
		if (r < 0)
			return r;
		if (ret->kind == 0)
			lose(e, ret, "its output ended without its end");
	}
	return CM_OK;
}

static int sidecar_next(struct cm_platform_exec *e, struct cm_wake *wake,
			const struct cm_call *call, struct cm_platform_news *ret,
			struct cm_error *err)
{
	struct cm_platform_news news = { 0 };

	/* its time was over before it said anything */
	if (!e->answer)
		news.kind = CM_PLATFORM_NEWS_LOST;
	while (news.kind == 0) {
		const char *begin = e->lines.data ? e->lines.data + e->lines_used : NULL;
		const char *end = begin ? memchr(begin, '\n', e->lines.len - e->lines_used) : NULL;
		int r;

		if (end) {
			e->lines_used += (size_t)(end - begin) + 1;
			r = take_line(e, begin, (size_t)(end - begin), &news, err);
		} else {
			r = read_more(e, wake, call, &news, err);
		}
		if (r < 0)
			return r;
	}
	*ret = news;
	return CM_OK;
}

static void sidecar_close(struct cm_platform_exec *e)
{
	cm_http_stream_close(e->answer);
	e->answer = NULL;
	cm_buf_clear(&e->lines);
	free(e->line_data);
	e->line_data = NULL;
}

static const struct cm_platform_way sidecar_way = {
	.next = sidecar_next,
	.signal = sidecar_signal,
	.close = sidecar_close,
};
