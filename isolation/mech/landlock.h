/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock as a second wall behind the namespaces, at the ABI the kernel has.
 *
 * One domain a session, entered by init: were it one an exec, a command could not signal or trace
 * what another command of the same session started (both are refused across domains). Everything
 * may be read and executed (the tree holds nothing else than what was planned); writing only
 * below the plan's writable targets. Abstract sockets and signals are scoped where ABI 6 is.
 */
#ifndef CM_ISOLATION_MECH_LANDLOCK_H
#define CM_ISOLATION_MECH_LANDLOCK_H

#include "casemate/error.h"
#include "isolation/plan/plan.h"

/*
 * Should: be called in init after the pivot and after the last mount (mount is refused from here
 * on), with no_new_privs set. Mustn't: weaken: an ABI lower than the plan's is an error. Opens
 * targets below "/". A no-op when the plan has ABI 0.
 */
int cm_landlock_enter(const struct cm_plan *plan, struct cm_error *err);

#endif
