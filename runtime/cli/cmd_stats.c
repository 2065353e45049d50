/* SPDX-License-Identifier: Apache-2.0 */
/* casemate stats: what sessions that run use, once or as long as somebody looks on. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/live_screen.h"
#include "runtime/cli/session_use.h"
#include "runtime/cli/sessions.h"

#define MAX_TEXT (16UL * 1024 * 1024)
#define REFRESH_MS 1000
/* between the two looks of one table */
#define ONCE_MS 500
/* a walk through a tree may take long */
#define DISK_MS 30000

struct stats_options {
	const char *root;
	bool is_json;
	bool is_once;
	bool with_size;
};

struct stats {
	struct cm_cli *cli;
	struct cm_store *store;
	const struct stats_options *o;
	/* those that are named; none: all that run */
	char *const *ids;
	int n_ids;
	struct cm_session_use *rows;
	size_t n_rows;
	/* one that is named does not run, or cannot be looked at */
	bool has_failed;
};

/* --- rows ---------------------------------------------------------------------------------- */

static struct cm_session_use *find_row(const struct stats *stats, const char *id)
{
	for (size_t i = 0; i < stats->n_rows; i++) {
		if (strcmp(stats->rows[i].id, id) == 0)
			return &stats->rows[i];
	}
	return NULL;
}

static struct cm_session_use *add_row(struct stats *stats, const char *id)
{
	struct cm_session_use *rows =
		cm_realloc(stats->rows, (stats->n_rows + 1) * sizeof(*stats->rows));

	if (!rows)
		return NULL;
	stats->rows = rows;
	rows += stats->n_rows++;
	*rows = (struct cm_session_use){ .percent = -1 };
	(void)snprintf(rows->id, sizeof(rows->id), "%s", id);
	return rows;
}

static void measure_disk(const struct stats *stats, const struct cm_store_session *s,
			 struct cm_session_use *row)
{
	int64_t now = cm_clock_mono_ms();

	if (!stats->o->with_size || (row->has_disk && now < row->disk_due_ms))
		return;
	cm_local_measure_disk(s, &row->disk);
	row->has_disk = true;
	row->disk_due_ms = now + DISK_MS;
}

/* CM_E_NOT_FOUND: it does not run (any more). */
static int look_at(struct stats *stats, const char *id, struct cm_error *err)
{
	struct cm_session_use *row = find_row(stats, id);
	struct cm_store_session s;
	int r = cm_store_session_open_as(stats->store, id, CM_STORE_ANY_ROOT, 0, &s, err);

	if (r < 0)
		return r;
	if (!row)
		row = add_row(stats, id);
	if (!row)
		r = cm_error_set(err, CM_E_NOMEM, 0, "no memory for the table");
	if (r == CM_OK && stats->o->root && strcmp(s.record.root, stats->store->root) != 0 &&
	    stats->n_ids == 0)
		r = CM_E_NOT_FOUND;
	if (r == CM_OK)
		r = cm_session_use_update(row, &s, err);
	if (r == CM_OK)
		measure_disk(stats, &s, row);
	if (row)
		row->is_running = r == CM_OK;
	cm_store_session_close(&s);
	return r;
}

static int look_at_named(struct stats *stats, struct cm_error *err)
{
	(void)err;
	for (int i = 0; i < stats->n_ids; i++) {
		struct cm_error why = CM_ERROR_INIT;

		if (look_at(stats, stats->ids[i], &why) == CM_OK)
			continue;
		if (!stats->has_failed || stats->o->is_once || stats->o->is_json)
			cm_cli_print_error(stats->cli, &why);
		stats->has_failed = true;
	}
	return CM_OK;
}

/* Others come and go meanwhile; one that cannot be looked at is none that runs. */
static int look_at_all(struct stats *stats, struct cm_error *err)
{
	CM_AUTO_STRV struct cm_strv ids = { 0 };
	int r;

	if (stats->n_ids > 0)
		return look_at_named(stats, err);
	for (size_t i = 0; i < stats->n_rows; i++)
		stats->rows[i].is_running = false;
	r = cm_store_list(stats->store, &ids, err);
	for (size_t i = 0; i < ids.n && r == CM_OK; i++)
		(void)look_at(stats, ids.v[i], NULL);
	return r;
}

/* --- shown --------------------------------------------------------------------------------- */

static int print(struct stats *stats)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_json_writer w;

	cm_buf_init(&out, MAX_TEXT);
	cm_jw_init(&w, &out, true);
	if (stats->o->is_json)
		cm_jw_array(&w);
	else
		cm_session_use_header(&out, stats->o->with_size);
	for (size_t i = 0; i < stats->n_rows; i++) {
		if (!stats->rows[i].is_running)
			continue;
		if (stats->o->is_json)
			cm_session_use_write(&w, &stats->rows[i]);
		else
			cm_session_use_row(&out, &stats->rows[i], stats->o->with_size);
	}
	if (stats->o->is_json) {
		cm_jw_end_array(&w);
		cm_buf_putc(&out, '\n');
	}
	if (cm_buf_status(&out) < 0) {
		(void)cm_error_set(&err, CM_E_NOMEM, 0, "no memory for the table");
		return cm_cli_fail(stats->cli, &err);
	}
	return cm_cli_print(stats->cli, out.data, out.len);
}

/* Use of processors is between two looks. */
static int show_once(struct stats *stats)
{
	struct cm_error err = CM_ERROR_INIT;
	int r = look_at_all(stats, &err);

	if (r == CM_OK && stats->n_rows > 0 && !stats->has_failed) {
		(void)poll(NULL, 0, ONCE_MS);
		r = look_at_all(stats, &err);
	}
	if (r < 0)
		return cm_cli_fail(stats->cli, &err);
	r = print(stats);
	return r == 0 && stats->has_failed ? stats->cli->failure_exit : r;
}

static bool draw(void *data, struct cm_buf *out, struct cm_error *err)
{
	struct stats *stats = data;
	bool is_any = stats->n_ids == 0;

	if (look_at_all(stats, err) < 0)
		return false;
	cm_session_use_header(out, stats->o->with_size);
	for (size_t i = 0; i < stats->n_rows; i++) {
		if (!stats->rows[i].is_running)
			continue;
		is_any = true;
		cm_session_use_row(out, &stats->rows[i], stats->o->with_size);
	}
	/* of those that were named the last one has ended */
	return is_any;
}

static int show(struct stats *stats)
{
	struct cm_error err = CM_ERROR_INIT;
	int status;

	if (stats->o->is_once || stats->o->is_json || isatty(STDOUT_FILENO) != 1)
		return show_once(stats);
	/* what is wrong with the names is said where it can be read */
	if (look_at_named(stats, &err) < 0 || stats->has_failed)
		return stats->cli->failure_exit;
	status = cm_live_screen_run(draw, stats, REFRESH_MS, &err);
	return status < 0 ? cm_cli_fail(stats->cli, &err) : status;
}

int cm_cmd_stats(struct cm_cli *cli, int argc, char **argv)
{
	struct stats_options o = { NULL };
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &o.root },
		{ "json", '\0', CM_OPTION_SWITCH, &o.is_json },
		{ "once", '\0', CM_OPTION_SWITCH, &o.is_once },
		{ "no-stream", '\0', CM_OPTION_SWITCH, &o.is_once },
		{ "size", '\0', CM_OPTION_SWITCH, &o.with_size },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	struct cm_store store;
	struct stats stats = { .cli = cli, .store = &store, .o = &o, .ids = argv + 1 };
	int status;

	if (cm_cli_options(argc - 1, argv + 1, options, &stats.n_ids, &err) != CM_OK ||
	    cm_cli_store_open(cli, o.root, &store, &err) != CM_OK)
		return cm_cli_fail(cli, &err);
	status = show(&stats);
	free(stats.rows);
	cm_store_close(&store);
	return status;
}
