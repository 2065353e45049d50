/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the agent in a sandbox: one answer, or a stream of messages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/e2b/e2b_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define ANSWER_MAX (4UL * 1024 * 1024)
/* the agent is asked for a sign of life that often, and missed after some of them */
#define PING_HEADER "Keepalive-Ping-Interval: 50"
#define SILENCE_MS 160000
#define HEALTH_MS 5000
#define LOOK_MS 5000
/* for the rest of a stream whose last message is known */
#define FINISH_MS 100

void cm_e2b_headers_add(struct cm_e2b_headers *h, const char *line)
{
	size_t n = 0;

	while (n < CM_E2B_HEADERS_MAX && h->v[n])
		n++;
	if (n < CM_E2B_HEADERS_MAX)
		h->v[n] = line;
}

void cm_e2b_headers_init(struct cm_e2b_headers *h, const struct cm_e2b_session *s, bool is_root)
{
	*h = (struct cm_e2b_headers){ { NULL } };
	cm_e2b_headers_add(h, s->id_header);
	cm_e2b_headers_add(h, "E2b-Sandbox-Port: 49983");
	if (s->token_header)
		cm_e2b_headers_add(h, s->token_header);
	/* "root:" */
	if (is_root)
		cm_e2b_headers_add(h, "Authorization: Basic cm9vdDo=");
}

/* --- errors ------------------------------------------------------------------------------------- */

/* The agent's side cannot tell a sandbox that is paused from one that was deleted; the API can. */
static bool is_deleted(const struct cm_e2b_session *s)
{
	const struct cm_call call = { .deadline_ms = cm_clock_mono_ms() + LOOK_MS,
				      .cancel_fd = -1 };
	CM_AUTO_FREE char *path = cm_asprintf("/sandboxes/%s", s->sandbox_id);
	const struct cm_e2b_query q = { .method = "GET",
					.path = path,
					.what = "look at a sandbox" };
	struct cm_e2b_reply reply;
	bool is_deleted = false;

	if (!path ||
	    cm_e2b_ask((struct cm_e2b *)(void *)s->base.provider, &q, &call, &reply, NULL) < 0)
		return false;
	is_deleted = cm_e2b_reply_says(&reply, 404);
	cm_e2b_reply_clear(&reply);
	return is_deleted;
}

static int gone(const struct cm_e2b_session *s, const char *what, struct cm_error *err)
{
	if (is_deleted(s)) {
		(void)cm_error_set(err, CM_E_NOT_FOUND, 0,
				   "cannot %s: the sandbox of session '%s' was removed", what,
				   s->base.id);
		cm_error_hint(err, "'casemate start %s' makes a new one", s->base.id);
		return CM_E_NOT_FOUND;
	}
	(void)cm_error_set(err, CM_E_REMOTE, 0, "cannot %s: session '%s' does not run", what,
			   s->base.id);
	cm_error_hint(err, "'casemate start %s' starts it again, if it is still there", s->base.id);
	return CM_E_REMOTE;
}

static bool has_token(const struct cm_e2b_session *s, const char *text)
{
	return s->token_header && strstr(text, cm_e2b_session_token(s));
}

static int refused(const struct cm_e2b_session *s, const struct cm_http_request *request,
		   const struct cm_http_answer *answer, const char *what, bool is_file,
		   char ret_name[CM_E2B_NAME_SIZE], struct cm_error *err)
{
	struct cm_json_doc *doc = NULL;
	const struct cm_json *code = NULL;
	const char *message = NULL;
	const char *name = NULL;
	const char *fault = NULL;
	int r;

	if (answer->body.len > 0 &&
	    cm_json_parse(answer->body.data, answer->body.len, "answer", 0, &doc, NULL) == CM_OK) {
		code = cm_json_get(cm_json_root(doc), "code");
		message = cm_json_str(cm_json_root(doc), "message", NULL);
	}
	if (message && has_token(s, message))
		message = NULL;
	if (code && code->type == CM_JSON_STRING)
		name = code->u.string;
	/* of a number the agent's own has the status; what stands before it says nothing of files */
	if (is_file &&
	    (name || (code && cm_json_int(cm_json_root(doc), "code", 0) == answer->status)))
		fault = cm_e2b_file_fault(name, answer->status, message);
	if (ret_name && name && message && answer->status != 502)
		(void)snprintf(ret_name, CM_E2B_NAME_SIZE, "%s", name);
	if (answer->status == 502) {
		r = gone(s, what, err);
	} else if (fault) {
		r = name ? cm_e2b_code(name) : cm_http_error(request, answer, what, NULL, NULL);
		(void)cm_error_set(err, r, 0, "cannot %s: %s", what, fault);
	} else if (name && message) {
		r = cm_e2b_error_of(cm_json_root(doc), what, err);
	} else {
		r = cm_http_error(request, answer, what, message, err);
	}
	if (answer->status == 401 && !ret_name)
		cm_error_hint(err, "'casemate start %s' asks for the session's access again",
			      s->base.id);
	cm_json_free(doc);
	return r;
}

int cm_e2b_agent_refused(const struct cm_e2b_session *s, const struct cm_http_request *request,
			 const struct cm_http_answer *answer, const char *what,
			 struct cm_error *err)
{
	return refused(s, request, answer, what, true, NULL, err);
}

/* --- one answer ------------------------------------------------------------------------------------ */

/* The address of a method, and what both kinds of requests have. */
static int prepare(struct cm_e2b_session *s, const struct cm_e2b_rpc *rpc, bool is_stream,
		   const struct cm_call *call, struct cm_e2b_headers *headers,
		   struct cm_http_request *ret, char **ret_url, struct cm_error *err)
{
	int r = cm_buf_status(rpc->body);

	if (r < 0)
		return cm_error_set(err, r, 0, "cannot %s: the request is too large", rpc->what);
	r = cm_e2b_session_reach(s, call, err);
	if (r < 0)
		return r;
	cm_e2b_headers_init(headers, s, rpc->is_root);
	cm_e2b_headers_add(headers, "Connect-Protocol-Version: 1");
	cm_e2b_headers_add(headers, is_stream ? "Content-Type: application/connect+json"
					      : "Content-Type: application/json");
	if (is_stream)
		cm_e2b_headers_add(headers, PING_HEADER);
	*ret_url = cm_asprintf("%s/%s", s->agent_url, rpc->method);
	if (!*ret_url)
		return cm_e2b_no_memory(err);
	*ret = (struct cm_http_request){
		.method = "POST",
		.url = *ret_url,
		.headers = headers->v,
		.body = rpc->body->data,
		.body_len = rpc->body->len,
		.is_idempotent = rpc->is_idempotent,
		.max_bytes = ANSWER_MAX,
		.first_byte_ms = rpc->may_wait ? UINT32_MAX : 0,
	};
	return CM_OK;
}

static int read_object(const struct cm_http_answer *answer, const char *what,
		       struct cm_json_doc **ret, struct cm_error *err)
{
	struct cm_json_doc *doc = NULL;
	int r = cm_json_parse(answer->body.data ? answer->body.data : "", answer->body.len,
			      "answer", 0, &doc, NULL);

	if (r == CM_E_NOMEM)
		return cm_e2b_no_memory(err);
	if (r == CM_E_LIMIT)
		return cm_error_set(err, r, 0, "cannot %s: the sandbox's answer is too large",
				    what);
	if (r < 0 || cm_json_root(doc)->type != CM_JSON_OBJECT) {
		cm_json_free(doc);
		return cm_error_set(err, CM_E_PROTOCOL, 0,
				    "cannot %s: the sandbox's answer is no JSON object", what);
	}
	*ret = doc;
	return CM_OK;
}

int cm_e2b_unary(struct cm_e2b_session *s, const struct cm_e2b_rpc *rpc, const struct cm_call *call,
		 struct cm_json_doc **ret_doc, char ret_name[CM_E2B_NAME_SIZE],
		 struct cm_error *err)
{
	CM_AUTO_FREE char *url = NULL;
	struct cm_e2b_headers headers;
	struct cm_http_request request;
	struct cm_http_answer answer;
	int r = prepare(s, rpc, false, call, &headers, &request, &url, err);

	if (ret_name)
		ret_name[0] = '\0';
	if (r < 0)
		return r;
	r = cm_http_send(cm_e2b_of(&s->base)->http, &request, call, &answer, err);
	if (r < 0) {
		(void)cm_error_wrap(err, "cannot %s", rpc->what);
		return r;
	}
	if (answer.status < 200 || answer.status > 299)
		r = refused(s, &request, &answer, rpc->what, rpc->is_file, ret_name, err);
	else if (ret_doc)
		r = read_object(&answer, rpc->what, ret_doc, err);
	cm_http_answer_clear(&answer);
	return r;
}

/* --- a stream ---------------------------------------------------------------------------------------- */

int cm_e2b_stream_open(struct cm_e2b_session *s, const struct cm_e2b_rpc *rpc,
		       const struct cm_call *call, struct cm_e2b_stream **ret, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf body = { 0 };
	CM_AUTO_FREE char *url = NULL;
	struct cm_e2b_rpc enveloped = *rpc;
	const struct cm_http_answer *answer;
	struct cm_e2b_headers headers;
	struct cm_http_request request;
	struct cm_e2b_stream *stream;
	int r;

	cm_buf_init(&body, rpc->body->len + CM_E2B_ENVELOPE_HEAD + 1);
	cm_e2b_envelope_write(&body, rpc->body->data, rpc->body->len);
	enveloped.body = &body;
	r = prepare(s, &enveloped, true, call, &headers, &request, &url, err);
	if (r < 0)
		return r;
	request.idle_ms = SILENCE_MS;
	stream = cm_calloc(1, sizeof(*stream));
	if (!stream)
		return cm_e2b_no_memory(err);
	cm_e2b_envelopes_init(&stream->envelopes);
	stream->what = rpc->what;
	stream->is_file = rpc->is_file;
	r = cm_http_stream_open(cm_e2b_of(&s->base)->http, &request, call, &stream->http, err);
	if (r < 0) {
		(void)cm_error_wrap(err, "cannot %s", rpc->what);
	} else {
		answer = cm_http_stream_answer(stream->http);
		if (answer->status < 200 || answer->status > 299)
			r = refused(s, &request, answer, rpc->what, rpc->is_file, NULL, err);
		else if (strcmp(answer->content_type, "application/connect+json") != 0)
			r = cm_error_set(err, CM_E_PROTOCOL, 0,
					 "cannot %s: the sandbox answers with '%s'", rpc->what,
					 answer->content_type);
	}
	if (r < 0) {
		cm_e2b_stream_close(stream);
		return r;
	}
	*ret = stream;
	return CM_OK;
}

void cm_e2b_stream_close(struct cm_e2b_stream *stream)
{
	if (!stream)
		return;
	cm_http_stream_close(stream->http);
	cm_e2b_envelopes_clear(&stream->envelopes);
	free(stream);
}

/* More bytes: CM_HTTP_* or CM_E2B_STREAM_CUT, or a negative code. */
static int fetch(struct cm_e2b_stream *stream, struct cm_wake *wake, const struct cm_call *call,
		 bool *ret_is_cut, struct cm_error *err)
{
	int r = cm_http_stream_read(stream->http, stream->bytes, sizeof(stream->bytes), wake, call,
				    &stream->len, err);

	stream->at = 0;
	*ret_is_cut = false;
	if (r == CM_HTTP_DATA)
		return r;
	stream->len = 0;
	/* silence is told from the caller's own deadline by the clock */
	if (r == CM_E_REMOTE || (r == CM_E_TIMEOUT && cm_clock_mono_ms() < call->deadline_ms)) {
		*ret_is_cut = true;
		return r;
	}
	if (r == CM_HTTP_END) {
		*ret_is_cut = true;
		return cm_error_set(err, CM_E_REMOTE, 0,
				    "the sandbox's answer stopped in the middle");
	}
	return r;
}

/* What the last envelope says: CM_OK or the error in *err. */
static int end_of(const struct cm_e2b_stream *stream, struct cm_error *err)
{
	const struct cm_buf *body = &stream->envelopes.body;
	char name[CM_E2B_NAME_SIZE];
	int r = cm_e2b_end_of(body->data ? body->data : "", body->len, stream->what, name,
			      sizeof(name), err);
	const char *fault = r < 0 && stream->is_file ? cm_e2b_file_fault(name, 0, NULL) : NULL;

	return fault ? cm_error_set(err, r, 0, "cannot %s: %s", stream->what, fault) : r;
}

int cm_e2b_stream_next(struct cm_e2b_stream *stream, struct cm_wake *wake,
		       const struct cm_call *call, int *ret_end, struct cm_error *err)
{
	struct cm_e2b_envelopes *e = &stream->envelopes;
	bool is_cut = false;
	size_t used = 0;
	int r;

	*ret_end = CM_OK;
	for (;;) {
		r = cm_e2b_envelopes_take(e, stream->bytes + stream->at, stream->len - stream->at,
					  &used, err);
		stream->at += used;
		if (r < 0)
			return r;
		if (r == CM_E2B_ENVELOPE_MESSAGE)
			return CM_E2B_STREAM_MESSAGE;
		if (r == CM_E2B_ENVELOPE_END) {
			*ret_end = end_of(stream, err);
			return *ret_end == CM_E_PROTOCOL || *ret_end == CM_E_NOMEM
				       ? *ret_end
				       : CM_E2B_STREAM_END;
		}
		r = fetch(stream, wake, call, &is_cut, err);
		if (is_cut)
			return CM_E2B_STREAM_CUT;
		if (r == CM_HTTP_WOKEN)
			return CM_E2B_STREAM_WOKEN;
		if (r < 0)
			return r;
	}
}

void cm_e2b_stream_finish(struct cm_e2b_stream *stream)
{
	const struct cm_call call = { .deadline_ms = cm_clock_mono_ms() + FINISH_MS,
				      .cancel_fd = -1 };
	bool is_cut;

	/* whatever is behind the last message: it is the envelope of the end, or does not matter */
	while (fetch(stream, NULL, &call, &is_cut, NULL) == CM_HTTP_DATA) {
	}
}

/* --- is it there? --------------------------------------------------------------------------------------- */

int cm_e2b_health(struct cm_e2b_session *s, const struct cm_call *call, enum cm_e2b_health *ret,
		  struct cm_error *err)
{
	/* where it could not be reached yet, nothing was asked of it */
	CM_AUTO_FREE char *url = cm_asprintf("%s/health", s->agent_url ? s->agent_url : "");
	struct cm_call own = *call;
	struct cm_e2b_headers headers;
	struct cm_http_request request = { .method = "GET", .url = url, .headers = headers.v };
	struct cm_http_answer answer;
	int64_t until = cm_clock_mono_ms() + HEALTH_MS;
	int r;

	if (!url)
		return cm_e2b_no_memory(err);
	if (!s->agent_url) {
		*ret = CM_E2B_SILENT;
		return CM_OK;
	}
	cm_e2b_headers_init(&headers, s, false);
	if (own.deadline_ms > until)
		own.deadline_ms = until;
	r = cm_http_send(cm_e2b_of(&s->base)->http, &request, &own, &answer, err);
	if (r == CM_E_CANCELLED || r == CM_E_NOMEM ||
	    (r == CM_E_TIMEOUT && cm_clock_mono_ms() >= call->deadline_ms))
		return r;
	if (r < 0) {
		*ret = CM_E2B_SILENT;
		cm_error_clear(err);
		return CM_OK;
	}
	*ret = answer.status == 502			     ? CM_E2B_GONE
	       : answer.status >= 200 && answer.status < 300 ? CM_E2B_ALIVE
							     : CM_E2B_SILENT;
	cm_http_answer_clear(&answer);
	return CM_OK;
}
