/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/local/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "providers/local/helper.h"
#include "runtime/base/alloc.h"
#include "runtime/base/buf.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"
#include "runtime/base/raw_clone.h"
#include "runtime/base/raw_syscall.h"

/* Where the keeper expects its socket; see isolation/keeper/main.c. */
#define KEEPER_SOCK 3
/* the child calls two functions deep, and no signal handler runs in it */
#define STACK_SIZE 4096

struct cm_launch {
	_Alignas(16) char stack[STACK_SIZE];
	char keeper[PATH_MAX];
	char scope[PATH_MAX];
	char *scope_id;
	char *option;
	/* scope, its id, "--", keeper, option */
	char *argv[6];
	/* none of ours reads the environment */
	char *env[1];
	int sock;
	/* takes an errno of what the child could not do; closed by execve */
	int report_fd;
	/* as the kernel has it: one bit a signal */
	uint64_t mask;

	/* the starter's alone from here on */
	int answer_fd;
};

CM_NO_INSTRUMENT static int child_main(void *arg)
{
	const struct cm_launch *launch = arg;
	int error;
	long r = cm_raw_syscall3(__NR_dup3, launch->sock, KEEPER_SOCK, 0);

	/* nothing of the starter's is called from here on by a signal: CLONE_CLEAR_SIGHAND */
	if (!cm_raw_failed(r))
		r = cm_raw_syscall4(__NR_rt_sigprocmask, SIG_SETMASK, cm_raw_ptr(&launch->mask), 0,
				    sizeof(launch->mask));
	if (!cm_raw_failed(r))
		r = cm_raw_syscall3(__NR_execve, cm_raw_ptr(launch->argv[0]),
				    cm_raw_ptr(launch->argv), cm_raw_ptr(launch->env));
	error = (int)-r;
	(void)cm_raw_syscall3(__NR_write, launch->report_fd, cm_raw_ptr(&error), sizeof(error));
	return 127;
}

/* A handler of ours must not run in a child that shares our memory; blocked until it has none. */
static int clone_child(struct cm_launch *launch)
{
	struct cm_clone3_args args = {
		.flags = CLONE_VM | CLONE_CLEAR_SIGHAND,
		.exit_signal = SIGCHLD,
		.stack = (uint64_t)(uintptr_t)launch->stack,
		.stack_size = sizeof(launch->stack),
	};
	uint64_t all = ~0ULL;
	long pid;

	(void)cm_raw_syscall4(__NR_rt_sigprocmask, SIG_SETMASK, cm_raw_ptr(&all),
			      cm_raw_ptr(&launch->mask), sizeof(launch->mask));
	pid = cm_raw_clone(&args, child_main, launch);
	(void)cm_raw_syscall4(__NR_rt_sigprocmask, SIG_SETMASK, cm_raw_ptr(&launch->mask), 0,
			      sizeof(launch->mask));
	return (int)pid;
}

static int find_programs(struct cm_launch *launch, struct cm_error *err)
{
	char **arg = launch->argv;
	int r = cm_helper_path("casemate-keeper", launch->keeper, sizeof(launch->keeper), err);

	if (r == CM_OK && launch->scope_id) {
		r = cm_helper_path("casemate-scope", launch->scope, sizeof(launch->scope), err);
		*arg++ = launch->scope;
		*arg++ = launch->scope_id;
		*arg++ = (char *)(uintptr_t) "--";
	}
	*arg++ = launch->keeper;
	*arg++ = launch->option;
	*arg = NULL;
	return r;
}

static struct cm_launch *make(const char *scope_id, const char *option)
{
	struct cm_launch *launch = cm_malloc(sizeof(*launch));

	if (!launch)
		return NULL;
	launch->answer_fd = -1;
	launch->env[0] = NULL;
	launch->scope_id = cm_strdup(scope_id);
	launch->option = cm_strdup(option);
	return launch;
}

static void destroy(struct cm_launch *launch)
{
	cm_fd_close(&launch->answer_fd);
	free(launch->scope_id);
	free(launch->option);
	free(launch);
}

static int start(struct cm_launch *launch, int sock, pid_t *ret_pid, struct cm_error *err)
{
	/* never 3 itself, which dup3 refuses */
	CM_AUTO_FD int high_fd = fcntl(sock, F_DUPFD_CLOEXEC, 10);
	CM_AUTO_FD int report_fd = -1;
	int pair[2];
	int pid;
	int r = find_programs(launch, err);

	if (r < 0)
		return r;
	if (high_fd < 0 || pipe2(pair, O_CLOEXEC) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make descriptors for the keeper");
	launch->answer_fd = pair[0];
	report_fd = pair[1];
	launch->sock = high_fd;
	launch->report_fd = report_fd;
	pid = clone_child(launch);
	if (pid < 0)
		return cm_error_set(err, CM_E_SYS, -pid, "cannot start '%s'", launch->argv[0]);
	*ret_pid = pid;
	return CM_OK;
}

int cm_launch_keeper(int sock, const char *scope_id, const char *option, struct cm_launch **ret,
		     pid_t *ret_pid, struct cm_error *err)
{
	struct cm_launch *launch = make(scope_id, option);
	int r;

	if (!launch || (scope_id && !launch->scope_id) || (option && !launch->option))
		r = cm_error_set(err, CM_E_NOMEM, 0, "no memory to start the keeper");
	else
		r = start(launch, sock, ret_pid, err);
	if (r < 0 && launch)
		destroy(launch);
	else
		*ret = launch;
	return r;
}

int cm_launch_end(struct cm_launch **launch, struct cm_error *err)
{
	int error = 0;
	ssize_t n;
	int r = CM_OK;

	if (!*launch)
		return CM_OK;
	do {
		n = read((*launch)->answer_fd, &error, sizeof(error));
	} while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof(error)) {
		r = cm_error_set(err, CM_E_SYS, error, "cannot start '%s'", (*launch)->argv[0]);
		cm_error_hint(err, "install casemate again, all of its files at once");
	}
	destroy(*launch);
	*launch = NULL;
	return r;
}
