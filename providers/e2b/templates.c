/* SPDX-License-Identifier: Apache-2.0 */
/* Templates: built from another one, or from an image, by shell commands. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/e2b/e2b_internal.h"
#include "providers/e2b/texts.h"
#include "runtime/base/fd.h"

#define USUAL_BASE "base"
#define NAME_MAX_BYTES 256U
#define BODY_MAX (1024UL * 1024)
#define POLL_FIRST_MS 1000
#define POLL_MAX_MS 5000

struct build {
	struct cm_e2b *e;
	const struct cm_template_request *request;
	char *template_id;
	char *build_id;
	/* of the log's entries, so many were told */
	uint64_t n_told;
};

/* It is escaped wherever it is sent. */
static bool is_name(const char *text)
{
	size_t len = strlen(text);

	return len > 0 && len <= NAME_MAX_BYTES && cm_e2b_is_text(text);
}

/* --- aliases --------------------------------------------------------------------------------------- */

static char *path_of(const char *before, const char *name)
{
	CM_AUTO_BUF struct cm_buf path = { .max = 4096 };

	cm_buf_puts(&path, before);
	cm_http_escape(&path, name);
	return cm_buf_take(&path);
}

/* BEFORE/TEMPLATE/builds/BUILD */
static char *path_of_build(const struct build *b, const char *before)
{
	CM_AUTO_BUF struct cm_buf path = { .max = 8192 };

	cm_buf_puts(&path, before);
	cm_http_escape(&path, b->template_id);
	cm_buf_puts(&path, "/builds/");
	cm_http_escape(&path, b->build_id);
	return cm_buf_take(&path);
}

int cm_e2b_template_look_up(struct cm_e2b *e, const char *name, const struct cm_call *call,
			    char **ret, bool *ret_is_there, struct cm_error *err)
{
	CM_AUTO_FREE char *path = path_of("/templates/aliases/", name);
	const struct cm_e2b_query q = {
		.method = "GET", .path = path, .is_idempotent = true, .what = "look up a template"
	};
	struct cm_e2b_reply reply;
	const char *id;
	int r = path ? cm_e2b_ask(e, &q, call, &reply, err) : cm_e2b_no_memory(err);

	if (r < 0)
		return r;
	*ret = NULL;
	*ret_is_there = false;
	if (cm_e2b_reply_is_2xx(&reply)) {
		id = reply.doc ? cm_json_str(cm_json_root(reply.doc), "templateID", "") : "";
		*ret = is_name(id) ? cm_strdup(id) : NULL;
		*ret_is_there = true;
		if (!*ret)
			r = cm_error_set(err, CM_E_PROTOCOL, 0,
					 "cannot %s: the service gives no name of its own", q.what);
	} else if (cm_e2b_reply_says(&reply, 403)) {
		*ret_is_there = true;
	} else if (!cm_e2b_reply_says(&reply, 404)) {
		r = cm_e2b_refused(e, &reply, q.what, err);
	}
	cm_e2b_reply_clear(&reply);
	return r;
}

/* --- building ----------------------------------------------------------------------------------------- */

static int take_ids(struct build *b, const struct cm_json *v, struct cm_error *err)
{
	const char *template_id = cm_json_str(v, "templateID", "");
	const char *build_id = cm_json_str(v, "buildID", "");

	if (!is_name(template_id) || !is_name(build_id))
		return cm_error_set(err, CM_E_PROTOCOL, 0,
				    "cannot build a template: the service does not name the build");
	b->template_id = cm_strdup(template_id);
	b->build_id = cm_strdup(build_id);
	return b->template_id && b->build_id ? CM_OK : cm_e2b_no_memory(err);
}

static int announce(struct build *b, const struct cm_call *call, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf body = { .max = BODY_MAX };
	const struct cm_e2b_query q = {
		.method = "POST", .path = "/v3/templates", .body = &body, .what = "build a template"
	};
	struct cm_e2b_reply reply;
	struct cm_json_writer w;
	int r;

	cm_jw_init(&w, &body, false);
	cm_jw_object(&w);
	cm_jw_kstring(&w, "name", b->request->name);
	if (b->request->cpus > 0)
		cm_jw_kuint(&w, "cpuCount", b->request->cpus);
	if (b->request->memory_bytes > 0)
		cm_jw_kuint(&w, "memoryMB", (b->request->memory_bytes + (1U << 20) - 1) >> 20);
	cm_jw_end_object(&w);
	r = cm_e2b_demand(b->e, &q, call, &reply, err);
	if (r < 0)
		return r;
	r = take_ids(b, reply.doc ? cm_json_root(reply.doc) : NULL, err);
	cm_e2b_reply_clear(&reply);
	return r;
}

static void write_steps(struct cm_json_writer *w, const struct cm_strv *commands)
{
	cm_jw_key(w, "steps");
	cm_jw_array(w);
	for (size_t i = 0; commands && i < commands->n; i++) {
		cm_jw_object(w);
		cm_jw_kstring(w, "type", "RUN");
		cm_jw_key(w, "args");
		cm_jw_array(w);
		cm_jw_string(w, commands->v[i]);
		cm_jw_end_array(w);
		cm_jw_kbool(w, "force", false);
		cm_jw_end_object(w);
	}
	cm_jw_end_array(w);
}

/* What a template's name cannot have is an image's; of the rest, what is no template is one. */
static int is_image(struct cm_e2b *e, const char *base, const struct cm_call *call, bool *ret,
		    struct cm_error *err)
{
	CM_AUTO_FREE char *id = NULL;
	bool is_there = false;
	int r;

	*ret = strpbrk(base, "/:@") != NULL;
	if (*ret || strcmp(base, USUAL_BASE) == 0)
		return CM_OK;
	r = cm_e2b_template_look_up(e, base, call, &id, &is_there, err);
	*ret = !is_there;
	return r;
}

static int start(struct build *b, const struct cm_call *call, struct cm_error *err)
{
	const char *base = b->request->base ? b->request->base : USUAL_BASE;
	CM_AUTO_FREE char *path = path_of_build(b, "/v2/templates/");
	CM_AUTO_BUF struct cm_buf body = { .max = BODY_MAX };
	const struct cm_e2b_query q = {
		.method = "POST", .path = path, .body = &body, .what = "build a template"
	};
	struct cm_e2b_reply reply;
	struct cm_json_writer w;
	bool of_image = false;
	int r = path ? is_image(b->e, base, call, &of_image, err) : cm_e2b_no_memory(err);

	if (r < 0)
		return r;
	cm_jw_init(&w, &body, false);
	cm_jw_object(&w);
	cm_jw_kstring(&w, of_image ? "fromImage" : "fromTemplate", base);
	write_steps(&w, b->request->commands);
	cm_jw_kbool(&w, "force", false);
	cm_jw_end_object(&w);
	r = cm_e2b_demand(b->e, &q, call, &reply, err);
	if (r == CM_OK)
		cm_e2b_reply_clear(&reply);
	return r;
}

/* How many entries there were. */
static size_t tell_log(struct build *b, const struct cm_json *entries)
{
	size_t n = 0;

	for (const struct cm_json *v = entries ? entries->first_child : NULL; v; v = v->next, n++) {
		if (b->request->log)
			b->request->log(b->request->data, cm_json_str(v, "message", ""));
	}
	b->n_told += n;
	return n;
}

static int failed(const struct build *b, const struct cm_json *v, struct cm_error *err)
{
	const struct cm_json *reason = cm_json_get(v, "reason");
	const char *step = cm_json_str(reason, "step", NULL);

	(void)cm_error_set(err, CM_E_SETUP, 0, "the build of template '%s' failed%s%.40s: %.300s",
			   b->request->name, step ? " in step " : "", step ? step : "",
			   cm_json_str(reason, "message", "the service does not say why"));
	cm_error_hint(err, "its log says more; correct the command, and build it again");
	return CM_E_SETUP;
}

/* One look: *ret_is_over, once it is ready and all of the log was told. *ret_has_news: it goes on. */
static int look(struct build *b, const struct cm_call *call, bool *ret_is_over, bool *ret_has_news,
		struct cm_error *err)
{
	CM_AUTO_FREE char *build_path = path_of_build(b, "/templates/");
	CM_AUTO_FREE char *path =
		build_path ? cm_asprintf("%s/status?logsOffset=%" PRIu64, build_path, b->n_told)
			   : NULL;
	const struct cm_e2b_query q = { .method = "GET",
					.path = path,
					.is_idempotent = true,
					.what = "follow the build of a template" };
	struct cm_e2b_reply reply;
	const struct cm_json *v;
	const char *status;
	int r = path ? cm_e2b_demand(b->e, &q, call, &reply, err) : cm_e2b_no_memory(err);

	if (r < 0)
		return r;
	v = reply.doc ? cm_json_root(reply.doc) : NULL;
	status = cm_json_str(v, "status", "");
	*ret_has_news = tell_log(b, cm_json_get(v, "logEntries")) > 0;
	if (strcmp(status, "error") == 0 && !*ret_has_news)
		r = failed(b, v, err);
	else if (strcmp(status, "ready") == 0)
		*ret_is_over = !*ret_has_news;
	cm_e2b_reply_clear(&reply);
	return r;
}

static int follow(struct build *b, const struct cm_call *call, struct cm_error *err)
{
	int64_t wait_ms = POLL_FIRST_MS;
	bool is_over = false;
	bool has_news = false;
	int r = CM_OK;

	while (r == CM_OK && !is_over) {
		r = look(b, call, &is_over, &has_news, err);
		if (r < 0 || is_over)
			break;
		/* what has more to say is asked sooner */
		wait_ms = has_news ? POLL_FIRST_MS : wait_ms + wait_ms / 2;
		if (wait_ms > POLL_MAX_MS)
			wait_ms = POLL_MAX_MS;
		r = cm_call_sleep(call, has_news ? POLL_FIRST_MS / 4 : wait_ms, err);
	}
	return r;
}

static int check_request(const struct cm_template_request *request, struct cm_error *err)
{
	bool is_good = cm_e2b_is_text(request->name) && request->name[0] != '\0' &&
		       (!request->base || cm_e2b_is_text(request->base));

	for (size_t i = 0; request->commands && i < request->commands->n; i++)
		is_good = is_good && cm_e2b_is_text(request->commands->v[i]);
	return is_good ? CM_OK
		       : cm_error_set(err, CM_E_INVALID, 0,
				      "a template's name, base and commands are UTF-8 text");
}

int cm_e2b_template_build(struct cm_provider *p, const struct cm_template_request *request,
			  const struct cm_call *call, char **ret, struct cm_error *err)
{
	struct build b = { .e = (struct cm_e2b *)(void *)p, .request = request };
	char *name = NULL;
	int r = check_request(request, err);

	if (r == CM_OK)
		r = announce(&b, call, err);
	if (r == CM_OK)
		r = start(&b, call, err);
	if (r == CM_OK) {
		r = follow(&b, call, err);
		if (r == CM_E_CANCELLED || r == CM_E_TIMEOUT || r == CM_E_REMOTE)
			cm_provider_note(&b.e->base,
					 "the build of template '%s' goes on without us",
					 request->name);
	}
	if (r == CM_OK) {
		name = cm_strdup(request->name);
		if (!name)
			r = cm_e2b_no_memory(err);
	}
	free(b.template_id);
	free(b.build_id);
	if (r == CM_OK)
		*ret = name;
	return r;
}

/* --- list, remove ----------------------------------------------------------------------------------------- */

static const char *name_of(const struct cm_json *v)
{
	const struct cm_json *names = cm_json_get(v, "names");

	if (!names || names->type != CM_JSON_ARRAY || names->n_children == 0)
		names = cm_json_get(v, "aliases");
	if (names && names->type == CM_JSON_ARRAY && names->first_child &&
	    names->first_child->type == CM_JSON_STRING)
		return names->first_child->u.string;
	return cm_json_str(v, "templateID", NULL);
}

int cm_e2b_template_list(struct cm_provider *p, const struct cm_call *call,
			 int (*each)(void *data, const char *name, const char *state), void *data,
			 struct cm_error *err)
{
	const struct cm_e2b_query q = { .method = "GET",
					.path = "/templates",
					.is_idempotent = true,
					.what = "list templates" };
	struct cm_e2b_reply reply;
	const struct cm_json *v;
	int r = cm_e2b_demand((struct cm_e2b *)(void *)p, &q, call, &reply, err);

	if (r < 0)
		return r;
	v = reply.doc ? cm_json_root(reply.doc) : NULL;
	if (!v || v->type != CM_JSON_ARRAY) {
		cm_e2b_reply_clear(&reply);
		return cm_error_set(err, CM_E_PROTOCOL, 0,
				    "cannot list templates: the service's answer is no list");
	}
	for (v = v->first_child; v && r == 0; v = v->next) {
		const char *name = name_of(v);

		if (name)
			r = each(data, name, cm_json_str(v, "buildStatus", "ready"));
	}
	cm_e2b_reply_clear(&reply);
	return r;
}

int cm_e2b_template_remove(struct cm_provider *p, const char *name, const struct cm_call *call,
			   struct cm_error *err)
{
	struct cm_e2b *e = (struct cm_e2b *)(void *)p;
	CM_AUTO_FREE char *id = NULL;
	CM_AUTO_FREE char *path = NULL;
	struct cm_e2b_query q = { .method = "DELETE",
				  .is_idempotent = true,
				  .what = "remove a template" };
	struct cm_e2b_reply reply;
	bool is_there = false;
	int r = cm_e2b_template_look_up(e, name, call, &id, &is_there, err);

	if (r < 0)
		return r;
	/* a snapshot's name, "NAME:TAG", is no alias */
	path = path_of("/templates/", id ? id : name);
	if (!path)
		return cm_e2b_no_memory(err);
	q.path = path;
	r = cm_e2b_demand(e, &q, call, &reply, err);
	if (r == CM_OK)
		cm_e2b_reply_clear(&reply);
	return r;
}
