/* SPDX-License-Identifier: Apache-2.0 */
/* casemate logs: what a command printed that was journaled. Only the disk is read. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/exec_names.h"
#include "runtime/cli/sessions.h"
#include "runtime/cli/shown_text.h"
#include "runtime/store/journal.h"

#define CHUNK 65536U
/* how soon it is seen that the keeper died; and, where there are no watches, that there is more */
#define TICK_MS 1000
#define BLIND_TICK_MS 200

struct asked {
	const char *root;
	const char *stream;
	const char *offset;
	const char *tail;
	const char *bytes;
	bool is_follow;
};

/* One stream that is shown. */
struct shown {
	enum cm_journal_stream stream;
	const char *name;
	int fd;
	bool is_terminal;
	struct cm_shown_text text;
	uint64_t offset;
	/* how many bytes may still be shown */
	uint64_t left;
};

struct view {
	struct cm_cli *cli;
	struct cm_store *store;
	const char *session;
	uint64_t exec_id;
	struct cm_journal_reader reader;
	struct shown shown[CM_JOURNAL_STREAMS];
	size_t n_shown;
};

/* what ends it without an error: nobody reads any more */
#define READER_GONE 1

/* --- showing ------------------------------------------------------------------------------- */

static int write_out(const struct shown *shown, const char *data, size_t len, struct cm_error *err)
{
	int r = cm_write_all(shown->fd, data, len);

	if (r == -EPIPE)
		return READER_GONE;
	return r == 0 ? CM_OK
		      : cm_error_set(err, CM_E_SYS, -r, "cannot write to standard %s",
				     shown->fd == STDOUT_FILENO ? "output" : "error");
}

static int write_text(const struct shown *shown, const struct cm_buf *out, struct cm_error *err)
{
	if (cm_buf_status(out) != CM_OK)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for what the command printed");
	return write_out(shown, out->data ? out->data : "", out->len, err);
}

static int show(struct shown *shown, const char *data, size_t len, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };

	if (!shown->is_terminal)
		return write_out(shown, data, len, err);
	/* each byte may become four */
	cm_buf_init(&out, (size_t)CHUNK * 8);
	cm_shown_text_add(&shown->text, data, len, &out);
	return write_text(shown, &out, err);
}

static int show_end(struct shown *shown, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };

	cm_buf_init(&out, CHUNK);
	cm_shown_text_end(&shown->text, &out);
	return write_text(shown, &out, err);
}

static void note_gap(const struct view *view, struct shown *shown, uint64_t to)
{
	cm_shown_text_gap(&shown->text);
	cm_cli_note(view->cli, "bytes %" PRIu64 " to %" PRIu64 "%s%s were not kept", shown->offset,
		    to - 1, view->n_shown > 1 ? " of " : "", view->n_shown > 1 ? shown->name : "");
}

static int read_failed(const struct view *view, ssize_t n, struct cm_error *err)
{
	char id[CM_EXEC_ID_SIZE];

	cm_exec_id_format(view->exec_id, id);
	return cm_error_set(err, CM_E_SYS, (int)-n, "cannot read what command %s printed", id);
}

/* Show the next piece. CM_OK and *ret_is_more when there was one. */
static int show_next(struct view *view, struct shown *shown, bool *ret_is_more,
		     struct cm_error *err)
{
	char chunk[CHUNK];
	uint64_t at = shown->offset;
	size_t max = shown->left < sizeof(chunk) ? (size_t)shown->left : sizeof(chunk);
	ssize_t n = cm_journal_read(&view->reader, shown->stream, &at, chunk, max);

	if (n < 0)
		return read_failed(view, n, err);
	if (n == 0)
		return CM_OK;
	if (at != shown->offset)
		note_gap(view, shown, at);
	shown->offset = at + (uint64_t)n;
	shown->left -= (uint64_t)n;
	*ret_is_more = true;
	return show(shown, chunk, (size_t)n, err);
}

/* Show what there is now, a piece of each stream at a time. */
static int show_all(struct view *view, struct cm_error *err)
{
	bool is_more = true;
	int r = CM_OK;

	while (is_more && r == CM_OK) {
		is_more = false;
		for (size_t i = 0; i < view->n_shown && r == CM_OK; i++)
			r = show_next(view, &view->shown[i], &is_more, err);
	}
	return r;
}

/* --- following ----------------------------------------------------------------------------- */

/* Until something changed, or may have. READER_GONE: nobody reads what is written. */
static int wait_change(const struct view *view, int watch_fd)
{
	struct pollfd p[1 + CM_JOURNAL_STREAMS] = {
		{ .fd = watch_fd, .events = POLLIN },
		{ .fd = view->shown[0].fd },
		{ .fd = view->n_shown > 1 ? view->shown[1].fd : -1 },
	};
	int n = poll(p, CM_ARRAY_SIZE(p), watch_fd < 0 ? BLIND_TICK_MS : TICK_MS);

	if (n > 0 && p[0].revents)
		cm_journal_watch_drain(watch_fd);
	return n > 0 && (p[1].revents | p[2].revents) & POLLERR ? READER_GONE : 0;
}

static bool is_full(const struct view *view)
{
	for (size_t i = 0; i < view->n_shown; i++) {
		if (view->shown[i].left > 0)
			return false;
	}
	return true;
}

/* How it ended, when it has: 1; 0: it runs; less: it has ended, and nobody will know how. */
static int look_for_end(const struct view *view)
{
	struct cm_journal_result result;
	bool is_gone;
	int r = cm_journal_result_read(&view->reader, &result);

	if (r != 0)
		return r;
	is_gone = cm_cli_exec_writer_gone(view->store, view->session, view->exec_id);
	/* written between the two looks, and its writer ended then */
	r = cm_journal_result_read(&view->reader, &result);
	return r == 0 && is_gone ? -ENODATA : r;
}

static int follow(struct view *view, struct cm_error *err)
{
	CM_AUTO_FD int watch_fd = cm_journal_watch(&view->reader);
	int end = 0;
	int r = CM_OK;

	while (r == CM_OK && end == 0 && !is_full(view)) {
		end = look_for_end(view);
		r = show_all(view, err);
		if (r == CM_OK && end == 0 && !is_full(view))
			r = wait_change(view, watch_fd);
	}
	if (r != CM_OK || end >= 0)
		return r;
	if (end == -ESTALE)
		cm_cli_note(view->cli, "the command was removed meanwhile: its end is not known");
	else if (end == -ENODATA)
		cm_cli_note(view->cli, "the session ended before the command did, as far as is "
				       "known: its end is not known");
	else
		cm_cli_note(view->cli, "the record of the command's end is damaged: its end is "
				       "not known");
	return CM_OK;
}

/* --- the command --------------------------------------------------------------------------- */

static void note_lost(const struct view *view)
{
	struct cm_journal_result result;

	if (cm_journal_result_read(&view->reader, &result) != 1)
		return;
	for (size_t i = 0; i < view->n_shown; i++) {
		const struct shown *shown = &view->shown[i];

		if (result.lost[shown->stream] > 0)
			cm_cli_note(view->cli,
				    "%" PRIu64 " bytes of %s could not be written to the disk",
				    result.lost[shown->stream], shown->name);
	}
}

static int show_view(struct view *view, bool is_follow, struct cm_error *err)
{
	int r = is_follow ? follow(view, err) : show_all(view, err);

	for (size_t i = 0; i < view->n_shown && r == CM_OK; i++)
		r = show_end(&view->shown[i], err);
	if (r == CM_OK)
		note_lost(view);
	return r;
}

static void add_shown(struct view *view, enum cm_journal_stream stream, int fd)
{
	view->shown[view->n_shown++] = (struct shown){
		.stream = stream,
		.name = stream == CM_JOURNAL_ERR ? "stderr" : "stdout",
		.fd = fd,
		.is_terminal = isatty(fd) == 1,
		.left = UINT64_MAX,
	};
}

static int no_stream(const char *stream, struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_INVALID, 0, "--stream must be stdout or stderr, not '%.100s'",
			   stream);
	cm_error_hint(err, "without it both are shown, each where the command wrote it");
	return CM_E_INVALID;
}

/* One stream that is named, or that has a place to begin at, is the result; else both are shown. */
static int choose_streams(struct view *view, const struct asked *asked, struct cm_error *err)
{
	bool is_err = asked->stream && strcmp(asked->stream, "stderr") == 0;

	if (asked->stream && !is_err && strcmp(asked->stream, "stdout") != 0)
		return no_stream(asked->stream, err);
	if (asked->stream || asked->offset || asked->bytes) {
		add_shown(view, is_err ? CM_JOURNAL_ERR : CM_JOURNAL_OUT, STDOUT_FILENO);
		return CM_OK;
	}
	add_shown(view, CM_JOURNAL_OUT, STDOUT_FILENO);
	add_shown(view, CM_JOURNAL_ERR, STDERR_FILENO);
	return CM_OK;
}

/* What does not need the journal. */
static int read_asked(struct view *view, const struct asked *asked, uint64_t *ret_tail,
		      struct cm_error *err)
{
	int r = choose_streams(view, asked, err);

	if (r == CM_OK && asked->offset)
		r = cm_parse_u64(asked->offset, "--offset", 0, INT64_MAX, &view->shown[0].offset,
				 err);
	if (r == CM_OK && asked->bytes)
		r = cm_parse_size(asked->bytes, "--bytes", 1, INT64_MAX, &view->shown[0].left, err);
	if (r == CM_OK && asked->tail)
		r = cm_parse_u64(asked->tail, "--tail", 0, INT64_MAX, ret_tail, err);
	if (r == CM_OK && asked->tail && asked->offset) {
		r = cm_error_set(err, CM_E_INVALID, 0, "--tail and --offset contradict each other");
		cm_error_hint(err, "give one of them: both say where to begin");
	}
	if (r == CM_OK && view->shown[0].offset > 0)
		cm_shown_text_gap(&view->shown[0].text);
	return r;
}

/* Begin with the last n lines that there are now. */
static int begin_tail(struct view *view, struct shown *shown, uint64_t n, struct cm_error *err)
{
	int e = cm_journal_tail(&view->reader, shown->stream, n, &shown->offset);

	return e < 0 ? read_failed(view, e, err) : CM_OK;
}

static int with_journal(struct view *view, const struct asked *asked, uint64_t tail,
			struct cm_error *err)
{
	int r = CM_OK;

	for (size_t i = 0; asked->tail && i < view->n_shown && r == CM_OK; i++)
		r = begin_tail(view, &view->shown[i], tail, err);
	return r == CM_OK ? show_view(view, asked->is_follow, err) : r;
}

static int with_session(struct view *view, const struct cm_store_session *s, const char *exec,
			const struct asked *asked, uint64_t tail, struct cm_error *err)
{
	int r = cm_cli_exec_find(s, exec, &view->exec_id, err);

	if (r != CM_OK)
		return r;
	r = cm_journal_open(s->dir_fd, view->exec_id, &view->reader, err);
	if (r == CM_E_NOT_FOUND)
		return cm_cli_exec_not_found(s, exec, view->exec_id, err);
	if (r != CM_OK)
		return r;
	r = with_journal(view, asked, tail, err);
	cm_journal_reader_close(&view->reader);
	return r;
}

static int with_store(struct view *view, const char *exec, const struct asked *asked, uint64_t tail,
		      struct cm_error *err)
{
	struct cm_store_session s;
	int r = cm_store_session_open_as(view->store, view->session, CM_STORE_ANY_ROOT, 0, &s, err);

	if (r != CM_OK)
		return r;
	r = with_session(view, &s, exec, asked, tail, err);
	cm_store_session_close(&s);
	return r;
}

static int check_n(int n, struct cm_error *err)
{
	if (n == 2)
		return CM_OK;
	(void)cm_error_set(err, CM_E_INVALID, 0, "'logs' takes a session and a command of it");
	cm_error_hint(err, "casemate logs ID 3.17: 'casemate ps ID' lists its commands");
	return CM_E_INVALID;
}

int cm_cmd_logs(struct cm_cli *cli, int argc, char **argv)
{
	struct asked asked = { NULL };
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &asked.root },
		{ "follow", 'f', CM_OPTION_SWITCH, &asked.is_follow },
		{ "stream", '\0', CM_OPTION_TEXT, &asked.stream },
		{ "offset", '\0', CM_OPTION_TEXT, &asked.offset },
		{ "tail", 'n', CM_OPTION_TEXT, &asked.tail },
		{ "bytes", '\0', CM_OPTION_TEXT, &asked.bytes },
		{ "quiet", 'q', CM_OPTION_SWITCH, &cli->is_quiet },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct view view = { .cli = cli };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_store store;
	uint64_t tail = 0;
	int n = 0;
	int r;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) != CM_OK ||
	    check_n(n, &err) != CM_OK || read_asked(&view, &asked, &tail, &err) != CM_OK ||
	    cm_cli_store_open(cli, asked.root, &store, &err) != CM_OK)
		return cm_cli_fail(cli, &err);
	/* a reader that has seen enough is no failure */
	(void)signal(SIGPIPE, SIG_IGN);
	view.store = &store;
	view.session = argv[1];
	r = with_store(&view, argv[2], &asked, tail, &err);
	cm_store_close(&store);
	return r < 0 ? cm_cli_fail(cli, &err) : 0;
}
