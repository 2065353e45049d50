/* SPDX-License-Identifier: Apache-2.0 */
/* What measures have in common: a clock, and how rows of rounds are told. */
#ifndef CM_TESTS_BENCH_TIMING_H
#define CM_TESTS_BENCH_TIMING_H

#include <stddef.h>

/* rounds before those that count */
#define WARM_UP 3

struct timing_row {
	const char *name;
	/* one a round, in milliseconds; sorted by timing_report */
	double *ms;
};

double timing_now_ms(void);
/* Of each row the minimum and the median, and the minimum as a multiple of the first row's. */
void timing_report(const struct timing_row *rows, size_t n, size_t rounds);

#endif
