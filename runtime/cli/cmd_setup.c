/* SPDX-License-Identifier: Apache-2.0 */
/* casemate setup: how a session's setup went, what it printed, and going on from there. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/json.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/request.h"
#include "runtime/cli/run.h"
#include "runtime/cli/sessions.h"
#include "runtime/store/setup_log.h"

#define MAX_TEXT (64UL * 1024 * 1024)
#define LABEL_WIDTH 14

struct asked {
	const char *root;
	bool is_json;
	bool is_retry;
	bool is_mark_done;
	bool is_log;
	bool is_quiet;
};

/* A session, and what its record says of the commands; nothing of it is borrowed. */
struct seen {
	struct cm_store_session s;
	/* NULL: no setup ever began */
	struct cm_json_doc *doc;
	/* somebody else has the session's lock */
	bool is_held;
};

/* The first of "commands", "env" or "secrets". */
static const struct cm_json *list_of(const struct seen *seen, const char *key)
{
	const struct cm_json *root = seen->doc ? cm_json_root(seen->doc) : NULL;
	const struct cm_json *list = root ? cm_json_get(root, key) : NULL;

	return list ? list->first_child : NULL;
}

/* NULL: the session's */
static const char *network_of(const struct seen *seen)
{
	return seen->doc ? cm_json_str(cm_json_root(seen->doc), "network", NULL) : NULL;
}

/* A setup that runs holds the lock; where it is free, one that began was interrupted. */
static const char *state_of(const struct seen *seen)
{
	const struct cm_session_record *r = &seen->s.record;

	if (r->setup_begun_ms != 0)
		return seen->is_held ? "running" : "interrupted";
	return cm_setup_state_name(r->setup_state);
}

static void close_seen(struct seen *seen)
{
	cm_json_free(seen->doc);
	cm_store_session_close(&seen->s);
}

static int open_seen(struct cm_store *store, const char *id, struct seen *ret, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;
	int r;

	*ret = (struct seen){ .doc = NULL };
	r = cm_store_session_open_as(store, id, CM_STORE_ANY_ROOT | CM_STORE_CHANGE, 0, &ret->s,
				     &why);
	if (r == CM_E_BUSY) {
		ret->is_held = true;
		r = cm_store_session_open_as(store, id, CM_STORE_ANY_ROOT, 0, &ret->s, &why);
	}
	if (r < 0) {
		*err = why;
		return r;
	}
	/* who looks must not keep others out of it */
	cm_fd_close(&ret->s.lock_fd);
	if (!ret->s.record.setup_json)
		return CM_OK;
	r = cm_json_parse(ret->s.record.setup_json, strlen(ret->s.record.setup_json), "setup", 0,
			  &ret->doc, err);
	if (r < 0)
		cm_store_session_close(&ret->s);
	return r;
}

/* --- showing ------------------------------------------------------------------------------- */

static void put_line(struct cm_buf *out, const char *label, const char *value)
{
	cm_buf_puts(out, label);
	for (size_t n = strlen(label); n < LABEL_WIDTH; n++)
		cm_buf_putc(out, ' ');
	cm_text_escape(out, value, strlen(value), false);
	cm_buf_putc(out, '\n');
}

static void put_time(struct cm_buf *out, const char *label, int64_t real_ms)
{
	char when[CM_CLOCK_RFC3339_SIZE];
	char age[32];
	char line[96];

	if (real_ms <= 0)
		return;
	cm_clock_rfc3339(real_ms, when);
	cm_cli_format_age(real_ms, age, sizeof(age));
	(void)snprintf(line, sizeof(line), "%s (%s ago)", when, age);
	put_line(out, label, line);
}

static void put_how(struct cm_buf *out, const struct cm_session_record *r)
{
	char took[32];
	char status[16];

	if (r->setup_state == CM_SETUP_NONE)
		return;
	(void)snprintf(status, sizeof(status), "%d", r->setup_exit);
	put_line(out, "exit", status);
	put_time(out, "ended", r->setup_ms);
	cm_format_duration(r->setup_took_ms > 0 ? (uint64_t)r->setup_took_ms : 0, took,
			   sizeof(took));
	put_line(out, "took", took);
}

static void put_list(struct cm_buf *out, const char *label, const struct cm_json *v)
{
	for (; v; v = v->next)
		put_line(out, label, v->type == CM_JSON_STRING ? v->u.string : "?");
}

static void write_text(const struct seen *seen, struct cm_buf *out)
{
	const struct cm_session_record *r = &seen->s.record;
	const char *state = state_of(seen);

	put_line(out, "setup", strcmp(state, "none") == 0 ? "not run" : state);
	put_how(out, r);
	put_time(out, "began", r->setup_begun_ms);
	if (r->setup_digest && r->setup_digest[0] != '\0')
		put_line(out, "digest", r->setup_digest);
	put_list(out, "command", list_of(seen, "commands"));
	if (network_of(seen))
		put_line(out, "network", network_of(seen));
	put_list(out, "variable", list_of(seen, "env"));
	put_list(out, "secret", list_of(seen, "secrets"));
}

static void write_list(struct cm_json_writer *w, const char *key, const struct cm_json *v)
{
	cm_jw_key(w, key);
	cm_jw_array(w);
	for (; v; v = v->next)
		cm_jw_string(w, v->type == CM_JSON_STRING ? v->u.string : NULL);
	cm_jw_end_array(w);
}

static void write_json(const struct seen *seen, struct cm_buf *out)
{
	const struct cm_session_record *r = &seen->s.record;
	bool has_ended = r->setup_state != CM_SETUP_NONE;
	struct cm_json_writer w;

	cm_jw_init(&w, out, true);
	cm_jw_object(&w);
	cm_jw_kstring(&w, "session", r->id);
	cm_jw_kstring(&w, "state", state_of(seen));
	cm_jw_known_int(&w, "exit", has_ended, r->setup_exit);
	cm_cli_write_time(&w, "began", r->setup_begun_ms);
	cm_cli_write_time(&w, "ended", has_ended ? r->setup_ms : 0);
	cm_jw_kint(&w, "durationMs", r->setup_took_ms);
	cm_jw_kstring(&w, "digest", r->setup_digest);
	write_list(&w, "commands", list_of(seen, "commands"));
	cm_jw_kstring(&w, "network", network_of(seen));
	write_list(&w, "env", list_of(seen, "env"));
	write_list(&w, "secrets", list_of(seen, "secrets"));
	cm_jw_end_object(&w);
	cm_buf_putc(out, '\n');
}

static int print_buf(struct cm_cli *cli, const struct cm_buf *out)
{
	struct cm_error err = CM_ERROR_INIT;

	if (cm_buf_status(out) == CM_OK)
		return cm_cli_print(cli, out->data ? out->data : "", out->len);
	(void)cm_error_set(&err, cm_buf_status(out), 0, "cannot show the setup: out of memory");
	return cm_cli_fail(cli, &err);
}

static int show(struct cm_cli *cli, const struct seen *seen, bool is_json)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };

	cm_buf_init(&out, MAX_TEXT);
	if (is_json)
		write_json(seen, &out);
	else
		write_text(seen, &out);
	return print_buf(cli, &out);
}

/* The bytes as they were written, like any command's output. */
static int show_log(struct cm_cli *cli, const struct seen *seen, bool is_json)
{
	CM_AUTO_BUF struct cm_buf log = { 0 };
	CM_AUTO_BUF struct cm_buf out = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_json_writer w;

	cm_buf_init(&log, MAX_TEXT);
	cm_buf_init(&out, MAX_TEXT);
	if (cm_setup_log_read(seen->s.dir_fd, &log, &err) < 0) {
		(void)cm_error_wrap(&err, "session '%s'", seen->s.record.id);
		if (err.code == CM_E_NOT_FOUND)
			cm_error_hint(&err, "it is kept from the session's first setup on");
		return cm_cli_fail(cli, &err);
	}
	if (!is_json)
		return print_buf(cli, &log);
	cm_jw_init(&w, &out, true);
	cm_jw_object(&w);
	cm_jw_kstring(&w, "session", seen->s.record.id);
	cm_jw_key(&w, "log");
	cm_jw_string_len(&w, log.data ? log.data : "", log.len);
	cm_jw_end_object(&w);
	cm_buf_putc(&out, '\n');
	return print_buf(cli, &out);
}

/* --- changing ------------------------------------------------------------------------------ */

/*
 * The record alone: a jail would have to be made for the marker, and whoever says that the session is
 * set up may have done it in a way that no marker of ours tells of.
 */
static int mark_done(struct cm_store *store, const char *id, struct cm_error *err)
{
	struct cm_session_record *record;
	struct cm_store_session s;
	int r = cm_store_session_open_as(store, id, CM_STORE_ANY_ROOT | CM_STORE_CHANGE,
					 cm_clock_mono_ms() + CM_CLI_LOCK_MS, &s, err);

	if (r < 0)
		return r;
	record = &s.record;
	record->setup_state = CM_SETUP_DONE;
	record->setup_exit = 0;
	record->setup_ms = cm_clock_real_ms();
	record->setup_took_ms = 0;
	record->setup_begun_ms = 0;
	r = cm_store_session_save(&s, true, err);
	cm_store_session_close(&s);
	return r;
}

static int add_pair(struct cm_strv *argv, const char *option, const char *value)
{
	return cm_strv_add(argv, option) < 0 ? CM_E_NOMEM : cm_strv_add(argv, value);
}

static int add_list(struct cm_strv *argv, const char *option, const struct cm_json *v)
{
	int r = CM_OK;

	for (; v && r == CM_OK; v = v->next)
		r = v->type == CM_JSON_STRING ? add_pair(argv, option, v->u.string) : CM_OK;
	return r;
}

/* The command line that would run it again, so that it is read and bounded as any other. */
static int fill_argv(const struct seen *seen, struct cm_strv *argv, bool is_quiet)
{
	const struct cm_session_record *record = &seen->s.record;
	int r = add_pair(argv, "--session", record->id);

	if (r == CM_OK)
		r = add_pair(argv, "--root", record->root);
	if (r == CM_OK)
		r = cm_strv_add(argv, "--setup-again");
	if (r == CM_OK && is_quiet)
		r = cm_strv_add(argv, "--quiet");
	if (r == CM_OK)
		r = add_list(argv, "--setup", list_of(seen, "commands"));
	if (r == CM_OK)
		r = add_list(argv, "--setup-env", list_of(seen, "env"));
	if (r == CM_OK)
		r = add_list(argv, "--setup-secret", list_of(seen, "secrets"));
	if (r == CM_OK && network_of(seen))
		r = add_pair(argv, "--setup-network", network_of(seen));
	return r;
}

static int no_commands(struct cm_cli *cli, const char *id)
{
	struct cm_error err = CM_ERROR_INIT;

	(void)cm_error_set(&err, CM_E_NOT_FOUND, 0, "session '%s' has no setup commands", id);
	cm_error_hint(&err, "casemate run --session %s --setup-again --setup CMD -- COMMAND", id);
	return cm_cli_fail(cli, &err);
}

static int retry(struct cm_cli *cli, const struct seen *seen, bool is_quiet)
{
	CM_AUTO_STRV struct cm_strv argv = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_spec spec;
	int status;

	if (!list_of(seen, "commands"))
		return no_commands(cli, seen->s.record.id);
	if (fill_argv(seen, &argv, is_quiet) < 0) {
		(void)cm_error_set(&err, CM_E_NOMEM, 0, "no memory for the setup");
		return cm_cli_fail(cli, &err);
	}
	if (cm_request_read(cli, (int)argv.n, argv.v, &spec, NULL, &err) != CM_OK)
		return cm_cli_fail(cli, &err);
	status = cm_cli_run(&spec, cli);
	cm_spec_clear(&spec);
	return status;
}

/* --- the command --------------------------------------------------------------------------- */

static int with_store(struct cm_cli *cli, struct cm_store *store, const char *id,
		      const struct asked *asked)
{
	struct cm_error err = CM_ERROR_INIT;
	struct seen seen;
	int status = 0;

	if (asked->is_mark_done && mark_done(store, id, &err) < 0)
		return cm_cli_fail(cli, &err);
	if (open_seen(store, id, &seen, &err) < 0)
		return cm_cli_fail(cli, &err);
	if (asked->is_retry)
		status = retry(cli, &seen, asked->is_quiet);
	if (asked->is_log)
		status = show_log(cli, &seen, asked->is_json);
	else if (!asked->is_retry && (!asked->is_mark_done || asked->is_json))
		status = show(cli, &seen, asked->is_json);
	close_seen(&seen);
	if (!asked->is_retry || !asked->is_json || open_seen(store, id, &seen, &err) < 0)
		return status;
	/* as it is now; how it went is the exit status */
	(void)show(cli, &seen, true);
	close_seen(&seen);
	return status;
}

static int check_asked(const struct asked *asked, int n, struct cm_error *err)
{
	if (n != 1) {
		(void)cm_error_set(err, CM_E_INVALID, 0, "'setup' takes one session, not %d", n);
		cm_error_hint(err, "'casemate ls' lists them");
		return CM_E_INVALID;
	}
	if (asked->is_retry + asked->is_mark_done + asked->is_log <= 1)
		return CM_OK;
	(void)cm_error_set(err, CM_E_INVALID, 0,
			   "--retry, --mark-done and --log contradict each other");
	cm_error_hint(err, "give one of them, or none to see how it went");
	return CM_E_INVALID;
}

int cm_cmd_setup(struct cm_cli *cli, int argc, char **argv)
{
	struct asked asked = { NULL };
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &asked.root },
		{ "json", '\0', CM_OPTION_SWITCH, &asked.is_json },
		{ "retry", '\0', CM_OPTION_SWITCH, &asked.is_retry },
		{ "mark-done", '\0', CM_OPTION_SWITCH, &asked.is_mark_done },
		{ "log", '\0', CM_OPTION_SWITCH, &asked.is_log },
		{ "quiet", 'q', CM_OPTION_SWITCH, &asked.is_quiet },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	struct cm_store store;
	int status;
	int n = 0;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) != CM_OK ||
	    check_asked(&asked, n, &err) != CM_OK ||
	    cm_cli_store_open(cli, asked.root, &store, &err) != CM_OK)
		return cm_cli_fail(cli, &err);
	status = with_store(cli, &store, argv[1], &asked);
	cm_store_close(&store);
	return status;
}
