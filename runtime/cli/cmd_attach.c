/* SPDX-License-Identifier: Apache-2.0 */
/*
 * casemate attach: what a command prints from now on, what is typed for it, and its end.
 *
 * Theory of operation. The keeper journals what the command prints, whoever looks on, so this is one
 * more reader of the journal, told by inotify; the keeper's socket tells of the end. Of a command
 * with a terminal the master is written to and resized here, and read by the keeper alone. The
 * caller's terminal is raw then, and what comes is shown as it is; everywhere else it is escaped.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/cli/attach_output.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/exec_target.h"
#include "runtime/cli/relay.h"
#include "runtime/cli/terminal.h"
#include "runtime/cli/tty_end.h"

/* where there are no watches */
#define BLIND_TICK_MS 200
/* nothing tells a job that it has the terminal now */
#define FOREGROUND_MS 200
/* a program that paints looks at its size when it is told of one, and must find another */
#define REDRAW_MS 100
/* so long a Ctrl-P may be the first of two keys */
#define HOLD_MS 1000
#define CTRL_P '\x10'
#define CTRL_Q '\x11'

enum slot {
	SLOT_JAIL,
	SLOT_SIGNAL,
	SLOT_WATCH,
	SLOT_OUT,
	SLOT_ERR,
	SLOT_STDIN,
	SLOT_IN,
	SLOT_COUNT
};

enum leave {
	LEAVE_NOT = 0,
	LEAVE_DETACHED,
	LEAVE_SIGNAL,
	/* nobody reads what is written */
	LEAVE_READER,
};

struct attach_options {
	const char *root;
	const char *tail;
	bool no_stdin;
};

struct attach {
	struct cm_exec_target *t;
	uint64_t id;
	/* what the command reads from; -1: nothing, or not from here */
	int in_fd;
	bool is_tty;
	/* our terminal is its terminal's */
	bool is_raw;
	bool is_background;
	struct cm_attach_output output;
	int watch_fd;
	int signal_fd;
	struct cm_tty_end tty_end;
	/* read here, not yet taken by the command */
	char chunk[PIPE_BUF + 1];
	size_t len;
	size_t at;
	bool has_input_ended;
	/* a Ctrl-P that is passed on then; 0: none */
	int64_t held_until_ms;
	int64_t redraw_ms;
	bool has_ended;
	struct cm_exec_fate fate;
	enum leave leave;
	int signal;
};

/* --- the terminal -------------------------------------------------------------------------- */

static void resize(struct attach *a)
{
	struct winsize size = { 0 };

	a->redraw_ms = 0;
	if (!a->is_raw || a->in_fd < 0)
		return;
	cm_terminal_size(&size.ws_row, &size.ws_col);
	if (size.ws_row != 0)
		(void)ioctl(a->in_fd, TIOCSWINSZ, &size);
}

/* What was painted before is not on this screen: who paints is made to do it again. */
static void take_screen(struct attach *a)
{
	struct winsize has = { 0 };
	struct winsize size = { 0 };

	if (!a->is_raw || a->in_fd < 0)
		return;
	cm_terminal_raw();
	cm_terminal_size(&size.ws_row, &size.ws_col);
	if (ioctl(a->in_fd, TIOCGWINSZ, &has) < 0 || has.ws_row != size.ws_row ||
	    has.ws_col != size.ws_col || size.ws_row < 2) {
		resize(a);
		return;
	}
	size.ws_row--;
	(void)ioctl(a->in_fd, TIOCSWINSZ, &size);
	a->redraw_ms = cm_clock_mono_ms() + REDRAW_MS;
}

/* Attributes and cursor are the command's still. */
static void leave_screen(struct attach *a)
{
	if (a->is_raw && !a->is_background && !a->has_ended)
		cm_attach_output_say(&a->output, "\033[m\033[?25h\r\n");
	cm_terminal_restore();
}

/* --- signals ------------------------------------------------------------------------------- */

/* As if its key had been pressed at the command's terminal. */
static bool type_key(const struct attach *a, int key)
{
	struct termios modes;
	char c;

	if (!a->is_tty || a->in_fd < 0 || tcgetattr(a->in_fd, &modes) < 0)
		return false;
	c = (char)modes.c_cc[key];
	return c != _POSIX_VDISABLE && write(a->in_fd, &c, 1) == 1;
}

static void on_signal(struct attach *a, int sig)
{
	switch (sig) {
	case SIGINT:
	case SIGQUIT:
		if (type_key(a, sig == SIGINT ? VINTR : VQUIT))
			return;
		break;
	case SIGTERM:
	case SIGHUP:
		break;
	case SIGTSTP:
		cm_terminal_restore();
		(void)kill(getpid(), SIGSTOP);
		return;
	case SIGCONT:
		take_screen(a);
		return;
	case SIGWINCH:
		resize(a);
		return;
	default:
		return;
	}
	a->leave = LEAVE_SIGNAL;
	a->signal = sig;
}

static void take_signals(struct attach *a)
{
	struct signalfd_siginfo info;

	while (read(a->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		on_signal(a, (int)info.ssi_signo);
}

/* --- its end ------------------------------------------------------------------------------- */

static void on_end(struct attach *a)
{
	a->has_ended = true;
	cm_fd_close(&a->in_fd);
	cm_attach_output_finish(&a->output);
}

/* What was being started when we came may be refused yet. */
static int take_message(struct attach *a, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;
	struct cm_msg msg;
	int r;

	cm_msg_init(&msg);
	r = cm_proto_recv(a->t->jail.sock, &msg);
	if (r == 1 && msg.rec.type == CM_REC_END && msg.rec.id == a->id) {
		a->fate = (struct cm_exec_fate){ .is_known = true, .end = msg.rec.body.end };
		on_end(a);
	} else if (r == 1 && msg.rec.type == CM_REC_REFUSED && msg.rec.id == a->id) {
		cm_proto_error_of(&msg, &why);
		*err = why;
	} else if (r != 1 && r != -EAGAIN) {
		cm_exec_target_last_word(a->t, &a->fate);
		on_end(a);
	}
	cm_msg_clear(&msg);
	return why.code;
}

/* --- its input ----------------------------------------------------------------------------- */

static void put_key(struct attach *a, char c)
{
	a->chunk[a->len++] = c;
}

/* What was typed before in one go is the command's, if it takes it now. */
static void detach(struct attach *a)
{
	if (a->len > 0)
		(void)!write(a->in_fd, a->chunk, a->len);
	a->leave = LEAVE_DETACHED;
}

/* Ctrl-P Ctrl-Q leaves; what else begins so is for the command. */
static void take_keys(struct attach *a, const char *keys, size_t n)
{
	a->len = a->at = 0;
	for (size_t i = 0; i < n && a->leave == LEAVE_NOT; i++) {
		if (a->held_until_ms != 0) {
			a->held_until_ms = 0;
			if (keys[i] == CTRL_Q) {
				detach(a);
				return;
			}
			put_key(a, CTRL_P);
		}
		if (keys[i] == CTRL_P)
			a->held_until_ms = cm_clock_mono_ms() + HOLD_MS;
		else
			put_key(a, keys[i]);
	}
}

static void on_input_end(struct attach *a)
{
	a->has_input_ended = true;
	if (a->is_tty) {
		cm_tty_end_begin(&a->tty_end);
		return;
	}
	cm_fd_close(&a->in_fd);
	/* when it has ended that is what is told next */
	(void)cm_exec_target_close_input(a->t, NULL);
}

static void read_input(struct attach *a)
{
	char bytes[PIPE_BUF];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		on_input_end(a);
	} else if (a->is_raw) {
		take_keys(a, bytes, (size_t)n);
	} else {
		memcpy(a->chunk, bytes, (size_t)n);
		a->len = (size_t)n;
		a->at = 0;
	}
}

static void write_input(struct attach *a)
{
	ssize_t n = write(a->in_fd, a->chunk + a->at, a->len - a->at);

	if (n > 0) {
		a->at += (size_t)n;
	} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
		/* it reads no more, and goes on */
		a->len = a->at = 0;
		a->has_input_ended = true;
		cm_fd_close(&a->in_fd);
	}
}

static void pass_held_key(struct attach *a)
{
	if (a->held_until_ms == 0 || cm_clock_mono_ms() < a->held_until_ms || a->at < a->len)
		return;
	a->held_until_ms = 0;
	a->len = a->at = 0;
	put_key(a, CTRL_P);
}

/* --- the loop ------------------------------------------------------------------------------ */

static void prepare(const struct attach *a, struct pollfd p[SLOT_COUNT])
{
	bool has_input = a->at < a->len;
	bool wants_input = a->in_fd >= 0 && !a->has_input_ended && !a->is_background;

	p[SLOT_JAIL] =
		(struct pollfd){ .fd = a->has_ended ? -1 : a->t->jail.sock, .events = POLLIN };
	p[SLOT_SIGNAL] = (struct pollfd){ .fd = a->signal_fd, .events = POLLIN };
	p[SLOT_WATCH] = (struct pollfd){ .fd = a->watch_fd, .events = POLLIN };
	cm_attach_output_prepare(&a->output, &p[SLOT_OUT]);
	p[SLOT_STDIN] = (struct pollfd){ .fd = wants_input && !has_input ? STDIN_FILENO : -1,
					 .events = POLLIN };
	p[SLOT_IN] = (struct pollfd){ .fd = has_input ? a->in_fd : -1, .events = POLLOUT };
}

static void sooner(int64_t *due, int64_t at)
{
	if (at != 0 && at < *due)
		*due = at;
}

static int next_timeout(const struct attach *a)
{
	int64_t now = cm_clock_mono_ms();
	int64_t due = INT64_MAX;

	sooner(&due, a->redraw_ms);
	sooner(&due, a->held_until_ms);
	sooner(&due, a->tty_end.due_ms);
	if (a->is_background)
		sooner(&due, now + FOREGROUND_MS);
	if (a->watch_fd < 0)
		sooner(&due, now + BLIND_TICK_MS);
	if (due == INT64_MAX)
		return -1;
	return due <= now ? 0 : (int)(due - now);
}

static int step(struct attach *a, const struct pollfd p[SLOT_COUNT], struct cm_error *err)
{
	int r = cm_attach_output_step(&a->output, &p[SLOT_OUT], err);

	if (p[SLOT_IN].revents != 0)
		write_input(a);
	if (p[SLOT_STDIN].revents != 0)
		read_input(a);
	pass_held_key(a);
	if (p[SLOT_SIGNAL].revents != 0)
		take_signals(a);
	if (p[SLOT_WATCH].revents != 0)
		cm_journal_watch_drain(a->watch_fd);
	if (p[SLOT_WATCH].revents != 0 || a->watch_fd < 0)
		cm_attach_output_due(&a->output);
	if (p[SLOT_JAIL].revents != 0)
		r = r < 0 ? r : take_message(a, err);
	if (a->in_fd >= 0)
		(void)cm_tty_end_step(&a->tty_end, a->in_fd);
	else
		a->tty_end.due_ms = 0;
	if (a->redraw_ms != 0 && cm_clock_mono_ms() >= a->redraw_ms)
		resize(a);
	if (a->output.streams[CM_JOURNAL_OUT].is_closed && a->leave == LEAVE_NOT)
		a->leave = LEAVE_READER;
	return r;
}

static int follow(struct attach *a, struct cm_error *err)
{
	struct pollfd p[SLOT_COUNT];
	int r = CM_OK;

	while (r == CM_OK && a->leave == LEAVE_NOT &&
	       !(a->has_ended && cm_attach_output_is_done(&a->output))) {
		if (cm_terminal_follow(&a->is_background))
			take_screen(a);
		prepare(a, p);
		if (poll(p, SLOT_COUNT, next_timeout(a)) < 0) {
			if (errno != EINTR)
				r = cm_error_set(err, CM_E_SYS, errno, "cannot wait");
			continue;
		}
		r = step(a, p, err);
	}
	return r;
}

/* --- the command --------------------------------------------------------------------------- */

static int refuse_foreground(const struct cm_exec_target *t, struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_UNSUPPORTED, 0,
			   "command %s has its output at who started it, and waits for it",
			   t->name);
	cm_error_hint(err,
		      "'casemate wait %.100s %s' waits for its end; what 'exec -d' starts can be "
		      "attached to",
		      t->session.record.id, t->name);
	return CM_E_UNSUPPORTED;
}

/* Its end, and its input where it is wanted and there is one. */
static int connect_to(struct attach *a, bool wants_stdin, struct cm_error *err)
{
	struct cm_exec_target *t = a->t;
	int r = CM_E_NOT_FOUND;

	if (wants_stdin && cm_exec_target_runs(t))
		r = cm_exec_target_attach(t, &a->id, &a->in_fd, err);
	if (r < 0 && cm_exec_target_runs(t) && (!wants_stdin || r == CM_E_UNSUPPORTED))
		r = cm_exec_target_attach(t, &a->id, NULL, err);
	if (a->in_fd >= 0)
		(void)fcntl(a->in_fd, F_SETFL, O_NONBLOCK);
	if (r != CM_E_NOT_FOUND && !t->jail.has_ended)
		return r;
	cm_exec_target_last_word(t, &a->fate);
	on_end(a);
	return CM_OK;
}

static void note_begin(const struct attach *a)
{
	if (a->has_ended)
		cm_cli_note(a->t->cli, "command %s has ended already", a->t->name);
	else if (a->is_raw)
		cm_cli_note(a->t->cli, "attached to command %s; Ctrl-P Ctrl-Q leaves it",
			    a->t->name);
}

static int exit_of(const struct attach *a)
{
	const struct cm_exec_target *t = a->t;

	/* not a word: a terminal that was stopped would keep it */
	if (a->leave == LEAVE_SIGNAL)
		return 128 + a->signal;
	if (a->output.n_missed > 0)
		cm_cli_note(t->cli, "%llu bytes were not kept",
			    (unsigned long long)a->output.n_missed);
	switch (a->leave) {
	case LEAVE_DETACHED:
		cm_cli_note(t->cli, "command %s goes on: 'casemate attach %s %s'", t->name,
			    t->session.record.id, t->name);
		return 0;
	case LEAVE_READER:
		return 128 + SIGPIPE;
	case LEAVE_NOT:
	case LEAVE_SIGNAL:
		break;
	}
	return cm_exec_target_exit(t, &a->fate);
}

static int attach_to(struct attach *a, const struct attach_options *o, uint64_t n_lines,
		     struct cm_error *err)
{
	bool wants_stdin = !o->no_stdin && cm_relay_has_stdin();
	int r = a->t->has_journal ? CM_OK : refuse_foreground(a->t, err);

	if (r < 0)
		return r;
	a->is_tty = (a->t->journal.request.flags & CM_JOURNALF_TTY) != 0;
	a->is_raw = a->is_tty && wants_stdin && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	a->is_background = cm_terminal_is_background();
	/* watched first: nothing that comes after the look is missed */
	a->watch_fd = cm_journal_watch(&a->t->journal);
	cm_attach_output_open(&a->output, &a->t->journal, n_lines, a->is_raw);
	r = cm_relay_block_signals(err);
	if (r == CM_OK)
		r = cm_relay_watch_all(&a->signal_fd, err);
	if (r == CM_OK)
		r = connect_to(a, wants_stdin, err);
	if (r < 0)
		return r;
	note_begin(a);
	if (!a->is_background)
		take_screen(a);
	r = follow(a, err);
	leave_screen(a);
	return r;
}

static int attach(struct cm_exec_target *t, const struct attach_options *o, uint64_t n_lines)
{
	static struct attach a;
	struct cm_error err = CM_ERROR_INIT;
	int r;

	a = (struct attach){ .t = t, .in_fd = -1, .watch_fd = -1, .signal_fd = -1 };
	r = attach_to(&a, o, n_lines, &err);
	r = r < 0 ? cm_cli_fail(t->cli, &err) : exit_of(&a);
	cm_attach_output_close(&a.output);
	cm_fd_close(&a.in_fd);
	if (a.watch_fd >= 0)
		cm_fd_close(&a.watch_fd);
	cm_fd_close(&a.signal_fd);
	return r;
}

int cm_cmd_attach(struct cm_cli *cli, int argc, char **argv)
{
	struct attach_options o = { NULL };
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &o.root },
		{ "no-stdin", '\0', CM_OPTION_SWITCH, &o.no_stdin },
		{ "tail", 'n', CM_OPTION_TEXT, &o.tail },
		{ "quiet", 'q', CM_OPTION_SWITCH, &cli->is_quiet },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec_target t;
	uint64_t n_lines = 0;
	int status;
	int n = 0;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) != CM_OK ||
	    cm_exec_target_check("attach", n, &err) != CM_OK ||
	    (o.tail && cm_parse_u64(o.tail, "--tail", 0, INT64_MAX, &n_lines, &err) != CM_OK))
		return cm_cli_fail(cli, &err);
	if (cm_exec_target_get(&t, cli, o.root, argv[1], argv[2], &err) < 0)
		status = cm_cli_fail(cli, &err);
	else
		status = attach(&t, &o, n_lines);
	cm_exec_target_close(&t);
	return status;
}
