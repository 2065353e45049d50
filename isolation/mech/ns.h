/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces and id maps. */
#ifndef CM_ISOLATION_MECH_NS_H
#define CM_ISOLATION_MECH_NS_H

#include <stdbool.h>
#include <sys/types.h>

#include "casemate/error.h"
#include "isolation/plan/plan.h"

/*
 * Fork init into new namespaces (user, mount, pid, ipc, uts, time, net unless it shares the host's;
 * the cgroup namespace is init's own step, after it has joined its group). cgroup_fd: v2 group to
 * be born in, or -1. In the child returns 0, in the parent the pid; *ret_pidfd is set in
 * the parent. Negative: an error code.
 */
pid_t cm_ns_clone_init(bool has_own_network, int cgroup_fd, int *ret_pidfd, struct cm_error *err);
/* In the keeper: write the id maps of init, by newuidmap and newgidmap where the plan says so. */
int cm_ns_write_maps(const struct cm_plan *plan, pid_t init, struct cm_error *err);
/* In init, when mapped: become the id that builds the jail (root inside; the agent's if alone). */
int cm_ns_become_builder(const struct cm_plan *plan, struct cm_error *err);
/* In init, last change of ids: init's own id where the map has one. Keeps capabilities. */
int cm_ns_become_init(const struct cm_plan *plan, struct cm_error *err);
/* In init, before its ids are mapped: cut mount propagation. */
int cm_ns_settle(struct cm_error *err);
/* In init that has a network of its own, at any time. */
int cm_ns_loopback_up(struct cm_error *err);
int cm_ns_set_hostname(const struct cm_plan *plan, struct cm_error *err);

/*
 * A user namespace for an idmapped mount (root): files of owner_uid:owner_gid appear as the
 * agent's of the slot at base, files of the slot's other ids as themselves, everything else as
 * nobody's. The child that it was made by, which has been killed, is left in *ret_holder: its end
 * takes longer than all of this, and may be waited for later.
 */
int cm_ns_idmap_open(uint32_t base, uint32_t owner_uid, uint32_t owner_gid, int *ret_fd,
		     pid_t *ret_holder, struct cm_error *err);
/* Waits for it, and sets it 0. */
void cm_ns_idmap_reap(pid_t *holder);

#endif
