/* SPDX-License-Identifier: Apache-2.0 */
/* casemate ps: a session's commands, those that run and those that ended last. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/exec_view.h"
#include "runtime/cli/sessions.h"
#include "runtime/cli/terminal.h"

#define MAX_TEXT (64UL * 1024 * 1024)
/* of those that have ended, unless all are wanted */
#define N_ENDED 10U
#define STATE_WIDTH 14
#define TIME_WIDTH 7
#define EXEC_WIDTH 8

struct ps_options {
	const char *root;
	bool is_json;
	bool is_quiet;
	bool is_all;
};

struct row {
	uint64_t exec_id;
	/* 0: it has not */
	int64_t ended_ms;
	bool is_shown;
};

struct rows {
	struct row *v;
	size_t n;
};

/* --- which ones ---------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
	const struct row *left = a;
	const struct row *right = b;

	return (left->exec_id > right->exec_id) - (left->exec_id < right->exec_id);
}

static int by_end(const void *a, const void *b)
{
	const struct row *left = a;
	const struct row *right = b;

	return (left->ended_ms > right->ended_ms) - (left->ended_ms < right->ended_ms);
}

/* When it ended; when it began, where the end is not known. */
static int64_t end_of(const struct cm_exec_target *t, uint64_t exec_id)
{
	struct cm_journal_reader reader;
	struct cm_journal_result result;
	int64_t ended_ms = 1;

	cm_journal_reader_init(&reader);
	if (cm_journal_open(t->session.dir_fd, exec_id, &reader, NULL) < 0)
		return ended_ms;
	if (cm_journal_result_read(&reader, &result) == 1)
		ended_ms = result.ended_ms;
	else
		ended_ms = reader.request.started_ms;
	cm_journal_reader_close(&reader);
	return ended_ms > 0 ? ended_ms : 1;
}

static size_t count_items(const struct cm_exec_target *t)
{
	const char *text;
	size_t at = 0;
	size_t n = 0;

	while (cm_jail_item(&t->list, &at, &text))
		n++;
	return n;
}

/* Of all that are known the running ones, and the last that ended; by id. */
static int choose(const struct cm_exec_target *t, bool is_all, struct rows *rows,
		  struct cm_error *err)
{
	const struct cm_rec_item *item;
	const char *text;
	size_t at = 0;
	size_t n_ended;

	rows->v = cm_calloc(t->n_journals + count_items(t) + 1, sizeof(*rows->v));
	if (!rows->v)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the list");
	for (size_t i = 0; i < t->n_journals; i++) {
		uint64_t id = t->journals[i];

		if (!cm_exec_target_item(t, id, NULL))
			rows->v[rows->n++] = (struct row){ id, end_of(t, id), false };
	}
	n_ended = rows->n;
	qsort(rows->v, n_ended, sizeof(*rows->v), by_end);
	for (size_t i = 0; i < n_ended; i++)
		rows->v[i].is_shown = is_all || i + N_ENDED >= n_ended;
	while ((item = cm_jail_item(&t->list, &at, &text)) != NULL)
		rows->v[rows->n++] = (struct row){ item->exec_id, 0, true };
	qsort(rows->v, rows->n, sizeof(*rows->v), by_id);
	return CM_OK;
}

/* --- how they are shown -------------------------------------------------------------------- */

static void state_text(const struct cm_exec_view *view, char *buf, size_t size)
{
	char fate[CM_EXEC_FATE_SIZE];

	cm_exec_fate_format(&view->fate, fate);
	switch (view->state) {
	case CM_EXEC_STARTING:
		(void)snprintf(buf, size, "starting");
		return;
	case CM_EXEC_RUNNING:
		(void)snprintf(buf, size, "running");
		return;
	case CM_EXEC_CHILDREN_LEFT:
		(void)snprintf(buf, size, "children left");
		return;
	case CM_EXEC_ENDED:
	case CM_EXEC_UNKNOWN:
		(void)snprintf(buf, size, "%s", fate);
		return;
	}
}

/* columns: of the terminal; 0: as long as it is */
static void put_row(struct cm_buf *out, const struct cm_exec_view *view, size_t columns)
{
	const size_t before = EXEC_WIDTH + STATE_WIDTH + 2 * TIME_WIDTH + 8;
	CM_AUTO_BUF struct cm_buf command = { 0 };
	char state[CM_EXEC_FATE_SIZE];
	char id[CM_EXEC_ID_SIZE];
	char age[32];
	char took[32] = "-";

	cm_exec_id_format(view->exec_id, id);
	state_text(view, state, sizeof(state));
	cm_cli_format_age(view->started_ms, age, sizeof(age));
	if (view->state != CM_EXEC_UNKNOWN &&
	    (view->state != CM_EXEC_CHILDREN_LEFT || view->fate.is_known))
		cm_format_duration(cm_exec_view_wall_ms(view), took, sizeof(took));
	cm_buf_init(&command, MAX_TEXT);
	cm_exec_view_command(view, &command);
	cm_buf_printf(out, "%-*s  %-*s  %-*s  %-*s  ", EXEC_WIDTH, id, STATE_WIDTH, state,
		      TIME_WIDTH, age, TIME_WIDTH, took);
	if (cm_buf_status(&command) < 0)
		out->has_failed = true;
	else if (columns == 0)
		cm_buf_append(out, command.data ? command.data : "", command.len);
	else if (columns > before)
		cm_buf_append(out, command.data ? command.data : "",
			      cm_text_fitting(command.data, command.len, columns - before));
	cm_buf_putc(out, '\n');
}

static size_t columns_of_output(void)
{
	uint16_t rows = 0;
	uint16_t columns = 0;

	if (isatty(STDOUT_FILENO))
		cm_terminal_size(&rows, &columns);
	return columns;
}

static void put_header(struct cm_buf *out)
{
	cm_buf_printf(out, "%-*s  %-*s  %-*s  %-*s  COMMAND\n", EXEC_WIDTH, "EXEC", STATE_WIDTH,
		      "STATE", TIME_WIDTH, "AGE", TIME_WIDTH, "TIME");
}

static int put_one(const struct cm_exec_target *t, uint64_t id, const struct ps_options *o,
		   struct cm_json_writer *w, struct cm_buf *out, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;
	struct cm_exec_view view;
	char name[CM_EXEC_ID_SIZE];
	int r;

	if (o->is_quiet) {
		cm_exec_id_format(id, name);
		cm_buf_printf(out, "%s\n", name);
		return CM_OK;
	}
	r = cm_exec_view_fill(t, id, &view, &why);
	if (r == CM_OK && o->is_json)
		cm_exec_view_write(w, &view);
	else if (r == CM_OK)
		put_row(out, &view, columns_of_output());
	cm_exec_view_clear(&view);
	/* removed meanwhile; one that is damaged keeps nobody from seeing the others */
	if (r == CM_E_PROTOCOL)
		cm_cli_note(t->cli, "%s", why.msg);
	if (r == CM_OK || r == CM_E_NOT_FOUND || r == CM_E_PROTOCOL)
		return CM_OK;
	if (err)
		*err = why;
	return r;
}

static int print(const struct cm_exec_target *t, const struct rows *rows,
		 const struct ps_options *o)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_json_writer w;
	int r = CM_OK;

	cm_buf_init(&out, MAX_TEXT);
	cm_jw_init(&w, &out, true);
	if (o->is_json)
		cm_jw_array(&w);
	else if (!o->is_quiet)
		put_header(&out);
	for (size_t i = 0; i < rows->n && r == CM_OK; i++) {
		if (rows->v[i].is_shown)
			r = put_one(t, rows->v[i].exec_id, o, &w, &out, &err);
	}
	if (o->is_json) {
		cm_jw_end_array(&w);
		cm_buf_putc(&out, '\n');
	}
	if (r == CM_OK && cm_buf_status(&out) < 0)
		r = cm_error_set(&err, cm_buf_status(&out), 0, "no memory for the list");
	return r < 0 ? cm_cli_fail(t->cli, &err)
		     : cm_cli_print(t->cli, out.data ? out.data : "", out.len);
}

/* One whose keeper does not answer, or is of another version, has its journals all the same. */
static int open_target(struct cm_exec_target *t, struct cm_cli *cli, const struct ps_options *o,
		       const char *session, struct cm_error *err)
{
	int r = cm_exec_target_open(t, cli, o->root, session, err);

	if ((r != CM_E_TIMEOUT && r != CM_E_UNSUPPORTED) || !t->has_session ||
	    t->session.record.is_temporary)
		return r;
	cm_cli_note(cli, "which commands run is not known: %s", err->msg);
	return CM_OK;
}

static int show(struct cm_cli *cli, const struct ps_options *o, const char *session)
{
	struct cm_error err = CM_ERROR_INIT;
	struct rows rows = { NULL, 0 };
	struct cm_exec_target t;
	int r = open_target(&t, cli, o, session, &err);

	if (r == CM_OK)
		r = choose(&t, o->is_all, &rows, &err);
	r = r < 0 ? cm_cli_fail(cli, &err) : print(&t, &rows, o);
	free(rows.v);
	cm_exec_target_close(&t);
	return r;
}

int cm_cmd_ps(struct cm_cli *cli, int argc, char **argv)
{
	struct ps_options o = { NULL };
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &o.root },
		{ "json", '\0', CM_OPTION_SWITCH, &o.is_json },
		{ "quiet", 'q', CM_OPTION_SWITCH, &o.is_quiet },
		{ "all", 'a', CM_OPTION_SWITCH, &o.is_all },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	CM_AUTO_FREE char **words = cm_calloc((size_t)argc, sizeof(*words));
	struct cm_error err = CM_ERROR_INIT;
	int n = 0;

	if (!words) {
		(void)cm_error_set(&err, CM_E_NOMEM, 0, "no memory for the command line");
		return cm_cli_fail(cli, &err);
	}
	memcpy(words, argv, (size_t)argc * sizeof(*words));
	/* without a session it is ls, with all that ls takes */
	if (cm_cli_options(argc - 1, words + 1, options, &n, &err) != CM_OK || n == 0)
		return cm_cmd_ls(cli, argc, argv);
	if (n > 1) {
		(void)cm_error_set(&err, CM_E_INVALID, 0, "'ps' takes one session, not %d", n);
		cm_error_hint(&err, "'casemate ls' lists them");
		return cm_cli_fail(cli, &err);
	}
	return show(cli, &o, words[1]);
}
