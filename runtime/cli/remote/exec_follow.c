/* SPDX-License-Identifier: Apache-2.0 */
/* A command of a session that is elsewhere, followed by one that did not start it. */
#include "runtime/cli/remote/exec_follow.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"

#define ESCAPED_AT_ONCE 16384U

/* --- output -------------------------------------------------------------------------------- */

void cm_away_output_init(struct cm_away_output *output, int fd, int cancel_fd)
{
	cm_outlet_init(&output->outlet, fd);
	memset(&output->text, 0, sizeof(output->text));
	output->cancel_fd = cancel_fd;
	output->is_terminal = isatty(fd) == 1;
	output->is_closed = false;
	output->left = UINT64_MAX;
}

void cm_away_output_close(struct cm_away_output *output)
{
	cm_outlet_close(&output->outlet);
}

/* A reader that has seen enough is no failure. */
static int failed(struct cm_away_output *output, int error, struct cm_error *err)
{
	output->is_closed = true;
	if (error == EPIPE)
		return CM_OK;
	return cm_error_set(err, CM_E_SYS, error, "cannot write to standard %s",
			    output->outlet.fd == STDERR_FILENO ? "error" : "output");
}

static int wait_room(struct cm_away_output *output, struct cm_error *err)
{
	int r = 0;

	while (r == 0 && !output->is_closed && cm_outlet_is_full(&output->outlet)) {
		struct pollfd p[2] = {
			{ .fd = output->outlet.fd, .events = POLLOUT },
			{ .fd = output->cancel_fd, .events = POLLIN },
		};

		if (poll(p, CM_ARRAY_SIZE(p), -1) < 0 && errno != EINTR)
			return failed(output, errno, err);
		if (p[1].revents != 0)
			return cm_error_set(err, CM_E_CANCELLED, 0, "interrupted");
		r = p[0].revents != 0 ? cm_outlet_flush(&output->outlet) : 0;
	}
	return r < 0 ? failed(output, -r, err) : CM_OK;
}

static int write_all(struct cm_away_output *output, const char *bytes, size_t len,
		     struct cm_error *err)
{
	int r = CM_OK;

	while (len > 0 && r == CM_OK && !output->is_closed) {
		size_t n = len < CM_OUTLET_MAX ? len : CM_OUTLET_MAX;
		int e = cm_outlet_put(&output->outlet, bytes, n);

		r = e < 0 ? failed(output, -e, err) : wait_room(output, err);
		bytes += n;
		len -= n;
	}
	return r;
}

static int write_text(struct cm_away_output *output, const struct cm_buf *text,
		      struct cm_error *err)
{
	if (cm_buf_status(text) < 0)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for what the command printed");
	return write_all(output, text->data ? text->data : "", text->len, err);
}

static int write_escaped(struct cm_away_output *output, const char *bytes, size_t len,
			 struct cm_error *err)
{
	int r = CM_OK;

	while (len > 0 && r == CM_OK && !output->is_closed) {
		size_t n = len < ESCAPED_AT_ONCE ? len : ESCAPED_AT_ONCE;
		CM_AUTO_BUF struct cm_buf text = { 0 };

		/* each byte may become four */
		cm_buf_init(&text, 8UL * ESCAPED_AT_ONCE);
		cm_shown_text_add(&output->text, bytes, n, &text);
		r = write_text(output, &text, err);
		bytes += n;
		len -= n;
	}
	return r;
}

int cm_away_output_put(struct cm_away_output *output, const char *bytes, size_t len,
		       struct cm_error *err)
{
	size_t n = len < output->left ? len : (size_t)output->left;

	output->left -= n;
	return output->is_terminal ? write_escaped(output, bytes, n, err)
				   : write_all(output, bytes, n, err);
}

int cm_away_output_end(struct cm_away_output *output, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	int r = CM_OK;

	cm_buf_init(&text, ESCAPED_AT_ONCE);
	if (output->is_terminal) {
		cm_shown_text_end(&output->text, &text);
		r = write_text(output, &text, err);
	}
	return r < 0 ? r : wait_room(output, err);
}

/* --- input --------------------------------------------------------------------------------- */

/* One that takes none, or has ended, prints nevertheless, and its end is told. */
static int settle_input(struct cm_away_follow *f, int r, struct cm_error *err)
{
	if (r != CM_E_NOT_FOUND && r != CM_E_INVALID && r != CM_E_UNSUPPORTED)
		return r;
	f->has_input_ended = true;
	cm_error_clear(err);
	return CM_OK;
}

static int end_input(struct cm_away_follow *f, struct cm_error *err)
{
	f->has_input_ended = true;
	return settle_input(f, cm_exec_input(f->exec, NULL, 0, &f->away->call, err), err);
}

static int pass_input(struct cm_away_follow *f, struct cm_error *err)
{
	char chunk[CM_AWAY_INPUT_MAX];
	ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return CM_OK;
	if (n < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot read standard input");
	if (n == 0)
		return end_input(f, err);
	return settle_input(f, cm_exec_input(f->exec, chunk, (size_t)n, &f->away->call, err), err);
}

/* --- the loop ------------------------------------------------------------------------------ */

/* Who shows something, and can show no more: all that was wanted is there, or a reader is gone. */
static bool is_full(const struct cm_away_follow *f)
{
	bool shows = false;
	bool is_more = false;

	for (size_t i = 0; i < 2; i++) {
		const struct cm_away_output *output = f->outputs[i];

		if (output && output->is_closed)
			return true;
		shows = shows || output;
		is_more = is_more || (output && output->left > 0);
	}
	return shows && !is_more;
}

static bool wants_input(const struct cm_away_follow *f)
{
	return f->has_input && !f->has_input_ended;
}

static size_t put_wakes(const struct cm_away_follow *f, struct pollfd fds[3])
{
	size_t n = 0;

	/* first: standard input is what is read for */
	if (wants_input(f) && f->exec->name[0] != '\0')
		fds[n++] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
	for (size_t i = 0; i < 2; i++) {
		/* that nobody reads it any more */
		if (f->outputs[i] && !f->outputs[i]->is_closed)
			fds[n++] = (struct pollfd){ .fd = f->outputs[i]->outlet.fd };
	}
	return n;
}

static void take_losses(struct cm_away_follow *f, const struct pollfd *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < 2 && fds[i].revents != 0; k++) {
			if (f->outputs[k] && f->outputs[k]->outlet.fd == fds[i].fd)
				f->outputs[k]->is_closed = true;
		}
	}
}

static int take_output(struct cm_away_follow *f, const struct cm_exec_event *event,
		       struct cm_error *err)
{
	int i = event->stream == STDERR_FILENO ? 1 : 0;

	f->seen[i] += event->len;
	if (f->look)
		f->look(f->data, i, event->bytes, event->len);
	return f->outputs[i] ? cm_away_output_put(f->outputs[i], event->bytes, event->len, err)
			     : CM_OK;
}

static int step(struct cm_away_follow *f, struct cm_error *err)
{
	struct pollfd fds[3];
	struct cm_wake wake = { .fds = fds, .n = put_wakes(f, fds) };
	struct cm_call call = f->away->call;
	struct cm_exec_event event = { 0 };
	int r;

	call.deadline_ms = f->deadline_ms;
	r = cm_exec_next(f->exec, &wake, &call, &event, err);
	if (r < 0)
		return r;
	switch (event.kind) {
	case CM_EXEC_HAS_STARTED:
		return CM_OK;
	case CM_EXEC_HAS_OUTPUT:
		return take_output(f, &event, err);
	case CM_EXEC_HAS_ENDED:
		f->has_ended = true;
		f->end = event.end;
		return CM_OK;
	case CM_EXEC_WOKEN:
		break;
	}
	take_losses(f, fds, wake.n);
	return wake.n > 0 && fds[0].fd == STDIN_FILENO && fds[0].revents != 0 ? pass_input(f, err)
									      : CM_OK;
}

int cm_away_follow(struct cm_away_follow *f, struct cm_error *err)
{
	int r = CM_OK;

	while (r == CM_OK && !f->has_ended && !is_full(f))
		r = step(f, err);
	for (size_t i = 0; i < 2 && r == CM_OK; i++) {
		if (f->outputs[i])
			r = cm_away_output_end(f->outputs[i], err);
	}
	return r;
}

int cm_away_follow_fail(const struct cm_away *away, const struct cm_error *err)
{
	int sig = err->code == CM_E_CANCELLED ? cm_away_signal(away) : 0;

	return sig != 0 ? 128 + sig : cm_away_fail(away, err);
}

/* --- the last lines ------------------------------------------------------------------------ */

/* Where lines begin: of each stream the last n that were seen, in a ring. */
struct lines {
	uint64_t *at[2];
	uint64_t n_seen[2];
	uint64_t total[2];
	bool is_at_line[2];
	uint64_t n;
};

static void add_line(struct lines *lines, int i, uint64_t at)
{
	lines->at[i][lines->n_seen[i]++ % lines->n] = at;
}

static void look(void *data, int i, const char *bytes, size_t len)
{
	struct lines *lines = data;
	uint64_t from = lines->total[i];

	lines->total[i] += len;
	if (lines->n == 0)
		return;
	for (size_t k = 0; k < len; k++) {
		if (lines->is_at_line[i])
			add_line(lines, i, from + k);
		lines->is_at_line[i] = bytes[k] == '\n';
	}
}

static uint64_t first_of(const struct lines *lines, int i)
{
	if (lines->n == 0 || lines->n_seen[i] == 0)
		return lines->total[i];
	return lines->at[i][lines->n_seen[i] > lines->n ? lines->n_seen[i] % lines->n : 0];
}

int cm_away_tail(struct cm_away *away, const char *name, uint64_t n, uint64_t ret[2],
		 struct cm_error *err)
{
	struct lines lines = { .n = n, .is_at_line = { true, true } };
	CM_AUTO_FREE uint64_t *out = cm_malloc(((size_t)n + 1) * sizeof(*out));
	CM_AUTO_FREE uint64_t *errors = cm_malloc(((size_t)n + 1) * sizeof(*errors));
	struct cm_away_follow f = {
		.away = away, .deadline_ms = INT64_MAX, .look = look, .data = &lines
	};
	const uint64_t offsets[2] = { 0, 0 };
	int r;

	if (!out || !errors)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for %u lines", (unsigned int)n);
	lines.at[0] = out;
	lines.at[1] = errors;
	r = cm_exec_attach(away->session, name, offsets, false, &away->call, &f.exec, err);
	if (r == CM_OK)
		r = cm_away_follow(&f, err);
	cm_exec_release(f.exec);
	for (int i = 0; i < 2 && r == CM_OK; i++)
		ret[i] = first_of(&lines, i);
	return r;
}
