/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of cm_tree_facts_read. */
#ifndef CM_ISOLATION_HOST_TREE_INTERNAL_H
#define CM_ISOLATION_HOST_TREE_INTERNAL_H

#include "isolation/host/facts.h"
#include "isolation/host/private_group.h"

struct cm_tree_reader {
	const struct cm_host *host;
	const struct cm_strv *env;
	struct cm_tree_facts *facts;
	/* O_PATH of "/" or of the rootfs */
	int root_fd;
	struct cm_private_groups groups;
};

/* What etc.def names (tree_etc.c); root: before /etc in its paths. */
int cm_tree_etc_read(struct cm_tree_reader *reader, const char *root);
/* Toolchains of tools.def. */
int cm_tree_tools_read(struct cm_tree_reader *reader);
/* Certificates that the caller's variables name. */
int cm_tree_certificates_read(struct cm_tree_reader *reader);
/* Entries of the caller's PATH. */
int cm_tree_path_read(struct cm_tree_reader *reader);
/* Settings of npm and pip without secrets (toolconf.c). */
int cm_tree_toolconf_read(struct cm_tree_reader *reader);

/*
 * The file at dir_fd/name as it is, a symbolic link with its text, added as dir/name. 1 added, 0 not
 * there, or CM_E_NOMEM.
 */
int cm_tree_add(struct cm_nodes *nodes, int dir_fd, const char *dir, const char *name);
/* A directory of the root, to be listed; links are not followed. A descriptor, or -1. */
int cm_tree_open_dir(const struct cm_tree_reader *reader, const char *name);
void cm_tree_sort(struct cm_nodes *nodes);

/*
 * The file at dirfd/name, links followed, added as `path`, with its real path as link when that
 * is another one. 1 added, 0 not there, or CM_E_NOMEM.
 */
int cm_tree_add_real(struct cm_nodes *nodes, int dirfd, const char *name, const char *path);

#endif
