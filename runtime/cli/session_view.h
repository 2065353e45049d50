/* SPDX-License-Identifier: Apache-2.0 */
/* What people see of a session, a field each: a column of `ls`, a placeholder of its --format. */
#ifndef CM_RUNTIME_CLI_SESSION_VIEW_H
#define CM_RUNTIME_CLI_SESSION_VIEW_H

#include "providers/local/local.h"
#include "runtime/base/tree_size.h"
#include "runtime/store/store.h"

struct cm_session_view {
	/* borrowed */
	const struct cm_store_session *s;
	enum cm_session_status status;
	/* when it was used last; 0: not known */
	int64_t used_ms;
	/* of one that runs */
	struct cm_local_usage usage;
	bool has_size;
	struct cm_tree_size size;
};

enum cm_session_field {
	CM_FIELD_ID = 0,
	CM_FIELD_STATE,
	CM_FIELD_LEVEL,
	CM_FIELD_AGE,
	CM_FIELD_IDLE,
	CM_FIELD_MEM,
	CM_FIELD_DISK,
	CM_FIELD_REPO,
	CM_FIELD_WORKSPACE,
	CM_FIELD_CREATED,
	CM_FIELD_ROOT,
	CM_FIELD_DIR,
	CM_FIELD_COUNT,
};

/*
 * Reads what the state does not have: the lock's time, groups and, with_size, the trees. end: the
 * keeper's last word, or one with magic 0.
 */
void cm_session_view_read(const struct cm_store_session *s, enum cm_session_status status,
			  const struct cm_end_record *end, bool with_size,
			  struct cm_session_view *ret);
/* "id", "state", ... */
const char *cm_session_field_name(enum cm_session_field field);
/* The field's text, inert on a terminal; "-" where there is nothing to say. */
void cm_session_view_put(const struct cm_session_view *view, enum cm_session_field field,
			 struct cm_buf *out);

/* A text with placeholders, {id} or {label.KEY}, parsed. */
struct cm_session_format;
/* CM_E_INVALID with a hint that says which there are; the caller frees *ret. */
int cm_session_format_parse(const char *text, struct cm_session_format **ret, struct cm_error *err);
void cm_session_format_free(struct cm_session_format *format);
/* Does it show what only a walk over the trees can tell? */
bool cm_session_format_wants_size(const struct cm_session_format *format);
/* One session's line, with its newline. */
void cm_session_format_put(const struct cm_session_format *format,
			   const struct cm_session_view *view, struct cm_buf *out);

#endif
