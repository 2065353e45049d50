/* SPDX-License-Identifier: Apache-2.0 */
/* The bar and the lines of what takes long. */
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "runtime/base/clock.h"
#include "runtime/cli/progress.h"
#include "tests/unit/test_base.h"

static int saved_fd = -1;

/* Standard error to fd until restored. */
static void redirect(int fd)
{
	(void)fflush(stderr);
	saved_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	assert_true(saved_fd >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
}

static void restore(void)
{
	(void)fflush(stderr);
	assert_int_equal(dup2(saved_fd, STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(close(saved_fd), 0);
}

/* One that has gone on for so long, and was last shown then. */
static struct cm_progress since(int64_t begun_ms, int64_t shown_ms)
{
	int64_t now = cm_clock_mono_ms();

	return (struct cm_progress){ .begun_ms = now - begun_ms, .shown_ms = now - shown_ms };
}

static void test_lines(void **state)
{
	struct cm_progress quick = { 0 };
	struct cm_progress slow = since(20000, 20000);
	struct cm_progress off = since(20000, 20000);
	struct cm_progress recent = since(20000, 5000);
	char text[512] = "";
	int pair[2];

	(void)state;
	off.is_off = true;
	assert_int_equal(pipe2(pair, O_CLOEXEC | O_NONBLOCK), 0);
	redirect(pair[1]);
	cm_progress_tell(&quick, "fetch", 1, 2, 3);
	cm_progress_tell(&off, "fetch", 1, 2, 3);
	cm_progress_tell(&recent, "fetch", 1, 2, 3);
	cm_progress_tell(&slow, "fetch", 1203, 3110, 1258291);
	cm_progress_tell(&slow, "fetch", 1204, 3110, 1258291);
	cm_progress_clear(&slow);
	restore();
	assert_true(read(pair[0], text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "casemate: fetch 38% (1203/3110 objects, 1.2 MiB)\n");
	(void)close(pair[0]);
	(void)close(pair[1]);
}

static void test_bar(void **state)
{
	struct winsize size = { .ws_row = 24, .ws_col = 60 };
	struct cm_progress p;
	struct cm_progress slow = since(2000, 2000);
	char text[512] = "";
	int main_fd;
	int other_fd;
	ssize_t n;

	(void)state;
	assert_int_equal(openpty(&main_fd, &other_fd, NULL, NULL, &size), 0);
	redirect(other_fd);
	cm_progress_init(&p, false, "dumb");
	p.begun_ms = slow.begun_ms;
	p.shown_ms = slow.shown_ms;
	cm_progress_tell(&p, "files", 30000, 60000, 0);
	/* where no bar can be drawn, two seconds are not enough for a line */
	assert_false(p.is_shown);
	cm_progress_init(&p, false, "xterm");
	p.begun_ms = slow.begun_ms;
	p.shown_ms = slow.shown_ms;
	cm_progress_tell(&p, "files", 30000, 60000, 0);
	restore();
	n = read(main_fd, text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = '\0';
	assert_string_equal(text, "\r\033[Kcasemate: files    50% [##########..........] "
				  "30000/60000 f");
	assert_true(p.is_shown);
	redirect(other_fd);
	cm_progress_clear(&p);
	cm_progress_clear(&p);
	restore();
	n = read(main_fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	assert_string_equal(text, "\r\033[K");
	(void)close(main_fd);
	(void)close(other_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_bar),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
