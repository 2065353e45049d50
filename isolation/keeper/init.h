/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pid 1 inside: builds the jail, hardens itself, then starts, reaps and ends commands.
 *
 * It is the keeper's own image (forked, not executed), holds no descriptor of the host when it
 * serves but the keeper's socket, and believes the keeper. The agent can neither trace it (not
 * dumpable, capabilities that the agent lacks) nor signal it (pid 1 without handlers).
 */
#ifndef CM_ISOLATION_KEEPER_INIT_H
#define CM_ISOLATION_KEEPER_INIT_H

#include "isolation/mech/mounts.h"
#include "isolation/plan/plan.h"

struct cm_init {
	struct cm_plan plan;
	/* to the keeper */
	int sock;
	bool has_own_network;
	bool is_loopback_up;
	/* v1: tasks files to write "0" to; -1 where there is none */
	int tasks_fd[CM_CG_N];
	struct cm_mount_sources sources;
};

/* Runs in the child of cm_ns_clone_init, with the keeper's socket; never returns. */
_Noreturn void cm_init_main(int sock, bool has_own_network);

/* The service loop, once the jail stands; never returns. */
_Noreturn void cm_init_serve(const struct cm_plan *plan, int sock);

#endif
