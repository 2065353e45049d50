/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/session_view.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"
#include "runtime/cli/sessions.h"
#include "runtime/store/usage.h"

#define TEXT_SIZE 40

static const char *const names[CM_FIELD_COUNT] = {
	[CM_FIELD_ID] = "id",
	[CM_FIELD_STATE] = "state",
	[CM_FIELD_LEVEL] = "level",
	[CM_FIELD_AGE] = "age",
	[CM_FIELD_IDLE] = "idle",
	[CM_FIELD_MEM] = "mem",
	[CM_FIELD_DISK] = "disk",
	[CM_FIELD_REPO] = "repo",
	[CM_FIELD_WORKSPACE] = "workspace",
	[CM_FIELD_CREATED] = "created",
	[CM_FIELD_ROOT] = "root",
	[CM_FIELD_DIR] = "dir",
};

void cm_session_view_read(const struct cm_store_session *s, enum cm_session_status status,
			  const struct cm_end_record *end, bool with_size,
			  struct cm_session_view *ret)
{
	*ret = (struct cm_session_view){ .s = s, .status = status, .has_size = with_size };
	ret->used_ms = cm_store_session_used_ms(s, end);
	if (status == CM_STATUS_RUNNING)
		cm_local_usage(s, &ret->usage);
	if (with_size)
		cm_store_session_size(s, true, &ret->size);
}

const char *cm_session_field_name(enum cm_session_field field)
{
	return names[field];
}

/* What runs without a group to count in may be busy or not. */
static void put_idle(const struct cm_session_view *view, char buf[TEXT_SIZE])
{
	if (view->status == CM_STATUS_RUNNING && !view->usage.has_tasks)
		return;
	if (view->usage.is_active)
		(void)snprintf(buf, TEXT_SIZE, "active");
	else
		cm_cli_format_age(view->used_ms, buf, TEXT_SIZE);
}

static void put_size(const struct cm_session_view *view, char buf[TEXT_SIZE])
{
	char size[TEXT_SIZE - 2];

	if (!view->has_size)
		return;
	cm_format_size(view->size.bytes, size, sizeof(size));
	(void)snprintf(buf, TEXT_SIZE, "%s%s", size, view->size.is_partial ? "+" : "");
}

/* Numbers and times, into buf. */
static void put_measure(const struct cm_session_view *view, enum cm_session_field field,
			char buf[TEXT_SIZE])
{
	if (field == CM_FIELD_AGE)
		cm_cli_format_age(view->s->record.created_ms, buf, TEXT_SIZE);
	else if (field == CM_FIELD_CREATED && view->s->record.created_ms > 0)
		cm_clock_rfc3339(view->s->record.created_ms, buf);
	else if (field == CM_FIELD_IDLE)
		put_idle(view, buf);
	else if (field == CM_FIELD_MEM && view->usage.has_memory)
		cm_format_size(view->usage.memory_bytes, buf, TEXT_SIZE);
	else if (field == CM_FIELD_DISK)
		put_size(view, buf);
}

static const char *text_of(const struct cm_session_view *view, enum cm_session_field field)
{
	const struct cm_session_record *r = &view->s->record;

	switch (field) {
	case CM_FIELD_ID:
		return r->id;
	case CM_FIELD_STATE:
		return cm_session_status_name(view->status);
	case CM_FIELD_LEVEL:
		return r->level;
	case CM_FIELD_REPO:
		return r->repo;
	case CM_FIELD_WORKSPACE:
		return cm_cli_session_subject(view->s);
	case CM_FIELD_ROOT:
		return r->root;
	case CM_FIELD_DIR:
		return view->s->session_dir;
	case CM_FIELD_AGE:
	case CM_FIELD_IDLE:
	case CM_FIELD_MEM:
	case CM_FIELD_DISK:
	case CM_FIELD_CREATED:
	case CM_FIELD_COUNT:
		break;
	}
	return NULL;
}

void cm_session_view_put(const struct cm_session_view *view, enum cm_session_field field,
			 struct cm_buf *out)
{
	char buf[TEXT_SIZE] = "";
	const char *text = text_of(view, field);

	_Static_assert(TEXT_SIZE >= CM_CLOCK_RFC3339_SIZE, "room for a time");
	if (!text) {
		put_measure(view, field, buf);
		text = buf;
	}
	cm_text_escape(out, *text ? text : "-", *text ? strlen(text) : 1, false);
}
