/* SPDX-License-Identifier: Apache-2.0 */
/* New file systems, shared by what makes them ahead and what attaches them. */
#ifndef CM_ISOLATION_MECH_MOUNT_FS_H
#define CM_ISOLATION_MECH_MOUNT_FS_H

#include "casemate/error.h"
#include "isolation/plan/plan.h"

/*
 * A detached mount of a new file system; options are "key=value" and "flag" strings, NULL at the
 * end; path is for messages.
 */
int cm_mount_new_fs(const char *type, const char *const *options, unsigned int attrs,
		    const char *path, int *ret_fd, struct cm_error *err);
/* MOUNT_ATTR_* of a step's flags. */
unsigned int cm_mount_attrs(const struct cm_plan_op *op);
/* The directory of a TMPFS step in the jail's tmpfs. */
#define CM_MOUNT_TMPFS_NAME_SIZE 16
void cm_mount_tmpfs_name(uint32_t number, char buf[CM_MOUNT_TMPFS_NAME_SIZE]);

#endif
