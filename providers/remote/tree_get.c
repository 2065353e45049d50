/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree out of a session. libarchive asks for bytes, and the command is followed as far as it takes to
 * have some.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "isolation/keeper/file_link.h"
#include "providers/remote/tree_internal.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define KILL_MS 2000
/* in front of one entry: long names and maps of holes, which libarchive keeps */
#define HEAD_MAX (16UL * 1024 * 1024)

/* $1 path. Holes as holes and links as files, where tar can. */
static const char get_script[] = CM_SHELL_WHY
	"why \"$1\"\n"
	"command -v tar >/dev/null 2>&1 || fail no-tar\n"
	"case $1 in */|*/.|*/..) cd \"$1\" 2>/dev/null || fail denied; n=.;;\n"
	"*) dir \"$1\"; n=./${1##*/}; cd \"$d\" 2>/dev/null || fail denied;; esac\n"
	"if [ -d \"$n\" ] && [ ! -L \"$n\" ]; then [ -r \"$n\" ] && [ -x \"$n\" ] || fail denied; fi\n"
	"case $(tar --version 2>/dev/null) in *GNU*)\n"
	"exec tar --format=gnu --hard-dereference -S -cf - \"$n\";; esac\n"
	"exec tar -cf - \"$n\"\n";

int cm_tree_check(const struct cm_call *call)
{
	struct pollfd p = { .fd = call->cancel_fd, .events = POLLIN };

	if (call->cancel_fd >= 0 && poll(&p, 1, 0) > 0)
		return -ECANCELED;
	return cm_clock_mono_ms() >= call->deadline_ms ? -ETIMEDOUT : 0;
}

int cm_tree_gave_up(int error, const char *path, struct cm_error *err)
{
	if (error == -ECANCELED)
		return cm_error_set(err, CM_E_CANCELLED, 0,
				    "cannot copy all of '%.200s': it was given up", path);
	(void)cm_error_set(err, CM_E_TIMEOUT, 0,
			   "cannot copy all of '%.200s': the time for it is over", path);
	cm_error_hint(err, "give it more time");
	return CM_E_TIMEOUT;
}

struct source {
	const char *path;
	struct cm_exec *exec;
	const struct cm_call *call;
	struct cm_error *err;
	/* what cm_exec_next failed with */
	int code;
	bool has_ended;
	struct cm_exec_end how;
	/* its standard error */
	struct cm_shell_end end;
	bool is_in_head;
	size_t n_head;
};

/* One event. 1: *ret has bytes of the stream; 0: it has not, or there are no more; -1: a failure. */
static int step(struct source *s, struct cm_exec_event *ret)
{
	int e = cm_tree_check(s->call);

	/* not every provider looks where it has something to tell at once */
	s->code = e < 0 ? cm_tree_gave_up(e, s->path, s->err)
			: cm_exec_next(s->exec, NULL, s->call, ret, s->err);
	if (s->code < 0)
		return -1;
	if (ret->kind == CM_EXEC_HAS_ENDED) {
		s->has_ended = true;
		s->how = ret->end;
		return 0;
	}
	if (ret->kind != CM_EXEC_HAS_OUTPUT)
		return 0;
	if (ret->stream != 2)
		return ret->len > 0 ? 1 : 0;
	cm_shell_tail_add(&s->end, ret->bytes, ret->len);
	return 0;
}

static la_ssize_t read_bytes(struct archive *a, void *data, const void **ret)
{
	struct source *s = data;
	struct cm_exec_event event = { .kind = 0 };
	int r = 0;

	while (r == 0 && !s->has_ended)
		r = step(s, &event);
	if (r < 0) {
		archive_set_error(a, EIO, "the session's stream broke off");
		return ARCHIVE_FATAL;
	}
	if (r == 0)
		return 0;
	s->n_head += s->is_in_head ? event.len : 0;
	if (s->n_head > HEAD_MAX) {
		archive_set_error(a, EFBIG, "an entry's head is too long");
		return ARCHIVE_FATAL;
	}
	*ret = event.bytes;
	return (la_ssize_t)event.len;
}

/* What comes behind the stream's end is of no interest, but how the command ends is. */
static void drain(struct source *s)
{
	struct cm_exec_event event = { .kind = 0 };
	int r = 0;

	while (r >= 0 && !s->has_ended)
		r = step(s, &event);
}

static int no_stream(const char *path, struct cm_error *err)
{
	return cm_error_set(err, CM_E_PROTOCOL, 0,
			    "cannot copy '%.200s': what came out of the session is not its tree",
			    path);
}

/* 0, or as cm_tree_sink_take has it. */
static int read_entries(struct source *s, struct archive *a, struct cm_tree_sink *sink)
{
	for (;;) {
		struct archive_entry *entry = NULL;
		int r;
		int e;

		s->is_in_head = true;
		s->n_head = 0;
		r = archive_read_next_header(a, &entry);
		s->is_in_head = false;
		if (r == ARCHIVE_EOF)
			return cm_tree_sink_end(sink);
		/* a warning is about a name or a time that it does not like; those are looked at here */
		if (r < ARCHIVE_WARN)
			return s->code < 0 ? -EIO : -EBADMSG;
		e = cm_tree_sink_take(sink, a, entry);
		if (e < 0)
			return e;
	}
}

static int read_archive(struct source *s, struct cm_tree_sink *sink)
{
	struct archive *a = archive_read_new();
	int e = -ENOMEM;

	if (!a)
		return e;
	if (archive_read_support_format_tar(a) == ARCHIVE_OK) {
		e = archive_read_open(a, s, NULL, read_bytes, NULL) < ARCHIVE_WARN
			    ? -EBADMSG
			    : read_entries(s, a, sink);
	}
	(void)archive_read_free(a);
	return e;
}

static void stop(struct source *s)
{
	const struct cm_call call = { .deadline_ms = cm_clock_mono_ms() + KILL_MS,
				      .cancel_fd = -1 };

	if (!s->has_ended && s->exec->ops->signal)
		(void)cm_exec_signal(s->exec, SIGKILL, &call, NULL);
}

/* Of what the command said itself comes first what the stream lacks by that. */
static int judge(struct source *s, int e, const char *path, bool has_top, struct cm_error *err)
{
	if (s->code < 0)
		return s->code;
	if (e == -ECANCELED || e == -ETIMEDOUT)
		return cm_tree_gave_up(e, path, err);
	if (s->has_ended && s->how.kind == CM_EXEC_LOST)
		return cm_error_set(err, CM_E_REMOTE, 0,
				    "cannot copy '%.200s': the connection was "
				    "lost",
				    path);
	s->end.exit_code = s->how.exit_code;
	if (cm_shell_says(&s->end, "no-tar")) {
		(void)cm_error_set(err, CM_E_UNSUPPORTED, 0, "the session has no 'tar'");
		cm_error_hint(err, "begin it with a template that has tar, or copy file by file");
		return CM_E_UNSUPPORTED;
	}
	if (s->has_ended && s->how.exit_code != 0 && (!has_top || cm_shell_verdict(&s->end)))
		return cm_shell_file_error(&s->end, "copy", path, err);
	if (e == -EBADMSG || e == -EIO)
		return no_stream(path, err);
	if (e < 0)
		return cm_error_set(err, e == -ENOMEM ? CM_E_NOMEM : CM_E_LIMIT, -e,
				    "cannot copy '%.200s'", path);
	/* 1 of GNU's: something changed meanwhile */
	if (s->how.exit_code > 1 || (s->how.exit_code == 1 && s->end.tail_len == 0))
		return cm_shell_file_error(&s->end, "copy all of", path, err);
	return CM_OK;
}

/* What the script makes the top's name of. */
static bool find_top(const char *path, char ret[NAME_MAX + 1])
{
	size_t len = strlen(path);

	if (path[len - 1] == '/') {
		ret[0] = '\0';
		return true;
	}
	return cm_file_base(path, ret, NAME_MAX + 1);
}

int cm_tree_get(struct cm_session *s, const char *path, struct cm_file_receiver *to,
		const struct cm_call *call, struct cm_error *err)
{
	CM_AUTO_FREE char *name = NULL;
	char top[NAME_MAX + 1];
	const char *args[] = { NULL, NULL };
	const struct cm_shell shell = { .session = s, .script = get_script, .args = args };
	struct source source = { .path = path, .call = call, .err = err };
	struct cm_tree_sink *sink = NULL;
	int r = cm_shell_path(path, &name, err);
	int e;

	if (r < 0)
		return r;
	args[0] = name;
	if (!find_top(name, top))
		return cm_error_set(err, CM_E_INVALID, 0, "the path is too long");
	if (cm_tree_sink_new(to, top, call, &sink) < 0)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a copy");
	r = cm_shell_start(&shell, call, &source.exec, err);
	if (r < 0) {
		cm_tree_sink_free(sink);
		return r;
	}
	e = read_archive(&source, sink);
	if (e == 0 || !to->has_top)
		drain(&source);
	stop(&source);
	r = judge(&source, e, path, to->has_top, err);
	cm_exec_release(source.exec);
	cm_shell_end_clear(&source.end);
	cm_tree_sink_free(sink);
	return r;
}
