/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots, clones, and the addresses of ports. */
#include <stdlib.h>
#include <string.h>

#include "providers/e2b/e2b_internal.h"
#include "providers/e2b/texts.h"
#include "runtime/base/fd.h"

static int take_snapshot(struct cm_e2b_session *s, const char *name, const struct cm_call *call,
			 char **ret, struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_asprintf("/sandboxes/%s/snapshots", s->sandbox_id);
	CM_AUTO_BUF struct cm_buf body = { .max = 64UL * 1024 };
	const struct cm_e2b_query q = {
		.method = "POST", .path = path, .body = &body, .what = "take a snapshot"
	};
	struct cm_e2b_reply reply;
	struct cm_json_writer w;
	const char *id;
	int r;

	if (!path)
		return cm_e2b_no_memory(err);
	if (name && !cm_e2b_is_text(name))
		return cm_error_set(err, CM_E_INVALID, 0, "a snapshot's name is UTF-8 text");
	cm_jw_init(&w, &body, false);
	cm_jw_object(&w);
	if (name && name[0] != '\0')
		cm_jw_kstring(&w, "name", name);
	cm_jw_end_object(&w);
	r = cm_e2b_demand(cm_e2b_of(&s->base), &q, call, &reply, err);
	if (r < 0)
		return r;
	id = reply.doc ? cm_json_str(cm_json_root(reply.doc), "snapshotID", "") : "";
	if (id[0] == '\0') {
		r = cm_error_set(err, CM_E_PROTOCOL, 0,
				 "cannot take a snapshot: the service does not name it");
	} else {
		*ret = cm_strdup(id);
		if (!*ret)
			r = cm_e2b_no_memory(err);
	}
	cm_e2b_reply_clear(&reply);
	return r;
}

int cm_e2b_snapshot(struct cm_session *session, const char *name, const struct cm_call *call,
		    char **ret, struct cm_error *err)
{
	return take_snapshot((struct cm_e2b_session *)(void *)session, name, call, ret, err);
}

/*
 * The service can fork a sandbox, but then the copy has the metadata of the first, and with it the same
 * name. So it is made of a snapshot, which stays: sandboxes are read from what they were made of.
 */
int cm_e2b_clone(struct cm_session *session, const char *id, const struct cm_call *call,
		 struct cm_session **ret, struct cm_error *err)
{
	struct cm_e2b_session *s = (struct cm_e2b_session *)(void *)session;
	CM_AUTO_FREE char *snapshot_id = NULL;
	struct cm_e2b_found found = { 0 };
	int r = cm_e2b_find(cm_e2b_of(session), id, call, &found, err);

	cm_e2b_found_clear(&found);
	if (r == CM_OK) {
		(void)cm_error_set(err, CM_E_EXISTS, 0, "there is a session '%s' already", id);
		cm_error_hint(err,
			      "choose another name, or remove it: casemate rm --files --force %s",
			      id);
		return CM_E_EXISTS;
	}
	if (r != CM_E_NOT_FOUND)
		return r;
	r = take_snapshot(s, NULL, call, &snapshot_id, err);
	if (r == CM_OK)
		r = cm_e2b_make_clone(s, snapshot_id, id, call, ret, err);
	if (snapshot_id)
		cm_provider_note(
			&cm_e2b_of(session)->base,
			r == CM_OK ? "session '%s' stands on snapshot '%s', which is kept for it"
				   : "session '%s' was not made; snapshot '%s' is left",
			id, snapshot_id);
	return r;
}

int cm_e2b_publish(struct cm_session *session, uint16_t port, const struct cm_call *call,
		   char **ret, struct cm_error *err)
{
	struct cm_e2b_session *s = (struct cm_e2b_session *)(void *)session;
	int r = cm_e2b_session_reach(s, call, err);
	char *url;

	if (r < 0)
		return r;
	url = cm_e2b_port_url(&cm_e2b_of(session)->places, s->domain, s->sandbox_id, port);
	if (!url)
		return cm_e2b_no_memory(err);
	*ret = url;
	return CM_OK;
}
