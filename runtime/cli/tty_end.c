/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. The end-of-file character ends one read, not the terminal: a shell hands
 * it to the program that it runs, and then waits for one of its own. So it is sent whenever nothing
 * is left to be read, and never twice before somebody has read the first, since those to come would
 * be keys to who reads key by key. Whether something is left is asked at the terminal's other end,
 * which is opened for the moment.
 *
 * Who reads key by key (a line editor) gets the same character, by which shells and interpreters
 * take their leave. An editor may take it for a command, so that it gets some and no more; it then
 * waits as if nobody typed. To hang the terminal up instead would end those that only paint.
 */
#include "runtime/cli/tty_end.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define PAUSE_MIN_MS 10
#define PAUSE_MAX_MS 320
#define MAX_UNSURE 4

/* Does something wait to be read? 1, 0, or -1 when that cannot be known. */
static int has_unread(int master_fd)
{
	CM_AUTO_FD int fd = ioctl(master_fd, TIOCGPTPEER, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	/* in line mode a line, or an end of file that nobody has seen */
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (fd < 0 || poll(&p, 1, 0) < 0)
		return -1;
	return (p.revents & POLLIN) != 0;
}

/* Each who reads for itself is told some times. */
static bool is_told_enough(struct cm_tty_end *end, int master_fd)
{
	pid_t reader = tcgetpgrp(master_fd);

	if (reader != end->reader)
		end->n_unsure = 0;
	end->reader = reader;
	return end->n_unsure++ >= MAX_UNSURE;
}

static bool tell(struct cm_tty_end *end, int master_fd)
{
	int unread = has_unread(master_fd);
	struct termios modes;
	char c;

	/* the master answers for its other end */
	if (unread > 0 || tcgetattr(master_fd, &modes) < 0)
		return false;
	c = (char)modes.c_cc[VEOF];
	if (c == _POSIX_VDISABLE)
		return false;
	if (unread == 0 && (modes.c_lflag & ICANON) != 0)
		end->n_unsure = 0;
	else if (is_told_enough(end, master_fd))
		return false;
	return write(master_fd, &c, 1) == 1;
}

void cm_tty_end_begin(struct cm_tty_end *end)
{
	end->pause_ms = PAUSE_MIN_MS;
	end->due_ms = cm_clock_mono_ms();
}

bool cm_tty_end_step(struct cm_tty_end *end, int master_fd)
{
	int64_t now = cm_clock_mono_ms();
	bool is_told;

	if (end->due_ms == 0 || now < end->due_ms)
		return false;
	is_told = tell(end, master_fd);
	if (is_told)
		end->pause_ms = PAUSE_MIN_MS;
	else if (end->pause_ms < PAUSE_MAX_MS)
		end->pause_ms *= 2;
	end->due_ms = now + end->pause_ms;
	return is_told;
}
