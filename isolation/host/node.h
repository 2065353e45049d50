/* SPDX-License-Identifier: Apache-2.0 */
/* Finding out what a path is; shared by the readers of this directory. */
#ifndef CM_ISOLATION_HOST_NODE_H
#define CM_ISOLATION_HOST_NODE_H

#include <sys/stat.h>
#include <sys/types.h>

#include "isolation/host/facts.h"

/* One more element at the end; link may be NULL. 0 or CM_E_NOMEM. */
int cm_nodes_add(struct cm_nodes *nodes, const char *path, const struct stat *st, const char *link);
/* Looks at path without following it: a symbolic link is added with its text. 1 added, 0 absent
 * (or not to be looked at), or CM_E_NOMEM. */
int cm_nodes_add_path(struct cm_nodes *nodes, int dirfd, const char *name, const char *path);
/* dir + "/" + name, without printf: this runs some hundred times a start. False: does not fit. */
bool cm_join(char *buf, size_t size, const char *dir, const char *name);
/* Real path of an open file; the caller frees. NULL with errno. */
char *cm_fd_real_path(int fd);
/*
 * A small text file. *ret is NUL-terminated and the caller's. 0, -ENOENT when it is not there,
 * -E2BIG above max bytes, -EINVAL when it holds a NUL or is not a regular file, or -errno.
 */
int cm_read_text_at(int dirfd, const char *path, size_t max, char **ret);
int cm_facts_nomem(struct cm_error *err);

#endif
