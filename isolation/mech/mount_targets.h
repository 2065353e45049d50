/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where things are mounted: places below the new root, found and made without following a link.
 *
 * Missing directories are made only in mounts that are this jail's own (its tmpfs instances, and
 * host directories that the plan calls Casemate's): never in a user's tree, also where that is on
 * the same file system.
 */
#ifndef CM_ISOLATION_MECH_MOUNT_TARGETS_H
#define CM_ISOLATION_MECH_MOUNT_TARGETS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "casemate/error.h"

#define CM_TARGET_MAX_OWN 32
#define CM_TARGET_PATH_SIZE 4096

struct cm_targets {
	/* the new root; owned */
	int root_fd;
	/* who makes directories: as the file system records it */
	uid_t builder_uid;
	/* ids of the mounts in which mount points may be made */
	uint64_t own[CM_TARGET_MAX_OWN];
	size_t n_own;
	/* the directory used last: steps come in groups with one parent */
	int parent_fd;
	uid_t parent_uid;
	gid_t parent_gid;
	bool is_parent_own;
	char parent_path[CM_TARGET_PATH_SIZE];
};

struct cm_place {
	/* borrowed: valid until the next call */
	int parent_fd;
	const char *name;
};

void cm_targets_init(struct cm_targets *t);
void cm_targets_clear(struct cm_targets *t);
/* Mount points may be made in the mount of fd. */
int cm_targets_own(struct cm_targets *t, int fd, struct cm_error *err);
/* Directory of an absolute path (made when absent) and the last name in it. */
int cm_targets_place(struct cm_targets *t, const char *path, struct cm_place *ret,
		     struct cm_error *err);
/* The same, and the name is there: a directory, or a file. */
int cm_targets_dir(struct cm_targets *t, const char *path, struct cm_place *ret,
		   struct cm_error *err);
int cm_targets_file(struct cm_targets *t, const char *path, struct cm_place *ret,
		    struct cm_error *err);
/* An O_PATH descriptor of what is there, or -1 with errno. */
int cm_targets_open(const struct cm_targets *t, const char *path, int flags);
/* Attach a detached mount at the place of path, which is where path now leads. */
int cm_targets_attach(struct cm_targets *t, int mount_fd, const struct cm_place *place,
		      const char *path, struct cm_error *err);

#endif
