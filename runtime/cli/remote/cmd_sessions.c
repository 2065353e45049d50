/* SPDX-License-Identifier: Apache-2.0 */
/* casemate ls, inspect, stop, rm: of sessions that are elsewhere. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "providers/remote/prepare.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/remote/absent.h"
#include "runtime/cli/remote/away.h"
#include "runtime/cli/remote/ending.h"
#include "runtime/cli/remote/recall.h"
#include "runtime/cli/remote/session_shown.h"
#include "runtime/cli/remote/unsaved.h"
#include "runtime/store/filter.h"

#define MAX_TEXT (64UL * 1024 * 1024)
/* between columns */
#define GAP 2

/* --- ls ------------------------------------------------------------------------------------ */

static const char *const titles[] = { "ID", "STATE", "AGE", "EXPIRES", "TEMPLATE", "REPO" };
#define N_COLUMNS CM_ARRAY_SIZE(titles)

struct ls {
	struct cm_cli *cli;
	const char *root;
	const char *format;
	struct cm_strv filters;
	bool is_json;
	bool is_quiet;
	/* all are listed: a service does not tell temporary ones apart */
	bool is_all;
	bool with_size;

	struct cm_session_filter filter;
	struct cm_away_recall recall;
	struct cm_buf out;
	struct cm_json_writer json;
	/* the table's cells, row by row */
	struct cm_strv cells;
};

static void add_cell(struct ls *ls, const char *text)
{
	CM_AUTO_BUF struct cm_buf cell = { 0 };

	cm_buf_init(&cell, MAX_TEXT);
	if (!text || text[0] == '\0')
		text = "-";
	cm_text_escape(&cell, text, strlen(text), false);
	/* a lack of memory shows in the end: NULL is not added */
	if (cm_strv_add_own(&ls->cells, cm_buf_take(&cell)) != CM_OK)
		ls->out.has_failed = true;
}

static void add_row(struct ls *ls, const struct cm_session_info *info)
{
	char age[32];
	char left[32];

	cm_cli_format_age(info->created_ms, age, sizeof(age));
	cm_away_format_left(info->expires_ms, left, sizeof(left));
	add_cell(ls, info->id);
	add_cell(ls, cm_session_status_name(cm_away_session_status(info->state)));
	add_cell(ls, age);
	add_cell(ls, left);
	add_cell(ls, info->template_name);
	add_cell(ls, info->repo);
}

/* Characters, as far as they are one wide. */
static size_t width_of(const char *text)
{
	size_t n = 0;

	for (; *text != '\0'; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static const char *cell_at(const struct ls *ls, size_t i)
{
	return i < N_COLUMNS ? titles[i] : ls->cells.v[i - N_COLUMNS];
}

static void put_table(struct ls *ls)
{
	size_t n = N_COLUMNS + ls->cells.n;
	size_t widths[N_COLUMNS] = { 0 };

	for (size_t i = 0; i < n; i++) {
		size_t width = width_of(cell_at(ls, i));

		if (width > widths[i % N_COLUMNS])
			widths[i % N_COLUMNS] = width;
	}
	for (size_t i = 0; i < n; i++) {
		const char *text = cell_at(ls, i);
		size_t column = i % N_COLUMNS;

		cm_buf_puts(&ls->out, text);
		if (column + 1 == N_COLUMNS) {
			cm_buf_putc(&ls->out, '\n');
			continue;
		}
		for (size_t k = width_of(text); k < widths[column] + GAP; k++)
			cm_buf_putc(&ls->out, ' ');
	}
}

static void show(struct ls *ls, const struct cm_session_info *info)
{
	if (ls->is_json) {
		cm_away_session_write(&ls->json, info);
	} else if (ls->is_quiet) {
		cm_text_escape(&ls->out, info->id, strlen(info->id), false);
		cm_buf_putc(&ls->out, '\n');
	} else {
		add_row(ls, info);
	}
}

static int list_one(void *data, const struct cm_session_info *info)
{
	struct cm_record remembered = { 0 };
	struct cm_session_record record;
	struct cm_session_info known;
	struct ls *ls = data;

	if (!cm_session_filter_has_name(&ls->filter, info->id))
		return 0;
	cm_away_recall_info(&ls->recall, info, &remembered, &known);
	cm_away_session_record(&known, &record);
	if (cm_session_filter_matches(&ls->filter, &record, cm_away_session_status(info->state)))
		show(ls, &known);
	cm_record_clear(&remembered);
	return 0;
}

static int list_all(struct ls *ls)
{
	struct cm_away away = { .signal_fd = -1, .cli = ls->cli };
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_away_open(&away, ls->cli, &err);

	if (ls->is_json)
		cm_jw_array(&ls->json);
	if (r == CM_OK) {
		cm_away_recall_open(&ls->recall, &away);
		r = cm_session_list(away.provider, &away.call, list_one, ls, &err);
	}
	if (ls->is_json) {
		cm_jw_end_array(&ls->json);
		cm_buf_putc(&ls->out, '\n');
	} else if (!ls->is_quiet) {
		put_table(ls);
	}
	if (r == CM_OK && cm_buf_status(&ls->out) < 0)
		r = cm_error_set(&err, cm_buf_status(&ls->out), 0, "no memory for the sessions");
	r = r < 0 ? cm_away_fail(&away, &err)
		  : cm_cli_print(ls->cli, ls->out.data ? ls->out.data : "", ls->out.len);
	cm_away_recall_close(&ls->recall);
	cm_away_close(&away);
	return r;
}

static int check_words(int n, char **argv, struct cm_error *err)
{
	if (n == 0)
		return CM_OK;
	(void)cm_error_set(err, CM_E_INVALID, 0, "'%.100s' is not an option of 'ls'", argv[1]);
	cm_error_hint(err,
		      "'casemate inspect ID' shows one session, "
		      "'casemate ls --filter name=%.60s' those that begin so",
		      argv[1]);
	return CM_E_INVALID;
}

static int read_asked(struct ls *ls, int n, char **argv, struct cm_error *err)
{
	int r = check_words(n, argv, err);

	if (r == CM_OK)
		r = cm_away_absent_root(ls->root, err);
	if (r == CM_OK)
		r = cm_away_absent_option(ls->format != NULL, "--format",
					  "--json has all that is known of its sessions", err);
	if (r == CM_OK)
		r = cm_away_absent_option(ls->with_size, "--size",
					  "'casemate exec ID -- df -h' shows a sandbox's disk",
					  err);
	for (size_t i = 0; r == CM_OK && i < ls->filters.n; i++)
		r = cm_session_filter_add(&ls->filter, ls->filters.v[i], err);
	if (r == CM_OK)
		r = cm_away_absent_option(
			ls->filter.levels.n + ls->filter.roots.n > 0,
			ls->filter.levels.n > 0 ? "--filter level" : "--filter root",
			"state, name, label and repo are known of its sessions", err);
	return r;
}

int cm_cmd_ls(struct cm_cli *cli, int argc, char **argv)
{
	struct ls ls = { .cli = cli };
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &ls.root },
		{ "format", '\0', CM_OPTION_TEXT, &ls.format },
		{ "filter", 'f', CM_OPTION_LIST, &ls.filters },
		{ "json", '\0', CM_OPTION_SWITCH, &ls.is_json },
		{ "quiet", 'q', CM_OPTION_SWITCH, &ls.is_quiet },
		{ "all", 'a', CM_OPTION_SWITCH, &ls.is_all },
		{ "size", 's', CM_OPTION_SWITCH, &ls.with_size },
		{ "verbose", '\0', CM_OPTION_SWITCH, &cli->is_verbose },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	int status;
	int n = 0;

	cm_buf_init(&ls.out, MAX_TEXT);
	cm_jw_init(&ls.json, &ls.out, true);
	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) < 0 ||
	    read_asked(&ls, n, argv, &err) < 0)
		status = cm_cli_fail(cli, &err);
	else
		status = list_all(&ls);
	cm_session_filter_clear(&ls.filter);
	cm_strv_clear(&ls.filters);
	cm_strv_clear(&ls.cells);
	cm_buf_clear(&ls.out);
	return status;
}

/* --- inspect ------------------------------------------------------------------------------- */

static int print_info(struct cm_cli *cli, const struct cm_session_info *info, bool is_json)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_json_writer w;

	cm_buf_init(&out, MAX_TEXT);
	if (is_json) {
		cm_jw_init(&w, &out, true);
		cm_away_session_write_all(&w, info);
		cm_buf_putc(&out, '\n');
	} else {
		cm_away_session_put(&out, info);
	}
	if (cm_buf_status(&out) == CM_OK)
		return cm_cli_print(cli, out.data, out.len);
	(void)cm_error_set(&err, cm_buf_status(&out), 0, "no memory for the session");
	return cm_cli_fail(cli, &err);
}

static int print_known(const struct cm_away *away, const struct cm_session_info *info, bool is_json)
{
	struct cm_record remembered = { 0 };
	struct cm_away_recall recall;
	struct cm_session_info known;
	int status;

	cm_away_recall_open(&recall, away);
	cm_away_recall_info(&recall, info, &remembered, &known);
	status = print_info(away->cli, &known, is_json);
	cm_record_clear(&remembered);
	cm_away_recall_close(&recall);
	return status;
}

static int inspect(struct cm_cli *cli, const char *id, bool is_json)
{
	struct cm_away away = { .signal_fd = -1, .cli = cli };
	struct cm_session_info info = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_away_attach(&away, cli, id, &err);

	if (r == CM_OK)
		r = cm_session_info(away.session, &away.call, &info, &err);
	r = r < 0 ? cm_away_fail(&away, &err) : print_known(&away, &info, is_json);
	cm_session_info_clear(&info);
	cm_away_close(&away);
	return r;
}

int cm_cmd_inspect(struct cm_cli *cli, int argc, char **argv)
{
	const char *root = NULL;
	bool is_json = false;
	bool is_plan = false;
	bool with_size = false;
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &root },
		{ "json", '\0', CM_OPTION_SWITCH, &is_json },
		{ "plan", '\0', CM_OPTION_SWITCH, &is_plan },
		{ "size", '\0', CM_OPTION_SWITCH, &with_size },
		{ "verbose", '\0', CM_OPTION_SWITCH, &cli->is_verbose },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	int n = 0;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) < 0 ||
	    cm_away_absent_root(root, &err) < 0 ||
	    cm_away_absent_option(is_plan, "--plan", "its sandboxes are made elsewhere", &err) <
		    0 ||
	    cm_away_absent_option(with_size, "--size",
				  "'casemate exec ID -- df -h' shows a sandbox's disk", &err) < 0)
		return cm_cli_fail(cli, &err);
	if (n != 1) {
		(void)cm_error_set(&err, CM_E_INVALID, 0, "'inspect' takes one session, not %d", n);
		cm_error_hint(&err, "'casemate ls' lists them");
		return cm_cli_fail(cli, &err);
	}
	return inspect(cli, argv[1], is_json);
}

/* --- stop and rm --------------------------------------------------------------------------- */

typedef int (*session_fn)(struct cm_away *away, const void *data, struct cm_error *err);

static int remove_one(struct cm_away *away, const void *data, struct cm_error *err);

/* What this host remembers of a session that is not there any more. */
static void forget(const struct cm_away *away, const char *id)
{
	struct cm_session gone = { .provider = away->provider };

	(void)snprintf(gone.id, sizeof(gone.id), "%s", id);
	cm_prepare_forget(&away->cli->config, &gone);
}

static int with_session(struct cm_away *away, const char *id, session_fn fn, const void *data,
			struct cm_error *err)
{
	int r = cm_session_attach(away->provider, id, &away->call, &away->session, err);

	if (r == CM_OK)
		r = fn(away, data, err);
	else if (r == CM_E_NOT_FOUND && fn == remove_one)
		forget(away, id);
	if (!away->session && r == CM_E_NOT_FOUND && err->hint[0] == '\0')
		cm_error_hint(err, "'casemate ls' lists them");
	cm_session_release(away->session);
	away->session = NULL;
	return r;
}

/* Goes on after an error, but not after a signal. */
static int each_session(struct cm_cli *cli, int n, char *const *ids, session_fn fn,
			const void *data)
{
	struct cm_away away = { .signal_fd = -1, .cli = cli };
	struct cm_error err = CM_ERROR_INIT;
	int status = 0;
	int r = n > 0 ? cm_away_open(&away, cli, &err) : CM_E_INVALID;

	if (n == 0) {
		(void)cm_error_set(&err, r, 0, "no session named");
		cm_error_hint(&err, "name one or more: 'casemate ls' lists them");
	}
	if (r < 0)
		status = cm_away_fail(&away, &err);
	for (int i = 0; i < n && r != CM_E_CANCELLED && away.provider; i++) {
		cm_error_clear(&err);
		r = with_session(&away, ids[i], fn, data, &err);
		if (r < 0)
			status = cm_away_fail(&away, &err);
	}
	cm_away_close(&away);
	return status;
}

static int stop_one(struct cm_away *away, const void *data, struct cm_error *err)
{
	const bool *has_no_teardown = data;

	if (!*has_no_teardown)
		cm_away_tear_down(away);
	return cm_session_stop(away->session, &away->call, err);
}

int cm_cmd_stop(struct cm_cli *cli, int argc, char **argv)
{
	const char *root = NULL;
	bool has_no_teardown = false;
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &root },
		{ "no-teardown", '\0', CM_OPTION_SWITCH, &has_no_teardown },
		{ "verbose", '\0', CM_OPTION_SWITCH, &cli->is_verbose },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	int n = 0;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) < 0 ||
	    cm_away_absent_root(root, &err) < 0)
		return cm_cli_fail(cli, &err);
	return each_session(cli, n, argv + 1, stop_one, &has_no_teardown);
}

/* Who runs may be at work, and nothing can be told of that from here. */
static int check_stopped(const struct cm_away *away, struct cm_error *err)
{
	struct cm_session_info info = { 0 };
	int r = cm_session_info(away->session, &away->call, &info, err);
	bool is_running = r == CM_OK && info.state == CM_SESSION_RUNNING;

	cm_session_info_clear(&info);
	/* its sandbox is gone */
	if (r == CM_E_NOT_FOUND) {
		cm_error_clear(err);
		r = CM_OK;
	}
	if (!is_running)
		return r;
	(void)cm_error_set(err, CM_E_BUSY, 0, "session '%s' runs", away->session->id);
	cm_error_hint(
		err,
		"'casemate stop %s' ends what runs in it; 'rm --files --force' removes it with "
		"all that is in it",
		away->session->id);
	return CM_E_BUSY;
}

struct removal {
	bool is_forced;
	bool has_no_teardown;
};

static int remove_one(struct cm_away *away, const void *data, struct cm_error *err)
{
	const struct removal *how = data;
	int r = how->is_forced ? CM_OK : check_stopped(away, err);

	if (r == CM_OK && !how->is_forced)
		r = cm_away_check_unsaved(away, err);
	/* of one that was stopped it has been */
	if (r == CM_OK && how->is_forced && !how->has_no_teardown)
		cm_away_tear_down(away);
	if (r == CM_OK)
		r = cm_session_destroy(away->session, &away->call, err);
	if (r == CM_OK)
		cm_prepare_forget(&away->cli->config, away->session);
	return r;
}

/* A session's files are in its sandbox alone: to forget the one is to remove the others. */
static int check_files(bool with_files, bool is_forced, struct cm_error *err)
{
	if (with_files)
		return CM_OK;
	if (is_forced)
		(void)cm_error_set(err, CM_E_INVALID, 0, "--force needs --files");
	else
		(void)cm_error_set(err, CM_E_INVALID, 0,
				   "provider '%s' keeps no files of a session that is removed",
				   cm_away_provider_name());
	cm_error_hint(err, "'casemate rm --files ID' removes a session with them, 'casemate cp "
			   "ID:PATH DIR' fetches some before");
	return CM_E_INVALID;
}

int cm_cmd_rm(struct cm_cli *cli, int argc, char **argv)
{
	struct removal how = { false };
	const char *root = NULL;
	bool with_files = false;
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &root },
		{ "no-teardown", '\0', CM_OPTION_SWITCH, &how.has_no_teardown },
		{ "files", '\0', CM_OPTION_SWITCH, &with_files },
		{ "force", '\0', CM_OPTION_SWITCH, &how.is_forced },
		{ "verbose", '\0', CM_OPTION_SWITCH, &cli->is_verbose },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	int n = 0;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) < 0 ||
	    cm_away_absent_root(root, &err) < 0 ||
	    (n > 0 && check_files(with_files, how.is_forced, &err) < 0))
		return cm_cli_fail(cli, &err);
	return each_session(cli, n, argv + 1, remove_one, &how);
}
