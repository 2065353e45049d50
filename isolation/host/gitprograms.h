/* SPDX-License-Identifier: Apache-2.0 */
/* Which variables of git's configuration name programs, and what of them may be a path. Pure. */
#ifndef CM_ISOLATION_HOST_GITPROGRAMS_H
#define CM_ISOLATION_HOST_GITPROGRAMS_H

#include "isolation/host/gitconfig.h"

/* a directory counts, too, not only a file */
#define CM_GITPATH_DIR (1U << 0)
/* git executes it by that name: should it not be there, whoever makes it decides what runs */
#define CM_GITPATH_EXPECTED (1U << 1)
/* part of what git does by itself: should it not be protected, the user wants to know */
#define CM_GITPATH_TOLD (1U << 2)

/* Does the variable name a program, whatever its value? */
bool cm_gitprograms_has(const struct cm_gitconfig_item *item);

/* path: absolute, "~...", or relative to the top of the work tree; never "". As for items. */
typedef int (*cm_gitprograms_fn)(const char *path, unsigned int flags, void *data);

/*
 * Called for each word of a command that may be a path; not at all for a variable that names no
 * program. Commands are shell text, which only a shell understands: the words are all that could
 * be one, and the caller looks which are there. 0, or what fn returned. Any input.
 */
int cm_gitprograms_read(const struct cm_gitconfig_item *item, cm_gitprograms_fn fn, void *data);

#endif
