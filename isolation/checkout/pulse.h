/* SPDX-License-Identifier: Apache-2.0 */
/* A sign of life from where no progress can be told: inside libgit2. */
#ifndef CM_ISOLATION_CHECKOUT_PULSE_H
#define CM_ISOLATION_CHECKOUT_PULSE_H

#include "casemate/error.h"

/*
 * From now on {"type":"checkout.alive"} is written to fd while this process works: a line for each
 * tenth of a second of processor time. One that waits says nothing. Once a process; -1: not wanted.
 */
int cm_pulse_start(int fd, struct cm_error *err);
/* One such line now; in any thread. */
void cm_pulse_beat(void);
/* Before the last word, where that goes to the same descriptor. */
void cm_pulse_stop(void);

#endif
