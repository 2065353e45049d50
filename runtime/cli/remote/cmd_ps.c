/* SPDX-License-Identifier: Apache-2.0 */
/* casemate ps: the commands of a session that is elsewhere. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/remote/absent.h"
#include "runtime/cli/remote/away.h"
#include "runtime/cli/remote/exec_shown.h"
#include "runtime/cli/terminal.h"

#define MAX_TEXT (64UL * 1024 * 1024)
/* of those that have ended, unless all are wanted */
#define N_ENDED 10U

struct ps_options {
	const char *root;
	bool is_json;
	bool is_quiet;
	bool is_all;
};

struct rows {
	struct cm_exec_info *v;
	size_t n;
	size_t capacity;
};

static int add_row(void *data, const struct cm_exec_info *info)
{
	struct rows *rows = data;

	if (rows->n == rows->capacity) {
		size_t capacity = rows->capacity * 2 + 16;
		struct cm_exec_info *v = cm_realloc(rows->v, capacity * sizeof(*v));

		if (!v)
			return CM_E_NOMEM;
		rows->v = v;
		rows->capacity = capacity;
	}
	if (cm_away_exec_copy(info, &rows->v[rows->n]) < 0)
		return CM_E_NOMEM;
	rows->n++;
	return 0;
}

static void free_rows(struct rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		cm_exec_info_clear(&rows->v[i]);
	free(rows->v);
}

static int by_start(const void *a, const void *b)
{
	const struct cm_exec_info *left = a;
	const struct cm_exec_info *right = b;

	if (left->started_ms != right->started_ms)
		return left->started_ms > right->started_ms ? 1 : -1;
	return strcmp(left->name, right->name);
}

/* How many of those that have ended are left out, the oldest first. */
static size_t count_hidden(const struct rows *rows, bool is_all)
{
	size_t n_ended = 0;

	for (size_t i = 0; i < rows->n; i++)
		n_ended += !rows->v[i].is_running;
	return is_all || n_ended < N_ENDED ? 0 : n_ended - N_ENDED;
}

static size_t columns_of_output(void)
{
	uint16_t rows = 0;
	uint16_t columns = 0;

	if (isatty(STDOUT_FILENO))
		cm_terminal_size(&rows, &columns);
	return columns;
}

static void put_rows(const struct rows *rows, const struct ps_options *o, struct cm_buf *out)
{
	size_t n_hidden = count_hidden(rows, o->is_all);
	size_t columns = columns_of_output();
	struct cm_json_writer w;

	cm_jw_init(&w, out, true);
	if (o->is_json)
		cm_jw_array(&w);
	else if (!o->is_quiet)
		cm_away_exec_header(out);
	for (size_t i = 0; i < rows->n; i++) {
		const struct cm_exec_info *info = &rows->v[i];

		if (!info->is_running && n_hidden > 0) {
			n_hidden--;
		} else if (o->is_quiet) {
			cm_text_escape(out, info->name, strlen(info->name), false);
			cm_buf_putc(out, '\n');
		} else if (o->is_json) {
			cm_away_exec_write(&w, info);
		} else {
			cm_away_exec_row(out, info, columns);
		}
	}
	if (o->is_json) {
		cm_jw_end_array(&w);
		cm_buf_putc(out, '\n');
	}
}

static int list(struct cm_cli *cli, const char *session, const struct ps_options *o)
{
	struct cm_away away = { .signal_fd = -1, .cli = cli };
	CM_AUTO_BUF struct cm_buf out = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	struct rows rows = { .n = 0 };
	int r = cm_away_attach(&away, cli, session, &err);

	if (r == CM_OK)
		r = cm_exec_list(away.session, &away.call, add_row, &rows, &err);
	cm_buf_init(&out, MAX_TEXT);
	if (r == CM_OK) {
		if (rows.n > 0)
			qsort(rows.v, rows.n, sizeof(*rows.v), by_start);
		put_rows(&rows, o, &out);
		r = cm_buf_status(&out);
	}
	if (r < 0 && err.code == 0)
		(void)cm_error_set(&err, r, 0, "no memory for the list");
	r = r < 0 ? cm_away_fail(&away, &err)
		  : cm_cli_print(cli, out.data ? out.data : "", out.len);
	free_rows(&rows);
	cm_away_close(&away);
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
		{ "verbose", '\0', CM_OPTION_SWITCH, &cli->is_verbose },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	CM_AUTO_FREE char **words = cm_calloc((size_t)argc + 1, sizeof(*words));
	struct cm_error err = CM_ERROR_INIT;
	int n = 0;

	if (!words) {
		(void)cm_error_set(&err, CM_E_NOMEM, 0, "no memory for the command line");
		return cm_cli_fail(cli, &err);
	}
	memcpy(words, argv, (size_t)argc * sizeof(*words));
	/* without a session it is ls, with all that ls takes */
	if (cm_cli_options(argc - 1, words + 1, options, &n, &err) < 0 || n == 0)
		return cm_cmd_ls(cli, argc, argv);
	if (n > 1) {
		(void)cm_error_set(&err, CM_E_INVALID, 0, "'ps' takes one session, not %d", n);
		cm_error_hint(&err, "'casemate ls' lists them");
	}
	if (n > 1 || cm_away_absent_root(o.root, &err) < 0)
		return cm_cli_fail(cli, &err);
	return list(cli, words[1], &o);
}
