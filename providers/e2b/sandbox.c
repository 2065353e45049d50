/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandboxes: made, or found by the name that their metadata has.
 *
 * Each request to make one has a mark of its own in the metadata. When its answer is lost, the mark is
 * what tells the sandbox that this request made from one that somebody else's made at the same time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/e2b/e2b_internal.h"
#include "providers/e2b/texts.h"
#include "providers/remote/record.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/spec/keys.h"

#define USUAL_TEMPLATE "base"
#define UNDO_TRIES 5
#define UNDO_FIRST_MS 200

/* What is to be made. */
struct making {
	const char *template_id;
	const char *id;
	const char *mark;
	uint64_t ttl_s;
	const struct cm_e2b_session *session;
	const struct cm_strv *labels;
	/* 0: as the service has it */
	enum cm_network network;
};

/*
 * What is no public address: those of E2B's own network and of its metadata service are among them.
 *
 * IPv4 alone: the service refuses a sandbox whose list has an IPv6 range ("invalid denied CIDR"), and keeps
 * sandboxes off the private ones of IPv6 by itself. Its sets have the address behind a range's last
 * one as its end, and none that is 0.0.0.0: so what would be 240.0.0.0/4 stops before 255.0.0.0, and
 * 0.0.0.0/8, which is routed nowhere, is left out.
 */
static const char *const private_ranges[] = {
	"10.0.0.0/8",  "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10",
	"127.0.0.0/8", "192.0.0.0/24",	"198.18.0.0/15",  "224.0.0.0/4",    "240.0.0.0/5",
	"248.0.0.0/6", "252.0.0.0/7",	"254.0.0.0/8",
};

static void write_denied(struct cm_json_writer *w)
{
	cm_jw_key(w, "denyOut");
	cm_jw_array(w);
	for (size_t i = 0; i < CM_ARRAY_SIZE(private_ranges); i++)
		cm_jw_string(w, private_ranges[i]);
	cm_jw_end_array(w);
}

static void write_number(struct cm_json_writer *w, const char *key, uint64_t n)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	if (n != 0)
		cm_jw_kstring(w, key, text);
}

static void write_metadata(struct cm_json_writer *w, const struct making *m)
{
	cm_jw_key(w, "metadata");
	cm_jw_object(w);
	for (size_t i = 0; m->labels && i < m->labels->n; i++) {
		const char *label = m->labels->v[i];
		CM_AUTO_FREE char *key = cm_asprintf("%.*s", (int)strcspn(label, "="), label);

		if (!key || label[strlen(key)] != '=') {
			w->out->has_failed = w->out->has_failed || !key;
			continue;
		}
		cm_jw_kstring(w, key, label + strlen(key) + 1);
	}
	cm_jw_kstring(w, CM_E2B_KEY_ID, m->id);
	cm_jw_kstring(w, CM_E2B_KEY_MARK, m->mark);
	write_number(w, CM_E2B_KEY_IDLE, m->session->idle_s);
	write_number(w, CM_E2B_KEY_LIFETIME, m->session->lifetime_s);
	if (m->session->is_root)
		cm_jw_kstring(w, CM_E2B_KEY_USER, "root");
	if (m->session->workdir)
		cm_jw_kstring(w, CM_E2B_KEY_WORKDIR, m->session->workdir);
	cm_jw_kstring(w, CM_E2B_KEY_TEMPLATE, m->template_id);
	cm_jw_end_object(w);
}

static void write_new(struct cm_json_writer *w, bool is_v1, const void *data)
{
	const struct making *m = data;

	cm_jw_kstring(w, "templateID", m->template_id);
	cm_jw_kuint(w, "timeout", m->ttl_s);
	/* a session keeps its files when its time is over; a temporary one ends with them */
	cm_jw_kbool(w, "autoPause", !m->session->is_temporary);
	/* the agent wants a token; the other version always does */
	if (is_v1)
		cm_jw_kbool(w, "secure", true);
	write_metadata(w, m);
	if (m->session->env.n > 0) {
		cm_jw_key(w, "envVars");
		cm_e2b_write_env(w, &m->session->env, NULL);
	}
	if (m->network == CM_NETWORK_NONE)
		cm_jw_kbool(w, "allow_internet_access", false);
	if (m->network == CM_NETWORK_INTERNET) {
		cm_jw_key(w, "network");
		cm_jw_object(w);
		write_denied(w);
		cm_jw_end_object(w);
	}
}

/* --- what a failure may have left --------------------------------------------------------------- */

int cm_e2b_delete(struct cm_e2b *e, const char *sandbox_id, const struct cm_call *call,
		  struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_asprintf("/sandboxes/%s", sandbox_id);
	struct cm_e2b_query q = { .method = "DELETE",
				  .path = path,
				  .is_idempotent = true,
				  .what = "destroy the sandbox" };
	struct cm_e2b_reply reply;
	int r;

	if (!path)
		return cm_e2b_no_memory(err);
	r = cm_e2b_ask(e, &q, call, &reply, err);
	if (r < 0)
		return r;
	if (!cm_e2b_reply_is_2xx(&reply) && !cm_e2b_reply_says(&reply, 404))
		r = cm_e2b_refused(e, &reply, q.what, err);
	cm_e2b_reply_clear(&reply);
	return r;
}

struct marked {
	struct cm_strv ids;
	const char *mark;
};

static int collect_marked(void *data, const struct cm_json *sandbox)
{
	struct marked *m = data;
	const char *mark = cm_e2b_metadata(sandbox, CM_E2B_KEY_MARK);

	/* a service that does not filter must not cost anybody a sandbox */
	if (!mark || strcmp(mark, m->mark) != 0)
		return 0;
	return cm_strv_add(&m->ids, cm_json_str(sandbox, "sandboxID", ""));
}

/* Deletes what has the mark. How many there were, or the code of what failed. */
static int delete_marked(struct cm_e2b *e, const char *mark, const struct cm_call *call,
			 struct cm_error *err)
{
	struct marked m = { .mark = mark };
	int n;
	int r = cm_e2b_each_sandbox(e, CM_E2B_KEY_MARK, mark, call, collect_marked, &m, err);

	for (size_t i = 0; i < m.ids.n && r == CM_OK; i++)
		r = cm_e2b_delete(e, m.ids.v[i], call, err);
	n = (int)m.ids.n;
	cm_strv_clear(&m.ids);
	return r < 0 ? r : n;
}

/* Its answer was lost: what it made may be there already, may come yet, or not at all. */
static void undo(struct cm_e2b *e, const struct making *m)
{
	const struct cm_call call = cm_e2b_cleanup_call();
	struct cm_error why = CM_ERROR_INIT;
	int r = 0;

	for (int i = 0; i < UNDO_TRIES && r == 0; i++) {
		if (i > 0)
			r = cm_call_sleep(&call, (int64_t)UNDO_FIRST_MS << i, &why);
		if (r == 0)
			r = delete_marked(e, m->mark, &call, &why);
	}
	if (r > 0)
		return;
	if (r == 0)
		cm_provider_note(
			&e->base,
			"whether the sandbox of session '%s' was made is not known; none is there, "
			"and one that comes yet ends within %llu s",
			m->id, (unsigned long long)m->ttl_s);
	else
		cm_provider_note(
			&e->base,
			"a sandbox of session '%s' may be left, and could not be looked for: %s",
			m->id, why.msg);
}

/* --- making -------------------------------------------------------------------------------------- */

static int make(struct cm_e2b_session *s, struct making *m, const struct cm_call *call,
		struct cm_error *err)
{
	struct cm_e2b *e = cm_e2b_of(&s->base);
	const struct cm_e2b_query q = { .method = "POST",
					.path = "/sandboxes",
					.what = "make a sandbox" };
	int64_t since_us = cm_clock_mono_us();
	char mark[CM_PROVIDER_HEX_SIZE];
	struct cm_e2b_reply reply;
	bool has_arrived = false;
	int r = cm_provider_random_hex(mark, err);

	if (r < 0)
		return r;
	m->mark = mark;
	m->id = s->base.id;
	m->session = s;
	m->ttl_s = cm_e2b_session_ttl(s, false);
	r = cm_e2b_demand_versions(e, &q, write_new, m, call, &reply, &has_arrived, err);
	if (r == CM_OK) {
		r = cm_e2b_session_adopt(s, reply.doc ? cm_json_root(reply.doc) : NULL, err);
		has_arrived = r < 0;
		cm_e2b_reply_clear(&reply);
	}
	if (r < 0) {
		if (has_arrived)
			undo(e, m);
		return r;
	}
	s->base.is_new = true;
	if (s->lifetime_s > 0)
		s->lifetime_end_ms = cm_e2b_now_ms(s) + (int64_t)s->lifetime_s * 1000;
	cm_e2b_session_set_refresh(s, m->ttl_s);
	cm_provider_phase(&e->base, "create", since_us);
	return CM_OK;
}

static int check_labels(const struct cm_strv *labels, struct cm_error *err)
{
	for (size_t i = 0; i < labels->n; i++) {
		CM_AUTO_FREE char *key =
			cm_asprintf("%.*s", (int)strcspn(labels->v[i], "="), labels->v[i]);

		if (!key)
			return cm_e2b_no_memory(err);
		if (cm_e2b_is_our_key(key)) {
			(void)cm_error_set(err, CM_E_INVALID, 0,
					   "label '%s' has a key that sessions are kept by",
					   labels->v[i]);
			cm_error_hint(err, "choose another key");
			return CM_E_INVALID;
		}
		if (!cm_e2b_is_text(labels->v[i]))
			return cm_error_set(err, CM_E_INVALID, 0, "a label is no UTF-8 text");
	}
	return CM_OK;
}

static int check_spec(const struct cm_spec *spec, struct cm_error *err)
{
	if (spec->network != CM_NETWORK_NONE && spec->network != CM_NETWORK_INTERNET) {
		(void)cm_error_set(err, CM_E_UNSUPPORTED, 0, "E2B has no network '%s'",
				   cm_network_name(spec->network));
		cm_error_hint(err, "--network internet, or --network none");
		return CM_E_UNSUPPORTED;
	}
	if (spec->template_name && !cm_e2b_is_text(spec->template_name))
		return cm_error_set(err, CM_E_INVALID, 0, "a template's name is no UTF-8 text");
	if (spec->workdir && !cm_e2b_is_text(spec->workdir))
		return cm_error_set(err, CM_E_INVALID, 0, "the path of --workdir is no UTF-8 text");
	for (size_t i = 0; i < spec->env.n; i++) {
		if (!cm_e2b_is_text(spec->env.v[i]))
			return cm_error_set(err, CM_E_INVALID, 0,
					    "the value of variable '%.*s' is no UTF-8 text",
					    (int)strcspn(spec->env.v[i], "="), spec->env.v[i]);
	}
	return check_labels(&spec->labels, err);
}

static uint64_t limit_s(const struct cm_limit *limit)
{
	return limit->is_set && limit->value != CM_UNLIMITED ? cm_e2b_seconds(limit->value) : 0;
}

static int apply_spec(struct cm_e2b_session *s, const struct cm_spec *spec, struct cm_error *err)
{
	/* what is kept outlives its time as a session does */
	s->is_temporary = !spec->session_id && !spec->is_kept;
	s->is_root = spec->user == CM_USER_ROOT;
	s->idle_s = limit_s(&spec->limits.idle);
	s->lifetime_s = limit_s(&spec->limits.lifetime);
	if (spec->workdir && spec->workdir[0] == '/') {
		s->workdir = cm_strdup(spec->workdir);
		if (!s->workdir)
			return cm_e2b_no_memory(err);
	}
	if (cm_strv_copy(&s->env, &spec->env) < 0)
		return cm_e2b_no_memory(err);
	return CM_OK;
}

/* Labels of one that exists cannot be changed there. */
static void tell_labels(const struct cm_e2b_session *s, const struct cm_spec *spec)
{
	if (spec->labels_asked.n > 0)
		cm_provider_note(&cm_e2b_of(&s->base)->base,
				 "session '%s' exists, and keeps the labels that it has",
				 s->base.id);
}

/* Nothing is resumed that is refused then. CM_E_NOT_FOUND: it ended in this moment. */
static int resume(struct cm_e2b_session *s, const struct cm_spec *spec, struct cm_e2b_found *found,
		  const struct cm_call *call, bool *ret_was_running, struct cm_error *err)
{
	int r = cm_e2b_adopt(s, spec, found, call, err);

	if (r < 0)
		return r;
	cm_e2b_session_found(s, found);
	return cm_e2b_session_connect(s, false, call, ret_was_running, err);
}

/* One that exists; CM_E_NOT_FOUND, without *err: there is none. */
static int reuse(struct cm_e2b_session *s, const struct cm_spec *spec, const struct cm_call *call,
		 struct cm_error *err)
{
	struct cm_e2b *e = cm_e2b_of(&s->base);
	int64_t since_us = cm_clock_mono_us();
	struct cm_e2b_found found = { 0 };
	bool was_running = false;
	int r = cm_e2b_find(e, s->base.id, call, &found, err);

	if (r < 0)
		return r;
	r = resume(s, spec, &found, call, &was_running, err);
	cm_e2b_found_clear(&found);
	/* it ended in this moment */
	if (r == CM_E_NOT_FOUND) {
		cm_error_clear(err);
		return r;
	}
	/* the same as it has, but with the list of today; a session that is not asked about keeps its own */
	if (r == CM_OK && cm_key_is_asked(CM_KEY_NETWORK, spec))
		r = cm_e2b_session_network(&s->base, spec->network, call, err);
	if (r < 0)
		return cm_e2b_no_absence(r, err);
	s->base.was_running = was_running;
	tell_labels(s, spec);
	cm_provider_phase(&e->base, "connect", since_us);
	return CM_OK;
}

/*
 * One that is there, or a new one. Of two clients of this host one makes it, which the service would let
 * both do; where nothing can be locked that is said, and the service's answer decides.
 */
static int find_or_make(struct cm_e2b_session *s, const struct cm_spec *spec, struct making *m,
			const struct cm_call *call, struct cm_error *err)
{
	const struct cm_provider_config *config = &s->base.provider->config;
	struct cm_records records = CM_RECORDS_INIT;
	struct cm_error why = CM_ERROR_INIT;
	CM_AUTO_FD int lock_fd = -1;
	int r = cm_records_open(config->config, s->base.provider->ops->name, &records, &why);

	if (r == CM_OK)
		r = cm_record_lock(&records, s->base.id, call, &lock_fd, &why);
	if (r == CM_E_CANCELLED || r == CM_E_TIMEOUT) {
		cm_records_close(&records);
		if (err)
			*err = why;
		return r;
	}
	if (r < 0)
		cm_provider_note(&cm_e2b_of(&s->base)->base,
				 "cannot lock the session's name on this host: two starts at "
				 "once could make two sandboxes");
	r = reuse(s, spec, call, err);
	if (r == CM_E_NOT_FOUND)
		r = make(s, m, call, err);
	if (lock_fd >= 0)
		cm_record_unlock(&records, s->base.id, &lock_fd);
	cm_records_close(&records);
	return r;
}

int cm_e2b_session_create(struct cm_provider *p, const struct cm_spec *spec,
			  const struct cm_call *call, struct cm_session **ret, struct cm_error *err)
{
	struct cm_e2b *e = (struct cm_e2b *)(void *)p;
	struct making m = {
		.template_id = spec->template_name ? spec->template_name : USUAL_TEMPLATE,
		.labels = &spec->labels,
		.network = spec->network,
	};
	char name[sizeof("tmp-") + CM_PROVIDER_HEX_SIZE] = "tmp-";
	struct cm_e2b_session *s = NULL;
	int r = check_spec(spec, err);

	if (r == CM_OK && !spec->session_id)
		r = cm_provider_random_hex(name + strlen("tmp-"), err);
	if (r == CM_OK)
		r = cm_e2b_session_new(e, spec->session_id ? spec->session_id : name, &s, err);
	if (r == CM_OK)
		r = apply_spec(s, spec, err);
	if (r == CM_OK)
		r = spec->session_id ? find_or_make(s, spec, &m, call, err)
				     : make(s, &m, call, err);
	if (r < 0) {
		cm_e2b_session_release(s ? &s->base : NULL);
		return r;
	}
	*ret = &s->base;
	return CM_OK;
}

int cm_e2b_make_clone(struct cm_e2b_session *of, const char *template_id, const char *id,
		      const struct cm_call *call, struct cm_session **ret, struct cm_error *err)
{
	struct making m = { .template_id = template_id };
	struct cm_e2b_session *s = NULL;
	enum cm_network network = CM_NETWORK_INTERNET;
	int r = cm_e2b_session_new(cm_e2b_of(&of->base), id, &s, err);

	if (r == CM_OK)
		r = cm_e2b_network_of(cm_e2b_of(&of->base), of->sandbox_id, call, &network, err);
	if (r < 0) {
		cm_e2b_session_release(s ? &s->base : NULL);
		return r;
	}
	m.network = network;
	s->is_root = of->is_root;
	s->idle_s = of->idle_s;
	s->lifetime_s = of->lifetime_s;
	if (cm_strv_copy(&s->env, &of->env) < 0 ||
	    (of->workdir && !(s->workdir = cm_strdup(of->workdir))))
		r = cm_e2b_no_memory(err);
	if (r == CM_OK)
		r = make(s, &m, call, err);
	if (r < 0) {
		cm_e2b_session_release(&s->base);
		return r;
	}
	*ret = &s->base;
	return CM_OK;
}

/* --- its network ---------------------------------------------------------------------------------- */

enum cm_network cm_e2b_network_in(const struct cm_json *detail)
{
	return detail && cm_json_bool(detail, "allowInternetAccess", true) ? CM_NETWORK_INTERNET
									   : CM_NETWORK_NONE;
}

int cm_e2b_network_of(struct cm_e2b *e, const char *sandbox_id, const struct cm_call *call,
		      enum cm_network *ret, struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_asprintf("/sandboxes/%s", sandbox_id);
	struct cm_e2b_query q = {
		.method = "GET", .path = path, .is_idempotent = true, .what = "look at the sandbox"
	};
	struct cm_e2b_reply reply;
	int r;

	if (!path)
		return cm_e2b_no_memory(err);
	r = cm_e2b_demand(e, &q, call, &reply, err);
	if (r < 0)
		return r;
	*ret = cm_e2b_network_in(reply.doc ? cm_json_root(reply.doc) : NULL);
	cm_e2b_reply_clear(&reply);
	return CM_OK;
}

int cm_e2b_session_network(struct cm_session *session, enum cm_network network,
			   const struct cm_call *call, struct cm_error *err)
{
	struct cm_e2b_session *s = (struct cm_e2b_session *)(void *)session;
	CM_AUTO_FREE char *path = cm_asprintf("/sandboxes/%s/network", s->sandbox_id);
	CM_AUTO_BUF struct cm_buf body = { .max = 4096 };
	struct cm_e2b_query q = { .method = "PUT",
				  .path = path,
				  .body = &body,
				  .is_idempotent = true,
				  .what = "set the session's network" };
	struct cm_e2b_reply reply;
	struct cm_json_writer w;
	int r;

	if (network != CM_NETWORK_NONE && network != CM_NETWORK_INTERNET)
		return cm_error_set(err, CM_E_UNSUPPORTED, 0, "E2B has no network '%s'",
				    cm_network_name(network));
	if (!path)
		return cm_e2b_no_memory(err);
	/* it takes the place of all rules that were */
	cm_jw_init(&w, &body, false);
	cm_jw_object(&w);
	cm_jw_kbool(&w, "allow_internet_access", network == CM_NETWORK_INTERNET);
	if (network == CM_NETWORK_INTERNET)
		write_denied(&w);
	cm_jw_end_object(&w);
	r = cm_e2b_demand(cm_e2b_of(session), &q, call, &reply, err);
	if (r == CM_OK)
		cm_e2b_reply_clear(&reply);
	return r;
}
