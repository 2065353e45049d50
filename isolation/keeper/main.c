/* SPDX-License-Identifier: Apache-2.0 */
/*
 * casemate-keeper: the starter's socket is descriptor 3; its first record is the plan.
 *
 * Started by casemate, never by hand. Nothing of the caller's is kept: descriptors above 3 are
 * closed, 0 to 2 are /dev/null, the environment is not read, signals are as a fresh process has
 * them, and the process leads a session of its own so that Ctrl-C reaches the client only.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "isolation/keeper/handover.h"
#include "isolation/keeper/keeper.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"
#include "runtime/store/keeper_lock.h"

#define STARTER_FD 3
#define DESCRIPTORS 4096U

static struct cm_keeper keeper;

struct arguments {
	bool is_collect;
	/* held until this process ends, and with it the jail whose root it keeps */
	int skeleton_fd;
};

/*
 * An ignored signal stays ignored over execve, in the payload too. By the system call: libc keeps
 * two signals for itself and refuses to change them, and glibc's posix_spawn has a child ignore
 * them.
 */
static void reset_signals(void)
{
	/* handler, flags, restorer, mask: the default and no flags */
	const unsigned long by_default[4] = { 0 };

	for (int sig = 1; sig <= 64; sig++)
		(void)syscall(SYS_rt_sigaction, sig, by_default, NULL, 8);
}

/* A client has one or two, a detached command up to three, and init's limit is the plan's. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= DESCRIPTORS)
		return;
	limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static int prepare_process(struct cm_error *err)
{
	sigset_t mask;
	int null_fd = cm_open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null_fd < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot open '/dev/null'");
	for (int i = 0; i < 3; i++) {
		if (dup2(null_fd, i) < 0)
			return cm_error_set(err, CM_E_SYS, errno, "cannot replace descriptor %d",
					    i);
	}
	if (cm_sys_close_range(STARTER_FD + 1, ~0U, 0) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot close descriptors");
	if (fcntl(STARTER_FD, F_SETFD, FD_CLOEXEC) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "the starter's socket is missing");
	reset_signals();
	/* SIGPIPE is blocked like the rest, and not ignored: that would be inherited */
	(void)sigfillset(&mask);
	if (sigprocmask(SIG_SETMASK, &mask, NULL) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot block signals");
	raise_descriptors();
	(void)setsid();
	(void)umask(077);
	return CM_OK;
}

/* What may come before the plan. 1: it was one of these, 0: it is not. */
static int take_ahead(struct cm_keeper *k, struct cm_error *err)
{
	int r;

	if (k->msg.rec.type == CM_REC_AHEAD) {
		k->starter_reaps = k->msg.rec.body.ahead.starter_reaps != 0;
		r = cm_keeper_clone_ahead(k, k->msg.rec.body.ahead.has_own_network != 0, err);
	} else if (k->msg.rec.type == CM_REC_PREPARE && k->msg.blob) {
		r = cm_handover_announced(&k->announced, &k->msg, err);
	} else {
		return 0;
	}
	if (r == CM_OK && k->announced.is_there)
		r = cm_keeper_prepare(k, err);
	return r < 0 ? r : 1;
}

/* The starter's first records. It may take its time: it is still looking at the host. */
static int receive_plan(struct cm_keeper *k, int *ret_fd, int *ret_skeleton_fd,
			struct cm_error *err)
{
	int taken;
	int r;

	do {
		r = cm_proto_recv(STARTER_FD, &k->msg);
		taken = r == 1 ? take_ahead(k, err) : 0;
	} while (taken == 1);
	if (taken < 0)
		return taken;
	if (r != 1 || k->msg.rec.type != CM_REC_PLAN || (k->msg.n_fds != 1 && k->msg.n_fds != 2))
		return cm_error_set(err, CM_E_PROTOCOL, r < 0 ? -r : 0, "no plan came");
	*ret_fd = cm_fd_take(&k->msg.fds[0]);
	*ret_skeleton_fd = cm_fd_take(&k->msg.fds[1]);
	cm_msg_clear(&k->msg);
	return cm_handover_map_plan(*ret_fd, &k->plan, err);
}

static void on_signal(struct cm_loop *loop, int fd, uint32_t events, void *data)
{
	struct signalfd_siginfo info;

	(void)loop;
	(void)events;
	if (read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGTERM)
		cm_keeper_stop(data, CM_ENDED_STOPPED);
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

static int run(struct cm_keeper *k, struct arguments *args, struct cm_error *err)
{
	CM_AUTO_FD int plan_fd = -1;
	int r = prepare_process(err);

	if (r == CM_OK)
		r = cm_loop_init(&k->loop, err);
	if (r == CM_OK)
		r = receive_plan(k, &plan_fd, &args->skeleton_fd, err);
	if (r < 0 || args->is_collect)
		return r < 0 ? r : cm_cgroup_collect(&k->plan, err);
	k->is_temporary = (k->plan.header->flags & CM_PLANF_TEMPORARY) != 0;
	if (!k->is_temporary)
		r = detach(err);
	if (r == CM_OK)
		r = cm_keeper_start(k, plan_fd, err);
	cm_fd_close(&plan_fd);
	/* not before init has its plan and goes on; until then they wait */
	if (r == CM_OK)
		r = watch_signals(k, err);
	if (r == CM_OK)
		r = cm_loop_run(&k->loop, err);
	return r;
}

/*
 * --cgroup-base=DIR: where systemd lets groups be made (from casemate-scope): the one fact that the
 * plan, made before it, cannot have. --collect: make nothing, remove the control groups that the
 * plan's session left when its keeper was killed.
 */
static int take_arguments(struct cm_keeper *k, struct arguments *args, int argc, char **argv,
			  struct cm_error *err)
{
	static const char base[] = "--cgroup-base=";

	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], base, sizeof(base) - 1) == 0) {
			k->cgroup.base = argv[i] + sizeof(base) - 1;
		} else if (strcmp(argv[i], "--collect") == 0) {
			args->is_collect = true;
		} else {
			return cm_error_set(err, CM_E_INVALID, 0,
					    "casemate-keeper is started by casemate only");
		}
	}
	return CM_OK;
}

int main(int argc, char **argv)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_keeper *k = &keeper;
	struct arguments args = { .skeleton_fd = -1 };
	int r;

	k->starter = STARTER_FD;
	k->state = CM_KS_STARTING;
	k->init_sock = k->init_pidfd = k->signal_fd = k->listen_fd = k->age_fd = -1;
	k->state_dir_fd = k->lock_fd = k->events.dir_fd = -1;
	k->hello_timer = k->result_timer = k->hung_timer = -1;
	cm_cgroup_init(&k->cgroup);
	cm_msg_init(&k->msg);
	cm_msg_init(&k->announced.msg);
	cm_mount_sources_init(&k->sources);
	r = take_arguments(k, &args, argc, argv, &err);
	if (r == CM_OK)
		r = run(k, &args, &err);
	/* first the cleanup, then the word: who reads it may count on nothing being left */
	cm_keeper_end(k);
	if (r < 0)
		(void)cm_proto_send_error(STARTER_FD, CM_REC_FAILED, 0, &err);
	return r < 0 ? 125 : 0;
}
