/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

double timing_now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

void timing_report(const struct timing_row *rows, size_t n, size_t rounds)
{
	double unit = 0;

	(void)printf("%-28s %9s %9s %8s\n", "", "min ms", "median", "x first");
	for (size_t i = 0; i < n; i++) {
		qsort(rows[i].ms, rounds, sizeof(double), compare);
		if (i == 0)
			unit = rows[0].ms[0];
		(void)printf("%-28s %9.3f %9.3f %8.2f\n", rows[i].name, rows[i].ms[0],
			     rows[i].ms[rounds / 2], rows[i].ms[0] / unit);
	}
}
