/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A path of this side, where files are copied to or from. Parts of it may be in a tree that a jail can
 * write, so nothing that a jail could have put there is followed: symbolic links are that stand in the
 * root directory (/home on some machines), and no other.
 */
#ifndef CM_PROVIDERS_LOCAL_HOST_PATH_H
#define CM_PROVIDERS_LOCAL_HOST_PATH_H

#include <limits.h>
#include <stdbool.h>

/* The directory that path is: a descriptor, or -errno; -ELOOP for a link that is not followed. */
int cm_host_path_open_dir(const char *path);
/*
 * The directory that its last component is in: a descriptor, or -errno. base gets that component;
 * -EISDIR where there is none (".", "..", "/"). *ret_wants_dir: a '/' follows it.
 */
int cm_host_path_open_parent(const char *path, char base[NAME_MAX + 1], bool *ret_wants_dir);

#endif
