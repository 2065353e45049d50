/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the API: JSON there and back, its errors, its pages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/e2b/e2b_internal.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

#define BODY_MAX (1024UL * 1024)
#define PAGES_MAX 1000
/* of all pages: who shows them keeps what they say */
#define LIST_MAX (16UL * 1024 * 1024)
#define PAGE_TOKEN_MAX 2048

void cm_e2b_reply_clear(struct cm_e2b_reply *reply)
{
	cm_http_answer_clear(&reply->answer);
	cm_json_free(reply->doc);
	free(reply->url);
	*reply = (struct cm_e2b_reply){ 0 };
}

/* What a 2xx has is JSON, or nothing; of what else comes, what is no JSON is not looked at. */
static int read_body(struct cm_e2b_reply *reply, const char *what, struct cm_error *err)
{
	const struct cm_buf *body = &reply->answer.body;
	int r;

	if (body->len == 0)
		return CM_OK;
	r = cm_json_parse(body->data, body->len, "answer", 0, &reply->doc, NULL);
	if (r == CM_E_NOMEM)
		return cm_e2b_no_memory(err);
	if (r == CM_OK || !cm_e2b_reply_is_2xx(reply))
		return CM_OK;
	/* the reader's own words may show what it has read, a token among it */
	return cm_error_set(err, CM_E_PROTOCOL, 0, "cannot %s: the service's answer is %s", what,
			    r == CM_E_LIMIT ? "too large" : "no JSON");
}

int cm_e2b_ask(struct cm_e2b *e, const struct cm_e2b_query *q, const struct cm_call *call,
	       struct cm_e2b_reply *ret, struct cm_error *err)
{
	const char *headers[] = { e->key_header, "Accept: application/json",
				  q->body ? "Content-Type: application/json" : NULL, NULL };
	struct cm_http_request request = {
		.method = q->method,
		.headers = headers,
		.body = q->body ? q->body->data : NULL,
		.body_len = q->body ? q->body->len : 0,
		.is_idempotent = q->is_idempotent,
		.max_bytes = BODY_MAX,
	};
	int r = q->body ? cm_buf_status(q->body) : CM_OK;
	bool may_have_arrived;

	*ret = (struct cm_e2b_reply){ .method = q->method };
	if (r < 0)
		return cm_error_set(err, r, 0, "cannot %s: the request is too large", q->what);
	ret->url = cm_asprintf("%s%s", e->places.api_url, q->path);
	if (!ret->url)
		return cm_e2b_no_memory(err);
	request.url = ret->url;
	r = cm_http_send(e->http, &request, call, &ret->answer, err);
	if (r < 0) {
		(void)cm_error_wrap(err, "cannot %s", q->what);
	} else {
		e->clock_ahead_ms = ret->answer.clock_ahead_ms;
		r = read_body(ret, q->what, err);
	}
	if (r < 0) {
		may_have_arrived = ret->answer.may_have_arrived;
		cm_e2b_reply_clear(ret);
		ret->answer.may_have_arrived = may_have_arrived;
	}
	return r;
}

bool cm_e2b_reply_says(const struct cm_e2b_reply *reply, int status)
{
	return reply->answer.status == status && reply->doc &&
	       cm_json_int(cm_json_root(reply->doc), "code", 0) == status;
}

int cm_e2b_refused(const struct cm_e2b *e, const struct cm_e2b_reply *reply, const char *what,
		   struct cm_error *err)
{
	const struct cm_http_request request = { .method = reply->method, .url = reply->url };
	const char *key = e->key_header + strlen("X-API-Key: ");
	const char *message =
		reply->doc ? cm_json_str(cm_json_root(reply->doc), "message", NULL) : NULL;
	int r;

	/* a service that repeats what it was sent is not repeated */
	if (message && strstr(message, key))
		message = NULL;
	r = cm_http_error(&request, &reply->answer, what, message, err);
	if (reply->answer.status == 401)
		cm_error_hint(err, "check E2B_API_KEY: the service does not know the key");
	return r;
}

int cm_e2b_demand(struct cm_e2b *e, const struct cm_e2b_query *q, const struct cm_call *call,
		  struct cm_e2b_reply *ret, struct cm_error *err)
{
	int r = cm_e2b_ask(e, q, call, ret, err);

	if (r < 0 || cm_e2b_reply_is_2xx(ret))
		return r;
	r = cm_e2b_refused(e, ret, q->what, err);
	cm_e2b_reply_clear(ret);
	return r;
}

/* No such route: an error of the service about what was asked for has a code of its own. */
static bool is_no_route(const struct cm_e2b_reply *reply)
{
	return (reply->answer.status == 404 || reply->answer.status == 405) &&
	       !cm_e2b_reply_says(reply, reply->answer.status);
}

/* One version. *ret_is_absent: there is no such route. */
static int try_version(struct cm_e2b *e, const struct cm_e2b_query *q, bool is_v1,
		       void (*write)(struct cm_json_writer *w, bool is_v1, const void *data),
		       const void *data, const struct cm_call *call, struct cm_e2b_reply *ret,
		       bool *ret_is_absent, bool *ret_arrived, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf body = { 0 };
	CM_AUTO_FREE char *path = cm_asprintf("%s%s", is_v1 ? "" : "/v2", q->path);
	struct cm_e2b_query query = *q;
	struct cm_json_writer w;
	int r;

	*ret_is_absent = *ret_arrived = false;
	if (!path)
		return cm_e2b_no_memory(err);
	cm_buf_init(&body, BODY_MAX);
	cm_jw_init(&w, &body, false);
	cm_jw_object(&w);
	write(&w, is_v1, data);
	cm_jw_end_object(&w);
	query.path = path;
	query.body = &body;
	r = cm_e2b_ask(e, &query, call, ret, err);
	if (r < 0) {
		*ret_arrived = ret->answer.may_have_arrived;
		return r;
	}
	if (cm_e2b_reply_is_2xx(ret))
		return CM_OK;
	*ret_is_absent = is_no_route(ret);
	*ret_arrived = ret->answer.status >= 500;
	r = cm_e2b_refused(e, ret, q->what, err);
	cm_e2b_reply_clear(ret);
	return r;
}

int cm_e2b_demand_versions(struct cm_e2b *e, const struct cm_e2b_query *q,
			   void (*write)(struct cm_json_writer *w, bool is_v1, const void *data),
			   const void *data, const struct cm_call *call, struct cm_e2b_reply *ret,
			   bool *ret_arrived, struct cm_error *err)
{
	bool is_absent = false;
	bool arrived = false;
	int r = try_version(e, q, e->is_v1, write, data, call, ret, &is_absent, &arrived, err);

	if (r < 0 && is_absent && !e->is_v1) {
		cm_error_clear(err);
		r = try_version(e, q, true, write, data, call, ret, &is_absent, &arrived, err);
		/* neither: then what is there is no such service, and says nothing about versions */
		e->is_v1 = !is_absent;
	}
	if (ret_arrived)
		*ret_arrived = r < 0 && arrived;
	return r;
}

/* --- lists -------------------------------------------------------------------------------------- */

static void escape_times(struct cm_buf *out, const char *text, unsigned int times)
{
	CM_AUTO_BUF struct cm_buf once = { 0 };

	if (times == 1) {
		cm_http_escape(out, text);
		return;
	}
	cm_buf_init(&once, BODY_MAX);
	cm_http_escape(&once, text);
	if (cm_buf_status(&once) == CM_OK)
		escape_times(out, once.data ? once.data : "", times - 1);
	else
		out->has_failed = true;
}

void cm_e2b_metadata_query(struct cm_buf *out, const char *key, const char *value)
{
	/* each part; then the form that they make, of which '=' is a part of no other; then the query */
	escape_times(out, key, 3);
	cm_buf_puts(out, "%3D");
	escape_times(out, value, 3);
}

const char *cm_e2b_metadata(const struct cm_json *sandbox, const char *key)
{
	return cm_json_str(cm_json_get(sandbox, "metadata"), key, NULL);
}

static int each_of_page(const struct cm_e2b_reply *reply,
			int (*each)(void *data, const struct cm_json *sandbox), void *data,
			struct cm_error *err)
{
	const struct cm_json *root = reply->doc ? cm_json_root(reply->doc) : NULL;
	int r = 0;

	if (!root || root->type != CM_JSON_ARRAY)
		return cm_error_set(err, CM_E_PROTOCOL, 0,
				    "cannot list sandboxes: the service's answer is no list");
	for (const struct cm_json *v = root->first_child; v && r == 0; v = v->next) {
		if (v->type == CM_JSON_OBJECT &&
		    cm_e2b_is_sandbox_id(cm_json_str(v, "sandboxID", "")))
			r = each(data, v);
	}
	return r;
}

/* The next page, by its token; false: there is none. */
static bool next_page(const struct cm_e2b_reply *reply, char **token, struct cm_error *err, int *r)
{
	const char *next = cm_http_header(&reply->answer, "x-next-token");

	*r = CM_OK;
	if (!next || next[0] == '\0')
		return false;
	if (strlen(next) > PAGE_TOKEN_MAX || (*token && strcmp(*token, next) == 0)) {
		*r = cm_error_set(err, CM_E_PROTOCOL, 0,
				  "cannot list sandboxes: the service's pages do not end");
		return false;
	}
	free(*token);
	*token = cm_strdup(next);
	if (!*token)
		*r = cm_e2b_no_memory(err);
	return *token != NULL;
}

int cm_e2b_each_sandbox(struct cm_e2b *e, const char *key, const char *value,
			const struct cm_call *call,
			int (*each)(void *data, const struct cm_json *sandbox), void *data,
			struct cm_error *err)
{
	CM_AUTO_FREE char *token = NULL;
	bool has_next = true;
	size_t total = 0;
	int r = CM_OK;

	for (int page = 0; has_next && r == CM_OK; page++) {
		CM_AUTO_BUF struct cm_buf path = { 0 };
		struct cm_e2b_reply reply;
		struct cm_e2b_query q = { .method = "GET",
					  .is_idempotent = true,
					  .what = "list sandboxes" };

		if (page == PAGES_MAX)
			return cm_error_set(err, CM_E_LIMIT, 0, "more than %d pages of sandboxes",
					    PAGES_MAX);
		cm_buf_init(&path, 64UL * 1024);
		cm_buf_puts(&path, "/v2/sandboxes?state=running,paused&limit=100");
		if (key) {
			cm_buf_puts(&path, "&metadata=");
			cm_e2b_metadata_query(&path, key, value);
		}
		if (token) {
			cm_buf_puts(&path, "&nextToken=");
			cm_http_escape(&path, token);
		}
		if (cm_buf_status(&path) < 0)
			return cm_error_set(err, cm_buf_status(&path), 0,
					    "the list's address is too long");
		q.path = path.data;
		r = cm_e2b_demand(e, &q, call, &reply, err);
		if (r < 0)
			return r;
		total += reply.answer.body.len;
		r = total > LIST_MAX
			    ? cm_error_set(err, CM_E_LIMIT, 0, "the list of sandboxes is too large")
			    : each_of_page(&reply, each, data, err);
		if (r == CM_OK)
			has_next = next_page(&reply, &token, err, &r);
		cm_e2b_reply_clear(&reply);
	}
	return r;
}
