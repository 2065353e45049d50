/* SPDX-License-Identifier: Apache-2.0 */
/* casemate file: files of a session, wherever it is, with the rights of its commands. */
#include <limits.h>

#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/json_write.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/file_access.h"
#include "runtime/cli/file_show.h"

/* one entry or event: each byte of two paths may become six */
#define LINE_MAX_BYTES (16UL * PATH_MAX)
/* what is printed at once */
#define PIECE 32768U

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

/* --- entries and events -------------------------------------------------------------------- */

struct printer {
	struct cm_file_access *f;
	enum cm_file_form form;
	/* the path, as it was given */
	const char *asked;
	/* of several, each name says below which it is */
	bool has_prefix;
	/* what is told is that path itself */
	bool is_itself;
	bool is_first;
	struct cm_buf text;
};

/* Printed, where there is enough of it. A failure is f->why. */
static int flush(struct printer *p, bool is_now)
{
	struct cm_file_sink *sink = cm_file_access_sink(p->f);
	int r = cm_buf_status(&p->text);

	if (r < 0)
		return no_memory(&p->f->why);
	if (p->text.len == 0 || (!is_now && p->text.len < PIECE))
		return CM_OK;
	r = cm_file_sink_text(sink, p->text.data, p->text.len, &p->f->why);
	cm_buf_reset(&p->text);
	return r;
}

static int put_entry(void *data, const struct cm_path_info *info)
{
	struct printer *p = data;
	bool is_itself = p->is_itself || info->path[0] == '\0';
	struct cm_path_info shown = *info;

	if (is_itself && p->asked)
		shown.path = p->asked;
	if (p->form == CM_FILE_BLOCK && !p->is_first)
		cm_buf_putc(&p->text, '\n');
	p->is_first = false;
	cm_file_show_entry(&shown, p->has_prefix && !is_itself ? p->asked : "", p->form, &p->text);
	return flush(p, false);
}

/* At once, each. */
static int put_event(void *data, const struct cm_watch_event *event)
{
	struct printer *p = data;

	cm_file_show_event(event, p->form == CM_FILE_JSON, &p->text);
	return flush(p, true);
}

static void begin(struct printer *p, struct cm_file_access *f, enum cm_file_form form)
{
	*p = (struct printer){ .f = f, .form = form, .is_first = true };
	cm_buf_init(&p->text, PIECE + LINE_MAX_BYTES);
	(void)cm_file_access_sink(f);
}

/* What came before an error is no less there. */
static int end(struct printer *p, int r, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;

	if (p->f->why.code == 0 && flush(p, true) == CM_OK &&
	    cm_file_sink_end(&p->f->sink, &why) < 0)
		p->f->why = why;
	cm_buf_clear(&p->text);
	/* a signal, or what failed first, is it */
	return r < 0 ? r : cm_file_access_settle(p->f, r, err);
}

/* --- paths --------------------------------------------------------------------------------- */

/* One of them, as the provider knows it. */
static int do_path(struct cm_file_access *f, const struct cm_paths_request *q, const char *path,
		   struct cm_error *err)
{
	switch (q->kind) {
	case CM_PATHS_LIST:
		return cm_session_list_files(f->session, path, q->flags, q->each, q->data, &f->call,
					     err);
	case CM_PATHS_STAT:
		return cm_session_stat(f->session, path, q->flags, q->each, q->data, &f->call, err);
	case CM_PATHS_MKDIR:
		return cm_session_mkdir(f->session, path, q->flags, q->mode, &f->call, err);
	case CM_PATHS_REMOVE:
		return cm_session_remove(f->session, path, q->flags, &f->call, err);
	}
	return cm_error_set(err, CM_E_BUG, 0, "no such operation on files");
}

/* All at once, where the provider does that; what it tells has the names that are shown. */
static int do_together(struct cm_file_access *f, const struct cm_paths_request *q,
		       char *const *paths, struct printer *p, struct cm_error *err)
{
	struct cm_paths_request all = *q;

	all.paths = (const char *const *)(uintptr_t)paths;
	if (p)
		p->has_prefix = p->is_itself = false;
	return cm_file_access_go_on(f, cm_session_paths(f->session, &all, &f->call, err), err);
}

/* What cannot be done with one of them keeps nobody from the others. p: NULL where nothing is shown. */
static int do_paths(struct cm_file_access *f, const struct cm_paths_request *q, char *const *paths,
		    struct printer *p, struct cm_error *err)
{
	int r = CM_OK;

	if (paths[1] && !f->directory && cm_session_has_paths(f->session))
		return do_together(f, q, paths, p, err);
	for (; *paths && r == CM_OK; paths++) {
		CM_AUTO_FREE char *path = cm_file_access_path(f, *paths);

		if (p)
			p->asked = *paths;
		r = path ? do_path(f, q, path, err) : no_memory(err);
		r = cm_file_access_go_on(f, r, err);
	}
	return r;
}

/* --- operations ---------------------------------------------------------------------------- */

static int show_list(struct cm_file_access *f, const struct cm_file_line *o, struct cm_error *err)
{
	struct printer p;
	struct cm_paths_request q = {
		.kind = o->is_itself ? CM_PATHS_STAT : CM_PATHS_LIST,
		.each = put_entry,
		.data = &p,
	};

	if (!o->is_itself)
		q.flags = CM_LIST_ANY | (o->is_recursive ? CM_LIST_RECURSIVE : 0);
	begin(&p, f,
	      o->is_nul	   ? CM_FILE_NUL
	      : o->is_json ? CM_FILE_JSON
	      : o->is_long ? CM_FILE_LONG
			   : CM_FILE_NAMES);
	p.is_itself = o->is_itself;
	p.has_prefix = o->paths[0] && o->paths[1];
	return end(&p, do_paths(f, &q, o->paths, &p, err), err);
}

static int show_stat(struct cm_file_access *f, const struct cm_file_line *o, struct cm_error *err)
{
	struct printer p;
	const struct cm_paths_request q = {
		.kind = CM_PATHS_STAT,
		.flags = o->follows ? CM_STAT_FOLLOW : 0,
		.each = put_entry,
		.data = &p,
	};

	begin(&p, f, o->is_json ? CM_FILE_JSON : CM_FILE_BLOCK);
	p.is_itself = true;
	return end(&p, do_paths(f, &q, o->paths, &p, err), err);
}

static int show_events(struct cm_file_access *f, const struct cm_file_line *o, struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_file_access_path(f, o->paths[0]);
	struct printer p;
	int r;

	begin(&p, f, o->is_json ? CM_FILE_JSON : CM_FILE_NAMES);
	r = path ? cm_session_watch(f->session, path, put_event, &p, &f->call, err)
		 : no_memory(err);
	return end(&p, cm_file_access_go_on(f, r, err), err);
}

static int read_content(struct cm_file_access *f, const struct cm_file_line *o,
			struct cm_error *err)
{
	int r = cm_file_access_print(f, o->paths[0], o->offset, o->length, err);

	return cm_file_access_go_on(f, r, err);
}

static int write_content(struct cm_file_access *f, const struct cm_file_line *o,
			 struct cm_error *err)
{
	uint32_t flags = (o->is_append ? CM_WRITE_APPEND : 0) |
			 (o->is_atomic ? CM_WRITE_ATOMIC : 0) |
			 (o->wants_parents ? CM_WRITE_PARENTS : 0);
	int r = cm_file_access_write(f, o->paths[0], flags, o->mode, err);

	return cm_file_access_go_on(f, r, err);
}

static int make_directories(struct cm_file_access *f, const struct cm_file_line *o,
			    struct cm_error *err)
{
	const struct cm_paths_request q = {
		.kind = CM_PATHS_MKDIR,
		.flags = o->wants_parents ? CM_MKDIR_PARENTS : 0,
		.mode = o->mode,
	};

	return do_paths(f, &q, o->paths, NULL, err);
}

static int move(struct cm_file_access *f, const struct cm_file_line *o, struct cm_error *err)
{
	CM_AUTO_FREE char *from = cm_file_access_path(f, o->paths[0]);
	CM_AUTO_FREE char *to = cm_file_access_path(f, o->paths[1]);
	int r = CM_E_NOMEM;

	if (from && to)
		r = cm_session_move(f->session, from, to, o->is_no_clobber ? CM_MOVE_NO_CLOBBER : 0,
				    &f->call, err);
	else
		(void)no_memory(err);
	return cm_file_access_go_on(f, r, err);
}

static int remove_paths(struct cm_file_access *f, const struct cm_file_line *o,
			struct cm_error *err)
{
	const struct cm_paths_request q = {
		.kind = CM_PATHS_REMOVE,
		.flags = (o->is_recursive ? CM_REMOVE_RECURSIVE : 0) |
			 (o->is_forced ? CM_REMOVE_FORCE : 0),
	};

	return do_paths(f, &q, o->paths, NULL, err);
}

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

static int show_url(struct cm_file_access *f, const struct cm_file_line *o, struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_file_access_path(f, o->paths[0]);
	uint32_t flags = o->is_upload ? CM_URL_WRITE : 0;
	struct printer p;
	char *url = NULL;
	int64_t end_ms = 0;
	int r;

	begin(&p, f, CM_FILE_NAMES);
	r = path ? cm_session_file_url(f->session, path, flags, o->lifetime_ms, &f->call, &url,
				       &end_ms, err)
		 : no_memory(err);
	if (r == CM_OK)
		put_url(&p.text, o, url, end_ms);
	cm_free_secret(&url);
	return end(&p, cm_file_access_go_on(f, r, err), err);
}

/* --- the line ------------------------------------------------------------------------------ */

static int (*const acts[])(struct cm_file_access *f, const struct cm_file_line *o,
			   struct cm_error *err) = {
	[CM_FILE_VERB_READ] = read_content,	 [CM_FILE_VERB_WRITE] = write_content,
	[CM_FILE_VERB_LS] = show_list,		 [CM_FILE_VERB_STAT] = show_stat,
	[CM_FILE_VERB_MKDIR] = make_directories, [CM_FILE_VERB_MV] = move,
	[CM_FILE_VERB_RM] = remove_paths,	 [CM_FILE_VERB_WATCH] = show_events,
	[CM_FILE_VERB_URL] = show_url,
};
_Static_assert(CM_ARRAY_SIZE(acts) == CM_FILE_VERB_COUNT_, "an act each");

int cm_cmd_file(struct cm_cli *cli, int argc, char **argv)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_file_target target = { NULL };
	struct cm_file_access *f = NULL;
	struct cm_file_line line;
	int status;

	if (cm_file_access_line(cli, argc, argv, &line, &err) < 0)
		return cm_cli_fail(cli, &err);
	target.session = line.session;
	target.root = line.root;
	target.user = line.user;
	status = cm_file_access_open(cli, &target, &f);
	if (status != 0)
		return status;
	status = cm_file_access_end(f, acts[line.verb](f, &line, &err), &err);
	cm_file_access_close(f);
	return status;
}
