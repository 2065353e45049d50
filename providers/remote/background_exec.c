/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A detached command that is followed. Two scripts take turns: one shows how it stands and what was not
 * seen yet, the other prints what comes until the command ends. How much was seen is counted here, so
 * that whatever ends one of them, a lost connection too, the next goes on where it was.
 */
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/remote/background_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/base64.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define HEAD_MAX 256
#define N_WORDS 8
/* of one input, as base64 in an argument */
#define PIECE (60U * 1024)
/* followings in a row that ended at once without a byte */
#define IDLE_MAX 4
#define IDLE_MS 1000
#define LOST_MAX 3
#define RELEASE_MS 2000

enum phase {
	PHASE_SHOW = 1,
	PHASE_FOLLOW,
	PHASE_OVER,
};

struct stream {
	/* the line that it begins with, while that is not complete */
	char head[HEAD_MAX];
	size_t head_len;
	bool has_head;
	/* of what is shown: how much is left */
	uint64_t left;
	/* how much of it was seen, from the command's beginning on */
	uint64_t seen;
};

struct cm_background {
	struct cm_exec base;
	char number[16];
	bool is_root;
	bool follows;
	/* CM_EXEC_HAS_STARTED was told */
	bool is_told;
	enum phase phase;
	/* of what runs now; NULL: nothing does */
	struct cm_exec *inner;
	struct stream streams[2];
	/* standard error in front of its line, when there is no line */
	struct cm_shell_end said;
	bool is_running;
	struct cm_exec_end end;
	int64_t round_ms;
	bool has_moved;
	unsigned int n_idle;
	unsigned int n_lost;
	/* what came while it was looked at; its bytes are good until `inner` is asked again */
	struct cm_exec_event pending;
};

static const struct cm_exec_ops background_ops;

static struct cm_background *to_background(struct cm_exec *e)
{
	if (e->ops != &background_ops)
		abort();
	return (struct cm_background *)e;
}

struct cm_exec *cm_background_exec(struct cm_background *b)
{
	return &b->base;
}

int cm_background_new(struct cm_session *s, const char *number, bool is_root, int64_t pid,
		      const uint64_t offsets[2], bool follows, struct cm_background **ret,
		      struct cm_error *err)
{
	struct cm_background *b = cm_calloc(1, sizeof(*b));

	_Static_assert(offsetof(struct cm_background, base) == 0, "to_background casts");
	if (!b)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a detached command");
	b->base.ops = &background_ops;
	b->base.session = s;
	b->base.pid = pid;
	(void)snprintf(b->base.name, sizeof(b->base.name), "%s%s", is_root ? "r" : "", number);
	(void)snprintf(b->number, sizeof(b->number), "%s", number);
	b->is_root = is_root;
	b->follows = follows;
	b->phase = PHASE_SHOW;
	b->streams[0].seen = offsets[0];
	b->streams[1].seen = offsets[1];
	*ret = b;
	return CM_OK;
}

/* --- the script at work ---------------------------------------------------------------------- */

static void drop_inner(struct cm_background *b, bool is_over)
{
	const struct cm_call call = { .deadline_ms = cm_clock_mono_ms() + RELEASE_MS,
				      .cancel_fd = -1 };

	if (b->inner && !is_over && b->inner->ops->signal)
		(void)cm_exec_signal(b->inner, SIGTERM, &call, NULL);
	cm_exec_release(b->inner);
	b->inner = NULL;
}

static int begin(struct cm_background *b, const char *script, const struct cm_call *call,
		 struct cm_error *err)
{
	char seen[2][32];
	const char *const args[] = { b->number, seen[0], seen[1], NULL };
	const struct cm_shell shell = {
		.session = b->base.session,
		.script = script,
		.args = args,
		.is_root = b->is_root,
		.is_idempotent = true,
	};

	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(seen[i], sizeof(seen[i]), "%" PRIu64, b->streams[i].seen);
		b->streams[i].head_len = 0;
		b->streams[i].has_head = false;
		b->streams[i].left = 0;
	}
	cm_shell_end_clear(&b->said);
	return cm_shell_start(&shell, call, &b->inner, err);
}

static int begin_show(struct cm_background *b, const struct cm_call *call, struct cm_error *err)
{
	b->phase = PHASE_SHOW;
	return begin(b, cm_background_show_script, call, err);
}

static int begin_follow(struct cm_background *b, const struct cm_call *call, struct cm_error *err)
{
	b->phase = PHASE_FOLLOW;
	b->round_ms = cm_clock_mono_ms();
	b->has_moved = false;
	return begin(b, cm_background_follow_script, call, err);
}

/* --- the first line of each stream ----------------------------------------------------------- */

static int malformed(struct cm_error *err)
{
	return cm_error_set(err, CM_E_PROTOCOL, 0,
			    "the session tells of a detached command what makes no sense");
}

/* Words of a line that is the caller's to write to; false: there are not exactly that many. */
static bool split(char *line, char *words[N_WORDS])
{
	char *at = line;

	for (size_t i = 0; i < N_WORDS; i++) {
		words[i] = at;
		at += strcspn(at, " ");
		if (i + 1 < N_WORDS && *at != ' ')
			return false;
		if (i + 1 < N_WORDS)
			*at++ = '\0';
	}
	return *at == '\0';
}

static int read_head(struct cm_background *b, struct cm_error *err)
{
	char *w[N_WORDS];
	int64_t ended;
	int64_t started;
	uint64_t pid;

	if (!split(b->streams[0].head, w) || strcmp(w[0], "casemate-exec") != 0 ||
	    !cm_background_end(w[1], w[2], w[3], w[4], &b->end, &ended, &started) ||
	    !cm_shell_number(w[5], UINT32_MAX, &pid) ||
	    !cm_shell_number(w[6], INT64_MAX, &b->streams[0].left) ||
	    !cm_shell_number(w[7], INT64_MAX, &b->streams[1].left))
		return malformed(err);
	b->is_running = b->end.kind == 0;
	b->base.pid = (int64_t)pid;
	return CM_OK;
}

/* The lines of both streams are complete. What is left of stderr is known by that of stdout. */
static bool has_heads(const struct cm_background *b)
{
	return b->streams[0].has_head && b->streams[1].has_head;
}

/* Takes the line from the front of what came; *ret_used bytes of it. */
static int take_head(struct cm_background *b, size_t i, const char *bytes, size_t len,
		     size_t *ret_used, struct cm_error *err)
{
	struct stream *s = &b->streams[i];
	const char *end = memchr(bytes, '\n', len);
	size_t n = end ? (size_t)(end - bytes) : len;

	*ret_used = end ? n + 1 : len;
	if (s->head_len + n >= sizeof(s->head) || memchr(bytes, '\0', n)) {
		/* of stderr a shell's or a loader's own words may be in front */
		s->head_len = 0;
		return i == 0 ? malformed(err) : CM_OK;
	}
	memcpy(s->head + s->head_len, bytes, n);
	s->head_len += n;
	s->head[s->head_len] = '\0';
	if (!end)
		return CM_OK;
	s->has_head = true;
	if (i == 0)
		return read_head(b, err);
	/* else the script says why there is none */
	s->has_head = strcmp(s->head, "casemate-exec") == 0;
	s->head_len = 0;
	return CM_OK;
}

/* --- events ---------------------------------------------------------------------------------- */

/*
 * Output of the script that shows. ret->len is 0 where nothing of it is the command's. The line of stderr
 * comes in front of its data; what is left of it is checked when that of stdout has come, too.
 */
static int take_shown(struct cm_background *b, const struct cm_exec_event *event,
		      struct cm_exec_event *ret, struct cm_error *err)
{
	size_t i = event->stream == 2 ? 1 : 0;
	struct stream *s = &b->streams[i];
	const char *bytes = event->bytes;
	size_t len = event->len;
	int r = CM_OK;

	ret->len = 0;
	if (i == 1 && !s->has_head)
		cm_shell_tail_add(&b->said, bytes, len);
	while (r == CM_OK && len > 0 && !s->has_head) {
		size_t used = 0;

		r = take_head(b, i, bytes, len, &used, err);
		bytes += used;
		len -= used;
	}
	if (r < 0 || len == 0)
		return r;
	if (b->streams[0].has_head && len > s->left)
		return malformed(err);
	s->left -= b->streams[0].has_head ? len : 0;
	s->seen += len;
	*ret = (struct cm_exec_event){
		.kind = CM_EXEC_HAS_OUTPUT, .stream = (int)i + 1, .bytes = bytes, .len = len
	};
	return CM_OK;
}

static void take_followed(struct cm_background *b, const struct cm_exec_event *event,
			  struct cm_exec_event *ret)
{
	b->streams[event->stream == 2 ? 1 : 0].seen += event->len;
	b->has_moved = true;
	b->n_lost = 0;
	*ret = *event;
}

/* The script that shows is over. */
static int after_show(struct cm_background *b, const struct cm_exec_end *how,
		      const struct cm_call *call, struct cm_exec_event *ret, struct cm_error *err)
{
	drop_inner(b, true);
	if (how->kind == CM_EXEC_LOST && b->n_lost++ < LOST_MAX)
		return begin_show(b, call, err);
	b->said.exit_code = how->exit_code;
	if (!has_heads(b))
		return cm_background_error(&b->said, "follow a detached command", err);
	if (b->is_running && b->follows)
		return begin_follow(b, call, err);
	/* what there is now, and that it goes on */
	if (b->is_running)
		b->end.kind = CM_EXEC_LOST;
	b->phase = PHASE_OVER;
	*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_ENDED, .end = b->end };
	return CM_OK;
}

static int after_follow(struct cm_background *b, const struct cm_call *call, struct cm_error *err)
{
	bool is_idle = !b->has_moved && cm_clock_mono_ms() - b->round_ms < IDLE_MS;

	drop_inner(b, true);
	b->n_idle = is_idle ? b->n_idle + 1 : 0;
	if (b->n_idle > IDLE_MAX)
		return cm_error_set(err, CM_E_REMOTE, 0,
				    "the session's detached command cannot be followed: it has no "
				    "usable 'tail'");
	return begin_show(b, call, err);
}

/* One event of the script; ret->kind is 0 where it is none of the command's. */
static int take_event(struct cm_background *b, const struct cm_exec_event *event,
		      const struct cm_call *call, struct cm_exec_event *ret, struct cm_error *err)
{
	int r = CM_OK;

	*ret = (struct cm_exec_event){ .kind = 0 };
	switch (event->kind) {
	case CM_EXEC_HAS_STARTED:
		return CM_OK;
	case CM_EXEC_HAS_OUTPUT:
		if (b->phase == PHASE_FOLLOW)
			take_followed(b, event, ret);
		else
			r = take_shown(b, event, ret, err);
		if (ret->len == 0)
			ret->kind = 0;
		return r;
	case CM_EXEC_HAS_ENDED:
		return b->phase == PHASE_FOLLOW ? after_follow(b, call, err)
						: after_show(b, &event->end, call, ret, err);
	case CM_EXEC_WOKEN:
		*ret = *event;
		return CM_OK;
	}
	return malformed(err);
}

/* A connection that was lost in the middle is made anew, a few times. */
static bool is_worth_another(struct cm_background *b, int code)
{
	if (code != CM_E_REMOTE || !b->inner)
		return false;
	return b->n_lost++ < LOST_MAX;
}

static int next(struct cm_exec *e, struct cm_wake *wake, const struct cm_call *call,
		struct cm_exec_event *ret, struct cm_error *err)
{
	struct cm_background *b = to_background(e);
	struct cm_exec_event found = { .kind = 0 };
	int r = CM_OK;

	if (!b->is_told) {
		b->is_told = true;
		*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_STARTED };
		return CM_OK;
	}
	if (b->pending.kind != 0) {
		*ret = b->pending;
		b->pending.kind = 0;
		return CM_OK;
	}
	if (b->phase == PHASE_OVER)
		return cm_error_set(err, CM_E_INVALID, 0, "the command has ended");
	while (r == CM_OK && found.kind == 0) {
		struct cm_exec_event event = { .kind = 0 };

		if (!b->inner)
			r = begin_show(b, call, err);
		if (r == CM_OK)
			r = cm_exec_next(b->inner, wake, call, &event, err);
		if (r == CM_OK) {
			r = take_event(b, &event, call, &found, err);
		} else if (is_worth_another(b, r)) {
			drop_inner(b, false);
			cm_error_clear(err);
			r = CM_OK;
		}
	}
	if (r == CM_OK)
		*ret = found;
	return r;
}

/* --- what is done with it -------------------------------------------------------------------- */

struct piece {
	const char *bytes;
	size_t len;
};

static ssize_t fill(void *data, void *buf, size_t size)
{
	struct piece *p = data;
	size_t n = p->len < size ? p->len : size;

	memcpy(buf, p->bytes, n);
	p->bytes += n;
	p->len -= n;
	return (ssize_t)n;
}

static int run(struct cm_background *b, const char *script, const char *arg, struct piece *piece,
	       const char *what, const struct cm_call *call, struct cm_error *err)
{
	const char *const args[] = { b->number, arg, NULL };
	const struct cm_shell shell = {
		.session = b->base.session,
		.script = script,
		.args = args,
		.is_root = b->is_root,
		.fill = piece ? fill : NULL,
		.fill_data = piece,
	};
	struct cm_shell_end end;
	int r = cm_shell_run(&shell, call, &end, err);

	if (r == CM_OK && end.exit_code != 0)
		r = cm_background_error(&end, what, err);
	cm_shell_end_clear(&end);
	return r;
}

/* Where the provider has no standard input to give. */
static int input_by_argument(struct cm_background *b, const char *bytes, size_t len,
			     const struct cm_call *call, struct cm_error *err)
{
	int r = CM_OK;

	while (r == CM_OK && len > 0) {
		CM_AUTO_BUF struct cm_buf text = { 0 };
		size_t n = len < PIECE ? len : PIECE;

		cm_buf_init(&text, CM_SHELL_ARG_MAX);
		cm_base64_encode(&text, bytes, n, true);
		if (cm_buf_status(&text) != CM_OK)
			return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the input");
		r = run(b, cm_background_input_script, text.data, NULL, "write to the command",
			call, err);
		bytes += n;
		len -= n;
	}
	return r;
}

static int input(struct cm_exec *e, const void *bytes, size_t len, const struct cm_call *call,
		 struct cm_error *err)
{
	static const char what[] = "write to the command";
	struct cm_background *b = to_background(e);
	struct piece piece = { .bytes = bytes, .len = len };

	if (len == 0)
		return run(b, cm_background_eof_script, NULL, NULL, "end the command's input", call,
			   err);
	if ((b->base.session->provider->caps & CM_CAP_STDIN) == 0)
		return input_by_argument(b, bytes, len, call, err);
	return run(b, cm_background_input_script, NULL, &piece, what, call, err);
}

static int send_signal(struct cm_exec *e, int sig, const struct cm_call *call, struct cm_error *err)
{
	char number[16];

	if (sig < 0 || sig > SIGRTMAX)
		return cm_error_set(err, CM_E_INVALID, 0, "there is no signal %d", sig);
	(void)snprintf(number, sizeof(number), "%d", sig);
	return run(to_background(e), cm_background_signal_script, number, NULL,
		   "send the command a signal", call, err);
}

static void release(struct cm_exec *e)
{
	struct cm_background *b = to_background(e);

	drop_inner(b, false);
	cm_shell_end_clear(&b->said);
	free(b);
}

static const struct cm_exec_ops background_ops = {
	.next = next,
	.input = input,
	.signal = send_signal,
	.release = release,
};

int cm_background_look(struct cm_background *b, const struct cm_call *call, struct cm_error *err)
{
	int r = begin_show(b, call, err);

	while (r == CM_OK && b->pending.kind == 0 && !b->streams[0].has_head) {
		struct cm_exec_event event = { .kind = 0 };

		r = cm_exec_next(b->inner, NULL, call, &event, err);
		if (r == CM_OK)
			r = take_event(b, &event, call, &b->pending, err);
	}
	return r;
}
