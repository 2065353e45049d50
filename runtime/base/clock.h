/* SPDX-License-Identifier: Apache-2.0 */
/* Time. Nobody else calls clock_gettime. Deadlines are CLOCK_MONOTONIC. */
#ifndef CM_RUNTIME_BASE_CLOCK_H
#define CM_RUNTIME_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define CM_CLOCK_RFC3339_SIZE 32

int64_t cm_clock_mono_ms(void);
int64_t cm_clock_mono_us(void);
/* CLOCK_BOOTTIME: goes on while the machine sleeps. */
int64_t cm_clock_boot_ms(void);
/* Milliseconds since 1970, UTC. Only for show. */
int64_t cm_clock_real_ms(void);
/* "2026-11-29T20:52:26.123Z" */
void cm_clock_rfc3339(int64_t real_ms, char buf[CM_CLOCK_RFC3339_SIZE]);

#endif
