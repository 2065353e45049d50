/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/exec_view.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"
#include "runtime/cli/outcome.h"
#include "runtime/cli/sessions.h"

#define MAX_TEXT (64UL * 1024 * 1024)

static const char *const state_names[] = {
	[CM_EXEC_STARTING] = "starting",
	[CM_EXEC_RUNNING] = "running",
	[CM_EXEC_CHILDREN_LEFT] = "children-left",
	[CM_EXEC_ENDED] = "ended",
	[CM_EXEC_UNKNOWN] = "unknown",
};

/* --- from the keeper and the journal ------------------------------------------------------- */

static int take_text(struct cm_exec_view *view, const char *text, size_t len, struct cm_error *err)
{
	view->text = cm_malloc(len + 1);
	if (!view->text)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the command");
	memcpy(view->text, text, len);
	view->text[len] = '\0';
	view->text_len = len;
	return CM_OK;
}

static void take_state(struct cm_exec_view *view, const struct cm_rec_item *item)
{
	if (!item) {
		view->state = view->fate.is_known ? CM_EXEC_ENDED : CM_EXEC_UNKNOWN;
		return;
	}
	switch ((enum cm_item_state)item->state) {
	case CM_ITEM_STARTING:
		view->state = CM_EXEC_STARTING;
		break;
	case CM_ITEM_RUNNING:
		view->state = CM_EXEC_RUNNING;
		break;
	case CM_ITEM_CHILDREN_LEFT:
		view->state = CM_EXEC_CHILDREN_LEFT;
		return;
	}
	/* it may have ended since then: what is said is of one moment */
	view->fate.is_known = false;
	view->pid = item->pid;
}

static int fill_from_item(struct cm_exec_view *view, const struct cm_rec_item *item,
			  const char *text, struct cm_error *err)
{
	view->started_ms = item->started_ms;
	view->is_detached = (item->flags & CM_EXECF_DETACH) != 0;
	view->is_tty = (item->flags & CM_EXECF_TTY) != 0;
	view->is_cut = item->text_len >= CM_ITEM_TEXT_MAX;
	return take_text(view, text, item->text_len, err);
}

static void take_bytes(struct cm_exec_view *view, struct cm_journal_reader *journal)
{
	struct cm_journal_result result;
	bool has_result = cm_journal_result_read(journal, &result) == 1;

	view->has_bytes = true;
	for (size_t i = 0; i < CM_JOURNAL_STREAMS; i++) {
		view->bytes[i] = cm_journal_end(journal, (enum cm_journal_stream)i);
		view->lost[i] = has_result ? result.lost[i] : 0;
	}
}

static int fill_from_journal(struct cm_exec_view *view, struct cm_journal_reader *journal,
			     struct cm_error *err)
{
	const struct cm_journal_request *request = &journal->request;

	view->started_ms = request->started_ms;
	view->is_detached = true;
	view->is_tty = (request->flags & CM_JOURNALF_TTY) != 0;
	view->has_stdin = (request->flags & CM_JOURNALF_STDIN) != 0;
	take_bytes(view, journal);
	return take_text(view, journal->text, request->text_len, err);
}

int cm_exec_view_fill(const struct cm_exec_target *t, uint64_t exec_id, struct cm_exec_view *ret,
		      struct cm_error *err)
{
	struct cm_exec_target of = *t;
	const char *text = "";
	const struct cm_rec_item *item = cm_exec_target_item(t, exec_id, &text);
	int r;

	memset(ret, 0, sizeof(*ret));
	ret->exec_id = exec_id;
	r = cm_journal_open(t->session.dir_fd, exec_id, &of.journal, err);
	of.has_journal = r == CM_OK;
	if (r < 0 && !item)
		return r;
	cm_exec_target_fate(&of, &ret->fate);
	if (of.has_journal)
		r = fill_from_journal(ret, &of.journal, err);
	else
		r = fill_from_item(ret, item, text, err);
	if (of.has_journal)
		cm_journal_reader_close(&of.journal);
	take_state(ret, item);
	return r;
}

void cm_exec_view_clear(struct cm_exec_view *view)
{
	cm_ptr_free(&view->text);
	view->text_len = 0;
}

uint64_t cm_exec_view_wall_ms(const struct cm_exec_view *view)
{
	int64_t so_far = cm_clock_real_ms() - view->started_ms;

	if (view->fate.is_known)
		return view->fate.end.wall_us / 1000;
	return so_far > 0 ? (uint64_t)so_far : 0;
}

/* --- for programs -------------------------------------------------------------------------- */

static void write_flag(struct cm_json_writer *w, const char *key, const struct cm_exec_fate *fate,
		       uint32_t flag)
{
	cm_jw_known_bool(w, key, fate->is_known, (fate->end.flags & flag) != 0);
}

static void write_fate(struct cm_json_writer *w, const struct cm_exec_view *view)
{
	const struct cm_exec_fate *fate = &view->fate;
	const struct cm_rec_end *end = &fate->end;

	cm_jw_kstring(w, "end", fate->is_known ? cm_end_kind_name(end->kind) : NULL);
	cm_jw_known_int(w, "exitCode", fate->is_known, cm_end_exit(end, CM_EXIT_FAILURE));
	cm_jw_known_int(w, "signal", fate->is_known && end->kind == CM_END_SIGNAL, end->status);
	write_flag(w, "timedOut", fate, CM_ENDF_TIMED_OUT);
	write_flag(w, "killed", fate, CM_ENDF_KILLED);
	write_flag(w, "memoryLimit", fate, CM_ENDF_MEMORY_LIMIT);
	cm_jw_known_bool(w, "childrenLeft",
			 view->state == CM_EXEC_ENDED || view->state == CM_EXEC_CHILDREN_LEFT,
			 view->state == CM_EXEC_CHILDREN_LEFT);
	cm_jw_known_uint(w, "wallMs", view->state != CM_EXEC_UNKNOWN, cm_exec_view_wall_ms(view));
	cm_jw_known_uint(w, "cpuUserMs", fate->is_known, end->cpu_user_us / 1000);
	cm_jw_known_uint(w, "cpuSystemMs", fate->is_known, end->cpu_system_us / 1000);
	cm_jw_known_uint(w, "maxRssBytes", fate->is_known, end->max_rss_bytes);
}

/* Each string of the text with its end; the last one may have none. */
static const char *next_string(const struct cm_exec_view *view, const char *p)
{
	const char *end = view->text + view->text_len;

	p += strlen(p) + 1;
	return p < end ? p : NULL;
}

static void write_command(struct cm_json_writer *w, const struct cm_exec_view *view)
{
	const char *p = view->text_len > 0 ? view->text : NULL;

	cm_jw_kstring(w, "cwd", p);
	cm_jw_key(w, "command");
	cm_jw_array(w);
	while (p && (p = next_string(view, p)) != NULL)
		cm_jw_string(w, p);
	cm_jw_end_array(w);
	cm_jw_kbool(w, "commandCut", view->is_cut);
}

static void write_streams(struct cm_json_writer *w, const char *key, bool is_known,
			  const uint64_t value[CM_JOURNAL_STREAMS])
{
	cm_jw_key(w, key);
	if (!is_known) {
		cm_jw_null(w);
		return;
	}
	cm_jw_object(w);
	cm_jw_kuint(w, "stdout", value[CM_JOURNAL_OUT]);
	cm_jw_kuint(w, "stderr", value[CM_JOURNAL_ERR]);
	cm_jw_end_object(w);
}

void cm_exec_view_write(struct cm_json_writer *w, const struct cm_exec_view *view)
{
	char id[CM_EXEC_ID_SIZE];

	cm_exec_id_format(view->exec_id, id);
	cm_jw_object(w);
	cm_jw_kstring(w, "exec", id);
	cm_jw_kstring(w, "state", state_names[view->state]);
	cm_jw_known_int(w, "pid", view->pid != 0, view->pid);
	cm_cli_write_time(w, "startedAt", view->started_ms);
	cm_cli_write_time(w, "endedAt", view->fate.is_known ? view->fate.ended_ms : 0);
	write_fate(w, view);
	write_command(w, view);
	cm_jw_kbool(w, "detached", view->is_detached);
	cm_jw_kbool(w, "tty", view->is_tty);
	cm_jw_kbool(w, "stdin", view->has_stdin);
	write_streams(w, "bytes", view->has_bytes, view->bytes);
	write_streams(w, "lost", view->has_bytes, view->lost);
	cm_jw_end_object(w);
}

int cm_exec_view_print(const struct cm_exec_target *t, const struct cm_exec_fate *fate)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_BUF struct cm_buf out = { 0 };
	struct cm_exec_view view;
	struct cm_json_writer w;
	int r = cm_exec_view_fill(t, t->exec_id, &view, &err);

	cm_buf_init(&out, MAX_TEXT);
	cm_jw_init(&w, &out, false);
	if (r == CM_OK && fate) {
		view.fate = *fate;
		view.state = fate->is_known ? CM_EXEC_ENDED : CM_EXEC_UNKNOWN;
		if (fate->is_known && (fate->end.flags & CM_ENDF_CHILDREN_LEFT) != 0)
			view.state = CM_EXEC_CHILDREN_LEFT;
		view.pid = 0;
	}
	if (r == CM_OK) {
		cm_exec_view_write(&w, &view);
		cm_buf_putc(&out, '\n');
	}
	cm_exec_view_clear(&view);
	if (r == CM_OK && cm_buf_status(&out) < 0)
		r = cm_error_set(&err, CM_E_NOMEM, 0, "no memory for the command");
	return r < 0 ? cm_cli_fail(t->cli, &err) : cm_cli_print(t->cli, out.data, out.len);
}

/* --- for people ---------------------------------------------------------------------------- */

/* $'...', as bash, zsh and ksh have it: what is escaped is read as it was. */
static void put_escaped(struct cm_buf *out, const char *s)
{
	cm_buf_puts(out, "$'");
	while (*s != '\0') {
		size_t n = strcspn(s, "'\\");

		cm_text_escape(out, s, n, false);
		s += n;
		if (*s == '\0')
			break;
		cm_buf_putc(out, '\\');
		cm_buf_putc(out, *s++);
	}
	cm_buf_putc(out, '\'');
}

static bool is_inert(const char *s)
{
	CM_AUTO_BUF struct cm_buf b = { 0 };

	cm_buf_init(&b, MAX_TEXT);
	cm_text_escape(&b, s, strlen(s), false);
	return cm_buf_status(&b) == CM_OK && strcmp(b.data ? b.data : "", s) == 0;
}

void cm_exec_view_command(const struct cm_exec_view *view, struct cm_buf *out)
{
	const char *p = view->text_len > 0 ? next_string(view, view->text) : NULL;

	for (const char *first = p; p; p = next_string(view, p)) {
		if (p != first)
			cm_buf_putc(out, ' ');
		if (is_inert(p))
			cm_text_shell_quote(out, p);
		else
			put_escaped(out, p);
	}
	if (view->is_cut)
		cm_buf_puts(out, "...");
}
