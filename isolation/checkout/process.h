/* SPDX-License-Identifier: Apache-2.0 */
/* The process's own hardening, before it reads anything from outside. */
#ifndef CM_ISOLATION_CHECKOUT_PROCESS_H
#define CM_ISOLATION_CHECKOUT_PROCESS_H

#include "casemate/error.h"

/*
 * Should be the first thing that main does. keep holds descriptors above 2 that stay open (-1 is
 * skipped); every other one is closed.
 */
int cm_process_harden(const int *keep, size_t n_keep, struct cm_error *err);

#endif
