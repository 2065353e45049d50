/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the keeper hands to init: the checked plan, the v1 groups' tasks files, and, as root, the
 * mount sources. By message and not by fork, since init may have been forked before the plan came.
 */
#ifndef CM_ISOLATION_KEEPER_HANDOVER_H
#define CM_ISOLATION_KEEPER_HANDOVER_H

#include <stddef.h>

#include "isolation/mech/cgroup.h"
#include "isolation/mech/mounts.h"
#include "isolation/plan/plan.h"

/* Map and check a plan; the mapping stays. The memfd must be sealed: what is checked holds. */
int cm_handover_map_plan(int plan_fd, struct cm_plan *ret, struct cm_error *err);

/* Keeper's side: GO with the plan and the tasks files. */
int cm_handover_go(int sock, int plan_fd, const struct cm_cgroup *cg, struct cm_error *err);
/* Init's side: waits for it. tasks_fd entries that did not come are -1. */
int cm_handover_wait(int sock, struct cm_plan *ret_plan, int tasks_fd[CM_CG_N],
		     struct cm_error *err);

int cm_handover_send_sources(int sock, const struct cm_mount_sources *sources, size_t n_ops,
			     struct cm_error *err);
int cm_handover_recv_sources(int sock, struct cm_mount_sources *sources, size_t n_ops,
			     struct cm_error *err);

#endif
