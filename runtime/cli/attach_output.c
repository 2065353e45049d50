/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/attach_output.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/fd.h"

/* read at a time: what is escaped of it takes four times as much, and an end its own */
#define CHUNK PIPE_BUF
#define ESCAPED 8

static void open_stream(struct cm_attach_output *o, enum cm_journal_stream stream, int fd,
			uint64_t n_lines, bool is_raw)
{
	struct cm_attach_stream *s = &o->streams[stream];
	cm_outlet_init(&s->outlet, fd);
	s->is_escaped = !is_raw && isatty(fd) == 1;
	/* what cannot be read begins at its end */
	(void)cm_journal_tail(o->journal, stream, n_lines, &s->offset);
	s->until = UINT64_MAX;
	s->is_due = true;
	if (s->offset > 0)
		cm_shown_text_gap(&s->text);
}

void cm_attach_output_open(struct cm_attach_output *o, struct cm_journal_reader *journal,
			   uint64_t n_lines, bool is_raw)
{
	memset(o, 0, sizeof(*o));
	o->journal = journal;
	open_stream(o, CM_JOURNAL_OUT, STDOUT_FILENO, n_lines, is_raw);
	open_stream(o, CM_JOURNAL_ERR, STDERR_FILENO, n_lines, is_raw);
}

void cm_attach_output_close(struct cm_attach_output *o)
{
	for (size_t i = 0; i < CM_JOURNAL_STREAMS; i++)
		cm_outlet_close(&o->streams[i].outlet);
}

/* --- passing on ---------------------------------------------------------------------------- */

static bool is_idle(const struct cm_attach_stream *s)
{
	return s->is_closed || (!s->is_due && !cm_outlet_is_full(&s->outlet));
}

void cm_attach_output_due(struct cm_attach_output *o)
{
	for (size_t i = 0; i < CM_JOURNAL_STREAMS; i++)
		o->streams[i].is_due = true;
}

void cm_attach_output_finish(struct cm_attach_output *o)
{
	for (size_t i = 0; i < CM_JOURNAL_STREAMS; i++) {
		struct cm_attach_stream *s = &o->streams[i];

		s->until = cm_journal_end(o->journal, (enum cm_journal_stream)i);
		s->is_due = true;
	}
}

bool cm_attach_output_is_done(const struct cm_attach_output *o)
{
	return is_idle(&o->streams[CM_JOURNAL_OUT]) && is_idle(&o->streams[CM_JOURNAL_ERR]);
}

void cm_attach_output_prepare(const struct cm_attach_output *o, struct pollfd p[CM_JOURNAL_STREAMS])
{
	for (size_t i = 0; i < CM_JOURNAL_STREAMS; i++) {
		const struct cm_attach_stream *s = &o->streams[i];

		/* of one that is idle it is seen when its reader goes away */
		p[i] = (struct pollfd){ .fd = s->is_closed ? -1 : s->outlet.fd,
					.events = is_idle(s) ? 0 : POLLOUT };
	}
}

/* r: of the outlet. A stream that nobody reads any more is closed, and that is no error. */
static int took(struct cm_attach_stream *s, int r, struct cm_error *err)
{
	s->is_closed = r == -EPIPE;
	if (r == 0 || r == -EPIPE)
		return CM_OK;
	return cm_error_set(err, CM_E_SYS, -r, "cannot write to standard %s",
			    s->outlet.fd == STDOUT_FILENO ? "output" : "error");
}

static int put(struct cm_attach_stream *s, const char *bytes, size_t len, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };

	_Static_assert(CHUNK * ESCAPED <= CM_OUTLET_MAX, "what is read at a time is taken at once");
	if (!s->is_escaped)
		return took(s, cm_outlet_put(&s->outlet, bytes, len), err);
	cm_buf_init(&out, (size_t)CHUNK * ESCAPED);
	if (len > 0)
		cm_shown_text_add(&s->text, bytes, len, &out);
	else
		cm_shown_text_end(&s->text, &out);
	if (cm_buf_status(&out) < 0)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for what the command printed");
	return out.len > 0 ? took(s, cm_outlet_put(&s->outlet, out.data, out.len), err) : CM_OK;
}

static int fill(struct cm_attach_output *o, size_t i, struct cm_error *err)
{
	struct cm_attach_stream *s = &o->streams[i];
	char chunk[CHUNK];
	uint64_t at = s->offset;
	uint64_t left = s->until > s->offset ? s->until - s->offset : 0;
	size_t max = left < CHUNK ? (size_t)left : CHUNK;
	ssize_t n = 0;

	if (max > 0)
		n = cm_journal_read(o->journal, (enum cm_journal_stream)i, &at, chunk, max);
	if (n < 0)
		return cm_error_set(err, CM_E_SYS, (int)-n, "cannot read what the command printed");
	s->is_due = n > 0;
	/* at its end what is escaped may have some left */
	if (n == 0)
		return s->until == UINT64_MAX ? CM_OK : put(s, "", 0, err);
	if (at != s->offset) {
		o->n_missed += at - s->offset;
		cm_shown_text_gap(&s->text);
	}
	s->offset = at + (uint64_t)n;
	return put(s, chunk, (size_t)n, err);
}

int cm_attach_output_step(struct cm_attach_output *o, const struct pollfd p[CM_JOURNAL_STREAMS],
			  struct cm_error *err)
{
	int r = CM_OK;

	for (size_t i = 0; i < CM_JOURNAL_STREAMS && r == CM_OK; i++) {
		struct cm_attach_stream *s = &o->streams[i];

		if ((p[i].revents & (POLLERR | POLLNVAL)) != 0)
			s->is_closed = true;
		else if ((p[i].revents & (POLLOUT | POLLHUP)) == 0)
			continue;
		else if (cm_outlet_is_full(&s->outlet))
			r = took(s, cm_outlet_flush(&s->outlet), err);
		else
			r = fill(o, i, err);
	}
	return r;
}

void cm_attach_output_say(struct cm_attach_output *o, const char *text)
{
	struct cm_attach_stream *s = &o->streams[CM_JOURNAL_OUT];

	if (!s->is_closed && !cm_outlet_is_full(&s->outlet))
		(void)cm_outlet_put(&s->outlet, text, strlen(text));
}
