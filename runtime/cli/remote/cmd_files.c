/* SPDX-License-Identifier: Apache-2.0 */
/* casemate file: files of a session that is elsewhere. */
#include <string.h>

#include "providers/registry.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/json_write.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/file_line.h"
#include "runtime/cli/remote/absent.h"
#include "runtime/cli/remote/file_access.h"
#include "runtime/cli/remote/file_shown.h"

/* one entry or event: each byte of two paths may become six */
#define LINE_MAX_BYTES (16UL * CM_FILE_PATH_MAX)
/* what is printed at once */
#define PIECE 32768U
/* names are sorted as far as they fit into this; more come in sorted pieces */
#define MAX_ENTRIES_BYTES (32UL * 1024 * 1024)

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

static int list_path(struct printer *p, const struct cm_file_line *o, const char *name,
		     bool is_alone, struct cm_error *err)
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

static int show_list(struct cm_away_files *f, const struct cm_file_line *o, char *const *paths,
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

static int show_stat(struct cm_away_files *f, const struct cm_file_line *o, char *const *paths,
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

static int show_events(struct cm_away_files *f, const struct cm_file_line *o, char *const *paths,
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

static int read_content(struct cm_away_files *f, const struct cm_file_line *o, char *const *paths,
			struct cm_error *err)
{
	return cm_away_files_go_on(f, cm_away_files_print(f, paths[0], o->offset, o->length, err),
				   err);
}

static int write_content(struct cm_away_files *f, const struct cm_file_line *o, char *const *paths,
			 struct cm_error *err)
{
	uint32_t flags = (o->is_append ? CM_WRITE_APPEND : 0) |
			 (o->is_atomic ? CM_WRITE_ATOMIC : 0) |
			 (o->wants_parents ? CM_WRITE_PARENTS : 0);

	return cm_away_files_go_on(f, cm_away_files_write(f, paths[0], flags, o->mode, err), err);
}

static int make_directories(struct cm_away_files *f, const struct cm_file_line *o,
			    char *const *paths, struct cm_error *err)
{
	int r = CM_OK;

	for (; *paths && r == CM_OK; paths++) {
		CM_AUTO_FREE char *path = cm_away_files_path(f, *paths);

		r = path ? cm_session_mkdir(f->away.session, path,
					    o->wants_parents ? CM_MKDIR_PARENTS : 0, o->mode,
					    &f->away.call, err)
			 : no_memory(err);
		r = cm_away_files_go_on(f, r, err);
	}
	return r;
}

static int move(struct cm_away_files *f, const struct cm_file_line *o, char *const *paths,
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

static int remove_paths(struct cm_away_files *f, const struct cm_file_line *o, char *const *paths,
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

/* --- an address ---------------------------------------------------------------------------- */

/* end_ms 0: never */
static void put_url(struct cm_buf *out, const struct cm_file_line *o, const char *url,
		    int64_t end_ms)
{
	char when[CM_CLOCK_RFC3339_SIZE] = "";
	struct cm_json_writer w;

	if (!o->is_json) {
		cm_buf_printf(out, "%s\n", url);
		return;
	}
	if (end_ms != 0)
		cm_clock_rfc3339(end_ms, when);
	cm_jw_init(&w, out, false);
	cm_jw_object(&w);
	cm_jw_kstring(&w, "name", o->paths[0]);
	cm_jw_kstring(&w, "operation", o->is_upload ? "write" : "read");
	cm_jw_kstring(&w, "url", url);
	cm_jw_kstring(&w, "expires", end_ms != 0 ? when : NULL);
	cm_jw_end_object(&w);
	cm_buf_putc(out, '\n');
}

static int show_url(struct cm_away_files *f, const struct cm_file_line *o, char *const *paths,
		    struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_away_files_path(f, paths[0]);
	struct printer p;
	char *url = NULL;
	int64_t end_ms = 0;
	int r;

	begin(&p, f, o->is_json ? CM_FILE_JSON : CM_FILE_NAMES);
	r = path ? cm_session_file_url(f->away.session, path, o->is_upload ? CM_URL_WRITE : 0,
				       o->lifetime_ms, &f->away.call, &url, &end_ms, err)
		 : no_memory(err);
	if (r == CM_OK)
		put_url(&p.text, o, url, end_ms);
	cm_free_secret(&url);
	r = cm_away_files_go_on(f, r, err);
	return end(&p, r, err);
}

/* Before a session is started, which may cost something, for what its provider has not. */
static int check_verb(enum cm_file_verb verb, struct cm_error *err)
{
	const struct cm_provider_ops *ops = cm_provider_find(cm_away_provider_name());

	return cm_away_absent_option(
		verb == CM_FILE_VERB_URL && ops && (ops->caps & CM_CAP_FILE_URL) == 0, "file url",
		"'casemate file read' and 'casemate file write' pass on what is in one", err);
}

/* --- the line ------------------------------------------------------------------------------ */

static int (*const acts[])(struct cm_away_files *f, const struct cm_file_line *o,
			   char *const *paths, struct cm_error *err) = {
	[CM_FILE_VERB_READ] = read_content,	 [CM_FILE_VERB_WRITE] = write_content,
	[CM_FILE_VERB_LS] = show_list,		 [CM_FILE_VERB_STAT] = show_stat,
	[CM_FILE_VERB_MKDIR] = make_directories, [CM_FILE_VERB_MV] = move,
	[CM_FILE_VERB_RM] = remove_paths,	 [CM_FILE_VERB_WATCH] = show_events,
	[CM_FILE_VERB_URL] = show_url,
};
_Static_assert(CM_ARRAY_SIZE(acts) == CM_FILE_VERB_COUNT_, "an act each");

int cm_cmd_file(struct cm_cli *cli, int argc, char **argv)
{
	static struct cm_away_files files;
	const struct cm_cli_option more[] = {
		{ "verbose", '\0', CM_OPTION_SWITCH, &cli->is_verbose },
		{ .name = NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	struct cm_file_line line;
	int status;
	int r;

	if (cm_file_line_read(cli, argc, argv, more, &line, &err) < 0 ||
	    check_verb(line.verb, &err) < 0 || cm_away_absent_root(line.root, &err) < 0 ||
	    cm_away_absent_user(line.user, &err) < 0)
		return cm_cli_fail(cli, &err);
	r = cm_away_files_open(&files, cli, line.session, &err);
	if (r == CM_OK)
		r = acts[line.verb](&files, &line, line.paths, &err);
	status = cm_away_files_end(&files, r, &err);
	cm_away_files_close(&files);
	return status;
}
