/* SPDX-License-Identifier: Apache-2.0 */
/* What the two kinds of control group share: control files, groups, limits that are read back. */
#ifndef CM_ISOLATION_MECH_CGROUP_INTERNAL_H
#define CM_ISOLATION_MECH_CGROUP_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "isolation/mech/cgroup.h"

/* "x255" */
#define CM_CGROUP_LEAF_NAME_SIZE 8
#define CM_CGROUP_CPUS_MAX 8192U
#define CM_CGROUP_CPU_PERIOD_US 100000U
/* PID_MAX_LIMIT of 64-bit kernels: more processes there never are, and pids.max takes no more */
#define CM_CGROUP_PIDS_MAX 4194304U
/* keeps products in range; the kernel's own bound is lower and answers EINVAL */
#define CM_CGROUP_CPU_MILLI_MAX 1000000000000ULL

/* cgroup_file.c: control files. 0 or -errno; -ERANGE: the kernel took another value. */
int cm_cgroup_read_u64(int dirfd, const char *file, uint64_t *ret);
/* The number after "key " in a file of such lines; -ENOENT when it has none. */
int cm_cgroup_read_key(int dirfd, const char *file, const char *key, uint64_t *ret);
/* The same, through *fd, which is opened the first time (-1) and stays the caller's. */
int cm_cgroup_read_key_again(int dirfd, const char *file, int *fd, const char *key, uint64_t *ret);
/* Write, and read back: value, or value rounded down to a multiple of `unit`. */
int cm_cgroup_set_u64(int dirfd, const char *file, uint64_t value, uint64_t unit);
/*
 * Write a list of processors; then `effective_file` must name some and none outside the list: a
 * list that the parent cannot serve leaves v2 groups on all of the parent's.
 */
int cm_cgroup_set_cpus(int dirfd, const char *file, const char *effective_file, const char *list);
uint64_t cm_cgroup_page_size(void);

/* cgroup_group.c: groups. */
/*
 * Make base/name and open it. An empty group of that name, left by a keeper that died, is
 * replaced; one with processes is -EBUSY.
 */
int cm_cgroup_group_make(int base_fd, const char *name, int *ret_fd);
/* Open a directory of a control-group file system with this magic; -EINVAL: something else. */
int cm_cgroup_dir_open(int dirfd, const char *path, uint32_t magic, int *ret_fd);
/* Call fn for each group directly below. */
void cm_cgroup_children(int group_fd, void (*fn)(int group_fd, const char *name, void *data),
			void *data);
/* rmdir of what is below base/name, and of it. 0 also when it is not there; -EBUSY. */
int cm_cgroup_group_remove(int base_fd, const char *name);
void cm_cgroup_sleep_ms(unsigned int ms);

/* The limits that the plan has, as CM_CG_* of those that are to be written. */
uint32_t cm_cgroup_wanted(const struct cm_plan *plan);
static inline uint64_t cm_cgroup_pids(const struct cm_plan_limits *limits)
{
	return limits->pids < CM_CGROUP_PIDS_MAX ? limits->pids : CM_CGROUP_PIDS_MAX;
}
static inline uint64_t cm_cgroup_cpu_milli(const struct cm_plan_limits *limits)
{
	return limits->cpu_milli < CM_CGROUP_CPU_MILLI_MAX ? limits->cpu_milli
							   : CM_CGROUP_CPU_MILLI_MAX;
}
/* Note a limit as enforced (r == 0); an error when it is not and the plan requires it. */
int cm_cgroup_note(struct cm_cgroup *cg, const struct cm_plan_header *h, uint32_t bit, int r,
		   const char *where, struct cm_error *err);
/* CM_E_BUSY or CM_E_LEVEL for a group that cannot be made. */
int cm_cgroup_make_failed(const char *base, const char *name, int r, struct cm_error *err);

/* cgroup_v1.c, cgroup_v2.c. On failure of _make the caller removes what is there. */
int cm_cgroup_v1_make(struct cm_cgroup *cg, const struct cm_plan *plan, struct cm_error *err);
/* Open what exists, for cm_cgroup_collect. True: something does. */
bool cm_cgroup_v1_open(struct cm_cgroup *cg, const struct cm_plan *plan);
int cm_cgroup_v1_leaf_open(struct cm_cgroup *cg, const char *leaf, struct cm_cgroup_leaf *ret);
void cm_cgroup_v1_usage(struct cm_cgroup *cg, struct cm_cgroup_usage *ret);
void cm_cgroup_v1_kill(struct cm_cgroup *cg);
int cm_cgroup_v2_make(struct cm_cgroup *cg, const struct cm_plan *plan, struct cm_error *err);
bool cm_cgroup_v2_open(struct cm_cgroup *cg, const struct cm_plan *plan);
int cm_cgroup_v2_leaf_open(struct cm_cgroup *cg, const char *leaf, struct cm_cgroup_leaf *ret);
void cm_cgroup_v2_usage(struct cm_cgroup *cg, struct cm_cgroup_usage *ret);
void cm_cgroup_v2_kill(struct cm_cgroup *cg);

/* In bit order. */
enum cm_cgroup_index {
	CM_CGI_MEMORY,
	CM_CGI_PIDS,
	CM_CGI_CPU,
	CM_CGI_CPUSET,
	CM_CGI_FREEZER,
};

#endif
