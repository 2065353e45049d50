/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exec's tree, found by its mark and ended as a whole, daemons and fork bombs included.
 *
 * The mark is inherited, and the payload can neither drop nor forge it: a supplementary group
 * where the map has ids for it, else a UTS namespace. A process that has not executed yet may be
 * unreadable; that is a state of its own, resolved by its parent, and never compared.
 */
#ifndef CM_ISOLATION_KEEPER_TREE_H
#define CM_ISOLATION_KEEPER_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cm_mark {
	/* supplementary group, or 0 */
	gid_t gid;
	/* inode of the UTS namespace where gid is 0 */
	uint64_t uts_ino;
};

/*
 * Sends sig to every bearer through a pidfd (sig 0: only counts). How many there were; those that
 * are dying do not count. Not 0 as long as processes come and go too fast to say that there is
 * none.
 */
unsigned int cm_tree_signal(const struct cm_mark *mark, int sig);
/*
 * SIGKILL all bearers until a scan finds none. v1: freezer_fd is the leaf's freezer.state, v2:
 * kill_fd its cgroup.kill; -1 each where there is none. Falls back to stopping the whole jail
 * for some milliseconds. True when the tree is gone, but for what is dying already and so neither
 * runs nor forks; *ret_froze when others saw a stop.
 */
bool cm_tree_kill(const struct cm_mark *mark, int v2_kill_fd, int v1_freezer_fd, bool *ret_froze);
/* Is there any process in the jail but this one (pid 1), dead ones that it has not reaped among them? */
bool cm_tree_any(void);
/* To everything in the jail but pid 1. */
void cm_tree_signal_all(int sig);
/* The UTS namespace of a process; 0: gone, or not readable. */
uint64_t cm_tree_uts_of(pid_t pid);

#endif
