/* SPDX-License-Identifier: Apache-2.0 */
/* What happens in a directory of a sandbox. */
#include <stdlib.h>

#include "providers/e2b/files.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define CUTS_MAX 3
/* the agent does not tell that the directory itself is gone */
#define LOOK_MS 15000

struct watch {
	struct cm_e2b_session *session;
	const char *path;
	/* "watch 'src'" */
	const char *what;
	int (*each)(void *data, const struct cm_watch_event *event);
	void *data;
	struct cm_e2b_stream *stream;
	/* it stood before: what happened in between was lost */
	bool is_again;
	unsigned int n_cuts;
};

static int open_watch(struct watch *w, const struct cm_call *call, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf body = { .max = 64UL * 1024 };
	const struct cm_e2b_rpc rpc = { .method = "filesystem.Filesystem/WatchDir",
					.body = &body,
					.is_root = w->session->is_root,
					.is_file = true,
					.what = w->what };
	struct cm_json_writer jw;

	cm_jw_init(&jw, &body, false);
	cm_jw_object(&jw);
	cm_jw_kstring(&jw, "path", w->path);
	cm_jw_kbool(&jw, "recursive", true);
	cm_jw_end_object(&jw);
	return cm_e2b_stream_open(w->session, &rpc, call, &w->stream, err);
}

static int tell(struct watch *w, enum cm_watch_kind kind, const char *path)
{
	const struct cm_watch_event event = { .kind = kind, .path = path };

	return w->each(w->data, &event);
}

static int take_message(struct watch *w, struct cm_error *err)
{
	const struct cm_buf *body = &w->stream->envelopes.body;
	enum cm_e2b_watch_kind what = CM_E2B_WATCH_OTHER;
	enum cm_watch_kind kind = CM_WATCH_READY;
	CM_AUTO_FREE char *name = NULL;
	int r = cm_e2b_watch_read(body->data ? body->data : "", body->len, &what, &kind, &name,
				  err);

	if (r < 0)
		return r;
	w->n_cuts = 0;
	switch (what) {
	case CM_E2B_WATCH_OTHER:
		break;
	case CM_E2B_WATCH_START:
		r = tell(w, w->is_again ? CM_WATCH_OVERFLOW : CM_WATCH_READY, "");
		w->is_again = true;
		break;
	case CM_E2B_WATCH_EVENT:
		r = tell(w, kind, name);
		break;
	}
	return r;
}

/* CM_OK: it goes on. */
static int recover(struct watch *w, const struct cm_call *call, struct cm_error *err)
{
	enum cm_e2b_health health = CM_E2B_SILENT;
	struct cm_error why = CM_ERROR_INIT;
	int r;

	if (err)
		why = *err;
	cm_e2b_stream_close(w->stream);
	w->stream = NULL;
	r = cm_e2b_health(w->session, call, &health, err);
	if (r < 0)
		return r;
	if (health != CM_E2B_ALIVE || ++w->n_cuts > CUTS_MAX) {
		if (err)
			*err = why;
		return why.code < 0 ? why.code : CM_E_REMOTE;
	}
	return open_watch(w, call, err);
}

/* One step; *ret_is_over: what was watched is gone. */
static int step(struct watch *w, const struct cm_call *call, bool *ret_is_over,
		struct cm_error *err)
{
	struct cm_call own = *call;
	int64_t until = cm_clock_mono_ms() + LOOK_MS;
	int end = CM_OK;
	int r;

	if (own.deadline_ms > until)
		own.deadline_ms = until;
	r = cm_e2b_stream_next(w->stream, NULL, &own, &end, err);
	if (r == CM_E2B_STREAM_MESSAGE)
		return take_message(w, err);
	if (r == CM_E2B_STREAM_CUT)
		return recover(w, call, err);
	if (r == CM_E2B_STREAM_END) {
		*ret_is_over = end == CM_OK || (end == CM_E_NOT_FOUND && w->is_again);
		return *ret_is_over ? CM_OK : end;
	}
	if (r != CM_E_TIMEOUT || cm_clock_mono_ms() >= call->deadline_ms)
		return r;
	cm_error_clear(err);
	r = cm_e2b_type_of(w->session, w->path, true, call, err);
	*ret_is_over = r == 0;
	return r < 0 ? r : CM_OK;
}

int cm_e2b_file_watch(struct cm_session *session, const char *path,
		      int (*each)(void *data, const struct cm_watch_event *event), void *data,
		      const struct cm_call *call, struct cm_error *err)
{
	CM_AUTO_FREE char *place = cm_e2b_place((struct cm_e2b_session *)(void *)session, path);
	CM_AUTO_FREE char *what =
		place ? cm_e2b_doing((struct cm_e2b_session *)(void *)session, "watch", place)
		      : NULL;
	struct watch w = { .session = (struct cm_e2b_session *)(void *)session,
			   .path = place,
			   .what = what,
			   .each = each,
			   .data = data };
	struct cm_error local = CM_ERROR_INIT;
	bool is_over = false;
	int r;

	/* what led to a new attempt may be what is told in the end */
	if (!err)
		err = &local;
	r = what ? open_watch(&w, call, err) : cm_e2b_no_memory(err);
	while (r == CM_OK && !is_over)
		r = step(&w, call, &is_over, err);
	cm_e2b_stream_close(w.stream);
	return r;
}
