/* SPDX-License-Identifier: Apache-2.0 */
/* casemate ls: the sessions, one a line. */
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/session_view.h"
#include "runtime/cli/sessions.h"
#include "runtime/spec/format.h"
#include "runtime/store/filter.h"

#define MAX_TEXT (64UL * 1024 * 1024)
/* between columns */
#define GAP 2
/* of the last column, before others give way to it */
#define LAST_MIN 16

/* In order; of those with a turn, the lowest go first where the terminal is narrow. */
static const struct column {
	enum cm_session_field field;
	const char *title;
	unsigned int turn;
} columns[] = {
	{ CM_FIELD_ID, "ID", 0 },	{ CM_FIELD_STATE, "STATE", 0 },
	{ CM_FIELD_LEVEL, "LEVEL", 3 }, { CM_FIELD_AGE, "AGE", 0 },
	{ CM_FIELD_IDLE, "IDLE", 2 },	{ CM_FIELD_MEM, "MEM", 1 },
	{ CM_FIELD_DISK, "DISK", 0 },	{ CM_FIELD_WORKSPACE, "WORKSPACE/REPO", 0 },
};
#define N_COLUMNS CM_ARRAY_SIZE(columns)
#define LAST_TURN 3

struct ls {
	struct cm_cli *cli;
	const char *root;
	const char *format_text;
	struct cm_strv filters;
	bool is_json;
	bool is_quiet;
	bool is_all;
	bool with_size;

	struct cm_session_filter filter;
	struct cm_session_format *format;
	struct cm_buf out;
	struct cm_json_writer json;
	/* the table's cells, row by row */
	struct cm_strv cells;
};

static void write_json(struct cm_json_writer *w, const struct cm_session_view *v)
{
	const struct cm_session_record *r = &v->s->record;

	cm_jw_object(w);
	cm_jw_kstring(w, "id", r->id);
	cm_jw_kstring(w, "status", cm_session_status_name(v->status));
	cm_jw_kstring(w, "level", r->level);
	cm_cli_write_time(w, "created", r->created_ms);
	cm_cli_write_time(w, "used", v->used_ms);
	if (v->usage.has_tasks)
		cm_jw_kbool(w, "active", v->usage.is_active);
	if (v->usage.has_memory)
		cm_jw_kuint(w, "memoryBytes", v->usage.memory_bytes);
	if (v->has_size) {
		cm_jw_kuint(w, "diskBytes", v->size.bytes);
		cm_jw_kbool(w, "diskPartial", v->size.is_partial);
	}
	cm_jw_kbool(w, "temporary", r->is_temporary);
	cm_jw_kstring(w, "root", r->root);
	cm_jw_kstring(w, "workspace", r->workspace);
	cm_jw_kstring(w, "repo", r->repo);
	cm_jw_key(w, "labels");
	cm_strv_write_map(&r->labels, w);
	cm_jw_end_object(w);
}

static void add_row(struct ls *ls, const struct cm_session_view *v)
{
	for (size_t i = 0; i < N_COLUMNS; i++) {
		CM_AUTO_BUF struct cm_buf cell = { 0 };

		cm_buf_init(&cell, MAX_TEXT);
		cm_session_view_put(v, columns[i].field, &cell);
		/* a lack of memory shows in the end: NULL is not added */
		if (cm_strv_add_own(&ls->cells, cm_buf_take(&cell)) != CM_OK)
			ls->out.has_failed = true;
	}
}

/* Characters, as far as they are one wide. */
static size_t width_of(const char *text)
{
	size_t n = 0;

	for (; *text != '\0'; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void measure(const struct ls *ls, size_t widths[N_COLUMNS])
{
	for (size_t i = 0; i < N_COLUMNS; i++)
		widths[i] = columns[i].field == CM_FIELD_DISK && !ls->with_size
				    ? 0
				    : strlen(columns[i].title);
	for (size_t i = 0; i < ls->cells.n; i++) {
		size_t *width = &widths[i % N_COLUMNS];

		/* a column that is left out stays so */
		if (*width > 0 && width_of(ls->cells.v[i]) > *width)
			*width = width_of(ls->cells.v[i]);
	}
}

/* 0: no terminal, so there is room for everything */
static size_t terminal_width(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static size_t total(const size_t widths[N_COLUMNS])
{
	size_t sum = LAST_MIN;

	for (size_t i = 0; i + 1 < N_COLUMNS; i++)
		sum += widths[i] > 0 ? widths[i] + GAP : 0;
	return sum;
}

static void fit(size_t widths[N_COLUMNS])
{
	size_t room = terminal_width();

	for (unsigned int turn = 1; turn <= LAST_TURN && room > 0 && total(widths) > room; turn++) {
		for (size_t i = 0; i < N_COLUMNS; i++) {
			if (columns[i].turn == turn)
				widths[i] = 0;
		}
	}
}

static void put_cell(struct cm_buf *out, const char *text, size_t width)
{
	cm_buf_puts(out, text);
	for (size_t n = width_of(text); n < width + GAP; n++)
		cm_buf_putc(out, ' ');
}

static void write_table(struct ls *ls)
{
	size_t widths[N_COLUMNS];

	measure(ls, widths);
	fit(widths);
	for (size_t i = 0; i < N_COLUMNS + ls->cells.n; i++) {
		size_t column = i % N_COLUMNS;
		const char *text = i < N_COLUMNS ? columns[i].title : ls->cells.v[i - N_COLUMNS];

		if (column + 1 == N_COLUMNS)
			cm_buf_printf(&ls->out, "%s\n", text);
		else if (widths[column] > 0)
			put_cell(&ls->out, text, widths[column]);
	}
}

static void show(struct ls *ls, const struct cm_store_session *s, enum cm_session_status status,
		 const struct cm_end_record *end)
{
	struct cm_session_view view;

	if (ls->is_quiet && !ls->format) {
		cm_buf_printf(&ls->out, "%s\n", s->record.id);
		return;
	}
	cm_session_view_read(s, status, end, ls->with_size, &view);
	if (ls->format)
		cm_session_format_put(ls->format, &view, &ls->out);
	else if (ls->is_json)
		write_json(&ls->json, &view);
	else
		add_row(ls, &view);
}

static void list_one(struct ls *ls, struct cm_store *store, const char *id)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_end_record end = { 0 };
	struct cm_store_session s;
	enum cm_session_status status = CM_STATUS_ERROR;
	int r = cm_store_session_open_as(store, id, CM_STORE_ANY_ROOT, 0, &s, &err);

	if (r == CM_E_PROTOCOL) {
		/* still a session, and its name is what is needed to get rid of it */
		cm_cli_note(ls->cli, "%s (%s)", err.msg, err.hint);
		r = cm_store_session_open_as(store, id, CM_STORE_ANY_ROOT | CM_STORE_DAMAGED, 0, &s,
					     &err);
	} else if (r == CM_OK) {
		status = cm_cli_session_status(&s, &end);
	}
	/* gone meanwhile */
	if (r == CM_E_NOT_FOUND)
		return;
	if (r != CM_OK) {
		cm_cli_print_error(ls->cli, &err);
		return;
	}
	if (cm_session_filter_matches(&ls->filter, &s.record, status))
		show(ls, &s, status, &end);
	cm_store_session_close(&s);
}

/* Names are known without a look into any session. */
static bool wants_names_alone(const struct ls *ls)
{
	return ls->is_quiet && !ls->format && !ls->is_json &&
	       cm_session_filter_is_of_names(&ls->filter);
}

static int list_all(struct ls *ls, struct cm_store *store, struct cm_error *err)
{
	CM_AUTO_STRV struct cm_strv ids = { 0 };
	int r = ls->is_all ? cm_store_list(store, &ids, err)
			   : cm_store_list_lasting(store, &ids, err);

	if (r != CM_OK)
		return cm_cli_fail(ls->cli, err);
	if (ls->is_json)
		cm_jw_array(&ls->json);
	for (size_t i = 0; i < ids.n; i++) {
		if (!cm_session_filter_has_name(&ls->filter, ids.v[i]))
			continue;
		if (wants_names_alone(ls))
			cm_buf_printf(&ls->out, "%s\n", ids.v[i]);
		else
			list_one(ls, store, ids.v[i]);
	}
	if (ls->is_json) {
		cm_jw_end_array(&ls->json);
		cm_buf_putc(&ls->out, '\n');
	} else if (!ls->is_quiet && !ls->format) {
		write_table(ls);
	}
	r = cm_buf_status(&ls->out);
	if (r != CM_OK) {
		(void)cm_error_set(err, r, 0, "cannot list the sessions: out of memory");
		return cm_cli_fail(ls->cli, err);
	}
	return cm_cli_print(ls->cli, ls->out.data ? ls->out.data : "", ls->out.len);
}

/* What was asked for that needs no store. */
static int prepare(struct ls *ls, int n, char **argv, struct cm_error *err)
{
	int r = CM_OK;

	if (n > 0) {
		(void)cm_error_set(err, CM_E_INVALID, 0, "'%.100s' is not an option of 'ls'",
				   argv[1]);
		cm_error_hint(err,
			      "'casemate inspect ID' shows one session, "
			      "'casemate ls --filter name=%.60s' those that begin so",
			      argv[1]);
		return CM_E_INVALID;
	}
	if (ls->format_text && ls->is_json) {
		(void)cm_error_set(err, CM_E_INVALID, 0,
				   "--format and --json contradict each other");
		cm_error_hint(err, "leave one out");
		return CM_E_INVALID;
	}
	for (size_t i = 0; r == CM_OK && i < ls->filters.n; i++)
		r = cm_session_filter_add(&ls->filter, ls->filters.v[i], err);
	if (r == CM_OK && ls->format_text)
		r = cm_session_format_parse(ls->format_text, &ls->format, err);
	if (r == CM_OK && ls->format)
		ls->with_size = ls->with_size || cm_session_format_wants_size(ls->format);
	return r;
}

static int run(struct ls *ls, struct cm_error *err)
{
	struct cm_store store;
	int status;

	if (cm_cli_store_open(ls->cli, ls->root, &store, err) != CM_OK)
		return cm_cli_fail(ls->cli, err);
	if (ls->root && cm_strv_add(&ls->filter.roots, store.root) != CM_OK) {
		cm_store_close(&store);
		(void)cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
		return cm_cli_fail(ls->cli, err);
	}
	/* what dead commands left is not to be seen; nothing depends on it */
	(void)cm_store_collect(&store, NULL, NULL, NULL);
	(void)cm_store_collect_claims(&store, NULL);
	status = list_all(ls, &store, err);
	cm_store_close(&store);
	return status;
}

int cm_cmd_ls(struct cm_cli *cli, int argc, char **argv)
{
	struct ls ls = { .cli = cli };
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &ls.root },
		{ "format", '\0', CM_OPTION_TEXT, &ls.format_text },
		{ "filter", 'f', CM_OPTION_LIST, &ls.filters },
		{ "json", '\0', CM_OPTION_SWITCH, &ls.is_json },
		{ "quiet", 'q', CM_OPTION_SWITCH, &ls.is_quiet },
		{ "all", 'a', CM_OPTION_SWITCH, &ls.is_all },
		{ "size", 's', CM_OPTION_SWITCH, &ls.with_size },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	int status;
	int n = 0;

	cm_buf_init(&ls.out, MAX_TEXT);
	cm_jw_init(&ls.json, &ls.out, true);
	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) != CM_OK ||
	    prepare(&ls, n, argv, &err) != CM_OK)
		status = cm_cli_fail(cli, &err);
	else
		status = run(&ls, &err);
	cm_session_format_free(ls.format);
	cm_session_filter_clear(&ls.filter);
	cm_strv_clear(&ls.filters);
	cm_strv_clear(&ls.cells);
	cm_buf_clear(&ls.out);
	return status;
}
