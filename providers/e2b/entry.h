/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent says of a file. Pure. */
#ifndef CM_PROVIDERS_E2B_ENTRY_H
#define CM_PROVIDERS_E2B_ENTRY_H

#include "providers/provider.h"
#include "runtime/base/json.h"

/* Texts of *ret are the document's. CM_OK or CM_E_PROTOCOL. */
int cm_e2b_entry_read(const struct cm_json *v, struct cm_path_info *ret, struct cm_error *err);
/*
 * Of the entries of a list, the directory that was listed, which the agent does not say: where those with
 * the shortest path are. How many bytes of each path that is; -1: they are not in one directory.
 */
long cm_e2b_entries_prefix(const struct cm_json *entries);
/* "/a" of "/a/b", "/" of "/a", "." of "a"; the caller frees. NULL: memory. */
char *cm_e2b_parent(const char *path);
/* "b" of "/a/b/"; false: "", ".", ".." and "/" have none. Borrowed. */
bool cm_e2b_base(const char *path, const char **ret, size_t *ret_len);

#endif
