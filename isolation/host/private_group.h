/* SPDX-License-Identifier: Apache-2.0 */
/* Which groups are one user's alone. Reads /etc/passwd and /etc/group, once and only when asked. */
#ifndef CM_ISOLATION_HOST_PRIVATE_GROUP_H
#define CM_ISOLATION_HOST_PRIVATE_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

/* Zero but for uid: nothing was read. */
struct cm_private_groups {
	uid_t uid;
	bool is_read;
	/* NULL: could not be read, and then no group is private */
	char *passwd;
	char *group;
	/* what was asked last: most of what a user has is of one group */
	bool has_last;
	gid_t last;
	bool is_last_private;
};

/*
 * With umask 002, the default where each user has a group of his own, everything that a user builds
 * or installs is writable by that group: by nobody else. Any other group is more than one user's, or
 * may become it, a primary group that all users share included. (OpenSSH as Debian has it judges
 * ~/.ssh by the same rule.) Groups that only NSS knows are not asked for: who is in one is then not
 * known.
 */
bool cm_private_groups_has(struct cm_private_groups *groups, gid_t gid);
void cm_private_groups_clear(struct cm_private_groups *groups);

#endif
