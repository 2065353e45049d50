/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/live_screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"
#include "runtime/cli/relay.h"
#include "runtime/cli/terminal.h"

#define MAX_TEXT (4UL * 1024 * 1024)
/* the other screen without a cursor, and back */
#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"
#define HOME "\033[H"
#define CLEAR_LINE "\033[K"
#define CLEAR_BELOW "\033[J"

struct screen {
	int signal_fd;
	bool is_entered;
	/* it is over; what the caller gets */
	bool is_over;
	int status;
};

static void put(const char *text)
{
	(void)cm_write_all(STDOUT_FILENO, text, strlen(text));
}

static void enter(struct screen *screen)
{
	if (!screen->is_entered)
		put(ENTER);
	screen->is_entered = true;
}

static void leave(struct screen *screen)
{
	if (screen->is_entered)
		put(LEAVE);
	screen->is_entered = false;
}

/* As many lines as there are rows, as much of each as there are columns. */
static void compose(const struct cm_buf *text, struct cm_buf *out)
{
	const char *p = text->data;
	const char *end = p + text->len;
	uint16_t rows;
	uint16_t columns;

	cm_terminal_size(&rows, &columns);
	cm_buf_puts(out, HOME);
	for (unsigned int row = 0; p < end && (rows == 0 || row + 1 < rows); row++) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		size_t len = newline ? (size_t)(newline - p) : (size_t)(end - p);

		cm_buf_append(out, p, columns > 0 ? cm_text_fitting(p, len, columns) : len);
		cm_buf_puts(out, CLEAR_LINE "\n");
		p += len + (newline != NULL);
	}
	cm_buf_puts(out, CLEAR_BELOW);
}

static int show(struct screen *screen, cm_live_screen_fn draw, void *data, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	CM_AUTO_BUF struct cm_buf out = { 0 };
	struct cm_error why = CM_ERROR_INIT;
	int r;

	cm_buf_init(&text, MAX_TEXT);
	cm_buf_init(&out, 2 * MAX_TEXT);
	screen->is_over = !draw(data, &text, &why);
	if (screen->is_over) {
		if (err)
			*err = why;
		return why.code;
	}
	cm_buf_puts(&text, "");
	if (cm_buf_status(&text) == CM_OK)
		compose(&text, &out);
	if (cm_buf_status(&text) < 0 || cm_buf_status(&out) < 0)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the screen");
	enter(screen);
	r = cm_write_all(STDOUT_FILENO, out.data, out.len);
	return r < 0 ? cm_error_set(err, CM_E_SYS, -r, "cannot write to standard output") : CM_OK;
}

static void on_signal(struct screen *screen, int sig)
{
	switch (sig) {
	case SIGINT:
	case SIGTERM:
	case SIGHUP:
	case SIGQUIT:
		screen->is_over = true;
		screen->status = sig == SIGINT ? 0 : 128 + sig;
		return;
	case SIGTSTP:
		leave(screen);
		(void)kill(getpid(), SIGSTOP);
		return;
	default:
		/* drawn anew, at its new size */
		return;
	}
}

/* Until the time is over or there is a reason to draw before. */
static void wait_until(struct screen *screen, int64_t due_ms)
{
	struct pollfd p = { .fd = screen->signal_fd, .events = POLLIN };
	struct signalfd_siginfo info;
	int64_t left = due_ms - cm_clock_mono_ms();

	if (poll(&p, 1, left > 0 ? (int)left : 0) <= 0)
		return;
	while (read(screen->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		on_signal(screen, (int)info.ssi_signo);
}

int cm_live_screen_run(cm_live_screen_fn draw, void *data, int64_t every_ms, struct cm_error *err)
{
	struct screen screen = { .signal_fd = -1 };
	int r = cm_relay_block_signals(err);

	if (r == CM_OK)
		r = cm_relay_watch_all(&screen.signal_fd, err);
	while (r == CM_OK && !screen.is_over) {
		int64_t due_ms = cm_clock_mono_ms() + every_ms;

		r = show(&screen, draw, data, err);
		if (r == CM_OK && !screen.is_over)
			wait_until(&screen, due_ms);
	}
	leave(&screen);
	cm_fd_close(&screen.signal_fd);
	return r < 0 ? r : screen.status;
}
