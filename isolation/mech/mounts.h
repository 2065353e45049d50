/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jail's tree, built by descriptors: what is not in the plan is not there.
 *
 * Sources are opened first, each without following a symbolic link, and cloned into detached
 * mounts. As root the keeper does that, since the jail's own root has no rights on the host's
 * directories; as an ordinary user init does it, in its mount namespace. Targets are made and
 * found below the new root's descriptor, again without links, so nothing that is mounted can
 * redirect what comes after it. Nothing is ever made in a host directory that is not Casemate's,
 * and nothing in the skeleton that is the root: other sessions have it, too.
 */
#ifndef CM_ISOLATION_MECH_MOUNTS_H
#define CM_ISOLATION_MECH_MOUNTS_H

#include <sys/types.h>

#include "casemate/error.h"
#include "isolation/plan/plan.h"

struct cm_mount_sources {
	/* detached mount of each op, -1 where it has none (yet) */
	int fd[CM_PLAN_MAX_OPS];
	/* the jail's one tmpfs, and each TMPFS op's directory in it by the op's number; -1: not yet */
	int tmpfs_fd;
	/* of the map of ids made last (ns.h); 0: none */
	pid_t idmap_holder;
};

void cm_mount_sources_init(struct cm_mount_sources *sources);
void cm_mount_sources_close(struct cm_mount_sources *sources);
/*
 * Open and clone every source of the plan, with its final attributes; those that are there already
 * are left alone. A root and masks without a source are passed over: they are known last.
 */
int cm_mount_sources_open(const struct cm_plan *plan, struct cm_mount_sources *sources,
			  struct cm_error *err);

/*
 * In init, as the builder: make the file systems of the plan that need nothing but the namespaces,
 * detached; those that are there already are left alone.
 */
int cm_mounts_prepare(const struct cm_plan *plan, struct cm_mount_sources *sources,
		      struct cm_error *err);

/*
 * In init, inside its own user and mount namespaces, with all capabilities there and mount
 * propagation cut: build the tree, make it the root and let go of the host's. Afterwards the working
 * directory is the new "/".
 */
int cm_mounts_build(const struct cm_plan *plan, struct cm_mount_sources *sources,
		    struct cm_error *err);

#endif
