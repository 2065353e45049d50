/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of the workspace proxy: a request each, and what its answer means. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "providers/platform/command.h"
#include "providers/platform/platform_internal.h"
#include "providers/platform/template.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/json_copy.h"

#define URL_MAX 8192
/* a template's definition, and variables */
#define BODY_MAX (4UL * 1024 * 1024)
#define ATTEMPTS 3
#define BACKOFF_MS 2000

/* One request: everything but how it is sent. */
struct route {
	bool has_provider;
	/* whose it is; NULL: nobody's */
	const char *session_id;
	const char *method;
	/* below the project */
	const char *path;
	const struct cm_buf *body;
	bool is_idempotent;
	/* its answer comes when a command has ended */
	bool is_slow;
};

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a request to the workspace proxy");
}

static bool is_success(const struct cm_http_answer *answer)
{
	return answer->status >= 200 && answer->status < 300;
}

static bool is_gone(const struct cm_http_answer *answer)
{
	return answer->status == 404 || answer->status == 410;
}

static int send_route(struct cm_platform *p, const struct route *route, const struct cm_call *call,
		      struct cm_http_answer *ret, struct cm_error *err)
{
	CM_AUTO_FREE char *session = NULL;
	CM_AUTO_BUF struct cm_buf url = { 0 };
	const char *headers[4] = { p->authorization };
	size_t n = 1;
	struct cm_http_request request = {
		.method = route->method,
		.headers = headers,
		.is_idempotent = route->is_idempotent,
		.first_byte_ms = route->is_slow ? UINT32_MAX : 0,
	};
	int r;

	cm_buf_init(&url, URL_MAX);
	cm_platform_settings_url(&p->settings, route->has_provider, route->path, &url);
	if (cm_buf_status(&url) < 0)
		return no_memory(err);
	request.url = url.data;
	if (route->session_id) {
		session = cm_asprintf("x-mastra-session-id: %s", route->session_id);
		if (!session)
			return no_memory(err);
		headers[n++] = session;
	}
	if (route->body) {
		headers[n] = "content-type: application/json";
		request.body = route->body->data;
		request.body_len = route->body->len;
	}
	r = cm_http_send(p->http, &request, call, ret, err);
	if (r == CM_OK)
		p->clock_ahead_ms = ret->clock_ahead_ms;
	return r;
}

/* A service that repeats what it was sent is not to repeat the token to whoever reads messages. */
static bool has_secret(const struct cm_platform *p, const char *message)
{
	return message && strstr(message, p->settings.token) != NULL;
}

int cm_platform_refuse(struct cm_platform *p, const struct cm_http_answer *answer, const char *what,
		       struct cm_error *err)
{
	CM_AUTO_FREE char *message = cm_platform_error_text(answer->body.data, answer->body.len);
	struct cm_http_request request = { .method = "", .url = p->settings.url };
	int r = cm_http_error(&request, answer, what, has_secret(p, message) ? NULL : message, err);

	if (r == CM_E_DENIED)
		cm_error_hint(err, "check MASTRA_PLATFORM_ACCESS_TOKEN (or "
				   "MASTRA_PLATFORM_SECRET_KEY), MASTRA_PROJECT_ID and "
				   "MASTRA_ENVIRONMENT_ID");
	return r;
}

/* --- sandboxes ------------------------------------------------------------------------------- */

static int write_wish(const struct cm_platform *p, const struct cm_platform_wish *wish,
		      struct cm_buf *out, struct cm_error *err)
{
	struct cm_json_writer w;
	int r;

	cm_jw_init(&w, out, false);
	cm_jw_object(&w);
	cm_jw_kstring(&w, "id", wish->id);
	if (wish->seed)
		cm_jw_kstring(&w, "seedCheckpointName", wish->seed);
	if (wish->definition) {
		cm_jw_key(&w, "templateDefinition");
		cm_json_copy(&w, wish->definition);
	}
	cm_jw_kstring(&w, "environmentId", p->settings.environment);
	/* out to the world, and nobody else's private network */
	cm_jw_kstring(&w, "networkIsolation", "ISOLATED");
	cm_jw_key(&w, "env");
	cm_platform_env_write(&w, wish->env);
	cm_jw_end_object(&w);
	r = cm_buf_status(out);
	if (r == CM_E_LIMIT)
		return cm_error_set(err, r, 0, "the variables of a session are too long");
	return r < 0 ? no_memory(err) : CM_OK;
}

static int provision_once(struct cm_platform *p, const struct route *route,
			  const struct cm_call *call, struct cm_platform_sandbox *ret,
			  bool *ret_is_unsure, int *ret_status, struct cm_error *err)
{
	struct cm_http_answer answer = { 0 };
	int r;

	*ret_status = 0;
	r = send_route(p, route, call, &answer, err);
	*ret_is_unsure = answer.may_have_arrived;
	if (r < 0)
		return r;
	*ret_status = answer.status;
	if (is_success(&answer)) {
		r = cm_platform_sandbox_read(answer.body.data, answer.body.len, ret, err);
	} else {
		*ret_is_unsure = false;
		r = cm_platform_refuse(p, &answer, "make a sandbox", err);
	}
	cm_http_answer_clear(&answer);
	return r;
}

static int provision(struct cm_platform *p, const struct route *route, const struct cm_call *call,
		     struct cm_platform_sandbox *ret, bool *ret_is_unsure, struct cm_error *err)
{
	for (uint32_t attempt = 1;; attempt++) {
		struct cm_error why = CM_ERROR_INIT;
		int status = 0;
		int r = provision_once(p, route, call, ret, ret_is_unsure, &status, err);

		if (r == CM_OK || status < 500 || attempt == ATTEMPTS)
			return r;
		/* out of time: what the service said tells more than that */
		r = cm_call_sleep(call, BACKOFF_MS * attempt, &why);
		if (r == CM_E_TIMEOUT)
			return err ? err->code : CM_E_REMOTE;
		if (r < 0)
			return cm_error_set(err, r, why.sys_errno, "%s", why.msg);
	}
}

int cm_platform_provision(struct cm_platform *p, const struct cm_platform_wish *wish,
			  const struct cm_call *call, struct cm_platform_sandbox *ret,
			  bool *ret_is_unsure, struct cm_error *err)
{
	struct cm_buf body;
	struct route route = {
		.has_provider = p->settings.is_e2b || wish->definition != NULL,
		.session_id = wish->id,
		.method = "POST",
		.path = "/sandbox",
		.body = &body,
	};
	int r;

	*ret_is_unsure = false;
	cm_buf_init(&body, BODY_MAX);
	r = write_wish(p, wish, &body, err);
	if (r == CM_OK)
		r = provision(p, &route, call, ret, ret_is_unsure, err);
	/* variables may be secrets */
	if (body.data)
		explicit_bzero(body.data, body.len);
	cm_buf_clear(&body);
	return r;
}

int cm_platform_ask(struct cm_platform *p, const struct cm_platform_session *s, const char *method,
		    const char *route, const struct cm_buf *body, const struct cm_call *call,
		    struct cm_http_answer *ret, struct cm_error *err)
{
	struct cm_buf path;
	struct route asked = {
		.has_provider = cm_platform_has_provider(p, s),
		.session_id = s->base.id,
		.method = method,
		.body = body,
	};
	int r;

	/* a command is run once, and takes its time */
	asked.is_slow = strcmp(route, "/exec") == 0;
	asked.is_idempotent = !asked.is_slow;

	cm_buf_init(&path, URL_MAX);
	cm_buf_puts(&path, "/sandbox/");
	cm_http_escape(&path, s->sandbox.id);
	cm_buf_puts(&path, route);
	asked.path = path.data;
	r = cm_buf_status(&path) < 0 ? no_memory(err) : send_route(p, &asked, call, ret, err);
	cm_buf_clear(&path);
	return r;
}

int cm_platform_look(struct cm_platform *p, const struct cm_platform_session *s,
		     const struct cm_call *call, struct cm_platform_sandbox *ret,
		     struct cm_error *err)
{
	struct cm_platform_sandbox sandbox = { 0 };
	struct cm_http_answer answer = { 0 };
	int r = cm_platform_ask(p, s, "GET", "", NULL, call, &answer, err);

	if (r < 0)
		return r;
	r = is_success(&answer)
		    ? cm_platform_sandbox_read(answer.body.data, answer.body.len, &sandbox, err)
		    : cm_platform_refuse(p, &answer, "look at a sandbox", err);
	cm_http_answer_clear(&answer);
	if (r == CM_OK && sandbox.is_destroyed)
		r = cm_error_set(err, CM_E_NOT_FOUND, 0, "the sandbox of session '%s' is gone",
				 s->base.id);
	if (r == CM_OK)
		*ret = sandbox;
	else
		cm_platform_sandbox_clear(&sandbox);
	return r;
}

int cm_platform_delete(struct cm_platform *p, const struct cm_platform_session *s,
		       const struct cm_call *call, struct cm_error *err)
{
	struct cm_http_answer answer = { 0 };
	int r = cm_platform_ask(p, s, "DELETE", "", NULL, call, &answer, err);

	if (r < 0)
		return r;
	if (!is_success(&answer) && !is_gone(&answer))
		r = cm_platform_refuse(p, &answer, "remove a sandbox", err);
	cm_http_answer_clear(&answer);
	return r;
}

/* --- checkpoints ----------------------------------------------------------------------------- */

static int ask_checkpoint(struct cm_platform *p, const struct cm_platform_session *s,
			  const char *method, const struct cm_call *call,
			  struct cm_http_answer *ret, struct cm_error *err)
{
	struct cm_json_writer w;
	struct cm_buf body;
	int r;

	cm_buf_init(&body, BODY_MAX);
	cm_jw_init(&w, &body, false);
	cm_jw_object(&w);
	cm_jw_kstring(&w, "id", s->base.id);
	cm_jw_end_object(&w);
	r = cm_buf_status(&body) < 0
		    ? no_memory(err)
		    : cm_platform_ask(p, s, method, "/checkpoint", &body, call, ret, err);
	cm_buf_clear(&body);
	return r;
}

int cm_platform_capture(struct cm_platform *p, const struct cm_platform_session *s,
			const struct cm_call *call, struct cm_platform_checkpoint *ret,
			struct cm_error *err)
{
	struct cm_http_answer answer = { 0 };
	int r = ask_checkpoint(p, s, "POST", call, &answer, err);

	if (r < 0)
		return r;
	if (answer.status == 410)
		*ret = (struct cm_platform_checkpoint){ .status = CM_PLATFORM_SKIPPED };
	else if (is_success(&answer))
		r = cm_platform_checkpoint_read(answer.body.data, answer.body.len, ret, err);
	else
		r = cm_platform_refuse(p, &answer, "capture a checkpoint", err);
	cm_http_answer_clear(&answer);
	return r;
}

int cm_platform_forget(struct cm_platform *p, const struct cm_platform_session *s,
		       const struct cm_call *call, bool *ret_was_there, struct cm_error *err)
{
	struct cm_http_answer answer = { 0 };
	int r = ask_checkpoint(p, s, "DELETE", call, &answer, err);

	if (r < 0)
		return r;
	if (!is_success(&answer) && !is_gone(&answer))
		r = cm_platform_refuse(p, &answer, "remove a checkpoint", err);
	*ret_was_there = r == CM_OK && !is_gone(&answer);
	cm_http_answer_clear(&answer);
	return r;
}

/* --- builds ---------------------------------------------------------------------------------- */

int cm_platform_build(struct cm_platform *p, const struct cm_json *definition,
		      const struct cm_call *call, struct cm_platform_build *ret,
		      struct cm_error *err)
{
	struct cm_http_answer answer = { 0 };
	struct cm_json_writer w;
	struct cm_buf body;
	struct route route = {
		.has_provider = true,
		.method = "POST",
		.path = "/sandbox/templates/builds",
		.body = &body,
		.is_idempotent = true,
	};
	int r;

	cm_buf_init(&body, BODY_MAX);
	cm_jw_init(&w, &body, false);
	cm_jw_object(&w);
	cm_jw_kstring(&w, "environmentId", p->settings.environment);
	cm_jw_key(&w, "templateDefinition");
	cm_json_copy(&w, definition);
	cm_jw_end_object(&w);
	r = cm_buf_status(&body) < 0 ? no_memory(err) : send_route(p, &route, call, &answer, err);
	cm_buf_clear(&body);
	if (r < 0)
		return r;
	r = is_success(&answer)
		    ? cm_platform_build_read(answer.body.data, answer.body.len, ret, err)
		    : cm_platform_refuse(p, &answer, "build a template", err);
	cm_http_answer_clear(&answer);
	return r;
}
