/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/session_info.h"

#include <string.h>

#include "runtime/base/json.h"
#include "runtime/cli/sessions.h"

static int64_t limit_ms(const struct cm_json *started, const char *key)
{
	const struct cm_json *limit = cm_json_get(started, key);

	return limit ? cm_json_int(limit, "max", 0) : 0;
}

/* When the session will be stopped if nothing more happens in it; 0: never, or not known. */
static int64_t timeout_at(const struct cm_store_session *s, int64_t used_ms, bool is_busy)
{
	const struct cm_session_record *r = &s->record;
	int64_t started_ms = cm_store_session_started_ms(s);
	struct cm_json_doc *doc = NULL;
	int64_t idle_ms = 0;
	int64_t lifetime_ms = 0;
	int64_t at_ms = 0;

	if (!r->started_json || cm_json_parse(r->started_json, strlen(r->started_json), "started",
					      0, &doc, NULL) != CM_OK)
		return 0;
	idle_ms = limit_ms(cm_json_root(doc), "idleMs");
	lifetime_ms = limit_ms(cm_json_root(doc), "lifetimeMs");
	cm_json_free(doc);
	if (lifetime_ms > 0 && started_ms > 0)
		at_ms = started_ms + lifetime_ms;
	if (idle_ms > 0 && !is_busy && (at_ms == 0 || used_ms + idle_ms < at_ms))
		at_ms = used_ms + idle_ms;
	return at_ms;
}

static void write_metadata(struct cm_json_writer *w, const struct cm_store_session *s)
{
	const struct cm_session_record *r = &s->record;
	const char *dir = r->checkout ? r->checkout : r->workspace;

	cm_jw_key(w, "metadata");
	cm_jw_object(w);
	cm_jw_kstring(w, "workingDirectory", dir ? dir : s->session_dir);
	cm_jw_kstring(w, "platform", "linux");
	cm_jw_kstring(w, "isolation", r->level);
	cm_jw_end_object(w);
}

void cm_cli_write_session_info(struct cm_json_writer *w, const struct cm_store_session *s,
			       const struct cm_end_record *end, const struct cm_session_use *use)
{
	int64_t used_ms = cm_store_session_used_ms(s, end);

	/* a session has no other name than its id */
	cm_jw_kstring(w, "name", s->record.id);
	cm_jw_kstring(w, "provider", "local");
	cm_cli_write_time(w, "createdAt", s->record.created_ms);
	cm_cli_write_time(w, "lastUsedAt", used_ms);
	cm_cli_write_time(w, "timeoutAt",
			  use->is_running ? timeout_at(s, used_ms, use->last.n_commands > 0) : 0);
	write_metadata(w, s);
}
