/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to a session's files: told by inotifywait, or found by comparing listings. The stream says
 * first which of the two it is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/remote/shell_files_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"

#define EVENT_MAX (16UL * 1024)
#define N_FIELDS 3U
#define READY "Watches established"

#define EVENTS                                                                                     \
	"-e create -e modify -e attrib -e delete -e move -e delete_self -e move_self -e unmount"

/* $1 path, $2 what find calls, $3 "1": no inotifywait */
static const char watch_script[] = CM_SHELL_WHY CM_SHELL_TREE
	"why \"$1\"\n"
	"[ -e \"$1\" ] || fail not-found\n"
	"[ -r \"$1\" ] || fail denied\n"
	"each=$2\n"
	"if [ -d \"$1\" ]; then p=${1%/}/ deep=1; else p=$1 deep=self; fi\n"
	"if [ \"$3\" = 0 ] && inotifywait --help 2>&1 | grep -q -e --no-newline; then\n"
	"printf 'i\\0%s\\0' \"$p\"\n"
	"exec inotifywait -m -r --no-newline --format '%e%0%w%0%f%0' " EVENTS " \"$p\"\n"
	"fi\n"
	"printf 'p\\0%s\\0' \"$p\"\n"
	"old=\n"
	"while [ -e \"$1\" ]; do\n"
	"new=$(tree 2>/dev/null | cksum)\n"
	"if [ \"$new\" != \"$old\" ]; then\n"
	"tree 2>/dev/null; printf '.\\0\\0\\0\\0\\0\\0\\0\\0'; old=$new; fi\n"
	"sleep 1\n"
	"done\n"
	"printf '!\\0\\0\\0\\0\\0\\0\\0\\0'\n";

enum mode {
	MODE_UNKNOWN = 0,
	MODE_TOP,
	MODE_EVENTS,
	MODE_LISTINGS,
};

struct watch {
	int (*each)(void *data, const struct cm_watch_event *event);
	void *data;
	enum mode mode;
	bool has_events;
	/* what paths begin with */
	char *top;
	/* fields of the event that has begun */
	struct cm_buf text;
	unsigned int n_fields;
	/* the end of standard error, until it says that the watches stand */
	struct cm_shell_end said;
	bool is_ready;
	bool is_gone;
	int result;
	struct cm_shell_entries entries;
	struct cm_shell_snapshots *snapshots;
};

static int tell(struct watch *w, enum cm_watch_kind kind, const char *path)
{
	const struct cm_watch_event event = { .kind = kind, .path = path };

	w->result = w->each(w->data, &event);
	return w->result == 0 ? 0 : -ECANCELED;
}

static bool has_word(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = words; *at != '\0';
	     at += strcspn(at, ",") + (at[strcspn(at, ",")] ? 1 : 0)) {
		if (strcspn(at, ",") == len && memcmp(at, word, len) == 0)
			return true;
	}
	return false;
}

static const struct {
	const char *word;
	enum cm_watch_kind kind;
} words[] = {
	{ "CREATE", CM_WATCH_CREATED },	    { "MOVED_TO", CM_WATCH_CREATED },
	{ "MOVED_FROM", CM_WATCH_RENAMED }, { "DELETE", CM_WATCH_REMOVED },
	{ "MODIFY", CM_WATCH_MODIFIED },    { "ATTRIB", CM_WATCH_ATTRIBUTES },
};

/* Of a directory below, its own end is told by the one above it. */
static int take_self(struct watch *w, const char *path)
{
	if (path[0] != '\0')
		return 0;
	w->is_gone = true;
	return -ECANCELED;
}

static int take_event(struct watch *w)
{
	const char *what = w->text.data;
	const char *dir = what + strlen(what) + 1;
	const char *name = dir + strlen(dir) + 1;
	size_t top_len = strlen(w->top);
	CM_AUTO_FREE char *path = NULL;
	size_t len;

	if (has_word(what, "Q_OVERFLOW") || has_word(what, "OVERFLOW"))
		return tell(w, CM_WATCH_OVERFLOW, "");
	if (strncmp(dir, w->top, top_len) != 0)
		return -EBADMSG;
	path = cm_asprintf("%s%s", dir + top_len, name);
	if (!path)
		return -ENOMEM;
	/* of a directory's own event */
	len = strlen(path);
	if (len > 0 && path[len - 1] == '/')
		path[len - 1] = '\0';
	if (has_word(what, "DELETE_SELF") || has_word(what, "MOVE_SELF") ||
	    has_word(what, "UNMOUNT"))
		return take_self(w, path);
	for (size_t i = 0; i < CM_ARRAY_SIZE(words); i++) {
		if (has_word(what, words[i].word))
			return tell(w, words[i].kind, path);
	}
	return 0;
}

/* A field is complete. */
static int finish_field(struct watch *w)
{
	int r = 0;

	switch (w->mode) {
	case MODE_UNKNOWN:
		w->has_events = strcmp(w->text.data, "i") == 0;
		if (!w->has_events && strcmp(w->text.data, "p") != 0)
			return -EBADMSG;
		w->mode = MODE_TOP;
		break;
	case MODE_TOP:
		w->top = cm_strdup(w->text.data);
		if (!w->top)
			return -ENOMEM;
		w->mode = w->has_events ? MODE_EVENTS : MODE_LISTINGS;
		break;
	case MODE_EVENTS:
		if (++w->n_fields < N_FIELDS)
			return 0;
		r = take_event(w);
		w->n_fields = 0;
		break;
	case MODE_LISTINGS:
		break;
	}
	cm_buf_reset(&w->text);
	return r;
}

static int take(void *data, const void *bytes, size_t len)
{
	struct watch *w = data;
	const char *at = bytes;
	const char *to = at + len;
	int r = 0;

	while (r == 0 && at < to && w->mode != MODE_LISTINGS) {
		const char *end = memchr(at, '\0', (size_t)(to - at));
		size_t n = (size_t)((end ? end + 1 : to) - at);

		cm_buf_append(&w->text, at, n);
		if (cm_buf_status(&w->text) != CM_OK)
			return cm_buf_status(&w->text) == CM_E_NOMEM ? -ENOMEM : -EBADMSG;
		at += n;
		if (end)
			r = finish_field(w);
	}
	return r == 0 && at < to ? cm_shell_entries_take(&w->entries, at, (size_t)(to - at)) : r;
}

static int take_error(void *data, const void *bytes, size_t len)
{
	struct watch *w = data;

	if (w->is_ready)
		return 0;
	cm_shell_tail_add(&w->said, bytes, len);
	if (!strstr(w->said.tail, READY))
		return 0;
	w->is_ready = true;
	return tell(w, CM_WATCH_READY, "");
}

static int run(struct cm_session *s, const char *name, struct watch *w, const struct cm_call *call,
	       struct cm_shell_end *end, struct cm_error *err)
{
	const char *const args[] = { name, CM_SHELL_EACH, "0", NULL };
	const struct cm_shell shell = {
		.session = s,
		.script = watch_script,
		.args = args,
		.take = take,
		.take_error = take_error,
		.take_data = w,
	};

	return cm_shell_run(&shell, call, end, err);
}

static int finish(struct watch *w, int r, const struct cm_shell_end *end, const char *path,
		  struct cm_error *why, struct cm_error *err)
{
	if (w->is_gone)
		return CM_OK;
	if (w->result != 0)
		return w->result;
	if (w->entries.result == CM_E_NOMEM)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a watch");
	if (r == CM_OK && end->exit_code != 0)
		r = cm_shell_file_error(end, "watch", path, why);
	return cm_shell_entries_end(&w->entries, r, why, "watch", path, err);
}

int cm_shell_watch(struct cm_session *s, const char *path,
		   int (*each)(void *data, const struct cm_watch_event *event), void *data,
		   const struct cm_call *call, struct cm_error *err)
{
	struct watch w = { .each = each, .data = data };
	CM_AUTO_FREE char *name = NULL;
	struct cm_error why = CM_ERROR_INIT;
	struct cm_shell_end end = CM_SHELL_END_INIT;
	int r = cm_shell_path(path, &name, err);

	if (r < 0)
		return r;
	if (cm_shell_snapshots_new(each, data, &w.snapshots) < 0)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a watch");
	cm_buf_init(&w.text, EVENT_MAX);
	cm_shell_entries_init(&w.entries, cm_shell_snapshots_take, w.snapshots);
	r = run(s, name, &w, call, &end, &why);
	r = finish(&w, r, &end, path, &why, err);
	cm_shell_end_clear(&end);
	cm_shell_entries_clear(&w.entries);
	cm_shell_snapshots_free(w.snapshots);
	cm_buf_clear(&w.text);
	free(w.top);
	return r;
}
