/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's stdin, stdout and stderr, relayed to and from a command that is elsewhere. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/cli/outlet.h"
#include "runtime/cli/relay.h"
#include "runtime/cli/remote/away.h"
#include "runtime/cli/terminal.h"

/* one request of the provider's carries it */
#define INPUT_MAX 32768
#define EOF_CHARACTER "\004"
#define EXIT_TIMEOUT 124
/* one request beside the command's own may take so long; what was killed is waited for so long */
#define TELL_MS 5000
#define KILLED_MS 10000

/* What a run of the loop has beside the relay. */
struct state {
	struct cm_away_relay *relay;
	struct cm_error *err;
	/* of all signals that are relayed */
	int signal_fd;
	struct cm_outlet outlets[2];
	bool is_input_over;
	/* until then a signal is nothing to pass on: it cancels the call */
	bool has_started;
	/* when a command that was told to end is killed; 0: it was not told */
	int64_t kill_ms;
	bool is_killed;
	/* past it the command's end is not waited for */
	int64_t lost_ms;
	/* the wait is over, by a signal */
	bool is_given_up;
};

/* Beside the command: a signal that comes meanwhile gives it up. */
static struct cm_call beside_call(const struct state *s, int64_t deadline_ms)
{
	return (struct cm_call){ .deadline_ms = deadline_ms,
				 .cancel_fd = s->relay->away->call.cancel_fd };
}

static struct cm_call short_call(const struct state *s)
{
	return beside_call(s, cm_clock_mono_ms() + TELL_MS);
}

/* A command that has ended meanwhile is no failure, and neither is a service that does not answer. */
static int settle(struct state *s, int r, const char *what)
{
	if (r == CM_E_TIMEOUT && what)
		cm_cli_note(s->relay->away->cli, "%s: %.300s", what, s->err->msg);
	if (r != CM_E_NOT_FOUND && r != CM_E_TIMEOUT && r != CM_E_CANCELLED)
		return r;
	cm_error_clear(s->err);
	return CM_OK;
}

static int tell(struct state *s, int sig)
{
	struct cm_call call = short_call(s);

	return settle(s, cm_exec_signal(s->relay->exec, sig, &call, s->err),
		      "a signal may not have come to the command");
}

static int kill_it(struct state *s)
{
	s->is_killed = true;
	s->lost_ms = cm_clock_mono_ms() + KILLED_MS;
	return tell(s, SIGKILL);
}

/* The first one is passed on, the second kills. */
static int take_end(struct state *s, int sig)
{
	if (!s->relay->relays_signals) {
		s->relay->signal = sig;
		s->is_given_up = true;
		return CM_OK;
	}
	if (s->relay->signal != 0)
		return s->is_killed ? CM_OK : kill_it(s);
	s->relay->signal = sig;
	s->kill_ms = cm_clock_mono_ms() + CM_CLI_GRACE_MS;
	return tell(s, sig);
}

static int take_size(struct state *s)
{
	struct cm_call call = short_call(s);
	uint16_t rows = 0;
	uint16_t cols = 0;
	int r;

	if (!s->relay->wants_tty)
		return CM_OK;
	cm_terminal_size(&rows, &cols);
	r = rows == 0 ? CM_OK : cm_exec_resize(s->relay->exec, rows, cols, &call, s->err);
	return settle(s, r, NULL);
}

static int take_signal(struct state *s, int sig)
{
	switch (sig) {
	case SIGINT:
	case SIGTERM:
	case SIGHUP:
	case SIGQUIT:
		return take_end(s, sig);
	case SIGWINCH:
		return take_size(s);
	case SIGPIPE:
	case SIGTSTP:
	case SIGCONT:
		return CM_OK;
	default:
		return s->relay->relays_signals ? tell(s, sig) : CM_OK;
	}
}

static int take_signals(struct state *s)
{
	struct signalfd_siginfo info;
	int r = CM_OK;

	while (r == CM_OK && read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		r = take_signal(s, (int)info.ssi_signo);
	return r;
}

/* It may take as long as the command reads slowly; but not any longer than until a signal comes. */
static int send_input(struct state *s)
{
	struct cm_call call = beside_call(s, INT64_MAX);
	char chunk[INPUT_MAX];
	ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));
	int r;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return CM_OK;
	if (n > 0) {
		r = cm_exec_input(s->relay->exec, chunk, (size_t)n, &call, s->err);
	} else {
		s->is_input_over = true;
		r = s->relay->wants_tty
			    ? cm_exec_input(s->relay->exec, EOF_CHARACTER, 1, &call, s->err)
			    : cm_exec_input(s->relay->exec, NULL, 0, &call, s->err);
	}
	if (r == CM_E_NOT_FOUND || r == CM_E_CANCELLED)
		s->is_input_over = true;
	return settle(s, r, NULL);
}

/* What cannot be written is not read for: the caller's end is gone, and the command learns of it. */
static int lose(struct state *s, int stream, int error)
{
	struct cm_away_relay *relay = s->relay;

	if (relay->lost_errno == 0 && error != EPIPE) {
		relay->lost_fd = stream;
		relay->lost_errno = error;
	}
	s->outlets[stream - 1].fd = -1;
	return relay->relays_signals && !s->is_killed && error == EPIPE ? tell(s, SIGPIPE) : CM_OK;
}

/* Waits for who reads, and hears signals meanwhile. */
static int drain(struct state *s, int stream)
{
	struct cm_outlet *outlet = &s->outlets[stream - 1];
	int r = CM_OK;

	while (r == CM_OK && !s->is_given_up && outlet->fd >= 0 && cm_outlet_is_full(outlet)) {
		struct pollfd p[] = { { .fd = outlet->fd, .events = POLLOUT },
				      { .fd = s->signal_fd, .events = POLLIN } };
		int error = 0;

		if (poll(p, CM_ARRAY_SIZE(p), -1) < 0)
			continue;
		if (p[1].revents != 0)
			r = take_signals(s);
		if (r == CM_OK && p[0].revents != 0) {
			outlet->is_ready = true;
			error = cm_outlet_flush(outlet);
		}
		if (error < 0)
			r = lose(s, stream, -error);
	}
	return r;
}

static int print(struct state *s, int stream, const char *bytes, size_t len)
{
	struct cm_outlet *outlet = &s->outlets[stream - 1];
	int r = CM_OK;

	while (r == CM_OK && len > 0 && outlet->fd >= 0 && !s->is_given_up) {
		size_t n = len < CM_OUTLET_MAX ? len : CM_OUTLET_MAX;
		int error = cm_outlet_put(outlet, bytes, n);

		if (error < 0)
			return lose(s, stream, -error);
		bytes += n;
		len -= n;
		r = drain(s, stream);
	}
	return r;
}

static int take_output(struct state *s, const struct cm_exec_event *event)
{
	struct cm_away_relay *relay = s->relay;
	int stream = event->stream == STDERR_FILENO ? STDERR_FILENO : STDOUT_FILENO;
	uint64_t left = relay->output_max - relay->output_seen;
	size_t len = event->len < left ? event->len : (size_t)left;
	int r = CM_OK;

	relay->output_seen += len;
	if (relay->is_captured)
		cm_buf_append(stream == STDERR_FILENO ? &relay->err : &relay->out, event->bytes,
			      len);
	else
		r = print(s, stream, event->bytes, len);
	if (r < 0 || len == event->len || relay->is_over_output)
		return r;
	relay->is_over_output = true;
	return s->is_killed ? CM_OK : kill_it(s);
}

static size_t put_wakes(const struct state *s, struct pollfd fds[2])
{
	size_t n = 0;

	if (!s->has_started)
		return 0;
	fds[n++] = (struct pollfd){ .fd = s->signal_fd, .events = POLLIN };
	if (s->relay->has_input && !s->is_input_over && s->relay->exec->name[0] != '\0')
		fds[n++] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
	return n;
}

/* What came up beside the command. */
static int take_wakes(struct state *s, const struct pollfd *fds, size_t n)
{
	int r = n > 0 && fds[0].revents != 0 ? take_signals(s) : CM_OK;

	return r == CM_OK && n > 1 && fds[1].revents != 0 ? send_input(s) : r;
}

static struct cm_call next_call(const struct state *s)
{
	struct cm_call call = { .deadline_ms = INT64_MAX, .cancel_fd = -1 };

	if (!s->has_started)
		return s->relay->away->call;
	if (s->is_killed)
		call.deadline_ms = s->lost_ms;
	else if (s->kill_ms != 0)
		call.deadline_ms = s->kill_ms;
	return call;
}

/* The call's time, which is ours, is over. 1: nothing more is waited for. */
static int take_timeout(struct state *s)
{
	cm_error_clear(s->err);
	if (!s->is_killed)
		return kill_it(s);
	s->relay->end = (struct cm_exec_end){ .kind = CM_EXEC_LOST };
	return 1;
}

/* 1: it has ended. */
static int step(struct state *s)
{
	struct pollfd fds[2];
	struct cm_wake wake = { .fds = fds, .n = put_wakes(s, fds) };
	struct cm_call call = next_call(s);
	struct cm_exec_event event = { 0 };
	int r;

	r = cm_exec_next(s->relay->exec, &wake, &call, &event, s->err);
	if (r == CM_E_TIMEOUT && cm_clock_mono_ms() >= call.deadline_ms)
		return take_timeout(s);
	if (r < 0)
		return r;
	switch (event.kind) {
	case CM_EXEC_HAS_STARTED:
		s->has_started = true;
		return take_size(s);
	case CM_EXEC_HAS_OUTPUT:
		r = take_output(s, &event);
		if (r < 0)
			return r;
		/* a command that prints without end leaves no wait in which a signal could be heard */
		break;
	case CM_EXEC_HAS_ENDED:
		s->relay->end = event.end;
		return 1;
	case CM_EXEC_WOKEN:
		break;
	}
	return take_wakes(s, fds, wake.n);
}

static void flush(struct state *s)
{
	for (int stream = 1; stream <= 2; stream++) {
		(void)drain(s, stream);
		cm_outlet_close(&s->outlets[stream - 1]);
	}
}

int cm_away_relay_run(struct cm_away_relay *relay, struct cm_error *err)
{
	static struct state state;
	struct state *s = &state;
	int r;

	*s = (struct state){ .relay = relay, .err = err, .signal_fd = -1 };
	cm_outlet_init(&s->outlets[0], STDOUT_FILENO);
	cm_outlet_init(&s->outlets[1], STDERR_FILENO);
	cm_buf_init(&relay->out, CM_RELAY_CAPTURE_MAX);
	cm_buf_init(&relay->err, CM_RELAY_CAPTURE_MAX);
	r = cm_relay_watch_all(&s->signal_fd, err);
	if (r == CM_OK && relay->wants_tty && relay->has_input)
		cm_terminal_raw();
	while (r == CM_OK && !s->is_given_up)
		r = step(s);
	flush(s);
	if (relay->wants_tty)
		cm_terminal_restore();
	cm_fd_close(&s->signal_fd);
	if (r == CM_OK && s->is_given_up)
		return cm_error_set(err, CM_E_CANCELLED, 0, "not waited for any longer");
	if (r == 1 && (cm_buf_status(&relay->out) < 0 || cm_buf_status(&relay->err) < 0))
		return cm_error_set(err, CM_E_LIMIT, 0,
				    "the command printed more than can be kept");
	return r == 1 ? CM_OK : r;
}

void cm_away_relay_clear(struct cm_away_relay *relay)
{
	cm_buf_clear(&relay->out);
	cm_buf_clear(&relay->err);
}

int cm_away_lost(const struct cm_away *away, const struct cm_exec_end *end, struct cm_error *err)
{
	(void)cm_error_set(
		err, CM_E_REMOTE, 0,
		"the command was started, and its end, or some of what it printed, is not known");
	cm_error_hint(err,
		      "the sandbox or the connection was lost; 'casemate ls' shows what is there");
	cm_cli_print_error(away->cli, err);
	return end->exit_code != 0 ? end->exit_code : 128 + SIGKILL;
}

int cm_away_exit_of(const struct cm_away *away, const struct cm_exec_end *end)
{
	struct cm_error err = CM_ERROR_INIT;

	switch (end->kind) {
	case CM_EXEC_EXITED:
	case CM_EXEC_SIGNALLED:
	case CM_EXEC_KILLED:
	case CM_EXEC_NOT_EXECUTED:
		return end->exit_code;
	case CM_EXEC_TIMED_OUT:
		cm_error_set(&err, CM_E_TIMEOUT, 0, "command ended after its time limit");
		cm_error_hint(&err, "give it more with --timeout DURATION");
		cm_cli_print_error(away->cli, &err);
		return EXIT_TIMEOUT;
	case CM_EXEC_OUT_OF_MEMORY:
		cm_error_set(&err, CM_E_LIMIT, 0, "command ended by the sandbox's memory limit");
		cm_error_hint(&err, "use a template with more memory");
		cm_cli_print_error(away->cli, &err);
		return end->exit_code;
	case CM_EXEC_LOST:
		break;
	}
	return cm_away_lost(away, end, &err);
}
