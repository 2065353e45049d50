/* SPDX-License-Identifier: Apache-2.0 */
/* Names and links of a tree that is copied. */
#ifndef CM_ISOLATION_KEEPER_FILE_LINK_H
#define CM_ISOLATION_KEEPER_FILE_LINK_H

#include <stdbool.h>
#include <stddef.h>

/* One component, of which a file can be made: not empty, no '/', neither "." nor "..". */
bool cm_file_name_is_single(const char *name);
/*
 * Does a link with this target, `depth` directories below the top of a tree, lead to something in the
 * tree, whatever other links there are in it that this was said of? Relative, ".." only in front, and
 * no more of them than there are directories.
 */
bool cm_file_link_stays(const char *target, unsigned int depth);
/*
 * How what `path` names is called where it is copied to: its last component. "" where it is what is
 * in a directory (".", "..", "/", "x/."). ret has size bytes. False: too long.
 */
bool cm_file_base(const char *path, char *ret, size_t size);

#endif
