/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting one command from pid 1.
 *
 * The child shares init's memory until execve (CLONE_VM without CLONE_VFORK: the agent can stop
 * the child, and init would wait for it for ever), runs on a stack of its own and uses raw system
 * calls only. A pipe that execve closes carries the errno of a failed one.
 */
#ifndef CM_ISOLATION_KEEPER_EXEC_H
#define CM_ISOLATION_KEEPER_EXEC_H

#include <stdint.h>
#include <sys/types.h>

#include "casemate/error.h"
#include "isolation/keeper/proto.h"
#include "isolation/mech/seccomp.h"
#include "isolation/plan/plan.h"

/* Everything the child reads; it and what it points to must stay until report_fd reports. */
struct cm_exec_image {
	/*
	 * NULL: a program is executed. Else the child has a copy of init's memory instead of sharing it,
	 * calls this in the place of execve, with nothing open but the three, and ends with its result.
	 * No other process inside may look into it: it is not dumpable, as init is not.
	 */
	int (*builtin)(char **argv);
	/* argv[-1] is a free slot */
	char **argv;
	char **env;
	/* absolute candidates in PATH order, NULL at the end */
	char **paths;
	const char *cwd;
	int stdio[3];
	/* stdio[0] is the pty's slave and becomes the controlling terminal */
	bool is_tty;
	/* leaf group: v2 directory or v1 tasks file; -1: none */
	int leaf_join_fd;
	bool is_leaf_v2;
	/* supplementary group that marks the exec's tree; 0: it is marked by the UTS namespace
	 * that init made for it and is in */
	gid_t mark_gid;
	bool has_ids;
	uid_t uid;
	gid_t gid;
	/* permitted set of the command */
	uint64_t caps;
	const struct cm_seccomp_profile *seccomp;
	int report_fd;
	/* [stack, stack + size) */
	void *stack;
	size_t stack_size;
};

/* The child's pid and a pidfd, or -errno. */
int cm_exec_clone(struct cm_exec_image *image, pid_t *ret_pid, int *ret_pidfd);

#endif
