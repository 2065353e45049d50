/* SPDX-License-Identifier: Apache-2.0 */
/* When something was, for people and for programs. Times are CLOCK_REALTIME in milliseconds; 0: not known. */
#ifndef CM_RUNTIME_CLI_SHOWN_TIME_H
#define CM_RUNTIME_CLI_SHOWN_TIME_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/json_write.h"

/* RFC 3339, or null. */
void cm_cli_write_time(struct cm_json_writer *w, const char *key, int64_t real_ms);
/* "3 min", or "-" */
void cm_cli_format_age(int64_t since_ms, char *buf, size_t size);

#endif
