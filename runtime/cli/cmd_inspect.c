/* SPDX-License-Identifier: Apache-2.0 */
/* casemate inspect: one session, all that its state says, as text or JSON. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/json.h"
#include "runtime/base/json_copy.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/session_info.h"
#include "runtime/cli/session_use.h"
#include "runtime/cli/sessions.h"
#include "runtime/spec/format.h"

#define MAX_TEXT (64UL * 1024 * 1024)
#define LABEL_WIDTH 14

struct view {
	const struct cm_store_session *s;
	enum cm_session_status status;
	/* magic 0: none */
	struct cm_end_record end;
	/* what its files take, too */
	bool with_size;
};

static const char *network_name(enum cm_network network)
{
	return network ? cm_network_name(network) : NULL;
}

/* JSON text of the state as JSON and not as a string; null when there is none. */
static void write_embedded(struct cm_json_writer *w, const char *key, const char *text)
{
	struct cm_json_doc *doc = NULL;

	cm_jw_key(w, key);
	if (text && cm_json_parse(text, strlen(text), key, 0, &doc, NULL) == CM_OK)
		cm_json_copy(w, cm_json_root(doc));
	else
		cm_jw_string(w, text);
	cm_json_free(doc);
}

static void write_workspace(struct cm_json_writer *w, const struct cm_session_record *r)
{
	cm_jw_key(w, "workspace");
	cm_jw_object(w);
	cm_jw_kstring(w, "kind", cm_workspace_kind_name(r->workspace_kind));
	cm_jw_kstring(w, "path", r->workspace);
	cm_jw_kbool(w, "readOnly", r->is_workspace_read_only);
	cm_jw_kstring(w, "repo", r->repo);
	cm_jw_kstring(w, "ref", r->ref);
	cm_jw_kstring(w, "checkout", r->checkout);
	cm_jw_kbool(w, "checkoutDone", r->is_checkout_done);
	cm_jw_end_object(w);
}

static void write_setup(struct cm_json_writer *w, const struct cm_session_record *r)
{
	cm_jw_key(w, "setup");
	cm_jw_object(w);
	cm_jw_kstring(w, "state", cm_setup_state_name(r->setup_state));
	cm_jw_kstring(w, "digest", r->setup_digest);
	cm_jw_kint(w, "exit", r->setup_exit);
	cm_cli_write_time(w, "at", r->setup_ms);
	cm_jw_kint(w, "durationMs", r->setup_took_ms);
	cm_jw_end_object(w);
}

static void write_end(struct cm_json_writer *w, const struct cm_end_record *end)
{
	cm_jw_key(w, "lastEnd");
	if (end->magic == 0) {
		cm_jw_null(w);
		return;
	}
	cm_jw_object(w);
	cm_jw_kstring(w, "reason", cm_end_reason_name(end->reason));
	cm_jw_kint(w, "status", end->status);
	cm_jw_kuint(w, "generation", end->generation);
	cm_cli_write_time(w, "at", end->real_ms);
	cm_jw_end_object(w);
}

static void write_directories(struct cm_json_writer *w, const struct cm_store_session *s)
{
	cm_jw_key(w, "directories");
	cm_jw_object(w);
	cm_jw_kstring(w, "session", s->session_dir);
	cm_jw_kstring(w, "state", s->dir);
	cm_jw_kstring(w, "socket", s->socket_path);
	cm_jw_end_object(w);
}

static void write_json(const struct view *v, struct cm_buf *out)
{
	const struct cm_session_record *r = &v->s->record;
	struct cm_session_use use;
	struct cm_json_writer w;

	cm_session_use_look(&use, v->s, v->with_size);
	cm_jw_init(&w, out, true);
	cm_jw_object(&w);
	cm_jw_kstring(&w, "id", r->id);
	cm_jw_kstring(&w, "status", cm_session_status_name(v->status));
	cm_jw_kstring(&w, "level", r->level);
	cm_cli_write_time(&w, "created", r->created_ms);
	cm_jw_key(&w, "labels");
	cm_strv_write_map(&r->labels, &w);
	cm_cli_write_session_info(&w, v->s, &v->end, &use);
	cm_jw_kbool(&w, "temporary", r->is_temporary);
	cm_jw_kuint(&w, "generation", r->generation);
	cm_jw_kstring(&w, "root", r->root);
	write_directories(&w, v->s);
	write_workspace(&w, r);
	cm_jw_kstring(&w, "network", network_name(r->network));
	cm_jw_kstring(&w, "rootfs", r->rootfs);
	cm_jw_kstring(&w, "user", cm_user_name(r->user));
	cm_jw_kstring(&w, "git", cm_git_access_name(r->git));
	write_embedded(&w, "settings", r->settings_json);
	write_embedded(&w, "started", r->started_json);
	write_embedded(&w, "enforced", r->enforced_json);
	cm_session_use_resources(&w, &use);
	write_setup(&w, r);
	write_end(&w, &v->end);
	if (r->slot != CM_SLOT_NONE) {
		cm_jw_kuint(&w, "idSlot", r->slot);
		cm_jw_kuint(&w, "agentId", r->agent_id);
	}
	cm_jw_kint(&w, "stateVersion", r->version);
	cm_jw_end_object(&w);
	cm_buf_putc(out, '\n');
}

static void put_label(struct cm_buf *out, const char *label)
{
	cm_buf_puts(out, label);
	for (size_t n = strlen(label); n < LABEL_WIDTH; n++)
		cm_buf_putc(out, ' ');
}

/* One line; none when there is nothing to say. */
static void put_line(struct cm_buf *out, const char *label, const char *value, const char *more)
{
	if (!value)
		return;
	put_label(out, label);
	cm_text_escape(out, value, strlen(value), false);
	if (more)
		cm_buf_puts(out, more);
	cm_buf_putc(out, '\n');
}

static void put_value(struct cm_buf *out, const struct cm_json *v)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	struct cm_json_writer w;

	cm_buf_init(&text, MAX_TEXT);
	cm_jw_init(&w, &text, false);
	if (v->type == CM_JSON_STRING)
		cm_buf_puts(&text, v->u.string);
	else
		cm_json_copy(&w, v);
	if (text.data)
		cm_text_escape(out, text.data, text.len, false);
}

/* The members of a JSON object of the state, one a line below a heading. */
static void put_members(struct cm_buf *out, const char *heading, const char *json)
{
	struct cm_json_doc *doc = NULL;

	if (!json || cm_json_parse(json, strlen(json), heading, 0, &doc, NULL) != CM_OK)
		return;
	if (cm_json_root(doc)->type == CM_JSON_OBJECT && cm_json_root(doc)->first_child) {
		cm_buf_printf(out, "%s\n", heading);
		for (const struct cm_json *v = cm_json_root(doc)->first_child; v; v = v->next) {
			char label[64];

			(void)snprintf(label, sizeof(label), "  %.60s", v->key);
			put_label(out, label);
			cm_buf_putc(out, ' ');
			put_value(out, v);
			cm_buf_putc(out, '\n');
		}
	}
	cm_json_free(doc);
}

static void put_setup(struct cm_buf *out, const struct cm_session_record *r)
{
	char took[32];
	char more[80];

	if (r->setup_state == CM_SETUP_NONE)
		return;
	cm_format_duration(r->setup_took_ms > 0 ? (uint64_t)r->setup_took_ms : 0, took,
			   sizeof(took));
	/* who wrote the state did not know yet how long */
	if (r->setup_took_ms > 0)
		(void)snprintf(more, sizeof(more), " (exit %d, %s)", r->setup_exit, took);
	else
		(void)snprintf(more, sizeof(more), " (exit %d)", r->setup_exit);
	put_line(out, "setup", cm_setup_state_name(r->setup_state), more);
}

static void put_created(struct cm_buf *out, const struct cm_session_record *r)
{
	char when[CM_CLOCK_RFC3339_SIZE];
	char age[32];
	char more[48];

	if (r->created_ms <= 0)
		return;
	cm_clock_rfc3339(r->created_ms, when);
	cm_cli_format_age(r->created_ms, age, sizeof(age));
	(void)snprintf(more, sizeof(more), " (%s ago)", age);
	put_line(out, "created", when, more);
}

static void put_end(struct cm_buf *out, const struct cm_end_record *end)
{
	char when[CM_CLOCK_RFC3339_SIZE];
	char more[64];

	if (end->magic == 0)
		return;
	cm_clock_rfc3339(end->real_ms, when);
	(void)snprintf(more, sizeof(more), " at %s", when);
	put_line(out, "last end", cm_end_reason_name(end->reason), more);
}

static void write_text(const struct view *v, struct cm_buf *out)
{
	const struct cm_session_record *r = &v->s->record;

	put_line(out, "id", r->id, r->is_temporary ? " (temporary)" : NULL);
	put_line(out, "status", cm_session_status_name(v->status), NULL);
	put_line(out, "level", r->level, NULL);
	put_created(out, r);
	for (size_t i = 0; i < r->labels.n; i++)
		put_line(out, i == 0 ? "labels" : "", r->labels.v[i], NULL);
	put_end(out, &v->end);
	put_line(out, "root", r->root, NULL);
	put_line(out, "directory", v->s->session_dir, NULL);
	put_line(out, "state", v->s->dir, NULL);
	if (r->workspace_kind != CM_WORKSPACE_REPO)
		put_line(out, "workspace", cm_cli_session_subject(v->s),
			 r->is_workspace_read_only ? " (read-only)" : NULL);
	put_line(out, "repository", r->repo, NULL);
	put_line(out, "ref", r->ref, NULL);
	put_line(out, "checkout", r->checkout, r->is_checkout_done ? NULL : " (not complete)");
	put_line(out, "network", network_name(r->network), NULL);
	put_line(out, "rootfs", r->rootfs, NULL);
	put_line(out, "user", cm_user_name(r->user), NULL);
	put_line(out, "git", cm_git_access_name(r->git), NULL);
	put_setup(out, r);
	put_members(out, "settings", r->settings_json);
	put_members(out, "started with", r->started_json);
	put_members(out, "enforced by", r->enforced_json);
}

static int print_plan(struct cm_cli *cli, const struct cm_store_session *s)
{
	CM_AUTO_FREE char *text = cm_malloc(CM_JSON_MAX_BYTES);
	struct cm_error err = CM_ERROR_INIT;
	ssize_t n = -ENOMEM;

	if (text)
		n = cm_read_file_at(s->dir_fd, CM_STORE_PLAN_TEXT, text, CM_JSON_MAX_BYTES);
	if (n >= 0)
		return cm_cli_print(cli, text, (size_t)n);
	(void)cm_error_set(&err, n == -ENOENT ? CM_E_NOT_FOUND : CM_E_SYS,
			   n == -ENOENT ? 0 : (int)-n, "session '%s' has no plan", s->record.id);
	cm_error_hint(&err,
		      "it has one from its first start on: "
		      "'casemate run --session %s -- true' starts it",
		      s->record.id);
	return cm_cli_fail(cli, &err);
}

static int print_session(struct cm_cli *cli, const struct cm_store_session *s, bool is_json,
			 bool with_size)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	struct view v = { .s = s, .with_size = with_size };

	v.status = cm_cli_session_status(s, &v.end);
	cm_buf_init(&out, MAX_TEXT);
	if (is_json)
		write_json(&v, &out);
	else
		write_text(&v, &out);
	if (cm_buf_status(&out) == CM_OK)
		return cm_cli_print(cli, out.data, out.len);
	(void)cm_error_set(&err, cm_buf_status(&out), 0, "cannot show session '%s': out of memory",
			   s->record.id);
	return cm_cli_fail(cli, &err);
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
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	struct cm_store store;
	struct cm_store_session s;
	int status;
	int n = 0;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) != CM_OK)
		return cm_cli_fail(cli, &err);
	if (n != 1) {
		(void)cm_error_set(&err, CM_E_INVALID, 0, "'inspect' takes one session, not %d", n);
		cm_error_hint(&err, "'casemate ls' lists them");
		return cm_cli_fail(cli, &err);
	}
	if (cm_cli_store_open(cli, root, &store, &err) != CM_OK)
		return cm_cli_fail(cli, &err);
	if (cm_store_session_open_as(&store, argv[1], CM_STORE_ANY_ROOT, 0, &s, &err) != CM_OK) {
		status = cm_cli_fail(cli, &err);
	} else {
		status = is_plan ? print_plan(cli, &s) : print_session(cli, &s, is_json, with_size);
		cm_store_session_close(&s);
	}
	cm_store_close(&store);
	return status;
}
