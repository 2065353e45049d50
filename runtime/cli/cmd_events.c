/* SPDX-License-Identifier: Apache-2.0 */
/* casemate events: what happened in a session, one JSON object a line. Only the disk is read. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/base/json.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/sessions.h"
#include "runtime/store/events.h"
#include "runtime/store/watch.h"

/* a line may become four times as long on a terminal */
#define MAX_TEXT (CM_EVENT_MAX * 4UL + 65536)
#define TICK_MS 1000
#define BLIND_TICK_MS 200
#define READER_GONE 1

struct asked {
	const char *root;
	const char *since;
	const char *type;
	bool is_follow;
};

struct view {
	struct cm_cli *cli;
	struct cm_event_reader reader;
	/* those after this one */
	int64_t since;
	/* of the type; NULL: all */
	const char *prefix;
	bool is_terminal;
	uint64_t n_damaged;
	/* to be written */
	struct cm_buf out;
};

static int flush(struct view *view, struct cm_error *err)
{
	int r = cm_buf_status(&view->out);

	if (r != CM_OK)
		return cm_error_set(err, r, 0, "no memory for the events");
	r = cm_write_all(STDOUT_FILENO, view->out.data ? view->out.data : "", view->out.len);
	cm_buf_reset(&view->out);
	if (r == -EPIPE)
		return READER_GONE;
	return r == 0 ? CM_OK : cm_error_set(err, CM_E_SYS, -r, "cannot write to standard output");
}

static bool is_asked_for(const struct view *view, const struct cm_json *event)
{
	if (cm_json_int(event, "seq", 0) <= view->since)
		return false;
	return !view->prefix || cm_text_has_prefix(cm_json_str(event, "type", ""), view->prefix);
}

static void take_line(struct view *view, const char *line, size_t len)
{
	struct cm_json_doc *doc = NULL;

	if (cm_json_parse(line, len, CM_STORE_EVENTS, 0, &doc, NULL) != CM_OK) {
		view->n_damaged++;
		return;
	}
	if (is_asked_for(view, cm_json_root(doc))) {
		if (view->is_terminal)
			cm_text_escape(&view->out, line, len, false);
		else
			cm_buf_append(&view->out, line, len);
		cm_buf_putc(&view->out, '\n');
	}
	cm_json_free(doc);
}

/* What there is now. *ret_is_gone: there will be no more. */
static int show_all(struct view *view, bool *ret_is_gone, struct cm_error *err)
{
	const char *line;
	size_t len;
	int r = CM_OK;
	int n;

	while (r == CM_OK && (n = cm_event_reader_next(&view->reader, &line, &len)) == 1) {
		take_line(view, line, len);
		if (view->out.len > MAX_TEXT / 4)
			r = flush(view, err);
	}
	if (r == CM_OK)
		r = flush(view, err);
	if (r != CM_OK)
		return r;
	*ret_is_gone = n == -ESTALE;
	return n == 0 || n == -ESTALE ? CM_OK
				      : cm_error_set(err, CM_E_SYS, -n, "cannot read the events");
}

static int wait_change(int watch_fd)
{
	struct pollfd p[] = { { .fd = watch_fd, .events = POLLIN }, { .fd = STDOUT_FILENO } };
	int n = poll(p, CM_ARRAY_SIZE(p), watch_fd < 0 ? BLIND_TICK_MS : TICK_MS);

	if (n > 0 && p[0].revents)
		cm_store_watch_drain(watch_fd);
	return n > 0 && p[1].revents & POLLERR ? READER_GONE : 0;
}

static int show(struct view *view, bool is_follow, struct cm_error *err)
{
	CM_AUTO_FD int watch_fd = is_follow ? cm_event_watch(&view->reader) : -1;
	bool is_gone = false;
	int r = show_all(view, &is_gone, err);

	while (is_follow && r == CM_OK && !is_gone) {
		r = wait_change(watch_fd);
		if (r == CM_OK)
			r = show_all(view, &is_gone, err);
	}
	if (r == CM_OK && is_gone)
		cm_cli_note(view->cli, "the session was removed");
	if (r == CM_OK && view->n_damaged > 0)
		cm_cli_note(view->cli, "%llu damaged lines were left out",
			    (unsigned long long)view->n_damaged);
	return r;
}

static int with_store(struct view *view, struct cm_store *store, const char *id, bool is_follow,
		      struct cm_error *err)
{
	struct cm_store_session s;
	int r = cm_store_session_open_as(store, id, CM_STORE_ANY_ROOT, 0, &s, err);

	if (r != CM_OK)
		return r;
	r = cm_event_reader_open(s.dir_fd, &view->reader);
	cm_store_session_close(&s);
	if (r < 0)
		return cm_error_set(err, CM_E_SYS, -r, "cannot read the events of session '%s'",
				    id);
	cm_buf_init(&view->out, MAX_TEXT);
	r = show(view, is_follow, err);
	cm_buf_clear(&view->out);
	cm_event_reader_close(&view->reader);
	return r;
}

static int read_asked(struct view *view, const struct asked *asked, int n, struct cm_error *err)
{
	uint64_t since = 0;
	int r = CM_OK;

	if (n != 1) {
		(void)cm_error_set(err, CM_E_INVALID, 0, "'events' takes one session, not %d", n);
		cm_error_hint(err, "'casemate ls' lists them");
		return CM_E_INVALID;
	}
	if (asked->since)
		r = cm_parse_u64(asked->since, "--since", 0, INT64_MAX, &since, err);
	view->since = (int64_t)since;
	view->prefix = asked->type;
	view->is_terminal = isatty(STDOUT_FILENO) == 1;
	return r;
}

int cm_cmd_events(struct cm_cli *cli, int argc, char **argv)
{
	struct asked asked = { NULL };
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &asked.root },
		{ "follow", 'f', CM_OPTION_SWITCH, &asked.is_follow },
		{ "since", '\0', CM_OPTION_TEXT, &asked.since },
		{ "type", '\0', CM_OPTION_TEXT, &asked.type },
		{ "quiet", 'q', CM_OPTION_SWITCH, &cli->is_quiet },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct view view = { .cli = cli };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_store store;
	int n = 0;
	int r;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) != CM_OK ||
	    read_asked(&view, &asked, n, &err) != CM_OK ||
	    cm_cli_store_open(cli, asked.root, &store, &err) != CM_OK)
		return cm_cli_fail(cli, &err);
	/* a reader that has seen enough is no failure */
	(void)signal(SIGPIPE, SIG_IGN);
	r = with_store(&view, &store, argv[1], asked.is_follow, &err);
	cm_store_close(&store);
	return r < 0 ? cm_cli_fail(cli, &err) : 0;
}
