/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: what is known of their sandboxes, and how long these live. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/e2b/e2b_internal.h"
#include "providers/e2b/texts.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define TOKEN_MAX 4096

static struct cm_e2b_session *session_of(struct cm_session *s)
{
	return (struct cm_e2b_session *)(void *)s;
}

int cm_e2b_session_new(struct cm_e2b *e, const char *id, struct cm_e2b_session **ret,
		       struct cm_error *err)
{
	struct cm_e2b_session *s = cm_calloc(1, sizeof(*s));

	if (!s)
		return cm_e2b_no_memory(err);
	s->base.provider = &e->base;
	s->refresh_ms = INT64_MAX;
	if (strlen(id) >= sizeof(s->base.id)) {
		free(s);
		(void)cm_error_set(err, CM_E_INVALID, 0, "a session's name is too long");
		return CM_E_INVALID;
	}
	(void)snprintf(s->base.id, sizeof(s->base.id), "%s", id);
	*ret = s;
	return CM_OK;
}

void cm_e2b_session_release(struct cm_session *session)
{
	struct cm_e2b_session *s = session_of(session);

	if (!s)
		return;
	free(s->sandbox_id);
	free(s->domain);
	free(s->agent_url);
	free(s->id_header);
	cm_free_secret(&s->token_header);
	free(s->workdir);
	cm_strv_clear(&s->env);
	free(s);
}

/* --- what the service says of a sandbox ------------------------------------------------------------- */

static int bad(const char *what, struct cm_error *err)
{
	return cm_error_set(err, CM_E_PROTOCOL, 0, "the service tells of a sandbox %s", what);
}

static int adopt_id(struct cm_e2b_session *s, const struct cm_json *sandbox, struct cm_error *err)
{
	const char *id = cm_json_str(sandbox, "sandboxID", "");
	/* an old form has the client's name behind it */
	CM_AUTO_FREE char *own = cm_asprintf("%.*s", (int)strcspn(id, "-"), id);

	if (!own)
		return cm_e2b_no_memory(err);
	if (!cm_e2b_is_sandbox_id(own))
		return bad("without a name that is one", err);
	free(s->sandbox_id);
	s->sandbox_id = cm_ptr_take(&own);
	return CM_OK;
}

static int adopt_token(struct cm_e2b_session *s, const struct cm_json *sandbox,
		       struct cm_error *err)
{
	const char *token = cm_json_str(sandbox, "envdAccessToken", NULL);

	cm_free_secret(&s->token_header);
	if (!token || token[0] == '\0')
		return CM_OK;
	for (size_t i = 0; token[i] != '\0'; i++) {
		if (token[i] <= ' ' || token[i] >= 0x7f || i >= TOKEN_MAX)
			return bad("with a token that is none", err);
	}
	s->token_header = cm_asprintf(CM_E2B_TOKEN_HEADER "%s", token);
	return s->token_header ? CM_OK : cm_e2b_no_memory(err);
}

int cm_e2b_session_adopt(struct cm_e2b_session *s, const struct cm_json *sandbox,
			 struct cm_error *err)
{
	const char *domain = cm_json_str(sandbox, "domain", NULL);
	CM_AUTO_FREE char *url = NULL;
	int r = adopt_id(s, sandbox, err);

	if (r == CM_OK)
		r = adopt_token(s, sandbox, err);
	if (r < 0)
		return r;
	if (domain && domain[0] == '\0')
		domain = NULL;
	if (domain && !cm_e2b_is_domain(domain))
		return bad("in a domain that is none", err);
	free(s->domain);
	free(s->id_header);
	s->domain = cm_strdup(domain);
	s->id_header = cm_asprintf("E2b-Sandbox-Id: %s", s->sandbox_id);
	url = cm_e2b_agent_url(&cm_e2b_of(&s->base)->places, s->domain, s->sandbox_id);
	/* last of all: where it is there, the rest is, too */
	free(s->agent_url);
	s->agent_url = NULL;
	if ((domain && !s->domain) || !url || !s->id_header)
		return cm_e2b_no_memory(err);
	s->takes_octets = cm_e2b_is_version(cm_json_str(sandbox, "envdVersion", ""), 0, 5, 7);
	r = cm_http_check_url(url, "the sandbox's address", err);
	if (r == CM_OK)
		s->agent_url = cm_ptr_take(&url);
	return r;
}

/* --- how long it lives -------------------------------------------------------------------------------- */

/* What a command line asked for just now goes before what the sandbox was made with. */
static void set_limits(struct cm_e2b_session *s, uint64_t idle_s, uint64_t lifetime_s)
{
	if (s->idle_s == 0)
		s->idle_s = idle_s;
	if (s->lifetime_s == 0)
		s->lifetime_s = lifetime_s;
}

int64_t cm_e2b_now_ms(const struct cm_e2b_session *s)
{
	return cm_clock_real_ms() + cm_e2b_of(&s->base)->clock_ahead_ms;
}

uint64_t cm_e2b_session_ttl(const struct cm_e2b_session *s, bool is_refresh)
{
	uint64_t ttl = s->idle_s > 0 ? s->idle_s : CM_E2B_USUAL_S;
	int64_t left_ms = s->lifetime_end_ms - cm_e2b_now_ms(s);

	if (s->lifetime_s > 0 && (s->idle_s == 0 || s->lifetime_s < ttl))
		ttl = s->lifetime_s;
	/* one whose time is over is paused, and lives a whole life again when it is resumed */
	if (s->lifetime_end_ms == 0 || (left_ms <= 0 && !is_refresh))
		return ttl;
	/* rounded down: asking must not make it live longer */
	if (left_ms < 2000)
		return 1;
	return (uint64_t)left_ms / 1000 < ttl ? (uint64_t)left_ms / 1000 : ttl;
}

void cm_e2b_session_set_refresh(struct cm_e2b_session *s, uint64_t ttl_s)
{
	/* a lifetime alone is not extended */
	s->refresh_ms = INT64_MAX;
	if (s->lifetime_s == 0 || s->idle_s > 0)
		s->refresh_ms = cm_clock_mono_ms() + (int64_t)(ttl_s * 1000 / 3);
}

static void write_connect(struct cm_json_writer *w, bool is_v1, const void *data)
{
	const uint64_t *ttl_s = data;

	(void)is_v1;
	cm_jw_kuint(w, "timeout", *ttl_s);
}

int cm_e2b_session_connect(struct cm_e2b_session *s, bool is_refresh, const struct cm_call *call,
			   bool *ret_was_running, struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_asprintf("/sandboxes/%s/connect", s->sandbox_id);
	/* it never shortens a time, and resumes once */
	const struct cm_e2b_query q = { .method = "POST",
					.path = path,
					.is_idempotent = true,
					.what = is_refresh ? "extend the session's time"
							   : "start the session" };
	uint64_t ttl_s = cm_e2b_session_ttl(s, is_refresh);
	struct cm_e2b_reply reply;
	bool was_running;
	int r;

	if (!path)
		return cm_e2b_no_memory(err);
	r = cm_e2b_demand_versions(cm_e2b_of(&s->base), &q, write_connect, &ttl_s, call, &reply,
				   NULL, err);
	if (r < 0)
		return r;
	was_running = reply.answer.status == 200;
	r = cm_e2b_session_adopt(s, reply.doc ? cm_json_root(reply.doc) : NULL, err);
	cm_e2b_reply_clear(&reply);
	if (r < 0)
		return r;
	if (!was_running && s->lifetime_s > 0)
		s->lifetime_end_ms = cm_e2b_now_ms(s) + (int64_t)s->lifetime_s * 1000;
	cm_e2b_session_set_refresh(s, ttl_s);
	if (ret_was_running)
		*ret_was_running = was_running;
	return CM_OK;
}

void cm_e2b_session_keep(struct cm_e2b_session *s, const struct cm_call *call)
{
	struct cm_call own = *call;
	int64_t now = cm_clock_mono_ms();

	if (now < s->refresh_ms)
		return;
	/* whoever waits for a command does not wait long for this */
	if (own.deadline_ms > now + CM_E2B_CLEANUP_MS)
		own.deadline_ms = now + CM_E2B_CLEANUP_MS;
	s->refresh_ms = now + 60000;
	(void)cm_e2b_session_connect(s, true, &own, NULL, NULL);
}

/* --- finding ---------------------------------------------------------------------------------------------- */

void cm_e2b_session_found(struct cm_e2b_session *s, struct cm_e2b_found *found)
{
	free(s->sandbox_id);
	s->sandbox_id = cm_ptr_take(&found->sandbox_id);
	set_limits(s, found->idle_s, found->lifetime_s);
	s->is_root = found->is_root;
	if (!s->workdir)
		s->workdir = cm_ptr_take(&found->workdir);
	if (found->is_running && found->started_ms > 0 && s->lifetime_s > 0)
		s->lifetime_end_ms = found->started_ms + (int64_t)s->lifetime_s * 1000;
}

static int detail(struct cm_e2b *e, const char *sandbox_id, const struct cm_call *call,
		  struct cm_e2b_reply *ret, struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_asprintf("/sandboxes/%s", sandbox_id);
	const struct cm_e2b_query q = {
		.method = "GET", .path = path, .is_idempotent = true, .what = "look at the session"
	};

	if (!path)
		return cm_e2b_no_memory(err);
	return cm_e2b_demand(e, &q, call, ret, err);
}

static int not_found(const char *id, struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_NOT_FOUND, 0, "no session '%s' at E2B", id);
	cm_error_hint(err, "'casemate ls' lists what is there");
	return CM_E_NOT_FOUND;
}

/* By the sandbox's own name: one that somebody else made, without a name of ours. */
static int attach_sandbox(struct cm_e2b_session *s, const char *id, const struct cm_call *call,
			  struct cm_error *err)
{
	struct cm_e2b_found found = { 0 };
	struct cm_e2b_reply reply;
	const char *name;
	int r;

	if (!cm_e2b_is_sandbox_id(id))
		return not_found(id, err);
	r = detail(cm_e2b_of(&s->base), id, call, &reply, err);
	if (r == CM_E_NOT_FOUND)
		return not_found(id, err);
	if (r < 0)
		return r;
	r = cm_e2b_session_adopt(s, reply.doc ? cm_json_root(reply.doc) : NULL, err);
	if (r == CM_OK && cm_e2b_found_read(cm_json_root(reply.doc), &found) < 0)
		r = cm_e2b_no_memory(err);
	if (r == CM_OK) {
		/* the one that was adopted: it is without the client's name */
		free(found.sandbox_id);
		found.sandbox_id = cm_ptr_take(&s->sandbox_id);
		cm_e2b_session_found(s, &found);
	}
	cm_e2b_found_clear(&found);
	name = reply.doc ? cm_e2b_metadata(cm_json_root(reply.doc), CM_E2B_KEY_ID) : NULL;
	if (r == CM_OK && name && strlen(name) < sizeof(s->base.id))
		(void)snprintf(s->base.id, sizeof(s->base.id), "%s", name);
	if (r == CM_OK)
		s->base.was_running = cm_e2b_is_state(cm_json_root(reply.doc), "running");
	cm_e2b_reply_clear(&reply);
	return r;
}

/* One that runs is extended when less than two thirds of its time are left. */
static void plan_refresh(struct cm_e2b_session *s, int64_t ends_ms)
{
	int64_t ttl_ms = (int64_t)cm_e2b_session_ttl(s, true) * 1000;
	int64_t left_ms = ends_ms > 0 ? ends_ms - cm_e2b_now_ms(s) : 0;

	/* a clock that is wrong without its owner's saying so must not keep us from asking in time */
	if (left_ms > ttl_ms)
		left_ms = ttl_ms;
	if (s->lifetime_s > 0 && s->idle_s == 0)
		return;
	s->refresh_ms = cm_clock_mono_ms();
	if (left_ms > ttl_ms / 3 * 2)
		s->refresh_ms += left_ms - ttl_ms / 3 * 2;
}

/* The list says enough; the token comes with the answer to a start, or is asked for when it is needed. */
static void attach_found(struct cm_e2b_session *s, struct cm_e2b_found *found)
{
	cm_e2b_session_found(s, found);
	if (found->is_running)
		plan_refresh(s, found->ends_ms);
	s->base.was_running = found->is_running;
}

int cm_e2b_session_reach(struct cm_e2b_session *s, const struct cm_call *call, struct cm_error *err)
{
	struct cm_e2b_reply reply;
	int r;

	if (s->agent_url)
		return CM_OK;
	r = detail(cm_e2b_of(&s->base), s->sandbox_id, call, &reply, err);
	if (r < 0)
		return r;
	r = cm_e2b_session_adopt(s, reply.doc ? cm_json_root(reply.doc) : NULL, err);
	cm_e2b_reply_clear(&reply);
	return r;
}

int cm_e2b_session_attach(struct cm_provider *p, const char *id, const struct cm_call *call,
			  struct cm_session **ret, struct cm_error *err)
{
	struct cm_e2b *e = (struct cm_e2b *)(void *)p;
	struct cm_e2b_found found = { 0 };
	struct cm_e2b_session *s = NULL;
	int r = cm_e2b_session_new(e, id, &s, err);

	if (r < 0)
		return r;
	r = cm_e2b_find(e, id, call, &found, err);
	if (r == CM_OK)
		attach_found(s, &found);
	else if (r == CM_E_NOT_FOUND)
		r = attach_sandbox(s, id, call, err);
	cm_e2b_found_clear(&found);
	if (r < 0) {
		cm_e2b_session_release(&s->base);
		return r;
	}
	*ret = &s->base;
	return CM_OK;
}

/* --- start, stop, destroy ------------------------------------------------------------------------------------ */

int cm_e2b_session_start(struct cm_session *session, const struct cm_call *call,
			 struct cm_error *err)
{
	return cm_e2b_session_connect(session_of(session), false, call, &session->was_running, err);
}

static bool is_paused(struct cm_e2b_session *s, const struct cm_call *call)
{
	struct cm_e2b_reply reply;
	bool is_it;

	if (detail(cm_e2b_of(&s->base), s->sandbox_id, call, &reply, NULL) < 0)
		return false;
	is_it = reply.doc && cm_e2b_is_state(cm_json_root(reply.doc), "paused");
	cm_e2b_reply_clear(&reply);
	return is_it;
}

int cm_e2b_session_stop(struct cm_session *session, const struct cm_call *call,
			struct cm_error *err)
{
	struct cm_e2b_session *s = session_of(session);
	CM_AUTO_FREE char *path = cm_asprintf("/sandboxes/%s/pause", s->sandbox_id);
	CM_AUTO_BUF struct cm_buf body = { .max = 16 };
	/* twice is once: the second is told that it is paused */
	const struct cm_e2b_query q = { .method = "POST",
					.path = path,
					.body = &body,
					.is_idempotent = true,
					.what = "stop the session" };
	struct cm_e2b_reply reply;
	int r;

	if (!path)
		return cm_e2b_no_memory(err);
	cm_buf_puts(&body, "{}");
	r = cm_e2b_ask(cm_e2b_of(session), &q, call, &reply, err);
	if (r < 0)
		return r;
	/* 409 is said of one that changes at the moment, too */
	if (!cm_e2b_reply_is_2xx(&reply) && !(cm_e2b_reply_says(&reply, 409) && is_paused(s, call)))
		r = cm_e2b_refused(cm_e2b_of(session), &reply, q.what, err);
	cm_e2b_reply_clear(&reply);
	if (r == CM_OK)
		s->lifetime_end_ms = 0;
	return r;
}

int cm_e2b_session_destroy(struct cm_session *session, const struct cm_call *call,
			   struct cm_error *err)
{
	return cm_e2b_delete(cm_e2b_of(session), session_of(session)->sandbox_id, call, err);
}

/* --- telling -------------------------------------------------------------------------------------------------- */

bool cm_e2b_is_our_key(const char *key)
{
	static const char *const ours[] = { CM_E2B_KEY_ID,	CM_E2B_KEY_MARK,
					    CM_E2B_KEY_IDLE,	CM_E2B_KEY_LIFETIME,
					    CM_E2B_KEY_USER,	CM_E2B_KEY_WORKDIR,
					    CM_E2B_KEY_TEMPLATE };

	for (size_t i = 0; i < CM_ARRAY_SIZE(ours); i++) {
		if (strcmp(key, ours[i]) == 0)
			return true;
	}
	return false;
}

static int fill_labels(const struct cm_json *sandbox, struct cm_strv *ret)
{
	const struct cm_json *metadata = cm_json_get(sandbox, "metadata");
	int r = CM_OK;

	if (!metadata || metadata->type != CM_JSON_OBJECT)
		return CM_OK;
	for (const struct cm_json *v = metadata->first_child; v && r == CM_OK; v = v->next) {
		if (v->type == CM_JSON_STRING && !cm_e2b_is_our_key(v->key))
			r = cm_strv_addf(ret, "%s=%s", v->key, v->u.string);
	}
	return r;
}

static uint64_t megabytes(const struct cm_json *sandbox, const char *key)
{
	int64_t n = cm_json_int(sandbox, key, 0);

	return n > 0 && n < INT64_C(1) << 32 ? (uint64_t)n << 20 : 0;
}

static int64_t time_ms(const struct cm_json *sandbox, const char *key)
{
	int64_t ns = 0;

	return cm_e2b_time(cm_json_str(sandbox, key, ""), &ns) ? ns / 1000000 : 0;
}

static int fill_info(const struct cm_json *sandbox, struct cm_session_info *ret,
		     struct cm_error *err)
{
	const char *sandbox_id = cm_json_str(sandbox, "sandboxID", "");
	const char *id = cm_e2b_metadata(sandbox, CM_E2B_KEY_ID);
	const char *of = cm_json_str(sandbox, "alias", cm_json_str(sandbox, "templateID", NULL));
	int64_t cpus = cm_json_int(sandbox, "cpuCount", 0);

	ret->state = cm_e2b_is_state(sandbox, "paused") ? CM_SESSION_STOPPED : CM_SESSION_RUNNING;
	ret->created_ms = time_ms(sandbox, "startedAt");
	if (ret->state == CM_SESSION_RUNNING)
		ret->expires_ms = time_ms(sandbox, "endAt");
	ret->memory_bytes = megabytes(sandbox, "memoryMB");
	ret->disk_bytes = megabytes(sandbox, "diskSizeMB");
	ret->cpus_milli = cpus > 0 && cpus < 100000 ? (uint32_t)cpus * 1000 : 0;
	ret->id = cm_strdup(id ? id : sandbox_id);
	ret->provider_id = cm_strdup(sandbox_id);
	ret->template_name = cm_strdup(of);
	if (!ret->id || !ret->provider_id || (of && !ret->template_name) ||
	    fill_labels(sandbox, &ret->labels) < 0) {
		cm_session_info_clear(ret);
		return cm_e2b_no_memory(err);
	}
	return CM_OK;
}

int cm_e2b_session_info(struct cm_session *session, const struct cm_call *call,
			struct cm_session_info *ret, struct cm_error *err)
{
	struct cm_e2b_session *s = session_of(session);
	struct cm_session_info info = { 0 };
	struct cm_e2b_reply reply;
	int r = detail(cm_e2b_of(session), s->sandbox_id, call, &reply, err);

	if (r < 0)
		return r;
	r = fill_info(reply.doc ? cm_json_root(reply.doc) : NULL, &info, err);
	info.network =
		reply.doc && cm_json_bool(cm_json_root(reply.doc), "allowInternetAccess", true)
			? CM_NETWORK_INTERNET
			: CM_NETWORK_NONE;
	cm_e2b_reply_clear(&reply);
	if (r < 0)
		return r;
	if (s->workdir) {
		info.workdir = cm_strdup(s->workdir);
		if (!info.workdir) {
			cm_session_info_clear(&info);
			return cm_e2b_no_memory(err);
		}
	}
	*ret = info;
	return CM_OK;
}

struct listing {
	int (*each)(void *data, const struct cm_session_info *info);
	void *data;
	struct cm_error *err;
};

static int tell_one(void *data, const struct cm_json *sandbox)
{
	const struct listing *l = data;
	struct cm_session_info info = { 0 };
	int r = fill_info(sandbox, &info, l->err);

	if (r < 0)
		return r;
	r = l->each(l->data, &info);
	cm_session_info_clear(&info);
	return r;
}

int cm_e2b_session_list(struct cm_provider *p, const struct cm_call *call,
			int (*each)(void *data, const struct cm_session_info *info), void *data,
			struct cm_error *err)
{
	struct listing l = { .each = each, .data = data, .err = err };

	return cm_e2b_each_sandbox((struct cm_e2b *)(void *)p, NULL, NULL, call, tell_one, &l, err);
}
