/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of cm_workspace_facts_read. */
#ifndef CM_ISOLATION_HOST_WORKSPACE_INTERNAL_H
#define CM_ISOLATION_HOST_WORKSPACE_INTERNAL_H

#include <stddef.h>

#include "isolation/host/facts.h"

/* The git directories of facts->path. Nothing is run, nothing is believed
 * that the other side does not confirm. */
int cm_workspace_git_read(struct cm_workspace_facts *facts);
/* What else of the tree the host's git believes, after the former. */
int cm_workspace_pins_read(struct cm_workspace_facts *facts, struct cm_error *err);
/* Has an open directory what a git directory has? */
bool cm_looks_like_git(int fd);
/*
 * The path in the text of a gitfile ("gitdir: PATH"), or of a file that holds a path alone
 * (prefix ""). False when it is not one line with a path. Pure; any input.
 */
bool cm_gitfile_parse(const char *text, const char *prefix, char *buf, size_t size);

#endif
