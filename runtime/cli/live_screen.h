/* SPDX-License-Identifier: Apache-2.0 */
/* A text on the terminal that is drawn anew every so often, on a screen of its own. */
#ifndef CM_RUNTIME_CLI_LIVE_SCREEN_H
#define CM_RUNTIME_CLI_LIVE_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

#include "casemate/error.h"
#include "runtime/base/buf.h"

/* Append the lines of the next picture, inert ones. False: it is over, or failed with err set. */
typedef bool (*cm_live_screen_fn)(void *data, struct cm_buf *out, struct cm_error *err);
/*
 * Until draw says so (0), or a signal comes: 0 for INT, by which people leave, else 128 and its
 * number. The terminal shows what it did before. Less than 0: err says why.
 */
int cm_live_screen_run(cm_live_screen_fn draw, void *data, int64_t every_ms, struct cm_error *err);

#endif
