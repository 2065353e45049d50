/* SPDX-License-Identifier: Apache-2.0 */
/* The names and paths of casemate-scope. Pure. */
#ifndef CM_ISOLATION_KEEPER_SCOPE_TEXT_H
#define CM_ISOLATION_KEEPER_SCOPE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#define CM_SCOPE_UNIT_SIZE 160

/* "casemate-<id>.scope"; false for an id that is not one. */
bool cm_scope_unit_name(const char *session_id, char *ret, size_t size);
/*
 * The directory of the v2 group in the text of /proc/self/cgroup, when the group is this unit's
 * own and nothing else: what follows writes into it.
 */
bool cm_scope_own_dir(const char *self_cgroup, const char *unit, char *ret, size_t size);

#endif
