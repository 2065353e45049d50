/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about this host that cheap unprivileged calls answer. Read by the client at each start,
 * never cached on disk. What only doing can tell comes back from the keeper as CM_E_LEVEL.
 */
#ifndef CM_ISOLATION_HOST_HOST_H
#define CM_ISOLATION_HOST_HOST_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "casemate/error.h"
#include "isolation/plan/plan.h"
#include "runtime/base/buf.h"

/* Of a group; one with a longer path is taken for absent. Three times what container engines make. */
#define CM_HOST_CGROUP_PATH_MAX 1024

struct cm_host_cgroup {
	enum cm_plan_cgroup kind;
	/* CM_CG_* that a group made here can have */
	uint32_t controllers;
	/* v2: directory below which session groups are made */
	char v2_base[CM_HOST_CGROUP_PATH_MAX];
	/* v1: the caller's own group in each hierarchy, "" where absent */
	char v1_base[CM_CG_N][CM_HOST_CGROUP_PATH_MAX];
	/* an ordinary user on v2 whose group is not delegated: systemd must be asked for a scope */
	bool needs_scope;
	/* kind NONE: a user manager of systemd could be asked, but none runs for this user */
	bool needs_manager;
	/* why kind is NONE, or why a controller is missing; "" when there is nothing to say */
	char reason[256];
};

struct cm_host_subids {
	/* first and count of the caller's ranges in /etc/subuid and /etc/subgid; count 0: none */
	uint32_t uid_first;
	uint32_t uid_count;
	uint32_t gid_first;
	uint32_t gid_count;
};

struct cm_host {
	uid_t uid;
	gid_t gid;
	/* effective uid 0 with CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID, and with the next */
	bool is_root;
	/* asked for effective uid 0 alone: this user namespace has the ids of all slots */
	bool has_slot_ids;
	gid_t *groups;
	size_t n_groups;
	char *user_name;
	char *home;
	char *shell;
	unsigned int kernel_major;
	unsigned int kernel_minor;
	/* 0: none */
	unsigned int landlock_abi;
	uint64_t memory_bytes;
	/* hard limit of this process; UINT64_MAX: none */
	uint64_t max_open_files;
	struct cm_host_subids subids;
	/* last: large, and read in place (host.c) */
	struct cm_host_cgroup cgroup;
};

/*
 * env: "NAME=value" vector of the caller. HOME and SHELL are what it says, else (HOME also when it is
 * no directory) what passwd does; USER counts where passwd does not know the caller.
 */
int cm_host_read(const struct cm_strv *env, struct cm_host *ret, struct cm_error *err);
/* The home that cm_host_read finds, links and all: HOME, or what passwd has. NULL: no memory. */
char *cm_host_home(const struct cm_strv *env);
void cm_host_clear(struct cm_host *host);

/* Part of cm_host_read, in host/cgroup.c. Never fails: kind NONE with a reason. */
void cm_host_cgroup_read(bool is_root, struct cm_host_cgroup *ret);
/*
 * Pure part: from the text of /proc/self/mountinfo and /proc/self/cgroup. Bounded, any input.
 * Fills kind, controllers present on v1, and the bases; no file is looked at.
 */
void cm_host_cgroup_parse(const char *mountinfo, const char *self_cgroup,
			  struct cm_host_cgroup *ret);
/* Pure: the caller's ranges from the text of /etc/subuid; by name, then by number. */
bool cm_host_subid_parse(const char *text, const char *user_name, uint32_t id, uint32_t *ret_first,
			 uint32_t *ret_count);

#endif
