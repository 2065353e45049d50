/* SPDX-License-Identifier: Apache-2.0 */
/* casemate prune: forget sessions that are not used any more. */
#include <stdio.h>
#include <string.h>

#include "providers/local/prune.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/sessions.h"

#define MAX_TEXT (64UL * 1024 * 1024)
#define OLDEST_MS (3650ULL * 24 * 60 * 60 * 1000)
#define LAST_MAX 1000000

struct prune {
	struct cm_cli *cli;
	const char *root;
	const char *older_than;
	const char *keep_last;
	struct cm_strv states;
	struct cm_strv labels;
	struct cm_strv filters;
	bool is_everything;
	bool is_json;
	bool is_quiet;

	struct cm_session_filter filter;
	struct cm_prune how;
	/* what is printed: ids, or a JSON object whose lists are written one by one */
	struct cm_buf out;
	struct cm_buf lists[CM_PRUNE_FAILED + 1];
	struct cm_json_writer writers[CM_PRUNE_FAILED + 1];
	size_t n[CM_PRUNE_FAILED + 1];
	struct cm_tree_size freed;
};

static void write_json(struct prune *p, const struct cm_pruned *pruned)
{
	struct cm_json_writer *w = &p->writers[pruned->outcome];

	cm_jw_object(w);
	cm_jw_kstring(w, "id", pruned->s->record.id);
	if (pruned->outcome == CM_PRUNE_REMOVED) {
		cm_jw_kuint(w, "bytes", pruned->size.bytes);
		cm_jw_kbool(w, "files", pruned->with_files);
	} else {
		cm_jw_kstring(w, "code", cm_error_name(pruned->why->code));
		cm_jw_kstring(w, "reason", pruned->why->msg);
	}
	cm_jw_end_object(w);
}

static void on_pruned(void *data, const struct cm_pruned *pruned)
{
	struct prune *p = data;
	const char *id = pruned->s->record.id;

	p->n[pruned->outcome]++;
	if (pruned->outcome == CM_PRUNE_REMOVED) {
		p->freed.bytes += pruned->size.bytes;
		p->freed.is_partial = p->freed.is_partial || pruned->size.is_partial;
	}
	if (p->is_json)
		write_json(p, pruned);
	else if (pruned->outcome == CM_PRUNE_REMOVED)
		cm_buf_printf(&p->out, "%s\n", id);
	else if (pruned->outcome == CM_PRUNE_KEPT)
		cm_cli_note(p->cli, "session '%s' stays: %s", id, pruned->why->msg);
	else
		cm_cli_print_error(p->cli, pruned->why);
}

static void finish_json(struct prune *p)
{
	static const char *const names[] = {
		[CM_PRUNE_REMOVED] = "removed",
		[CM_PRUNE_KEPT] = "kept",
		[CM_PRUNE_FAILED] = "failed",
	};

	cm_buf_printf(&p->out, "{\"dryRun\":%s", p->how.is_dry ? "true" : "false");
	for (int i = CM_PRUNE_REMOVED; i <= CM_PRUNE_FAILED; i++) {
		cm_jw_end_array(&p->writers[i]);
		if (cm_buf_status(&p->lists[i]) != CM_OK)
			p->out.has_failed = true;
		else
			cm_buf_printf(&p->out, ",\"%s\":%s", names[i], p->lists[i].data);
	}
	cm_buf_printf(&p->out, ",\"bytes\":%llu}\n", (unsigned long long)p->freed.bytes);
}

static void sum_up(const struct prune *p)
{
	size_t n = p->n[CM_PRUNE_REMOVED];
	size_t kept = p->n[CM_PRUNE_KEPT];
	char size[32];
	char stay[48] = "";

	cm_format_size(p->freed.bytes, size, sizeof(size));
	if (kept > 0)
		(void)snprintf(stay, sizeof(stay), "; %zu stay%s (--force)", kept,
			       kept == 1 ? "s" : "");
	cm_cli_note(p->cli, "%zu session%s %s, %s%s%s", n, n == 1 ? "" : "s",
		    p->how.is_dry ? "would go" : "removed", size, p->freed.is_partial ? "+" : "",
		    stay);
}

static int read_states(struct prune *p, struct cm_error *err)
{
	int r = CM_OK;

	for (size_t i = 0; r == CM_OK && i < p->states.n; i++) {
		CM_AUTO_FREE char *text = cm_asprintf("state=%s", p->states.v[i]);

		r = text ? cm_session_filter_add(&p->filter, text, err)
			 : cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	}
	if (r == CM_OK && (p->filter.states >> CM_STATUS_RUNNING & 1) != 0) {
		r = cm_error_set(err, CM_E_INVALID, 0, "prune removes no session that runs");
		cm_error_hint(err, "'casemate ls -q --filter state=running' lists them, "
				   "'casemate stop ID' stops one");
	}
	return r;
}

static int read_filters(struct prune *p, struct cm_error *err)
{
	int r = CM_OK;

	for (size_t i = 0; r == CM_OK && i < p->labels.n; i++) {
		CM_AUTO_FREE char *text = cm_asprintf("label=%s", p->labels.v[i]);

		r = text ? cm_session_filter_add(&p->filter, text, err)
			 : cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	}
	for (size_t i = 0; r == CM_OK && i < p->filters.n; i++)
		r = cm_session_filter_add(&p->filter, p->filters.v[i], err);
	return r == CM_OK ? read_states(p, err) : r;
}

static int read_numbers(struct prune *p, struct cm_error *err)
{
	uint64_t last = 0;
	int r = CM_OK;

	/* seconds, as elsewhere, are hardly what was meant here */
	if (p->older_than && p->older_than[0] != '\0' &&
	    p->older_than[strspn(p->older_than, "0123456789.")] == '\0')
		r = cm_error_set(err, CM_E_INVALID, 0, "--older-than '%.40s' has no unit",
				 p->older_than);
	else if (p->older_than)
		r = cm_parse_duration(p->older_than, "--older-than", 1, OLDEST_MS, &p->how.older_ms,
				      err);
	if (r != CM_OK) {
		cm_error_hint(err, "for example --older-than 7d: s, m, h and d are units");
		return r;
	}
	if (p->keep_last)
		r = cm_parse_u64(p->keep_last, "--keep-last", 1, LAST_MAX, &last, err);
	p->how.keep_last = (size_t)last;
	return r;
}

/* There is no way back, and no question is asked. */
static int check_choice(const struct prune *p, struct cm_error *err)
{
	bool has_choice = p->older_than || p->keep_last ||
			  !cm_session_filter_is_of_names(&p->filter) || p->filter.names.n > 0;

	if (has_choice && p->is_everything) {
		(void)cm_error_set(err, CM_E_INVALID, 0,
				   "--all and a choice contradict each other");
		cm_error_hint(err, "leave --all out");
		return CM_E_INVALID;
	}
	if (has_choice || p->is_everything)
		return CM_OK;
	(void)cm_error_set(err, CM_E_INVALID, 0, "prune does not say which sessions are to go");
	cm_error_hint(err, "give --older-than 7d, --keep-last N, --state stopped, --label KEY or "
			   "--all; --dry-run shows which they are");
	return CM_E_INVALID;
}

static int prepare(struct prune *p, int n, char **argv, struct cm_error *err)
{
	int r;

	if (n > 0) {
		(void)cm_error_set(err, CM_E_INVALID, 0, "'%.100s' is not an option of 'prune'",
				   argv[1]);
		cm_error_hint(err, "'casemate rm %.60s' removes a session that is named", argv[1]);
		return CM_E_INVALID;
	}
	if (p->how.is_forced && !p->how.with_files) {
		(void)cm_error_set(err, CM_E_INVALID, 0, "--force needs --files");
		cm_error_hint(err, "it is for directories with work that is nowhere else; without "
				   "--files they stay");
		return CM_E_INVALID;
	}
	r = read_numbers(p, err);
	if (r == CM_OK)
		r = read_filters(p, err);
	return r == CM_OK ? check_choice(p, err) : r;
}

static int run(struct prune *p, struct cm_error *err)
{
	struct cm_store store;
	int r = cm_cli_store_open(p->cli, p->root, &store, err);

	if (r != CM_OK)
		return cm_cli_fail(p->cli, err);
	if (p->root && cm_strv_add(&p->filter.roots, store.root) != CM_OK)
		r = cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	if (r == CM_OK)
		r = cm_local_prune(&store, &p->how, &p->cli->config, err);
	cm_store_kept_collect(&store);
	(void)cm_store_collect_slots(&store, NULL);
	cm_store_close(&store);
	if (p->is_json)
		finish_json(p);
	if (r == CM_OK && cm_buf_status(&p->out) != CM_OK)
		r = cm_error_set(err, cm_buf_status(&p->out), 0, "out of memory");
	if (r != CM_OK)
		return cm_cli_fail(p->cli, err);
	r = cm_cli_print(p->cli, p->out.data ? p->out.data : "", p->out.len);
	if (!p->is_json && !p->is_quiet)
		sum_up(p);
	return r == 0 && p->n[CM_PRUNE_FAILED] > 0 ? p->cli->failure_exit : r;
}

int cm_cmd_prune(struct cm_cli *cli, int argc, char **argv)
{
	struct prune p = { .cli = cli };
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &p.root },
		{ "older-than", '\0', CM_OPTION_TEXT, &p.older_than },
		{ "keep-last", '\0', CM_OPTION_TEXT, &p.keep_last },
		{ "state", '\0', CM_OPTION_LIST, &p.states },
		{ "label", 'l', CM_OPTION_LIST, &p.labels },
		{ "filter", 'f', CM_OPTION_LIST, &p.filters },
		{ "all", 'a', CM_OPTION_SWITCH, &p.is_everything },
		{ "files", '\0', CM_OPTION_SWITCH, &p.how.with_files },
		{ "force", '\0', CM_OPTION_SWITCH, &p.how.is_forced },
		{ "dry-run", 'n', CM_OPTION_SWITCH, &p.how.is_dry },
		{ "json", '\0', CM_OPTION_SWITCH, &p.is_json },
		{ "quiet", 'q', CM_OPTION_SWITCH, &p.is_quiet },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	int status;
	int n = 0;

	p.how.filter = &p.filter;
	p.how.wants_size = true;
	p.how.tell = on_pruned;
	p.how.data = &p;
	cm_buf_init(&p.out, MAX_TEXT);
	for (int i = CM_PRUNE_REMOVED; i <= CM_PRUNE_FAILED; i++) {
		cm_buf_init(&p.lists[i], MAX_TEXT);
		cm_jw_init(&p.writers[i], &p.lists[i], false);
		cm_jw_array(&p.writers[i]);
	}
	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) != CM_OK ||
	    prepare(&p, n, argv, &err) != CM_OK)
		status = cm_cli_fail(cli, &err);
	else
		status = run(&p, &err);
	for (int i = CM_PRUNE_REMOVED; i <= CM_PRUNE_FAILED; i++)
		cm_buf_clear(&p.lists[i]);
	cm_buf_clear(&p.out);
	cm_session_filter_clear(&p.filter);
	cm_strv_clear(&p.states);
	cm_strv_clear(&p.labels);
	cm_strv_clear(&p.filters);
	return status;
}
