/* SPDX-License-Identifier: Apache-2.0 */
/* casemate file: files of a session, read and changed with the rights of its commands. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/file_session.h"
#include "runtime/cli/file_show.h"
#include "runtime/cli/file_sink.h"
#include "runtime/cli/file_source.h"

/* one entry or event: each byte of two paths may become six */
#define LINE_MAX_BYTES (16UL * CM_FILE_PATH_MAX)
/* what is printed at once */
#define PIECE 32768U

struct options {
	const char *root;
	const char *user;
	const char *offset;
	const char *length;
	const char *mode;
	bool is_append;
	bool is_atomic;
	bool wants_parents;
	bool is_recursive;
	bool is_forced;
	bool is_no_clobber;
	bool follows;
	bool is_json;
	bool is_long;
	bool is_nul;
	bool is_itself;
};

struct operation {
	const char *name;
	/* operands after the session */
	int min_paths;
	int max_paths;
	/* letters of the options that it takes: see `options` in read_line */
	const char *takes;
	const char *usage;
	/* once it is asked for: what comes of it, or goes to it, until its end */
	int (*act)(struct cm_file_session *s, struct cm_files *f, const struct options *o,
		   struct cm_error *err);
};

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

static int show_list(struct cm_file_session *s, struct cm_files *f, const struct options *o,
		     struct cm_error *err)
{
	enum cm_file_form form = o->is_json ? CM_FILE_JSON : CM_FILE_NAMES;

	if (o->is_nul)
		form = CM_FILE_NUL;
	else if (o->is_long && !o->is_json)
		form = CM_FILE_LONG;
	return print_all(s, f, form, false, err);
}

static int show_stat(struct cm_file_session *s, struct cm_files *f, const struct options *o,
		     struct cm_error *err)
{
	return print_all(s, f, o->is_json ? CM_FILE_JSON : CM_FILE_BLOCK, false, err);
}

static int show_events(struct cm_file_session *s, struct cm_files *f, const struct options *o,
		       struct cm_error *err)
{
	return print_all(s, f, o->is_json ? CM_FILE_JSON : CM_FILE_NAMES, true, err);
}

/* --- content ------------------------------------------------------------------------------- */

static int print_content(struct cm_file_session *s, struct cm_files *f, const struct options *o,
			 struct cm_error *err)
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

static int send_content(struct cm_file_session *s, struct cm_files *f, const struct options *o,
			struct cm_error *err)
{
	(void)s;
	(void)o;
	return cm_file_source_send(f, err);
}

/* --- changes ------------------------------------------------------------------------------- */

static int await_end(struct cm_file_session *s, struct cm_files *f, const struct options *o,
		     struct cm_error *err)
{
	int r = cm_files_next(f, err);

	(void)s;
	(void)o;
	return r > 0 ? cm_error_set(err, CM_E_PROTOCOL, 0, "cannot understand the file operation")
		     : r;
}

/* --- the line ------------------------------------------------------------------------------ */

static const struct operation operations[] = {
	{ "read", 1, 1, "ol", "[--offset N] [--length SIZE] ID PATH", print_content },
	{ "write", 1, 1, "aAmp", "[--append | --atomic] [--mode MODE] [-p] ID PATH", send_content },
	{ "ls", 0, INT32_MAX, "rdjL0", "[-r] [-d] [-l | -0 | --json] ID [PATH...]", show_list },
	{ "stat", 1, INT32_MAX, "Fj", "[--follow] [--json] ID PATH...", show_stat },
	{ "mkdir", 1, INT32_MAX, "pm", "[-p] [--mode MODE] ID PATH...", await_end },
	{ "mv", 2, 2, "n", "[--no-clobber] ID FROM TO", await_end },
	{ "rm", 1, INT32_MAX, "rf", "[-r] [-f] ID PATH...", await_end },
	{ "watch", 0, 1, "j", "[--json] ID [PATH]", show_events },
};

static int no_operation(const char *name, struct cm_error *err)
{
	if (name)
		(void)cm_error_set(err, CM_E_INVALID, 0, "'file' has no operation '%.100s'", name);
	else
		(void)cm_error_set(err, CM_E_INVALID, 0, "'file' needs an operation");
	cm_error_hint(err,
		      "read, write, ls, stat, mkdir, mv, rm or watch: casemate file read ID PATH");
	return CM_E_INVALID;
}

static const struct operation *find_operation(const char *name)
{
	for (size_t i = 0; name && i < CM_ARRAY_SIZE(operations); i++) {
		if (strcmp(operations[i].name, name) == 0)
			return &operations[i];
	}
	return NULL;
}

/* Of all options those that the operation takes, and the common ones. */
static int read_line(struct cm_cli *cli, const struct operation *op, int argc, char **argv,
		     struct options *o, int *ret_n, struct cm_error *err)
{
	const struct {
		char mark;
		struct cm_cli_option option;
	} all[] = {
		{ 'o', { "offset", '\0', CM_OPTION_TEXT, &o->offset } },
		{ 'l', { "length", '\0', CM_OPTION_TEXT, &o->length } },
		{ 'a', { "append", '\0', CM_OPTION_SWITCH, &o->is_append } },
		{ 'A', { "atomic", '\0', CM_OPTION_SWITCH, &o->is_atomic } },
		{ 'm', { "mode", 'm', CM_OPTION_TEXT, &o->mode } },
		{ 'p', { "parents", 'p', CM_OPTION_SWITCH, &o->wants_parents } },
		{ 'r', { "recursive", 'r', CM_OPTION_SWITCH, &o->is_recursive } },
		{ 'r', { "recursive", 'R', CM_OPTION_SWITCH, &o->is_recursive } },
		{ 'f', { "force", 'f', CM_OPTION_SWITCH, &o->is_forced } },
		{ 'n', { "no-clobber", 'n', CM_OPTION_SWITCH, &o->is_no_clobber } },
		{ 'F', { "follow", 'L', CM_OPTION_SWITCH, &o->follows } },
		{ 'd', { "directory", 'd', CM_OPTION_SWITCH, &o->is_itself } },
		{ 'j', { "json", '\0', CM_OPTION_SWITCH, &o->is_json } },
		{ 'L', { "long", 'l', CM_OPTION_SWITCH, &o->is_long } },
		{ '0', { "null", '0', CM_OPTION_SWITCH, &o->is_nul } },
	};
	struct cm_cli_option options[CM_ARRAY_SIZE(all) + 4];
	size_t n = 0;

	for (size_t i = 0; i < CM_ARRAY_SIZE(all); i++) {
		if (strchr(op->takes, all[i].mark))
			options[n++] = all[i].option;
	}
	options[n++] = (struct cm_cli_option){ "root", '\0', CM_OPTION_TEXT, &o->root };
	options[n++] = (struct cm_cli_option){ "user", 'u', CM_OPTION_TEXT, &o->user };
	options[n++] = (struct cm_cli_option){ "quiet", 'q', CM_OPTION_SWITCH, &cli->is_quiet };
	options[n] = (struct cm_cli_option){ NULL, '\0', CM_OPTION_SWITCH, NULL };
	return cm_cli_options(argc, argv, options, ret_n, err);
}

static int check_operands(const struct operation *op, int n, struct cm_error *err)
{
	if (n - 1 >= op->min_paths && n - 1 <= op->max_paths)
		return CM_OK;
	(void)cm_error_set(err, CM_E_INVALID, 0, "'file %s' takes a session and %s", op->name,
			   op->max_paths == 1	? "one path"
			   : op->max_paths == 2 ? "two paths"
						: "paths");
	cm_error_hint(err, "casemate file %s %s", op->name, op->usage);
	return CM_E_INVALID;
}

static int read_mode(const char *text, uint32_t *ret, struct cm_error *err)
{
	char *end = NULL;
	unsigned long mode;

	errno = 0;
	mode = strtoul(text, &end, 8);
	if (text[0] < '0' || text[0] > '7' || *end != '\0' || errno != 0 || mode > 07777) {
		(void)cm_error_set(err, CM_E_INVALID, 0, "--mode must be octal, not '%.40s'", text);
		cm_error_hint(err, "for example 0644, or 0755 for what is executed");
		return CM_E_INVALID;
	}
	if ((mode & ~(unsigned long)CM_FILE_MODE_MASK) != 0) {
		(void)cm_error_set(err, CM_E_INVALID, 0,
				   "--mode has a set-id or sticky bit: '%.40s'", text);
		cm_error_hint(err, "three digits, as 755: no such file can be made in a session");
		return CM_E_INVALID;
	}
	*ret = (uint32_t)mode;
	return CM_OK;
}

static int check_user(const char *user, struct cm_error *err)
{
	if (!user || strcmp(user, "user") == 0)
		return CM_OK;
	(void)cm_error_set(err, CM_E_INVALID, 0, "--user takes 'user' here, not '%.40s'", user);
	cm_error_hint(err,
		      "without it files are read and written by who the session's commands are");
	return CM_E_INVALID;
}

static int make_request(const struct operation *op, const struct options *o,
			struct cm_files_request *request, struct cm_error *err)
{
	int r = check_user(o->user, err);

	if (r == CM_OK && o->is_append && o->is_atomic) {
		r = cm_error_set(err, CM_E_INVALID, 0,
				 "--append and --atomic contradict each other");
		cm_error_hint(err, "--atomic makes a new file, which replaces what is there");
	}
	if (r == CM_OK && o->offset)
		r = cm_parse_size(o->offset, "--offset", 0, INT64_MAX, &request->offset, err);
	if (r == CM_OK && o->length)
		r = cm_parse_size(o->length, "--length", 0, INT64_MAX, &request->length, err);
	if (r == CM_OK && o->mode)
		r = read_mode(o->mode, &request->mode, err);
	request->op = op->name;
	request->flags =
		(o->is_append ? CM_FILEF_APPEND : 0) | (o->is_atomic ? CM_FILEF_ATOMIC : 0) |
		(o->mode ? CM_FILEF_MODE : 0) | (o->wants_parents ? CM_FILEF_PARENTS : 0) |
		(o->is_recursive ? CM_FILEF_RECURSIVE : 0) | (o->is_forced ? CM_FILEF_FORCE : 0) |
		(o->is_no_clobber ? CM_FILEF_NO_CLOBBER : 0) | (o->follows ? CM_FILEF_FOLLOW : 0) |
		(o->length ? CM_FILEF_LENGTH : 0) | (o->is_itself ? CM_FILEF_ITSELF : 0);
	return r;
}

static int carry_out(struct cm_file_session *s, const struct operation *op, const struct options *o,
		     struct cm_files_request *request)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_files *f = NULL;
	int r = cm_file_session_begin(s, request, &f, &err);

	if (r == CM_OK)
		r = op->act(s, f, o, &err);
	return cm_file_session_end(s, f, r, &err);
}

int cm_cmd_file(struct cm_cli *cli, int argc, char **argv)
{
	static const char *const here[] = { ".", NULL };
	const struct operation *op = find_operation(argc > 1 ? argv[1] : NULL);
	struct cm_files_request request = { .offset = 0 };
	struct options o = { .root = NULL };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_file_session session;
	int status;
	int n = 0;

	if (!op) {
		(void)no_operation(argc > 1 ? argv[1] : NULL, &err);
		return cm_cli_fail(cli, &err);
	}
	/* whose options are asked for in hints */
	argv[1] = argv[0];
	if (read_line(cli, op, argc - 2, argv + 2, &o, &n, &err) < 0 ||
	    check_operands(op, n, &err) < 0 || make_request(op, &o, &request, &err) < 0)
		return cm_cli_fail(cli, &err);
	/* the line's words end with a NULL, but options stood among them */
	argv[2 + n] = NULL;
	request.paths = n > 1 ? (const char *const *)(uintptr_t)(argv + 3) : here;
	status = cm_file_session_open(&session, cli, o.root, argv[2], o.user != NULL);
	if (status == 0)
		status = carry_out(&session, op, &o, &request);
	cm_file_session_close(&session);
	return status;
}
