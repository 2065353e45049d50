/* SPDX-License-Identifier: Apache-2.0 */
/*
 * casemate stdin: what is read here goes to a command that nobody waits for.
 *
 * Each read is one write of PIPE_BUF bytes at the most, which the kernel takes whole or not at all:
 * what others write at the same time comes before or behind it. Nothing is read before the command
 * has taken what there was, so that one that does not read costs no memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/exec_view.h"
#include "runtime/cli/relay.h"
#include "runtime/cli/tty_end.h"

#define END_MS 200
#define TELL_MS 10

struct stdin_options {
	const char *root;
	bool is_close;
};

struct feed {
	struct cm_exec_target *t;
	uint64_t id;
	/* what the command reads from */
	int fd;
	bool is_tty;
	char chunk[PIPE_BUF];
	size_t len;
	size_t at;
	bool has_ended;
};

/* Why it takes no more. */
static int no_reader(struct feed *feed, struct cm_error *err)
{
	struct cm_exec_target *t = feed->t;
	char text[CM_EXEC_FATE_SIZE];
	struct cm_exec_fate fate;

	/* its input is closed a moment before its end is told */
	if (cm_exec_target_wait(t, feed->id, cm_clock_mono_ms() + END_MS, &fate, NULL) < 0) {
		(void)cm_error_set(err, CM_E_SYS, EPIPE, "command %s has closed its input",
				   t->name);
	} else {
		cm_exec_fate_format(&fate, text);
		(void)cm_error_set(err, CM_E_SYS, EPIPE, "command %s has ended (%s)", t->name,
				   text);
	}
	cm_error_hint(err, "what was written last may not have been read");
	return CM_E_SYS;
}

static int read_chunk(struct feed *feed, struct cm_error *err)
{
	ssize_t n = read(STDIN_FILENO, feed->chunk, sizeof(feed->chunk));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return CM_OK;
	if (n < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot read standard input");
	feed->len = (size_t)n;
	feed->at = 0;
	feed->has_ended = n == 0;
	return CM_OK;
}

static int write_chunk(struct feed *feed, struct cm_error *err)
{
	ssize_t n = write(feed->fd, feed->chunk + feed->at, feed->len - feed->at);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return CM_OK;
	if (n < 0)
		return no_reader(feed, err);
	feed->at += (size_t)n;
	return CM_OK;
}

/* All that was read has been taken: then it is no failure if that was all there is. */
static int reader_left(struct feed *feed, struct cm_error *err)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	int r = CM_OK;

	/* who wrote what ended the command has yet to end */
	if (feed->at == feed->len && poll(&p, 1, END_MS) > 0)
		r = read_chunk(feed, err);
	if (r < 0 || feed->has_ended)
		return r;
	return no_reader(feed, err);
}

static int step(struct feed *feed, struct cm_error *err)
{
	bool has_data = feed->at < feed->len;
	struct pollfd p[3] = {
		{ .fd = has_data ? -1 : STDIN_FILENO, .events = POLLIN },
		{ .fd = feed->fd, .events = has_data ? POLLOUT : 0 },
		/* that it has ended, though what it started holds its input */
		{ .fd = feed->t->jail.sock, .events = POLLIN },
	};

	if (poll(p, CM_ARRAY_SIZE(p), -1) < 0)
		return errno == EINTR ? CM_OK : cm_error_set(err, CM_E_SYS, errno, "cannot wait");
	/* at the end of what there is nobody has to take more */
	if (p[0].revents != 0)
		return read_chunk(feed, err);
	if ((p[1].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0 || p[2].revents != 0)
		return reader_left(feed, err);
	return (p[1].revents & POLLOUT) != 0 ? write_chunk(feed, err) : CM_OK;
}

static int pass_on(struct feed *feed, struct cm_error *err)
{
	int r = CM_OK;

	while (r == CM_OK && (!feed->has_ended || feed->at < feed->len))
		r = step(feed, err);
	return r;
}

/* A terminal has only its end-of-file character for that, and whoever reads next gets it. */
static int tell_end(struct feed *feed, struct cm_error *err)
{
	struct cm_tty_end end = { 0 };

	cm_tty_end_begin(&end);
	while (!cm_tty_end_step(&end, feed->fd)) {
		struct pollfd p = { .fd = feed->fd };

		if (poll(&p, 1, TELL_MS) > 0)
			return no_reader(feed, err);
	}
	return CM_OK;
}

static int close_input(struct feed *feed, struct cm_error *err)
{
	if (feed->is_tty)
		return tell_end(feed, err);
	/* ours, too: the last one that is closed is the end */
	cm_fd_close(&feed->fd);
	return cm_exec_target_close_input(feed->t, err);
}

static int not_running(struct cm_exec_target *t, struct cm_error *err)
{
	char text[CM_EXEC_FATE_SIZE];
	struct cm_exec_fate fate;

	cm_exec_target_fate(t, &fate);
	cm_exec_fate_format(&fate, text);
	(void)cm_error_set(err, CM_E_NOT_FOUND, 0, "command %s has ended (%s)", t->name, text);
	cm_error_hint(err, "'casemate ps %.100s' lists those that run", t->session.record.id);
	return CM_E_NOT_FOUND;
}

static int connect_input(struct feed *feed, struct cm_error *err)
{
	int r = CM_E_NOT_FOUND;

	if (cm_exec_target_runs(feed->t))
		r = cm_exec_target_attach(feed->t, &feed->id, &feed->fd, err);
	if (r == CM_E_NOT_FOUND)
		return not_running(feed->t, err);
	if (r == CM_E_UNSUPPORTED)
		cm_error_hint(err, "'casemate exec -d -i' starts a command with an input, 'exec -d "
				   "-t' one with a terminal");
	if (r < 0)
		return r;
	feed->is_tty = (feed->t->journal.request.flags & CM_JOURNALF_TTY) != 0;
	/* all who write to it do so, and the command's end is another */
	if (fcntl(feed->fd, F_SETFL, O_NONBLOCK) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot use the input of command %s",
				    feed->t->name);
	return CM_OK;
}

static int feed_command(struct cm_exec_target *t, bool is_close, struct cm_error *err)
{
	struct feed feed = { .t = t, .fd = -1 };
	int r = connect_input(&feed, err);

	/* to close is all that is wanted of who sits at a terminal */
	feed.has_ended = is_close && (!cm_relay_has_stdin() || isatty(STDIN_FILENO));
	if (r == CM_OK)
		r = pass_on(&feed, err);
	if (r == CM_OK && is_close)
		r = close_input(&feed, err);
	cm_fd_close(&feed.fd);
	return r;
}

int cm_cmd_stdin(struct cm_cli *cli, int argc, char **argv)
{
	struct stdin_options o = { NULL };
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &o.root },
		{ "close", '\0', CM_OPTION_SWITCH, &o.is_close },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec_target t;
	int n = 0;
	int r;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) != CM_OK ||
	    cm_exec_target_check("stdin", n, &err) != CM_OK)
		return cm_cli_fail(cli, &err);
	/* a command that reads no more is told of by its name */
	(void)signal(SIGPIPE, SIG_IGN);
	r = cm_exec_target_get(&t, cli, o.root, argv[1], argv[2], &err);
	if (r == CM_OK)
		r = feed_command(&t, o.is_close, &err);
	cm_exec_target_close(&t);
	return r < 0 ? cm_cli_fail(cli, &err) : 0;
}
