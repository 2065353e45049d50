/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session's control group, on v2, on v1 (a hierarchy at a time), or none.
 *
 * v2: <base>/cm-<session>/ holds every limit, has no controller in its subtree_control, and so may
 * hold processes itself: init is born in it by CLONE_INTO_CGROUP. Below it one leaf an exec,
 * x<slot>, without controllers: leaves only count and kill. Only cgroup.procs of the session's
 * group and of its leaves belong to init's kernel id, so that init may clone into a leaf; limits
 * stay the keeper's, and no command can raise its own.
 *
 * v1: one group a hierarchy, the same name; init writes "0" to the tasks files that the keeper
 * opened (a pid written to cgroup.procs waits milliseconds for an RCU grace period). Leaves exist
 * in the freezer hierarchy only.
 *
 * Everything here runs in the keeper. Nothing is left behind when cm_cgroup_make fails.
 */
#ifndef CM_ISOLATION_MECH_CGROUP_H
#define CM_ISOLATION_MECH_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "casemate/error.h"
#include "isolation/plan/plan.h"

/* What init gets to start one exec in a leaf and to kill it. Close-on-exec. */
struct cm_cgroup_leaf {
	/* v2: directory for CLONE_INTO_CGROUP; v1: O_WRONLY tasks of the freezer leaf */
	int join_fd;
	/* v2: O_WRONLY cgroup.kill; v1: O_RDWR freezer.state */
	int kill_fd;
	/* it was seen empty after its last exec; only the next one can enter it */
	bool is_seen_empty;
};

struct cm_cgroup {
	enum cm_plan_cgroup kind;
	/*
	 * v2: set between cm_cgroup_init and cm_cgroup_make, the base to use in place of the plan's
	 * (--cgroup-base: a scope that did not exist when the plan was made). Borrowed. NULL: none.
	 */
	const char *base;
	/* O_PATH|O_DIRECTORY of the session's group; -1 where there is none. v2 uses [0]. */
	int group_fd[CM_CG_N];
	/* of the directory the group was made in, to remove it again */
	int base_fd[CM_CG_N];
	/* v1: O_WRONLY tasks */
	int tasks_fd[CM_CG_N];
	/* each exec reads it; -1: not yet */
	int oom_fd;
	/* CM_CG_* (CM_CG_SWAP too) of limits that are written and read back */
	uint32_t enforced;
	uid_t init_kuid;
	char name[160];
	/* of slots below n_leaves; -1: not made yet */
	unsigned int n_leaves;
	struct cm_cgroup_leaf leaves[CM_MAX_EXECS];
};

struct cm_cgroup_usage {
	/* 0: not known */
	uint64_t memory_peak_bytes;
	/* processes the kernel killed at the memory limit */
	uint64_t oom_kills;
};

/* What the session uses; CM_CGROUP_UNKNOWN: there is no group that tells. */
#define CM_CGROUP_UNKNOWN UINT64_MAX
struct cm_cgroup_now {
	/* without what the kernel only caches of files, and gives back at once */
	uint64_t memory_bytes;
	uint64_t memory_peak_bytes;
	uint64_t cpu_us;
	/* threads, too */
	uint64_t n_tasks;
};

void cm_cgroup_init(struct cm_cgroup *cg);
/*
 * Make the group and write the plan's limits. A limit in header->cgroup_required that cannot be
 * written is CM_E_LEVEL with the reason and nothing left behind; another is just not in
 * cg->enforced. CM_CGROUP_NONE: a no-op.
 */
int cm_cgroup_make(struct cm_cgroup *cg, const struct cm_plan *plan, uid_t init_kuid,
		   struct cm_error *err);
/*
 * The leaf of a slot: made when it is asked for first, and kept for the slot's next exec until
 * cm_cgroup_remove, since making one takes longer than all else that an exec needs. Descriptors are
 * borrowed. CM_E_UNSUPPORTED where there can be no leaf (no group, v1 without a freezer): then the
 * exec's mark alone keeps its tree. CM_E_BUSY: something is in it still.
 */
int cm_cgroup_leaf_take(struct cm_cgroup *cg, unsigned int slot, struct cm_cgroup_leaf *ret,
			struct cm_error *err);
/* Off the way of commands: is the slot's leaf empty, now that its exec has ended? */
void cm_cgroup_leaf_settle(struct cm_cgroup *cg, unsigned int slot);
/*
 * Make the slot's leaf anew next time. After it was killed: Linux (seen in 6.18) kills what is cloned
 * into a v2 group whose cgroup.kill was ever written, since it compares the group's count of kills
 * with that of the parent's group.
 */
void cm_cgroup_leaf_drop(struct cm_cgroup *cg, unsigned int slot);
void cm_cgroup_usage(struct cm_cgroup *cg, struct cm_cgroup_usage *ret);
/* Of the usage the oom_kills alone, which each exec begins with. */
uint64_t cm_cgroup_oom_kills(struct cm_cgroup *cg);
/* cgroup_now.c. Reads some files of the kernel's. */
void cm_cgroup_now(const struct cm_cgroup *cg, struct cm_cgroup_now *ret);
/* Kill what is left, wait (at most two seconds), remove leaves and groups, close the fds. */
void cm_cgroup_remove(struct cm_cgroup *cg);
/* Collect: find the group of a session whose keeper is gone (same plan) and remove it. */
int cm_cgroup_collect(const struct cm_plan *plan, struct cm_error *err);

#endif
