/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content into a session's file. One script does a step, or all of them in one go: it begins (checks,
 * makes the file), puts bytes behind what is there, and commits. The bytes are its standard input, or
 * an argument. What is short is written in one go; of more, whether all of it has arrived is known by
 * its length, or said by a commit of its own.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "providers/remote/shell_files_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/base64.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

/* as base64 it is below 96 KiB */
#define PIECE (64U * 1024)
#define CLEAN_MS 5000

/*
 * $1 steps, letters of: b begin, p put, c commit, d drop; $2 path, $3 the name of a new file beside it,
 * $4 flags, letters of: a append, t atomic, p parents, and w: it is written over in its place; $5 mode, or
 * ""; $6 how many bytes are to come, or ""; $7 base64, else standard input. Without a commit prints
 * "beside" or "over".
 */
static const char write_script[] = CM_SHELL_WHY
	"steps=$1 path=$2 flags=$4 mode=$5 len=$6 old= was=0\n"
	"case $path in */) fail is-dir;; esac\n"
	"is() { case $1 in *\"$2\"*) return 0;; esac; return 1; }\n"
	"dir \"$path\"; in=$d; t=${d%/}/$3\n"
	"if is \"$flags\" w; then t=$path; fi\n"
	"if is \"$steps\" d; then [ \"$t\" = \"$path\" ] || rm -f \"$t\"; exit 0; fi\n"
	"lost() { d=$in w=$1; if full; then w=no-space; fi\n"
	"[ \"$t\" = \"$path\" ] || rm -f \"$t\"; fail \"$w\"; }\n"
	"size() { echo $(($(wc -c <\"$1\"))); }\n"
	"if is \"$steps\" b; then\n"
	"if is \"$flags\" p && [ ! -d \"$in\" ] && ! mkdir -p \"$in\" 2>/dev/null; then\n"
	"while [ ! -e \"$d\" ] && [ ! -L \"$d\" ]; do dir \"$d\"; done\n"
	"[ -d \"$d\" ] || fail not-dir; if full; then fail no-space; fi; fail denied; fi\n"
	"why \"$in\"; [ -d \"$in\" ] || fail not-dir\n"
	"[ ! -d \"$path\" ] || fail is-dir\n"
	"if [ -e \"$path\" ]; then old=1; [ ! -p \"$path\" ] || fail special\n"
	"[ -w \"$path\" ] || fail denied; fi\n"
	"if [ -L \"$path\" ]; then old=1; fi\n"
	"if [ -n \"$old\" ] && ! is \"$flags\" t; then\n"
	"t=$path\n"
	"if is \"$flags\" a; then [ ! -f \"$path\" ] || was=$(size \"$path\")\n"
	"else : >\"$path\" || fail denied; fi\n"
	"else\n"
	"( set -C; : >\"$t\" ) 2>/dev/null || lost denied\n"
	"if [ -f \"$path\" ]; then\n"
	"m=$(stat -c %a \"$path\" 2>/dev/null) && chmod \"0${m#\"${m%???}\"}\" \"$t\"\n"
	"if is \"$flags\" a; then cat \"$path\" >>\"$t\" || lost denied; was=$(size \"$t\"); fi\n"
	"elif [ -n \"$mode\" ]; then chmod \"$mode\" \"$t\"; fi\n"
	"fi; fi\n"
	"if is \"$steps\" p; then\n"
	"if [ $# -ge 7 ]; then\n"
	"command -v base64 >/dev/null 2>&1 || lost no-base64\n"
	"printf '%s' \"$7\" | base64 -d >>\"$t\" || lost short\n"
	"else cat >>\"$t\" || lost short; fi\n"
	"if [ -n \"$len\" ] && [ -f \"$t\" ] && [ \"$(size \"$t\")\" != $((was + len)) ]; then "
	"lost short; fi\n"
	"fi\n"
	"if is \"$steps\" c; then [ \"$t\" = \"$path\" ] || mv -f \"$t\" \"$path\" || lost denied\n"
	"elif [ \"$t\" = \"$path\" ]; then echo over; else echo beside; fi\n"
	"exit 0\n";

struct writing {
	struct cm_session *session;
	const struct cm_call *call;
	const struct cm_write_request *request;
	/* as it was asked for, and as the session is told it */
	const char *path;
	char *name;
	char temp[48];
	char flags[8];
	char mode[16];
	/* what was read ahead */
	char *ahead;
	size_t n_ahead;
	size_t at;
	bool is_at_end;
	/* what the source failed with */
	int error;
	/* a step was done that is to be undone */
	bool has_begun;
};

static ssize_t ask(struct writing *w, void *buf, size_t size)
{
	ssize_t n = w->request->fill(w->request->data, buf, size);

	if (n < 0)
		w->error = (int)-n;
	return n;
}

/* What was read ahead, then the rest. */
static ssize_t fill(void *data, void *buf, size_t size)
{
	struct writing *w = data;
	size_t left = w->n_ahead - w->at;

	if (left > 0) {
		size_t n = left < size ? left : size;

		memcpy(buf, w->ahead + w->at, n);
		w->at += n;
		return (ssize_t)n;
	}
	return w->is_at_end ? 0 : ask(w, buf, size);
}

static int give_up(const struct writing *w, struct cm_error *err)
{
	return cm_error_set(err, w->error == ENOMEM ? CM_E_NOMEM : CM_E_SYS, w->error,
			    "cannot read what is written to '%.200s'", w->path);
}

/* The next piece, full unless it is the last. */
static int read_ahead(struct writing *w, struct cm_error *err)
{
	w->n_ahead = 0;
	w->at = 0;
	while (w->n_ahead < PIECE && !w->is_at_end) {
		ssize_t n = ask(w, w->ahead + w->n_ahead, PIECE - w->n_ahead);

		if (n < 0)
			return give_up(w, err);
		w->is_at_end = n == 0;
		w->n_ahead += (size_t)n;
	}
	return CM_OK;
}

/* One run of the script. bytes: base64, or NULL. */
static int step(struct writing *w, const char *steps, const char *len, const char *bytes,
		bool has_input, struct cm_shell_end *end, struct cm_error *err)
{
	const char *const args[] = { steps, w->name, w->temp, w->flags, w->mode, len, bytes, NULL };
	const struct cm_shell shell = {
		.session = w->session,
		.script = write_script,
		.args = args,
		.fill = has_input ? fill : NULL,
		.fill_data = w,
	};
	int r = cm_shell_run(&shell, w->call, end, err);

	if (r == CM_OK && end->exit_code != 0)
		r = cm_shell_file_error(end, "write", w->path, err);
	if (w->error != 0)
		r = give_up(w, err);
	return r;
}

static int simple_step(struct writing *w, const char *steps, const char *len, const char *bytes,
		       bool has_input, struct cm_error *err)
{
	struct cm_shell_end end;
	int r = step(w, steps, len, bytes, has_input, &end, err);

	cm_shell_end_clear(&end);
	return r;
}

/* Where the rest goes: a file that was there is written over. */
static int begin(struct writing *w, const char *steps, bool has_input, struct cm_error *err)
{
	struct cm_shell_end end;
	int r;

	w->has_begun = true;
	r = step(w, steps, "", NULL, has_input, &end, err);
	if (r == CM_OK && end.out.data && strcmp(end.out.data, "over\n") == 0)
		(void)strncat(w->flags, "w", sizeof(w->flags) - strlen(w->flags) - 1);
	cm_shell_end_clear(&end);
	return r;
}

/* What is not whole is not left, as far as the session can be told still. */
static void drop(const struct writing *w)
{
	const struct cm_call call = { .deadline_ms = cm_clock_mono_ms() + CLEAN_MS,
				      .cancel_fd = -1 };

	struct writing last = *w;

	last.call = &call;
	last.error = 0;
	(void)simple_step(&last, "d", "", NULL, false, NULL);
}

static int write_by_input(struct writing *w, struct cm_error *err)
{
	char len[32];
	int r;

	if (w->is_at_end || w->request->len >= 0) {
		(void)snprintf(len, sizeof(len), "%" PRIu64,
			       w->is_at_end ? (uint64_t)w->n_ahead : (uint64_t)w->request->len);
		w->has_begun = true;
		return simple_step(w, "bpc", len, NULL, true, err);
	}
	r = begin(w, "bp", true, err);
	return r == CM_OK ? simple_step(w, "c", "", NULL, false, err) : r;
}

static int write_piece(struct writing *w, const char *steps, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	char len[32] = "";

	cm_buf_init(&text, CM_SHELL_ARG_MAX);
	cm_base64_encode(&text, w->ahead, w->n_ahead, true);
	if (cm_buf_status(&text) != CM_OK)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a file's content");
	/* of a later one what was there before is not known */
	if (steps[0] == 'b')
		(void)snprintf(len, sizeof(len), "%zu", w->n_ahead);
	return simple_step(w, steps, len, text.data ? text.data : "", false, err);
}

static int write_by_arguments(struct writing *w, struct cm_error *err)
{
	int r;

	if (w->is_at_end) {
		w->has_begun = true;
		return write_piece(w, "bpc", err);
	}
	r = begin(w, "b", false, err);
	while (r == CM_OK && w->n_ahead > 0) {
		r = write_piece(w, "p", err);
		if (r == CM_OK)
			r = read_ahead(w, err);
	}
	return r == CM_OK ? simple_step(w, "c", "", NULL, false, err) : r;
}

static void describe(struct writing *w)
{
	const struct cm_write_request *request = w->request;
	uint64_t v = 0;

	/* a name that is only unlikely would do, too: it is made anew or not at all */
	if (getrandom(&v, sizeof(v), GRND_NONBLOCK) != (ssize_t)sizeof(v))
		v = (uint64_t)cm_clock_mono_us();
	(void)snprintf(w->temp, sizeof(w->temp), ".casemate-%016" PRIx64 ".tmp", v);
	(void)snprintf(w->flags, sizeof(w->flags), "%s%s%s",
		       (request->flags & CM_WRITE_APPEND) != 0 ? "a" : "",
		       (request->flags & CM_WRITE_ATOMIC) != 0 ? "t" : "",
		       (request->flags & CM_WRITE_PARENTS) != 0 ? "p" : "");
	if (request->mode != UINT32_MAX)
		(void)snprintf(w->mode, sizeof(w->mode), "%04o",
			       (unsigned int)(request->mode & 0777U));
}

int cm_shell_write(struct cm_session *s, const char *path, const struct cm_write_request *request,
		   const struct cm_call *call, struct cm_error *err)
{
	struct writing w = { .session = s, .call = call, .request = request, .path = path };
	int r = cm_shell_path(path, &w.name, err);

	if (r < 0)
		return r;
	w.ahead = cm_malloc(PIECE);
	if (!w.ahead)
		r = cm_error_set(err, CM_E_NOMEM, 0, "no memory for a file's content");
	describe(&w);
	if (r == CM_OK)
		r = read_ahead(&w, err);
	if (r == CM_OK)
		r = (s->provider->caps & CM_CAP_STDIN) != 0 ? write_by_input(&w, err)
							    : write_by_arguments(&w, err);
	if (r < 0 && w.has_begun)
		drop(&w);
	free(w.ahead);
	free(w.name);
	return r;
}
