/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CM_STORE_GROUPS: where a session's control groups are. It is text: it outlives the build that wrote
 * it, which a plan does not. Three lines, then the directories that the groups are in, as the plan
 * has them.
 */
#ifndef CM_PROVIDERS_LOCAL_GROUPS_H
#define CM_PROVIDERS_LOCAL_GROUPS_H

#include <stdbool.h>

/* of the file */
#define CM_GROUPS_MAX (64UL * 1024)

struct cm_groups {
	char *text;
	unsigned int kind;
	bool is_temporary;
	/* in text */
	const char *session_id;
	const char *base;
};

/* 0 or -errno; -ENOENT: none are kept. What is not understood cannot be followed. */
int cm_groups_load(int dir_fd, struct cm_groups *g);
void cm_groups_clear(struct cm_groups *g);

#endif
