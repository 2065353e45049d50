/* SPDX-License-Identifier: Apache-2.0 */
/* casemate file: files of a session that is elsewhere. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/remote/absent.h"
#include "runtime/cli/remote/file_access.h"
#include "runtime/cli/remote/file_shown.h"

/* one entry or event: each byte of two paths may become six */
#define LINE_MAX_BYTES (16UL * CM_FILE_PATH_MAX)
/* what is printed at once */
#define PIECE 32768U
/* names are sorted as far as they fit into this; more come in sorted pieces */
#define MAX_ENTRIES_BYTES (32UL * 1024 * 1024)

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

	/* read from the above */
	uint64_t from;
	uint64_t n_bytes;
	/* UINT32_MAX: as usual */
	uint32_t mode_bits;
};

struct operation {
	const char *name;
	/* operands after the session */
	int min_paths;
	int max_paths;
	/* letters of the options that it takes: see `all` in read_line */
	const char *takes;
	const char *usage;
	int (*act)(struct cm_away_files *f, const struct options *o, char *const *paths,
		   struct cm_error *err);
};

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

/* --- entries ------------------------------------------------------------------------------- */

struct printer {
	struct cm_away_files *f;
	enum cm_file_form form;
	/* at once, each */
	bool is_live;
	/* before each name; or what is in place of it */
	const char *prefix;
	const char *name;
	bool is_first;
	bool wants_sorted;
	struct cm_away_entries entries;
	struct cm_buf text;
};

/* Printed, where there is enough of it. A failure is f->why. */
static int flush(struct printer *p, bool is_now)
{
	struct cm_file_sink *sink = cm_away_files_sink(p->f);
	int r = cm_buf_status(&p->text);

	if (r < 0)
		return cm_error_set(&p->f->why, CM_E_NOMEM, 0, "out of memory");
	if (p->text.len == 0 || (!is_now && p->text.len < PIECE))
		return CM_OK;
	r = cm_file_sink_text(sink, p->text.data, p->text.len, &p->f->why);
	cm_buf_reset(&p->text);
	return r;
}

static int put_entry(struct printer *p, const struct cm_path_info *info)
{
	struct cm_path_info shown = *info;

	if (p->name)
		shown.path = p->name;
	if (p->form == CM_FILE_BLOCK && !p->is_first)
		cm_buf_putc(&p->text, '\n');
	p->is_first = false;
	cm_away_file_put(&shown, p->prefix, p->form, &p->text);
	return flush(p, false);
}

static int put_sorted(struct printer *p)
{
	int r = CM_OK;

	cm_away_entries_sort(&p->entries);
	for (size_t i = 0; i < p->entries.n && r == CM_OK; i++)
		r = put_entry(p, &p->entries.v[i]);
	cm_away_entries_clear(&p->entries);
	return r;
}

static int take_entry(void *data, const struct cm_path_info *info)
{
	struct printer *p = data;

	if (!p->wants_sorted)
		return put_entry(p, info);
	if (cm_away_entries_add(&p->entries, info) < 0)
		return cm_error_set(&p->f->why, CM_E_NOMEM, 0, "out of memory");
	return p->entries.bytes < MAX_ENTRIES_BYTES ? CM_OK : put_sorted(p);
}

static int take_event(void *data, const struct cm_watch_event *event)
{
	struct printer *p = data;

	cm_away_event_put(event, p->form == CM_FILE_JSON, &p->text);
	return flush(p, true);
}

static void begin(struct printer *p, struct cm_away_files *f, enum cm_file_form form)
{
	*p = (struct printer){ .f = f, .form = form, .prefix = "", .is_first = true };
	cm_buf_init(&p->text, PIECE + LINE_MAX_BYTES);
	(void)cm_away_files_sink(f);
}

/* What came before an error is no less there. */
static int end(struct printer *p, int r, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;

	if (p->f->why.code == 0 && flush(p, true) == CM_OK &&
	    cm_file_sink_end(&p->f->sink, &why) < 0)
		p->f->why = why;
	cm_buf_clear(&p->text);
	cm_away_entries_clear(&p->entries);
	/* a signal, or what failed first, is it */
	return r < 0 ? r : cm_away_files_settle(p->f, r, err);
}

struct kind {
	bool is_known;
	bool is_directory;
};

static int take_kind(void *data, const struct cm_path_info *info)
{
	struct kind *kind = data;

	kind->is_known = true;
	kind->is_directory = info->type == CM_PATH_DIRECTORY;
	return CM_OK;
}

/* An entry by the name that it was asked for with, whatever the provider was asked for. */
static int show_itself(struct printer *p, const char *path, const char *name, uint32_t flags,
		       struct cm_error *err)
{
	struct cm_away *away = &p->f->away;
	int r;

	p->prefix = "";
	p->name = name;
	p->wants_sorted = false;
	r = cm_session_stat(away->session, path, flags, take_entry, p, &away->call, err);
	p->name = NULL;
	return r;
}

/* What could not be listed is shown itself, where it is there and no directory. */
static int list_itself(struct printer *p, const char *path, const char *name, int listed,
		       struct cm_error *err)
{
	struct cm_away *away = &p->f->away;
	struct cm_error why = CM_ERROR_INIT;
	struct kind kind = { false };
	int r = cm_session_stat(away->session, path, CM_STAT_FOLLOW, take_kind, &kind, &away->call,
				&why);

	/* a link to nowhere is there nevertheless */
	if (r == CM_E_NOT_FOUND)
		r = cm_session_stat(away->session, path, 0, take_kind, &kind, &away->call, &why);
	if (r < 0 || !kind.is_known || kind.is_directory)
		return listed;
	cm_error_clear(err);
	return show_itself(p, path, name, 0, err);
}

static int list_path(struct printer *p, const struct options *o, const char *name, bool is_alone,
		     struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_away_files_path(p->f, name);
	struct cm_away *away = &p->f->away;
	int r;

	if (!path)
		return no_memory(err);
	if (o->is_itself)
		return show_itself(p, path, name, 0, err);
	/* of several, each name says below which it is */
	p->prefix = is_alone ? "" : name;
	p->wants_sorted = true;
	r = cm_session_list_files(away->session, path, o->is_recursive ? CM_LIST_RECURSIVE : 0,
				  take_entry, p, &away->call, err);
	/* what came before an error is no less there */
	if (p->f->why.code == 0 && put_sorted(p) < 0)
		return p->f->why.code;
	if (p->f->why.code == 0 && (r == CM_E_NOT_FOUND || r == CM_E_INVALID))
		r = list_itself(p, path, name, r, err);
	return r;
}

static int show_list(struct cm_away_files *f, const struct options *o, char *const *paths,
		     struct cm_error *err)
{
	bool is_alone = !paths[0] || !paths[1];
	struct printer p;
	int r = CM_OK;

	begin(&p, f,
	      o->is_nul	   ? CM_FILE_NUL
	      : o->is_json ? CM_FILE_JSON
	      : o->is_long ? CM_FILE_LONG
			   : CM_FILE_NAMES);
	for (; *paths && r == CM_OK; paths++) {
		r = list_path(&p, o, *paths, is_alone, err);
		cm_away_entries_clear(&p.entries);
		r = cm_away_files_go_on(f, r, err);
	}
	return end(&p, r, err);
}

static int show_stat(struct cm_away_files *f, const struct options *o, char *const *paths,
		     struct cm_error *err)
{
	struct printer p;
	int r = CM_OK;

	begin(&p, f, o->is_json ? CM_FILE_JSON : CM_FILE_BLOCK);
	for (; *paths && r == CM_OK; paths++) {
		CM_AUTO_FREE char *path = cm_away_files_path(f, *paths);

		r = path ? show_itself(&p, path, *paths, o->follows ? CM_STAT_FOLLOW : 0, err)
			 : no_memory(err);
		r = cm_away_files_go_on(f, r, err);
	}
	return end(&p, r, err);
}

static int show_events(struct cm_away_files *f, const struct options *o, char *const *paths,
		       struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_away_files_path(f, paths[0]);
	struct printer p;
	int r;

	begin(&p, f, o->is_json ? CM_FILE_JSON : CM_FILE_NAMES);
	r = path ? cm_session_watch(f->away.session, path, take_event, &p, &f->away.call, err)
		 : no_memory(err);
	r = cm_away_files_go_on(f, r, err);
	return end(&p, r, err);
}

/* --- content and changes ------------------------------------------------------------------- */

static int read_content(struct cm_away_files *f, const struct options *o, char *const *paths,
			struct cm_error *err)
{
	return cm_away_files_go_on(f, cm_away_files_print(f, paths[0], o->from, o->n_bytes, err),
				   err);
}

static int write_content(struct cm_away_files *f, const struct options *o, char *const *paths,
			 struct cm_error *err)
{
	uint32_t flags = (o->is_append ? CM_WRITE_APPEND : 0) |
			 (o->is_atomic ? CM_WRITE_ATOMIC : 0) |
			 (o->wants_parents ? CM_WRITE_PARENTS : 0);

	return cm_away_files_go_on(f, cm_away_files_write(f, paths[0], flags, o->mode_bits, err),
				   err);
}

static int make_directories(struct cm_away_files *f, const struct options *o, char *const *paths,
			    struct cm_error *err)
{
	int r = CM_OK;

	for (; *paths && r == CM_OK; paths++) {
		CM_AUTO_FREE char *path = cm_away_files_path(f, *paths);

		r = path ? cm_session_mkdir(f->away.session, path,
					    o->wants_parents ? CM_MKDIR_PARENTS : 0, o->mode_bits,
					    &f->away.call, err)
			 : no_memory(err);
		r = cm_away_files_go_on(f, r, err);
	}
	return r;
}

static int move(struct cm_away_files *f, const struct options *o, char *const *paths,
		struct cm_error *err)
{
	CM_AUTO_FREE char *from = cm_away_files_path(f, paths[0]);
	CM_AUTO_FREE char *to = cm_away_files_path(f, paths[1]);

	if (!from || !to)
		return no_memory(err);
	return cm_away_files_go_on(f,
				   cm_session_move(f->away.session, from, to,
						   o->is_no_clobber ? CM_MOVE_NO_CLOBBER : 0,
						   &f->away.call, err),
				   err);
}

static int remove_paths(struct cm_away_files *f, const struct options *o, char *const *paths,
			struct cm_error *err)
{
	uint32_t flags =
		(o->is_recursive ? CM_REMOVE_RECURSIVE : 0) | (o->is_forced ? CM_REMOVE_FORCE : 0);
	int r = CM_OK;

	for (; *paths && r == CM_OK; paths++) {
		CM_AUTO_FREE char *path = cm_away_files_path(f, *paths);

		r = path ? cm_session_remove(f->away.session, path, flags, &f->away.call, err)
			 : no_memory(err);
		r = cm_away_files_go_on(f, r, err);
	}
	return r;
}

/* --- the line ------------------------------------------------------------------------------ */

static const struct operation operations[] = {
	{ "read", 1, 1, "ol", "[--offset N] [--length SIZE] ID PATH", read_content },
	{ "write", 1, 1, "aAmp", "[--append | --atomic] [--mode MODE] [-p] ID PATH",
	  write_content },
	{ "ls", 0, INT32_MAX, "rdjL0", "[-r] [-d] [-l | -0 | --json] ID [PATH...]", show_list },
	{ "stat", 1, INT32_MAX, "Fj", "[--follow] [--json] ID PATH...", show_stat },
	{ "mkdir", 1, INT32_MAX, "pm", "[-p] [--mode MODE] ID PATH...", make_directories },
	{ "mv", 2, 2, "n", "[--no-clobber] ID FROM TO", move },
	{ "rm", 1, INT32_MAX, "rf", "[-r] [-f] ID PATH...", remove_paths },
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
	struct cm_cli_option options[CM_ARRAY_SIZE(all) + 5];
	size_t n = 0;

	for (size_t i = 0; i < CM_ARRAY_SIZE(all); i++) {
		if (strchr(op->takes, all[i].mark))
			options[n++] = all[i].option;
	}
	options[n++] = (struct cm_cli_option){ "root", '\0', CM_OPTION_TEXT, &o->root };
	options[n++] = (struct cm_cli_option){ "user", 'u', CM_OPTION_TEXT, &o->user };
	options[n++] = (struct cm_cli_option){ "quiet", 'q', CM_OPTION_SWITCH, &cli->is_quiet };
	options[n++] =
		(struct cm_cli_option){ "verbose", '\0', CM_OPTION_SWITCH, &cli->is_verbose };
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
	char *rest = NULL;
	unsigned long mode;

	errno = 0;
	mode = strtoul(text, &rest, 8);
	if (text[0] < '0' || text[0] > '7' || *rest != '\0' || errno != 0 || mode > 07777) {
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

static int check_options(struct options *o, struct cm_error *err)
{
	int r = cm_away_absent_root(o->root, err);

	o->n_bytes = UINT64_MAX;
	o->mode_bits = UINT32_MAX;
	if (r == CM_OK)
		r = cm_away_absent_user(o->user, err);
	if (r == CM_OK && o->is_append && o->is_atomic) {
		r = cm_error_set(err, CM_E_INVALID, 0,
				 "--append and --atomic contradict each other");
		cm_error_hint(err, "--atomic makes a new file, which replaces what is there");
	}
	if (r == CM_OK && o->offset)
		r = cm_parse_size(o->offset, "--offset", 0, INT64_MAX, &o->from, err);
	if (r == CM_OK && o->length)
		r = cm_parse_size(o->length, "--length", 0, INT64_MAX, &o->n_bytes, err);
	return r == CM_OK && o->mode ? read_mode(o->mode, &o->mode_bits, err) : r;
}

int cm_cmd_file(struct cm_cli *cli, int argc, char **argv)
{
	static char current[] = ".";
	static char *here[] = { current, NULL };
	static struct cm_away_files files;
	const struct operation *op = find_operation(argc > 1 ? argv[1] : NULL);
	struct options o = { .root = NULL };
	struct cm_error err = CM_ERROR_INIT;
	int status;
	int n = 0;
	int r;

	if (!op) {
		(void)no_operation(argc > 1 ? argv[1] : NULL, &err);
		return cm_cli_fail(cli, &err);
	}
	/* whose options are asked for in hints */
	argv[1] = argv[0];
	if (read_line(cli, op, argc - 2, argv + 2, &o, &n, &err) < 0 ||
	    check_operands(op, n, &err) < 0 || check_options(&o, &err) < 0)
		return cm_cli_fail(cli, &err);
	/* the line's words end with a NULL, but options stood among them */
	argv[2 + n] = NULL;
	r = cm_away_files_open(&files, cli, argv[2], &err);
	if (r == CM_OK)
		r = op->act(&files, &o, n > 1 ? argv + 3 : here, &err);
	status = cm_away_files_end(&files, r, &err);
	cm_away_files_close(&files);
	return status;
}
