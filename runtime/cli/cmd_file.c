/* SPDX-License-Identifier: Apache-2.0 */
/* casemate file: files of a session, read and changed with the rights of its commands. */
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/file_line.h"
#include "runtime/cli/file_session.h"
#include "runtime/cli/file_show.h"
#include "runtime/cli/file_sink.h"
#include "runtime/cli/file_source.h"

/* one entry or event: each byte of two paths may become six */
#define LINE_MAX_BYTES (16UL * CM_FILE_PATH_MAX)
/* what is printed at once */
#define PIECE 32768U

/* --- entries and events -------------------------------------------------------------------- */

static int print_text(struct cm_file_sink *sink, struct cm_buf *text, bool is_now,
		      struct cm_error *err)
{
	int r = cm_buf_status(text);

	if (r < 0)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	if (text->len == 0 || (!is_now && text->len < PIECE))
		return CM_OK;
	r = cm_file_sink_text(sink, text->data, text->len, err);
	cm_buf_reset(text);
	return r;
}

/* All that comes, each as a line. is_live: at once. */
static int print_all(struct cm_file_session *s, struct cm_files *f, enum cm_file_form form,
		     bool is_live, struct cm_error *err)
{
	static struct cm_file_sink sink;
	CM_AUTO_BUF struct cm_buf text = { 0 };
	bool is_first = true;
	int r;

	cm_buf_init(&text, PIECE + LINE_MAX_BYTES);
	cm_file_sink_init(&sink, s->cancel_fd);
	while ((r = cm_files_next(f, err)) == 1) {
		if (form == CM_FILE_BLOCK && !is_first)
			cm_buf_putc(&text, '\n');
		is_first = false;
		if (f->msg.type == CM_FRAME_ENTRY)
			cm_file_show_entry(&f->msg, form, &text);
		else if (f->msg.type == CM_FRAME_EVENT)
			cm_file_show_event(&f->msg, form == CM_FILE_JSON, &text);
		else
			r = cm_error_set(err, CM_E_PROTOCOL, 0,
					 "cannot understand the file operation");
		if (r > 0)
			r = print_text(&sink, &text, is_live, err);
		if (r < 0)
			break;
	}
	/* what came before an error is no less there */
	if (r == 0 || f->is_refusal) {
		int e = print_text(&sink, &text, true, r == 0 ? err : NULL);

		r = r == 0 ? e : r;
	}
	if (r == 0)
		r = cm_file_sink_end(&sink, err);
	cm_file_sink_close(&sink);
	return r;
}

static int show_list(struct cm_file_session *s, struct cm_files *f, const struct cm_file_line *o,
		     struct cm_error *err)
{
	enum cm_file_form form = o->is_json ? CM_FILE_JSON : CM_FILE_NAMES;

	if (o->is_nul)
		form = CM_FILE_NUL;
	else if (o->is_long && !o->is_json)
		form = CM_FILE_LONG;
	return print_all(s, f, form, false, err);
}

static int show_stat(struct cm_file_session *s, struct cm_files *f, const struct cm_file_line *o,
		     struct cm_error *err)
{
	return print_all(s, f, o->is_json ? CM_FILE_JSON : CM_FILE_BLOCK, false, err);
}

static int show_events(struct cm_file_session *s, struct cm_files *f, const struct cm_file_line *o,
		       struct cm_error *err)
{
	return print_all(s, f, o->is_json ? CM_FILE_JSON : CM_FILE_NAMES, true, err);
}

/* --- content ------------------------------------------------------------------------------- */

static int print_content(struct cm_file_session *s, struct cm_files *f,
			 const struct cm_file_line *o, struct cm_error *err)
{
	static struct cm_file_sink sink;
	int r;

	(void)o;
	cm_file_sink_init(&sink, s->cancel_fd);
	while ((r = cm_files_next(f, err)) == 1) {
		if (f->msg.type != CM_FRAME_DATA && f->msg.type != CM_FRAME_HOLE)
			continue;
		r = cm_file_sink_take(&sink, &f->msg, err);
		if (r < 0)
			break;
	}
	if (r == 0)
		r = cm_file_sink_end(&sink, err);
	cm_file_sink_close(&sink);
	return r;
}

static int send_content(struct cm_file_session *s, struct cm_files *f, const struct cm_file_line *o,
			struct cm_error *err)
{
	(void)s;
	(void)o;
	return cm_file_source_send(f, err);
}

/* --- changes ------------------------------------------------------------------------------- */

static int await_end(struct cm_file_session *s, struct cm_files *f, const struct cm_file_line *o,
		     struct cm_error *err)
{
	int r = cm_files_next(f, err);

	(void)s;
	(void)o;
	return r > 0 ? cm_error_set(err, CM_E_PROTOCOL, 0, "cannot understand the file operation")
		     : r;
}

/* --- the line ------------------------------------------------------------------------------ */

/* Once it is asked for: what comes of it, or goes to it, until its end. */
static int (*const acts[])(struct cm_file_session *s, struct cm_files *f,
			   const struct cm_file_line *o, struct cm_error *err) = {
	[CM_FILE_VERB_READ] = print_content,
	[CM_FILE_VERB_WRITE] = send_content,
	[CM_FILE_VERB_LS] = show_list,
	[CM_FILE_VERB_STAT] = show_stat,
	[CM_FILE_VERB_MKDIR] = await_end,
	[CM_FILE_VERB_MV] = await_end,
	[CM_FILE_VERB_RM] = await_end,
	[CM_FILE_VERB_WATCH] = show_events,
	/* see check_verb */
	[CM_FILE_VERB_URL] = NULL,
};
_Static_assert(CM_ARRAY_SIZE(acts) == CM_FILE_VERB_COUNT_, "an act each");

static int check_user(const char *user, struct cm_error *err)
{
	if (!user || strcmp(user, "user") == 0)
		return CM_OK;
	(void)cm_error_set(err, CM_E_INVALID, 0, "--user takes 'user' here, not '%.40s'", user);
	cm_error_hint(err,
		      "without it files are read and written by who the session's commands are");
	return CM_E_INVALID;
}

/* Nobody listens for others on behalf of a session of this host. */
static int check_verb(enum cm_file_verb verb, struct cm_error *err)
{
	if (verb != CM_FILE_VERB_URL)
		return CM_OK;
	(void)cm_error_set(err, CM_E_UNSUPPORTED, 0,
			   "sessions of this host have no addresses for their files");
	cm_error_hint(err, "'casemate file read' and 'casemate file write' pass on what is in "
			   "one; --provider e2b has addresses");
	return CM_E_UNSUPPORTED;
}

static struct cm_files_request make_request(const struct cm_file_line *o)
{
	bool has_length = o->length != UINT64_MAX;
	bool has_mode = o->mode != UINT32_MAX;

	return (struct cm_files_request){
		.op = o->name,
		.paths = (const char *const *)(uintptr_t)o->paths,
		.offset = o->offset,
		.length = has_length ? o->length : 0,
		.mode = has_mode ? o->mode : 0,
		.flags = (o->is_append ? CM_FILEF_APPEND : 0) |
			 (o->is_atomic ? CM_FILEF_ATOMIC : 0) | (has_mode ? CM_FILEF_MODE : 0) |
			 (o->wants_parents ? CM_FILEF_PARENTS : 0) |
			 (o->is_recursive ? CM_FILEF_RECURSIVE : 0) |
			 (o->is_forced ? CM_FILEF_FORCE : 0) |
			 (o->is_no_clobber ? CM_FILEF_NO_CLOBBER : 0) |
			 (o->follows ? CM_FILEF_FOLLOW : 0) | (has_length ? CM_FILEF_LENGTH : 0) |
			 (o->is_itself ? CM_FILEF_ITSELF : 0),
	};
}

static int carry_out(struct cm_file_session *s, const struct cm_file_line *o)
{
	const struct cm_files_request request = make_request(o);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_files *f = NULL;
	int r = cm_file_session_begin(s, &request, &f, &err);

	if (r == CM_OK)
		r = acts[o->verb](s, f, o, &err);
	return cm_file_session_end(s, f, r, &err);
}

int cm_cmd_file(struct cm_cli *cli, int argc, char **argv)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_file_session session;
	struct cm_file_line line;
	int status;

	if (cm_file_line_read(cli, argc, argv, NULL, &line, &err) < 0 ||
	    check_verb(line.verb, &err) < 0 || check_user(line.user, &err) < 0)
		return cm_cli_fail(cli, &err);
	status = cm_file_session_open(&session, cli, line.root, line.session, line.user != NULL);
	if (status == 0)
		status = carry_out(&session, &line);
	cm_file_session_close(&session);
	return status;
}
