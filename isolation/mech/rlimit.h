/* SPDX-License-Identifier: Apache-2.0 */
/* Resource limits that init sets on itself and every command inherits. */
#ifndef CM_ISOLATION_MECH_RLIMIT_H
#define CM_ISOLATION_MECH_RLIMIT_H

#include "casemate/error.h"
#include "isolation/plan/plan.h"

int cm_rlimits_set(const struct cm_plan *plan, struct cm_error *err);

#endif
