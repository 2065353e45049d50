/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timer of processor time is what tells work from waiting: reading from a FIFO whose other end
 * nobody opens uses none, and unpacking one huge file, of which libgit2 tells nothing, does.
 */
#include "isolation/checkout/pulse.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "runtime/base/fd.h"

#define INTERVAL_US 100000

static const char line[] = "{\"type\":\"checkout.alive\"}\n";
static int pulse_fd = -1;

/* poll(2) and write(2) alone; a whole line or none, as the reader is not waited for */
void cm_pulse_beat(void)
{
	struct pollfd p = { .fd = pulse_fd, .events = POLLOUT };

	if (pulse_fd >= 0 && poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) != 0 &&
	    write(pulse_fd, line, sizeof(line) - 1) < 0) {
		/* the reader is gone, and with it whoever wanted to know */
	}
}

static void on_timer(int sig)
{
	int saved = errno;

	(void)sig;
	cm_pulse_beat();
	errno = saved;
}

int cm_pulse_start(int fd, struct cm_error *err)
{
	/* libgit2 must not see interrupted calls */
	struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_RESTART };
	const struct itimerval timer = { .it_interval = { .tv_usec = INTERVAL_US },
					 .it_value = { .tv_usec = INTERVAL_US } };

	if (fd < 0)
		return CM_OK;
	pulse_fd = fd;
	(void)sigemptyset(&action.sa_mask);
	if (sigaction(SIGPROF, &action, NULL) < 0 || setitimer(ITIMER_PROF, &timer, NULL) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot start a timer");
	return CM_OK;
}

void cm_pulse_stop(void)
{
	static const struct itimerval never;

	(void)setitimer(ITIMER_PROF, &never, NULL);
	/* one may be on its way */
	(void)signal(SIGPROF, SIG_IGN);
}
