/* SPDX-License-Identifier: Apache-2.0 */
/* A terminal in the jail's own devpts. */
#ifndef CM_ISOLATION_KEEPER_PTY_H
#define CM_ISOLATION_KEEPER_PTY_H

#include <stdint.h>

#include "casemate/error.h"

/* Both ends, close-on-exec; rows and cols 0: left as the kernel has them. */
int cm_pty_open(uint16_t rows, uint16_t cols, int *ret_master, int *ret_slave,
		struct cm_error *err);

#endif
