/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relaying a command's streams, signals and end.
 *
 * Theory of operation. One poll loop. A stream is read only while its destination can take more,
 * so a reader that is slow costs no memory and the command feels it; no write waits (outlet.h), so a
 * stuck reader, or a terminal that was stopped, never keeps a signal from being seen. When the command
 * has ended, what is in the pipes then is passed on, however slow its reader is, unless a signal or a
 * limit wants an end of it; and what comes after that until end of file where the session ended with
 * it, else for a bounded time, since grandchildren may hold them.
 *
 * The first of INT, TERM, HUP, QUIT goes to the command's group, and after two seconds its whole
 * tree is killed; the second kills at once. USR1, USR2, ALRM and the real-time signals go to the
 * command's process as they are, WINCH and CONT to its group unless it has a terminal of the jail's;
 * TSTP stops the relay alone.
 */
#include "runtime/cli/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/cli/cli.h"
#include "runtime/cli/outlet.h"
#include "runtime/cli/relay_input.h"
#include "runtime/cli/terminal.h"
#include "runtime/cli/tty_end.h"

#define DRAIN_MS 100
/* nothing tells a job that it has the terminal now */
#define FOREGROUND_MS 200
/* a jail that was killed is gone in milliseconds; this only guards against never */
#define LAST_DRAIN_MS 10000
/* somebody asked for the end, and whoever reads takes nothing */
#define UNREAD_DRAIN_MS 1000
/* nobody has the command's terminal open: when it is looked at again */
#define HUNG_MS 50
#define CHUNK 65536

enum slot {
	SLOT_JAIL,
	SLOT_SIGNAL,
	SLOT_OUT,
	SLOT_ERR,
	SLOT_STDIN,
	SLOT_STDOUT,
	SLOT_STDERR,
	SLOT_IN,
	SLOT_COUNT
};

struct loop {
	struct cm_relay *relay;
	int signal_fd;
	struct pollfd p[SLOT_COUNT];
	/* another job has the caller's terminal */
	bool is_background;
	struct cm_tty_end tty_end;
	struct cm_outlet *outlets;
	int64_t kill_at_ms;
	int64_t drain_until_ms;
	/* nobody has the terminal open, and so long it is not looked at; 0: somebody has */
	int64_t hung_until_ms;
	/* bytes that the command had written to each stream when it ended, and nobody has yet */
	uint64_t due[2];
	int result;
	/* last: it is large, and not cleared */
	struct cm_relay_input in;
};

static void kill_command(struct loop *loop, uint64_t grace_ms)
{
	(void)cm_jail_kill(loop->relay->jail, loop->relay->id, grace_ms);
	loop->kill_at_ms = 0;
}

static void on_end_signal(struct loop *loop, int sig)
{
	struct cm_relay *relay = loop->relay;

	if (relay->signal != 0) {
		kill_command(loop, 0);
		return;
	}
	relay->signal = sig;
	(void)cm_jail_signal(relay->jail, relay->id, sig);
	loop->kill_at_ms = cm_clock_mono_ms() + CM_CLI_GRACE_MS;
}

static void on_stop_signal(void)
{
	/* as the shell that has us in the foreground expects it */
	cm_terminal_restore();
	(void)kill(getpid(), SIGSTOP);
}

static void on_resize(const struct cm_relay *relay)
{
	struct winsize size = { 0 };

	if (relay->pty_fd < 0)
		return;
	cm_terminal_size(&size.ws_row, &size.ws_col);
	if (size.ws_row != 0)
		(void)ioctl(relay->pty_fd, TIOCSWINSZ, &size);
}

static void on_foreground(const struct loop *loop)
{
	if (loop->relay->pty_fd < 0)
		return;
	cm_terminal_raw();
	on_resize(loop->relay);
}

static void on_signal(struct loop *loop, int sig)
{
	struct cm_relay *relay = loop->relay;

	switch (sig) {
	case SIGINT:
	case SIGTERM:
	case SIGHUP:
	case SIGQUIT:
		on_end_signal(loop, sig);
		return;
	case SIGTSTP:
		on_stop_signal();
		return;
	case SIGPIPE:
		return;
	case SIGWINCH:
		on_resize(relay);
		break;
	case SIGCONT:
		on_foreground(loop);
		break;
	default:
		break;
	}
	/* the jail's terminal tells of its size itself, and has jobs of its own to stop and continue */
	if (!relay->wants_tty || (sig != SIGWINCH && sig != SIGCONT))
		(void)cm_jail_signal(relay->jail, relay->id, sig);
}

static void take_signals(struct loop *loop)
{
	struct signalfd_siginfo info;

	while (read(loop->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		on_signal(loop, (int)info.ssi_signo);
}

static void on_started(struct loop *loop, struct cm_msg *msg)
{
	struct cm_relay *relay = loop->relay;

	relay->has_started = true;
	relay->exec_id = msg->rec.body.started.exec_id;
	if (!relay->wants_tty || msg->n_fds != 1)
		return;
	relay->pty_fd = cm_fd_take(&msg->fds[0]);
	(void)fcntl(relay->pty_fd, F_SETFL, O_NONBLOCK);
	cm_terminal_raw();
	on_resize(relay);
}

static uint64_t bytes_in(int fd)
{
	int n = 0;

	return fd >= 0 && ioctl(fd, FIONREAD, &n) == 0 && n > 0 ? (uint64_t)n : 0;
}

static int last_drain_ms(const struct cm_relay *relay)
{
	return relay->signal != 0 ? UNREAD_DRAIN_MS : LAST_DRAIN_MS;
}

static void on_end(struct loop *loop, const struct cm_rec_end *end)
{
	struct cm_relay *relay = loop->relay;

	relay->end = *end;
	relay->has_ended = true;
	if (end->started.exec_id != 0) {
		relay->has_started = true;
		relay->exec_id = end->started.exec_id;
	}
	loop->drain_until_ms =
		cm_clock_mono_ms() + (relay->is_last ? last_drain_ms(relay) : DRAIN_MS);
	loop->due[0] = bytes_in(relay->wants_tty ? relay->pty_fd : relay->out_fd);
	loop->due[1] = bytes_in(relay->err_fd);
	if (relay->is_last)
		loop->p[SLOT_JAIL].fd = -1;
}

/*
 * The jail is gone, or the request came to nothing. A command that was passed on to the jail may have
 * run, whether or not that was heard, and is dead now, by the kernel: that is its end. Who reads "it did
 * not start" may start it again.
 */
static void on_lost(struct loop *loop, const struct cm_error *why, bool is_refused,
		    struct cm_error *err)
{
	struct cm_relay *relay = loop->relay;
	const struct cm_rec_end killed = { .kind = CM_END_KILLED, .flags = CM_ENDF_KILLED };

	loop->p[SLOT_JAIL].fd = -1;
	if (relay->has_ended)
		return;
	if (is_refused) {
		if (err)
			*err = *why;
		loop->result = why->code;
		return;
	}
	relay->is_lost = true;
	relay->why = *why;
	on_end(loop, &killed);
}

static void take_message(struct loop *loop, struct cm_error *err)
{
	struct cm_relay *relay = loop->relay;
	struct cm_error why = CM_ERROR_INIT;
	struct cm_msg msg;
	int r;

	cm_msg_init(&msg);
	r = cm_proto_recv(relay->jail->sock, &msg);
	if (r != 1) {
		(void)cm_error_set(&why, CM_E_ISOLATION, 0, "the session ended unexpectedly");
		cm_error_hint(&why, "its keeper is gone: the system's log may say who ended it");
		on_lost(loop, &why, false, err);
	} else if (msg.rec.type == CM_REC_FAILED ||
		   (msg.rec.type == CM_REC_REFUSED && msg.rec.id == relay->id)) {
		cm_proto_error_of(&msg, &why);
		on_lost(loop, &why, msg.rec.type == CM_REC_REFUSED, err);
	} else if (msg.rec.type == CM_REC_STARTED && msg.rec.id == relay->id) {
		on_started(loop, &msg);
	} else if (msg.rec.type == CM_REC_END && msg.rec.id == relay->id) {
		on_end(loop, &msg.rec.body.end);
	}
	cm_msg_clear(&msg);
}

/* How many of n bytes that the command has written may still be passed on. */
static size_t count_output(struct loop *loop, size_t n)
{
	struct cm_relay *relay = loop->relay;
	uint64_t room = relay->is_over_output ? 0 : relay->output_max - relay->output_seen;

	relay->output_seen += n;
	if (n <= room)
		return n;
	if (!relay->is_over_output)
		kill_command(loop, CM_CLI_GRACE_MS);
	relay->is_over_output = true;
	return (size_t)room;
}

static struct cm_outlet *err_outlet(const struct loop *loop)
{
	return &loop->outlets[1];
}

static struct cm_outlet *out_outlet(const struct loop *loop)
{
	return &loop->outlets[loop->relay->is_to_stderr ? 1 : 0];
}

static bool is_pending(const struct loop *loop)
{
	return cm_outlet_is_full(&loop->outlets[0]) || cm_outlet_is_full(&loop->outlets[1]);
}

/* A reader that has gone away: as with any pipeline, the command gets SIGPIPE at its next write. */
static void close_stream(int *fd)
{
	cm_fd_close(fd);
}

/*
 * A destination that takes no more. The command's next write fails as in any pipeline, but what
 * was lost on the way was written with success: only the caller can be told.
 */
static void on_lost_output(struct loop *loop, const struct cm_outlet *to, int error)
{
	struct cm_relay *relay = loop->relay;

	/* who is seen goes on without the one that only looks on */
	if (relay->seen) {
		relay->is_muted = true;
		return;
	}
	if (error != EPIPE && relay->lost_errno == 0) {
		relay->lost_fd = to->fd;
		relay->lost_errno = error;
	}
	if (to == out_outlet(loop))
		close_stream(relay->wants_tty ? &relay->pty_fd : &relay->out_fd);
	if (to == err_outlet(loop))
		close_stream(&relay->err_fd);
}

/* Is there nobody to wait for? */
static bool is_taken_here(const struct cm_relay *relay)
{
	return relay->is_captured || relay->is_muted;
}

static void tell_seen(struct cm_relay *relay, const int *from, const char *bytes, size_t len)
{
	if (relay->seen && len > 0)
		relay->seen(relay->seen_data,
			    from == &relay->err_fd ? STDERR_FILENO : STDOUT_FILENO, bytes, len);
}

static bool can_take(const struct loop *loop, const struct cm_outlet *outlet)
{
	return is_taken_here(loop->relay) || (outlet->is_ready && !cm_outlet_is_full(outlet));
}

/* Where both ends can; false: they cannot, and nothing was done. */
static bool splice_out(struct loop *loop, int *from, struct cm_outlet *to)
{
	struct cm_relay *relay = loop->relay;
	ssize_t n;
	int fd;

	if (is_taken_here(relay) || relay->wants_tty || relay->seen ||
	    relay->output_max != UINT64_MAX)
		return false;
	fd = cm_outlet_splice_fd(to);
	if (fd < 0)
		return false;
	n = splice(*from, NULL, fd, NULL, CHUNK, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n > 0)
		relay->output_seen += (size_t)n;
	else if (n == 0 || errno == EPIPE)
		close_stream(from);
	/* EINVAL: a file opened for appending */
	return n >= 0 || errno == EPIPE || errno == EAGAIN || errno == EINTR;
}

/*
 * The last writer has closed its end. Of a terminal (EIO) the command may still run, as one that closes
 * its streams before it exits, and would be hung up by our closing, too: then that waits for its end.
 */
static void on_no_output(struct loop *loop, int *from)
{
	if (from == &loop->relay->pty_fd && !loop->relay->has_ended)
		loop->hung_until_ms = cm_clock_mono_ms() + HUNG_MS;
	else
		close_stream(from);
}

/* From the command to the caller. */
static void pass_out(struct loop *loop, int *from, struct cm_outlet *to, struct cm_buf *capture)
{
	static char chunk[CM_OUTLET_MAX];
	struct cm_relay *relay = loop->relay;
	size_t allowed;
	ssize_t n;
	int r = 0;

	to->is_ready = false;
	if (splice_out(loop, from, to))
		return;
	n = read(*from, chunk, sizeof(chunk));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		on_no_output(loop, from);
		return;
	}
	allowed = count_output(loop, (size_t)n);
	tell_seen(relay, from, chunk, allowed);
	if (capture)
		cm_buf_append(capture, chunk, allowed);
	else if (!relay->is_muted)
		r = cm_outlet_put(to, chunk, allowed);
	if (r < 0)
		on_lost_output(loop, to, -r);
}

/* The caller takes some: what is left of before, or else what comes next. */
static void on_outlet(struct loop *loop, struct cm_outlet *outlet)
{
	int r = cm_outlet_is_full(outlet) ? cm_outlet_flush(outlet) : 0;

	if (r < 0)
		on_lost_output(loop, outlet, -r);
	outlet->is_ready = true;
}

static int in_destination(const struct cm_relay *relay)
{
	return relay->wants_tty ? relay->pty_fd : relay->in_fd;
}

static void read_in(struct loop *loop)
{
	if (cm_relay_input_read(&loop->in))
		return;
	/* the command sees the end; a terminal has to be told */
	cm_fd_close(&loop->relay->in_fd);
	if (loop->relay->wants_tty)
		cm_tty_end_begin(&loop->tty_end);
}

static void write_in(struct loop *loop)
{
	if (!cm_relay_input_write(&loop->in, in_destination(loop->relay)))
		cm_fd_close(&loop->relay->in_fd);
}

/* Nobody had the terminal open a moment ago: poll would say so again and again. */
static bool is_hung(const struct loop *loop)
{
	return loop->hung_until_ms != 0 && !loop->relay->has_ended &&
	       cm_clock_mono_ms() < loop->hung_until_ms;
}

static void set(struct pollfd *p, int fd, bool is_wanted, short events)
{
	p->fd = is_wanted ? fd : -1;
	p->events = events;
	p->revents = 0;
}

/* Is there something for it, now or as soon as it can take some? */
static bool is_waited_for(const struct loop *loop, const struct cm_outlet *outlet)
{
	const struct cm_relay *relay = loop->relay;
	int out = relay->wants_tty ? relay->pty_fd : relay->out_fd;

	if (cm_outlet_is_full(outlet))
		return true;
	return !can_take(loop, outlet) && ((out >= 0 && outlet == out_outlet(loop)) ||
					   (relay->err_fd >= 0 && outlet == err_outlet(loop)));
}

/* Which ends are looked at: a source only while its destination was found ready. */
static void prepare(struct loop *loop)
{
	struct cm_relay *relay = loop->relay;
	struct pollfd *p = loop->p;
	int out = relay->wants_tty ? relay->pty_fd : relay->out_fd;
	bool has_input = cm_relay_input_is_full(&loop->in);
	bool can_read = !loop->in.is_over && in_destination(relay) >= 0 && !relay->has_ended &&
			!loop->is_background;

	p[SLOT_JAIL].revents = p[SLOT_SIGNAL].revents = 0;
	set(&p[SLOT_OUT], out, out >= 0 && can_take(loop, out_outlet(loop)) && !is_hung(loop),
	    POLLIN);
	set(&p[SLOT_ERR], relay->err_fd, relay->err_fd >= 0 && can_take(loop, err_outlet(loop)),
	    POLLIN);
	set(&p[SLOT_STDOUT], STDOUT_FILENO, is_waited_for(loop, &loop->outlets[0]), POLLOUT);
	set(&p[SLOT_STDERR], STDERR_FILENO, is_waited_for(loop, &loop->outlets[1]), POLLOUT);
	set(&p[SLOT_STDIN], STDIN_FILENO, can_read && !has_input, POLLIN);
	set(&p[SLOT_IN], in_destination(relay),
	    has_input && in_destination(relay) >= 0 && !is_hung(loop), POLLOUT);
}

/*
 * Is what the command wrote on its way still? Its reader may take its time, where nobody wanted an end
 * of this.
 */
static bool is_due(const struct loop *loop)
{
	const struct cm_relay *relay = loop->relay;

	if (relay->signal != 0 ||
	    (relay->end.kind != CM_END_EXIT && relay->end.kind != CM_END_SIGNAL))
		return false;
	return is_pending(loop) ||
	       (loop->due[0] > 0 && (relay->wants_tty ? relay->pty_fd : relay->out_fd) >= 0) ||
	       (loop->due[1] > 0 && relay->err_fd >= 0);
}

static int next_timeout(const struct loop *loop)
{
	int64_t now = cm_clock_mono_ms();
	int64_t due = INT64_MAX;

	if (loop->kill_at_ms != 0)
		due = loop->kill_at_ms;
	if (loop->relay->has_ended && !is_due(loop) && loop->drain_until_ms < due)
		due = loop->drain_until_ms;
	if (loop->is_background && now + FOREGROUND_MS < due)
		due = now + FOREGROUND_MS;
	if (loop->tty_end.due_ms != 0 && loop->tty_end.due_ms < due)
		due = loop->tty_end.due_ms;
	if (is_hung(loop) && loop->hung_until_ms < due)
		due = loop->hung_until_ms;
	if (due == INT64_MAX)
		return -1;
	return due <= now ? 0 : (int)(due - now);
}

static bool is_finished(const struct loop *loop)
{
	const struct cm_relay *relay = loop->relay;

	if (loop->result < 0)
		return true;
	if (!relay->has_ended)
		return false;
	if (relay->pty_fd < 0 && relay->out_fd < 0 && relay->err_fd < 0 && !is_pending(loop))
		return true;
	return !is_due(loop) && cm_clock_mono_ms() >= loop->drain_until_ms;
}

/* A step that made progress: as long as there is some, the drain is not over. */
static void extend_drain(struct loop *loop, uint64_t seen_before)
{
	if (loop->relay->has_ended && loop->relay->is_last &&
	    loop->relay->output_seen != seen_before)
		loop->drain_until_ms = cm_clock_mono_ms() + last_drain_ms(loop->relay);
}

static void take_due(uint64_t *due, uint64_t passed)
{
	*due -= passed < *due ? passed : *due;
}

/* Both streams of the command may go to one: the first to have something has it then. */
static void step_out(struct loop *loop)
{
	struct cm_relay *relay = loop->relay;
	struct pollfd *p = loop->p;
	const short readable = POLLIN | POLLHUP | POLLERR;
	const short writable = POLLOUT | POLLHUP | POLLERR;
	uint64_t seen = relay->output_seen;

	if ((p[SLOT_STDOUT].revents & writable) != 0)
		on_outlet(loop, &loop->outlets[0]);
	if ((p[SLOT_STDERR].revents & writable) != 0)
		on_outlet(loop, &loop->outlets[1]);
	if ((p[SLOT_OUT].revents & readable) != 0 && can_take(loop, out_outlet(loop))) {
		pass_out(loop, relay->wants_tty ? &relay->pty_fd : &relay->out_fd, out_outlet(loop),
			 relay->is_captured ? &relay->out : NULL);
		take_due(&loop->due[0], relay->output_seen - seen);
	}
	if ((p[SLOT_ERR].revents & readable) != 0 && can_take(loop, err_outlet(loop))) {
		seen = relay->output_seen;
		pass_out(loop, &relay->err_fd, err_outlet(loop),
			 relay->is_captured ? &relay->err : NULL);
		take_due(&loop->due[1], relay->output_seen - seen);
	}
}

static void step(struct loop *loop, struct cm_error *err)
{
	struct cm_relay *relay = loop->relay;
	struct pollfd *p = loop->p;
	uint64_t seen = relay->output_seen;
	const short readable = POLLIN | POLLHUP | POLLERR;

	step_out(loop);
	if ((p[SLOT_IN].revents & (POLLOUT | POLLERR | POLLHUP)) != 0)
		write_in(loop);
	if (p[SLOT_STDIN].fd >= 0 && (p[SLOT_STDIN].revents & readable) != 0)
		read_in(loop);
	if (p[SLOT_SIGNAL].revents != 0)
		take_signals(loop);
	if (p[SLOT_JAIL].fd >= 0 && p[SLOT_JAIL].revents != 0)
		take_message(loop, err);
	if (loop->kill_at_ms != 0 && cm_clock_mono_ms() >= loop->kill_at_ms)
		kill_command(loop, 0);
	if (relay->pty_fd < 0 || relay->has_ended)
		loop->tty_end.due_ms = 0;
	(void)cm_tty_end_step(&loop->tty_end, relay->pty_fd);
	extend_drain(loop, seen);
}

int cm_relay_run(struct cm_relay *relay, struct cm_error *err)
{
	static struct cm_outlet outlets[2];
	static struct loop loop;

	memset(&loop, 0, offsetof(struct loop, in));
	cm_relay_input_init(&loop.in);
	loop.relay = relay;
	loop.outlets = outlets;
	cm_outlet_init(&outlets[0], STDOUT_FILENO);
	cm_outlet_init(&outlets[1], STDERR_FILENO);
	loop.result = cm_relay_watch_all(&loop.signal_fd, err);
	if (loop.result < 0)
		return loop.result;
	/* the jail has them now; kept open here, a pipe would never end */
	for (int i = 0; i < 3; i++)
		cm_fd_close(&relay->far[i]);
	set(&loop.p[SLOT_JAIL], relay->jail->sock, true, POLLIN);
	set(&loop.p[SLOT_SIGNAL], loop.signal_fd, true, POLLIN);
	while (!is_finished(&loop)) {
		if (cm_terminal_follow(&loop.is_background))
			on_foreground(&loop);
		prepare(&loop);
		if (poll(loop.p, SLOT_COUNT, next_timeout(&loop)) < 0 && errno != EINTR) {
			loop.result = cm_error_set(err, CM_E_SYS, errno, "cannot wait");
			break;
		}
		step(&loop, err);
	}
	cm_outlet_close(&outlets[0]);
	cm_outlet_close(&outlets[1]);
	cm_terminal_restore();
	cm_fd_close(&loop.signal_fd);
	return loop.result;
}
