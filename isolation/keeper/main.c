/* SPDX-License-Identifier: Apache-2.0 */
/*
 * casemate-keeper: plan in descriptor 3 (sealed memfd), the client's socket in descriptor 4.
 *
 * Started by casemate, never by hand. Nothing of the caller's is kept: descriptors above 4 are
 * closed, 0 to 2 are /dev/null, the environment is not read, signals are as a fresh process has
 * them, and the process leads a session of its own so that Ctrl-C reaches the client only.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "isolation/keeper/keeper.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"

#define PLAN_FD 3
#define CLIENT_FD 4

static struct cm_keeper keeper;

static int prepare_process(struct cm_error *err)
{
	sigset_t mask;
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null_fd < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot open '/dev/null'");
	for (int i = 0; i < 3; i++) {
		if (dup2(null_fd, i) < 0)
			return cm_error_set(err, CM_E_SYS, errno, "cannot replace descriptor %d",
					    i);
	}
	if (cm_sys_close_range(CLIENT_FD + 1, ~0U, 0) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot close descriptors");
	if (fcntl(PLAN_FD, F_SETFD, FD_CLOEXEC) < 0 || fcntl(CLIENT_FD, F_SETFD, FD_CLOEXEC) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "a descriptor is missing");
	/* an ignored signal stays ignored over execve, in the payload too */
	for (int sig = 1; sig < 32; sig++)
		(void)signal(sig, SIG_DFL);
	/* SIGPIPE is blocked like the rest, and not ignored: that would be inherited */
	(void)sigfillset(&mask);
	if (sigprocmask(SIG_SETMASK, &mask, NULL) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot block signals");
	(void)setsid();
	(void)umask(077);
	return CM_OK;
}

static int read_plan(struct cm_plan *ret, struct cm_error *err)
{
	const int need = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	struct stat st;
	void *memory;
	int seals = fcntl(PLAN_FD, F_GET_SEALS);

	/* what is checked must not change afterwards */
	if (seals < 0 || (seals & need) != need)
		return cm_error_set(err, CM_E_PROTOCOL, 0, "the plan is not sealed");
	if (fstat(PLAN_FD, &st) < 0 || st.st_size <= 0 || st.st_size > 8 * 1024 * 1024)
		return cm_error_set(err, CM_E_PROTOCOL, 0, "the plan has no usable size");
	memory = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, PLAN_FD, 0);
	if (memory == MAP_FAILED)
		return cm_error_set(err, CM_E_SYS, errno, "cannot map the plan");
	(void)close(PLAN_FD);
	return cm_plan_check(memory, (size_t)st.st_size, ret, err);
}

static void on_signal(struct cm_loop *loop, int fd, uint32_t events, void *data)
{
	struct signalfd_siginfo info;

	(void)loop;
	(void)events;
	if (read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGTERM)
		cm_keeper_stop(data);
}

static int watch_signals(struct cm_keeper *k, struct cm_error *err)
{
	sigset_t mask;

	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGTERM);
	k->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (k->signal_fd < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot watch for signals");
	return cm_loop_add(&k->loop, k->signal_fd, EPOLLIN, on_signal, k, err);
}

/*
 * A persistent keeper belongs to nobody: the first process ends at once, so that the caller's
 * SIGCHLD and wait see one short child. Before the jail exists: its parent-death signal is bound
 * to the process that makes it.
 */
static int detach(struct cm_error *err)
{
	pid_t pid = fork();

	if (pid < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot fork");
	if (pid > 0)
		_exit(0);
	(void)setsid();
	return CM_OK;
}

static int run(struct cm_keeper *k, struct cm_error *err)
{
	int r = prepare_process(err);

	if (r == CM_OK)
		r = read_plan(&k->plan, err);
	if (r < 0)
		return r;
	k->is_temporary = (k->plan.header->flags & CM_PLANF_TEMPORARY) != 0;
	if (!k->is_temporary)
		r = detach(err);
	if (r == CM_OK)
		r = cm_loop_init(&k->loop, err);
	if (r == CM_OK)
		r = watch_signals(k, err);
	if (r == CM_OK)
		r = cm_keeper_start(k, CLIENT_FD, err);
	if (r == CM_OK)
		r = cm_loop_run(&k->loop, err);
	return r;
}

/* casemate-scope passes on where systemd lets groups be made: the one fact that the plan, made
 * before it, cannot have. */
static int take_arguments(struct cm_keeper *k, int argc, char **argv, struct cm_error *err)
{
	static const char option[] = "--cgroup-base=";

	if (argc == 2 && strncmp(argv[1], option, sizeof(option) - 1) == 0) {
		k->cgroup.base = argv[1] + sizeof(option) - 1;
		return CM_OK;
	}
	if (argc > 1)
		return cm_error_set(err, CM_E_INVALID, 0,
				    "casemate-keeper is started by casemate only");
	return CM_OK;
}

int main(int argc, char **argv)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_keeper *k = &keeper;
	int r;

	k->state = CM_KS_STARTING;
	k->init_sock = k->init_pidfd = k->signal_fd = k->listen_fd = -1;
	k->state_dir_fd = k->lock_fd = -1;
	for (size_t i = 0; i < CM_KEEPER_MAX_CLIENTS; i++)
		k->clients[i].sock = -1;
	cm_cgroup_init(&k->cgroup);
	cm_msg_init(&k->msg);
	r = take_arguments(k, argc, argv, &err);
	if (r == CM_OK)
		r = run(k, &err);
	/* first the cleanup, then the word: who reads it may count on nothing being left */
	cm_keeper_end(k);
	if (r < 0)
		(void)cm_proto_send_error(CLIENT_FD, CM_REC_FAILED, 0, &err);
	return r < 0 ? 125 : 0;
}
