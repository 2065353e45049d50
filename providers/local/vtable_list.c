/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of the local provider, looked at. */
#include <string.h>

#include "providers/local/vtable_internal.h"
#include "runtime/base/buf.h"
#include "runtime/base/json.h"

static int64_t limit_ms(const struct cm_json *started, const char *key)
{
	const struct cm_json *limit = cm_json_get(started, key);

	return limit ? cm_json_int(limit, "max", 0) : 0;
}

/* As far as it is known now; 0: never. */
static int64_t expires_ms(const struct cm_store_session *s, int64_t used_ms)
{
	const char *text = s->record.started_json;
	int64_t started_ms = cm_store_session_started_ms(s);
	struct cm_json_doc *doc = NULL;
	int64_t idle_ms = 0;
	int64_t lifetime_ms = 0;
	int64_t at_ms = 0;

	if (!text || cm_json_parse(text, strlen(text), "started", 0, &doc, NULL) != CM_OK)
		return 0;
	idle_ms = limit_ms(cm_json_root(doc), "idleMs");
	lifetime_ms = limit_ms(cm_json_root(doc), "lifetimeMs");
	cm_json_free(doc);
	if (lifetime_ms > 0 && started_ms > 0)
		at_ms = started_ms + lifetime_ms;
	if (idle_ms > 0 && used_ms > 0 && (at_ms == 0 || used_ms + idle_ms < at_ms))
		at_ms = used_ms + idle_ms;
	return at_ms;
}

static enum cm_session_state state_of(enum cm_session_status status)
{
	switch (status) {
	case CM_STATUS_CREATED:
		return CM_SESSION_CREATED;
	case CM_STATUS_RUNNING:
		return CM_SESSION_RUNNING;
	case CM_STATUS_STOPPED:
		return CM_SESSION_STOPPED;
	case CM_STATUS_ERROR:
		break;
	}
	return CM_SESSION_FAILED;
}

static const char *workdir_of(const struct cm_store_session *s)
{
	if (s->record.checkout)
		return s->record.checkout;
	return s->record.workspace ? s->record.workspace : s->session_dir;
}

static int fill(const struct cm_store_session *s, struct cm_session_info *info,
		struct cm_error *err)
{
	const struct cm_session_record *r = &s->record;
	struct cm_end_record end = { 0 };
	bool is_alive = cm_store_keeper_alive(s);
	bool has_end = !is_alive && cm_store_read_end(s, &end) == CM_OK;

	*info = (struct cm_session_info){
		.id = cm_strdup(r->id),
		.workdir = cm_strdup(workdir_of(s)),
		.repo = cm_strdup(r->repo),
		.state = state_of(cm_session_status(r, is_alive, has_end ? &end : NULL)),
		.created_ms = r->created_ms,
	};
	if (is_alive)
		info->expires_ms =
			expires_ms(s, cm_store_session_used_ms(s, has_end ? &end : NULL));
	if (info->id && info->workdir && (info->repo || !r->repo) &&
	    cm_strv_copy(&info->labels, &r->labels) == CM_OK)
		return CM_OK;
	cm_session_info_clear(info);
	return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
}

int cm_lv_info(struct cm_session *session, const struct cm_call *call, struct cm_session_info *ret,
	       struct cm_error *err)
{
	struct cm_store_session record;
	struct cm_store store;
	int r = cm_lv_open((struct cm_lv_session *)session, 0, call, &store, &record, err);

	if (r < 0)
		return r;
	r = fill(&record, ret, err);
	cm_store_session_close(&record);
	cm_store_close(&store);
	return r;
}

/* One that is damaged or gone meanwhile is passed over: `casemate ls` tells of it. */
static int tell(struct cm_store *store, const char *id,
		int (*each)(void *data, const struct cm_session_info *info), void *data,
		struct cm_error *err)
{
	struct cm_session_info info;
	struct cm_store_session s;
	int r;

	if (cm_store_session_open_as(store, id, CM_STORE_ANY_ROOT, 0, &s, NULL) < 0)
		return CM_OK;
	r = fill(&s, &info, err);
	if (r == CM_OK) {
		r = each(data, &info);
		cm_session_info_clear(&info);
	}
	cm_store_session_close(&s);
	return r;
}

int cm_lv_list(struct cm_provider *p, const struct cm_call *call,
	       int (*each)(void *data, const struct cm_session_info *info), void *data,
	       struct cm_error *err)
{
	CM_AUTO_STRV struct cm_strv ids = { 0 };
	struct cm_store store;
	int r = cm_lv_store_open(p, NULL, &store, err);

	if (r < 0)
		return r;
	r = cm_store_list_lasting(&store, &ids, err);
	for (size_t i = 0; i < ids.n && r == CM_OK; i++) {
		r = cm_lv_call_check(call, err);
		if (r == CM_OK)
			r = tell(&store, ids.v[i], each, data, err);
	}
	cm_store_close(&store);
	return r;
}
