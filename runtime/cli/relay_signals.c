/* SPDX-License-Identifier: Apache-2.0 */
/* Which signals the relay takes, and descriptors to take them from. */
#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "runtime/cli/relay.h"

static void end_signals(sigset_t *mask)
{
	(void)sigemptyset(mask);
	(void)sigaddset(mask, SIGINT);
	(void)sigaddset(mask, SIGTERM);
	(void)sigaddset(mask, SIGHUP);
	(void)sigaddset(mask, SIGQUIT);
}

static void relayed_signals(sigset_t *mask)
{
	end_signals(mask);
	(void)sigaddset(mask, SIGUSR1);
	(void)sigaddset(mask, SIGUSR2);
	(void)sigaddset(mask, SIGALRM);
	for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
		(void)sigaddset(mask, sig);
	(void)sigaddset(mask, SIGWINCH);
	(void)sigaddset(mask, SIGTSTP);
	(void)sigaddset(mask, SIGCONT);
	(void)sigaddset(mask, SIGPIPE);
}

int cm_relay_block_signals(struct cm_error *err)
{
	sigset_t mask;

	relayed_signals(&mask);
	if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot block signals");
	return CM_OK;
}

void cm_relay_restore_signals(const sigset_t *before)
{
	const struct timespec now = { 0 };
	sigset_t pipe;

	/* of a write of ours that nobody read, and that was told of as EPIPE */
	(void)sigemptyset(&pipe);
	(void)sigaddset(&pipe, SIGPIPE);
	if (sigismember(before, SIGPIPE) == 0)
		(void)sigtimedwait(&pipe, NULL, &now);
	(void)sigprocmask(SIG_SETMASK, before, NULL);
}

static int watch(const sigset_t *mask, int *ret_fd, struct cm_error *err)
{
	int fd = signalfd(-1, mask, SFD_CLOEXEC | SFD_NONBLOCK);

	if (fd < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot watch for signals");
	*ret_fd = fd;
	return CM_OK;
}

int cm_relay_watch_end(int *ret_fd, struct cm_error *err)
{
	sigset_t mask;

	end_signals(&mask);
	return watch(&mask, ret_fd, err);
}

int cm_relay_watch_all(int *ret_fd, struct cm_error *err)
{
	sigset_t mask;

	relayed_signals(&mask);
	return watch(&mask, ret_fd, err);
}

int cm_relay_take_end(int fd)
{
	struct signalfd_siginfo info;

	return read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}
