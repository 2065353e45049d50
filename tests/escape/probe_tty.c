/* SPDX-License-Identifier: Apache-2.0 */
/* Typing into, and reconfiguring, the terminal that the probe has on descriptor 0 and /dev/tty. */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/escape/probe.h"

#define KDSKBENT_ 0x4b47
#define VT_ACTIVATE_ 0x5606

static void on_fd(int fd, const char *const names[4])
{
	int discipline = 0;

	probe_result(names[0], ioctl(fd, TIOCSTI, " "));
	probe_result(names[1], syscall(SYS_ioctl, fd, (1UL << 32) | TIOCSTI, " "));
	/* the ordinary line discipline, which it has already */
	probe_result(names[2], ioctl(fd, TIOCSETD, &discipline));
	/* for consoles only: a pty that gets it says so */
	probe_result_or(names[3], ioctl(fd, TIOCLINUX, "\014"), ENOTTY, EINVAL);
}

int main(void)
{
	static const char *const stdin_names[] = { "TIOCSTI", "TIOCSTI high", "TIOCSETD",
						   "TIOCLINUX" };
	static const char *const tty_names[] = { "/dev/tty TIOCSTI", "/dev/tty TIOCSTI high",
						 "/dev/tty TIOCSETD", "/dev/tty TIOCLINUX" };
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int tty = open("/dev/tty", O_RDWR | O_CLOEXEC);

	on_fd(0, stdin_names);
	on_fd(tty, tty_names);
	/* not on a terminal: as root outside these would work */
	probe_result_or("TIOCCONS", ioctl(null_fd, TIOCCONS, 0), ENOTTY, ENOTTY);
	probe_result_or("KDSKBENT", ioctl(null_fd, KDSKBENT_, 0), ENOTTY, ENOTTY);
	probe_result_or("VT_ACTIVATE", ioctl(null_fd, VT_ACTIVATE_, 1), ENOTTY, ENOTTY);
	return 0;
}
