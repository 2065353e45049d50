/* SPDX-License-Identifier: Apache-2.0 */
/* Starting one command from pid 1: the child that shares init's memory until execve. */
#include "isolation/keeper/exec.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "isolation/mech/caps.h"
#include "runtime/base/kernel.h"
#include "runtime/base/raw_clone.h"
#include "runtime/base/raw_syscall.h"

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

CM_NO_INSTRUMENT static int report(const struct cm_exec_image *image, enum cm_exec_step step,
				   long error)
{
	uint32_t word = (uint32_t)step << 16 | (uint32_t)-error;

	(void)cm_raw_syscall3(__NR_write, image->report_fd, cm_raw_ptr(&word), sizeof(word));
	return 127;
}

CM_NO_INSTRUMENT static long set_stdio(const struct cm_exec_image *image)
{
	for (int i = 0; i < 3; i++) {
		long r = cm_raw_syscall3(__NR_dup3, image->stdio[i], i, 0);

		/* EINVAL: it is that number already, and without close-on-exec */
		if (cm_raw_failed(r) && !(r == -EINVAL && image->stdio[i] == i))
			return r;
	}
	if (image->is_tty) {
		long r = cm_raw_syscall3(__NR_ioctl, 0, TIOCSCTTY, 0);

		if (cm_raw_failed(r))
			return r;
	}
	/* all are close-on-exec by the rules of this program; this makes it one of the kernel's */
	return cm_raw_syscall3(__NR_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC);
}

CM_NO_INSTRUMENT static long join_leaf(const struct cm_exec_image *image)
{
	static const char self[] = "0";
	long r = 0;

	if (image->leaf_join_fd < 0)
		return 0;
	/* v2: born in it. The namespace hides the leaf's name, so that programs look for their
	 * limits at the root of /sys/fs/cgroup, where the session's are. */
	if (image->is_leaf_v2)
		return cm_raw_syscall1(__NR_unshare, CLONE_NEWCGROUP);
	r = cm_raw_syscall3(__NR_write, image->leaf_join_fd, cm_raw_ptr(self), 1);
	return r == 1 ? 0 : r;
}

/* The identity is the last thing: from then on the agent may signal this process. */
CM_NO_INSTRUMENT static long become(const struct cm_exec_image *image, enum cm_exec_step *ret_step)
{
	uint64_t setuid_only = 1ULL << 7; /* CAP_SETUID */
	long r = 0;

	*ret_step = CM_EXEC_STEP_IDS;
	if (image->has_ids) {
		r = cm_raw_syscall3(__NR_setresgid, image->gid, image->gid, image->gid);
		if (cm_raw_failed(r))
			return r;
	}
	*ret_step = CM_EXEC_STEP_CAPS;
	r = cm_caps_raw_set(image->caps | (image->has_ids ? setuid_only : 0));
	if (cm_raw_failed(r))
		return r;
	*ret_step = CM_EXEC_STEP_SECCOMP;
	r = cm_seccomp_load(image->seccomp);
	if (cm_raw_failed(r))
		return r;
	*ret_step = CM_EXEC_STEP_IDS;
	if (image->has_ids) {
		r = cm_raw_syscall3(__NR_setresuid, image->uid, image->uid, image->uid);
		if (cm_raw_failed(r))
			return r;
		*ret_step = CM_EXEC_STEP_CAPS;
		r = cm_caps_raw_set(image->caps);
	}
	return r;
}

/* A text file without "#!": as execvp(3) and POSIX have it, the shell runs it. */
CM_NO_INSTRUMENT static long try_shell(const struct cm_exec_image *image, char *path)
{
	static char shell[] = "/bin/sh";

	/* argv has a free slot in front for this */
	image->argv[-1] = shell;
	image->argv[0] = path;
	return cm_raw_syscall3(__NR_execve, cm_raw_ptr(shell), cm_raw_ptr(image->argv - 1),
			       cm_raw_ptr(image->env));
}

/* execvp's rule: a name that is there but not executable is remembered over ENOENT. */
CM_NO_INSTRUMENT static long try_paths(const struct cm_exec_image *image)
{
	long error = -ENOENT;

	for (char **path = image->paths; *path; path++) {
		long r = cm_raw_syscall3(__NR_execve, cm_raw_ptr(*path), cm_raw_ptr(image->argv),
					 cm_raw_ptr(image->env));

		if (r == -ENOENT || r == -ENOTDIR)
			continue;
		if (r == -ENOEXEC)
			return try_shell(image, *path);
		error = r;
		if (r != -EACCES)
			break;
	}
	return error;
}

/*
 * Not where a descriptor of init's leads: a leaf group of v2 is a directory of the host, and from it
 * ".." is the host's tree. The kernel says "(unreachable)..." of what is not below the root.
 */
CM_NO_INSTRUMENT static long enter(const char *cwd)
{
	char path[4096];
	long r = cm_raw_syscall1(__NR_chdir, cm_raw_ptr(cwd));

	if (cm_raw_failed(r))
		return r;
	path[0] = '\0';
	r = cm_raw_syscall2(__NR_getcwd, cm_raw_ptr(path), sizeof(path));
	if (cm_raw_failed(r))
		return r;
	return path[0] == '/' ? 0 : -ENOTDIR;
}

/* What execve would have closed is closed here: the pipe that reports among it, which says "started". */
CM_NO_INSTRUMENT static int go_on(const struct cm_exec_image *image)
{
	long r = cm_raw_syscall3(__NR_close_range, 3, ~0U, 0);

	return cm_raw_failed(r) ? report(image, CM_EXEC_STEP_EXECVE, r)
				: image->builtin(image->argv);
}

CM_NO_INSTRUMENT static int child_main(void *arg)
{
	const struct cm_exec_image *image = arg;
	enum cm_exec_step step = CM_EXEC_STEP_MARK;
	uint64_t no_signals = 0;
	long r;

	/* a session of its own: no orphaned-group SIGHUP from another exec's end reaches it */
	r = cm_raw_syscall0(__NR_setsid);
	if (cm_raw_failed(r))
		return report(image, CM_EXEC_STEP_SESSION, r);
	r = set_stdio(image);
	if (cm_raw_failed(r))
		return report(image, CM_EXEC_STEP_STDIO, r);
	r = join_leaf(image);
	if (cm_raw_failed(r))
		return report(image, CM_EXEC_STEP_GROUP, r);
	if (image->mark_gid != 0) {
		r = cm_raw_syscall2(__NR_setgroups, 1, cm_raw_ptr(&image->mark_gid));
		if (cm_raw_failed(r))
			return report(image, CM_EXEC_STEP_MARK, r);
	}
	/* file-system ids first, so that the directory is entered with the agent's rights */
	(void)cm_raw_syscall1(__NR_setfsgid, image->gid);
	(void)cm_raw_syscall1(__NR_setfsuid, image->uid);
	r = enter(image->cwd);
	if (cm_raw_failed(r))
		return report(image, CM_EXEC_STEP_CWD, r);
	(void)cm_raw_syscall4(__NR_rt_sigprocmask, SIG_SETMASK, cm_raw_ptr(&no_signals), 0,
			      sizeof(no_signals));
	r = become(image, &step);
	if (cm_raw_failed(r))
		return report(image, step, r);
	if (image->builtin)
		return go_on(image);
	return report(image, CM_EXEC_STEP_EXECVE, try_paths(image));
}

int cm_exec_clone(struct cm_exec_image *image, pid_t *ret_pid, int *ret_pidfd)
{
	int pidfd = -1;
	struct cm_clone3_args args = {
		.flags = CLONE_VM | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
		.stack = (uint64_t)(uintptr_t)image->stack,
		.stack_size = image->stack_size,
	};
	long pid;

	/* handlers go as with execve */
	if (image->builtin)
		args.flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND;
	if (image->leaf_join_fd >= 0 && image->is_leaf_v2) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)image->leaf_join_fd;
	}
	pid = cm_raw_clone(&args, child_main, image);
	if (cm_raw_failed(pid))
		return (int)pid;
	*ret_pid = (pid_t)pid;
	*ret_pidfd = pidfd;
	return 0;
}
