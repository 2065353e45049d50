/* SPDX-License-Identifier: Apache-2.0 */
/* Control-group facts: the parts of host/cgroup.c that the tests reach one by one. */
#ifndef CM_ISOLATION_HOST_CGROUP_INTERNAL_H
#define CM_ISOLATION_HOST_CGROUP_INTERNAL_H

#include <stdbool.h>
#include <sys/types.h>

#include "isolation/host/host.h"

/* Where the v2 hierarchy is seen, and the caller's own group in it. Both absolute. */
struct cm_host_cgroup_v2 {
	char mount[CM_HOST_CGROUP_PATH_MAX];
	char own[CM_HOST_CGROUP_PATH_MAX];
};

/* Pure, as cm_host_cgroup_parse. False when there is no usable v2 hierarchy. */
bool cm_host_cgroup_parse_v2(const char *mountinfo, const char *self_cgroup,
			     struct cm_host_cgroup_v2 *ret);

/*
 * From the own group to a base, by looking at the files below v2->mount.
 * run_user_dir: "/run/user/<uid>", where a systemd user manager would have its sockets.
 */
void cm_host_cgroup_resolve_v2(bool is_root, uid_t uid, const char *run_user_dir,
			       const struct cm_host_cgroup_v2 *v2, struct cm_host_cgroup *ret);
/* Drops the hierarchies whose own group cannot be written. */
void cm_host_cgroup_resolve_v1(struct cm_host_cgroup *facts);

#endif
