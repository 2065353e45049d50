/* SPDX-License-Identifier: Apache-2.0 */
/* Signals by name, as kill(1) has them. */
#ifndef CM_RUNTIME_CLI_SIGNAL_NAMES_H
#define CM_RUNTIME_CLI_SIGNAL_NAMES_H

#include "casemate/error.h"

/* "TERM", "SIGTERM", "term" or "15". CM_E_INVALID with a hint. */
int cm_signal_parse(const char *text, int *ret, struct cm_error *err);
/* Without SIG; NULL: it has no name here. */
const char *cm_signal_name(int sig);

#endif
