/* SPDX-License-Identifier: Apache-2.0 */
/* casemate ls: the sessions, one a line. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/text.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/sessions.h"

#define MAX_TEXT (64UL * 1024 * 1024)
/* no-cgroup-single-id: the longest without a qualifier */
#define LEVEL_WIDTH 19

struct ls_options {
	const char *root;
	bool is_json;
	bool is_quiet;
	/* temporary sessions too */
	bool is_all;
};

/* Text of state files and of file names, made inert. */
static char *escaped(const char *s)
{
	CM_AUTO_BUF struct cm_buf b = { 0 };

	cm_buf_init(&b, MAX_TEXT);
	cm_text_escape(&b, s, strlen(s), false);
	cm_buf_puts(&b, "");
	return cm_buf_take(&b);
}

static void write_json(struct cm_json_writer *w, const struct cm_store_session *s,
		       enum cm_session_status status)
{
	const struct cm_session_record *r = &s->record;

	cm_jw_object(w);
	cm_jw_kstring(w, "id", r->id);
	cm_jw_kstring(w, "status", cm_session_status_name(status));
	cm_jw_kstring(w, "level", r->level);
	cm_cli_write_time(w, "created", r->created_ms);
	cm_jw_kbool(w, "temporary", r->is_temporary);
	cm_jw_kstring(w, "root", r->root);
	cm_jw_kstring(w, "workspace", r->workspace);
	cm_jw_kstring(w, "repo", r->repo);
	cm_jw_end_object(w);
}

static void put_cell(struct cm_buf *out, const char *text, size_t width, bool is_last)
{
	cm_buf_puts(out, text);
	if (is_last) {
		cm_buf_putc(out, '\n');
		return;
	}
	for (size_t n = strlen(text); n < width; n++)
		cm_buf_putc(out, ' ');
	cm_buf_puts(out, "  ");
}

static void write_row(const struct cm_store_session *s, enum cm_session_status status,
		      struct cm_buf *out)
{
	CM_AUTO_FREE char *subject = escaped(cm_cli_session_subject(s));
	CM_AUTO_FREE char *level = escaped(s->record.level ? s->record.level : "-");
	char age[32];

	cm_cli_format_age(s->record.created_ms, age, sizeof(age));
	/* widths that most ids and levels fit; the last column has the rest */
	put_cell(out, s->record.id, 24, false);
	put_cell(out, cm_session_status_name(status), 7, false);
	put_cell(out, level ? level : "-", LEVEL_WIDTH, false);
	put_cell(out, age, 6, false);
	put_cell(out, subject ? subject : "-", 0, true);
}

static void write_header(struct cm_buf *out)
{
	put_cell(out, "ID", 24, false);
	put_cell(out, "STATUS", 7, false);
	put_cell(out, "LEVEL", LEVEL_WIDTH, false);
	put_cell(out, "AGE", 6, false);
	put_cell(out, "WORKSPACE/REPO", 0, true);
}

static bool is_shown(const struct ls_options *o, const struct cm_store *store,
		     const struct cm_store_session *s)
{
	if (s->record.is_temporary && !o->is_all)
		return false;
	return !o->root || strcmp(s->record.root, store->root) == 0;
}

static void list_one(const struct cm_cli *cli, struct cm_store *store, const char *id,
		     const struct ls_options *o, struct cm_json_writer *w, struct cm_buf *out)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_store_session s;
	enum cm_session_status status = CM_STATUS_ERROR;
	int r = cm_store_session_open_as(store, id, CM_STORE_ANY_ROOT, 0, &s, &err);

	if (r == CM_E_PROTOCOL) {
		/* still a session, and its name is what is needed to get rid of it */
		cm_cli_note(cli, "%s (%s)", err.msg, err.hint);
		r = cm_store_session_open_as(store, id, CM_STORE_ANY_ROOT | CM_STORE_DAMAGED, 0, &s,
					     &err);
	} else if (r == CM_OK) {
		status = cm_cli_session_status(&s, NULL);
	}
	/* gone meanwhile */
	if (r == CM_E_NOT_FOUND)
		return;
	if (r != CM_OK) {
		cm_cli_print_error(cli, &err);
		return;
	}
	if (is_shown(o, store, &s)) {
		if (o->is_json)
			write_json(w, &s, status);
		else if (o->is_quiet)
			cm_buf_printf(out, "%s\n", s.record.id);
		else
			write_row(&s, status, out);
	}
	cm_store_session_close(&s);
}

static int list_all(struct cm_cli *cli, struct cm_store *store, const struct ls_options *o,
		    struct cm_error *err)
{
	CM_AUTO_STRV struct cm_strv ids = { 0 };
	CM_AUTO_BUF struct cm_buf out = { 0 };
	struct cm_json_writer w;
	int r = cm_store_list(store, &ids, err);

	if (r != CM_OK)
		return cm_cli_fail(cli, err);
	cm_buf_init(&out, MAX_TEXT);
	cm_jw_init(&w, &out, true);
	if (o->is_json)
		cm_jw_array(&w);
	else if (!o->is_quiet)
		write_header(&out);
	for (size_t i = 0; i < ids.n; i++)
		list_one(cli, store, ids.v[i], o, &w, &out);
	if (o->is_json) {
		cm_jw_end_array(&w);
		cm_buf_putc(&out, '\n');
	}
	r = cm_buf_status(&out);
	if (r != CM_OK) {
		(void)cm_error_set(err, r, 0, "cannot list the sessions: out of memory");
		return cm_cli_fail(cli, err);
	}
	return cm_cli_print(cli, out.data ? out.data : "", out.len);
}

int cm_cmd_ls(struct cm_cli *cli, int argc, char **argv)
{
	struct ls_options o = { 0 };
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &o.root },
		{ "json", '\0', CM_OPTION_SWITCH, &o.is_json },
		{ "quiet", 'q', CM_OPTION_SWITCH, &o.is_quiet },
		{ "all", 'a', CM_OPTION_SWITCH, &o.is_all },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	struct cm_store store;
	int status;
	int n = 0;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) != CM_OK)
		return cm_cli_fail(cli, &err);
	if (n > 0) {
		(void)cm_error_set(&err, CM_E_INVALID, 0, "'%.100s' is not an option of 'ls'",
				   argv[1]);
		cm_error_hint(&err, "'casemate inspect ID' shows one session");
		return cm_cli_fail(cli, &err);
	}
	if (cm_cli_store_open(cli, o.root, &store, &err) != CM_OK)
		return cm_cli_fail(cli, &err);
	/* what dead commands left is not to be seen; nothing depends on it */
	(void)cm_store_collect(&store, NULL, NULL, NULL);
	(void)cm_store_collect_slots(&store, NULL);
	status = list_all(cli, &store, &o, &err);
	cm_store_close(&store);
	return status;
}
