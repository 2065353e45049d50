/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the keeper hands to init: the checked plan, sometimes what is known of it before, the v1
 * groups' tasks files, and, as root, the mount sources. By message and not by fork, since init may
 * have been forked before the plan came.
 */
#ifndef CM_ISOLATION_KEEPER_HANDOVER_H
#define CM_ISOLATION_KEEPER_HANDOVER_H

#include <stddef.h>

#include "isolation/keeper/proto.h"
#include "isolation/mech/cgroup.h"
#include "isolation/mech/mounts.h"
#include "isolation/plan/plan.h"

/* Map and check a plan; the mapping stays. The memfd must be sealed: what is checked holds. */
int cm_handover_map_plan(int plan_fd, struct cm_plan *ret, struct cm_error *err);

/* What was announced of a plan; zero-initialise. */
struct cm_announced {
	/* owns the texts */
	struct cm_msg msg;
	struct cm_plan plan;
	bool is_there;
};
/* Takes a PREPARE message over and checks its plan. */
int cm_handover_announced(struct cm_announced *announced, struct cm_msg *msg, struct cm_error *err);
/* The plan must begin with what was announced, if anything was. */
int cm_handover_check_announced(const struct cm_announced *announced, const struct cm_plan *plan,
				struct cm_error *err);
/* Keeper's side: PREPARE. */
int cm_handover_prepare(int sock, const struct cm_announced *announced, struct cm_error *err);

/* Keeper's side: GO with the plan and the tasks files. */
int cm_handover_go(int sock, int plan_fd, const struct cm_cgroup *cg, struct cm_error *err);
/*
 * Init's side: waits for it. prepare is called with what was announced before, if anything was.
 * tasks_fd entries that did not come are -1.
 */
int cm_handover_wait(int sock,
		     int (*prepare)(const struct cm_plan *plan, void *data, struct cm_error *err),
		     void *data, struct cm_plan *ret_plan, int tasks_fd[CM_CG_N],
		     struct cm_error *err);

int cm_handover_send_sources(int sock, const struct cm_mount_sources *sources, size_t n_ops,
			     struct cm_error *err);
int cm_handover_recv_sources(int sock, struct cm_mount_sources *sources, size_t n_ops,
			     struct cm_error *err);

#endif
