/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities: who keeps which, and why. The one owner of that fact. */
#ifndef CM_ISOLATION_MECH_CAPS_H
#define CM_ISOLATION_MECH_CAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "casemate/error.h"
#include "isolation/plan/plan.h"

/* Bit n is capability n. */
uint64_t cm_caps_of_init(const struct cm_plan *plan);
/* Permitted and effective set of a command: empty for the agent, a short list for root inside. */
uint64_t cm_caps_of_exec(const struct cm_plan *plan);

/*
 * In init, when everything is mounted: cut the bounding set to what an exec may ever need, lock
 * the securebits, clear inheritable and ambient. Needs CAP_SETPCAP, which goes with the last step.
 */
int cm_caps_bound(const struct cm_plan *plan, struct cm_error *err);
/* In init, last: permitted and effective become cm_caps_of_init, checked afterwards. */
int cm_caps_keep(uint64_t set, struct cm_error *err);

/* capset without libc for a child that shares init's memory: 0 or -errno. */
int cm_caps_raw_set(uint64_t set);

#endif
