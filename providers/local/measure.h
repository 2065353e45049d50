/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session that runs uses, as its keeper tells, which has the groups open wherever they were moved
 * to. cm_local_usage tells less from files alone: for `ls`, which connects to no keeper, however many run.
 */
#ifndef CM_PROVIDERS_LOCAL_MEASURE_H
#define CM_PROVIDERS_LOCAL_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "casemate/error.h"
#include "providers/local/jail.h"
#include "runtime/store/store.h"

struct cm_local_measure {
	/* of the start that runs */
	uint64_t generation;
	/* CM_USAGE_UNKNOWN: nobody tells; for limits: there is none */
	uint64_t memory_bytes;
	uint64_t memory_peak_bytes;
	uint64_t memory_max_bytes;
	uint64_t cpu_us;
	uint64_t cpu_max_milli;
	uint64_t n_processes;
	uint64_t processes_max;
	/* commands that run */
	uint64_t n_commands;
	/* CLOCK_MONOTONIC, when cpu_us was read */
	int64_t at_us;
	/* summed over processes where no control group tells: what they share is counted for each, and
	 * what none of them was waited for is missing */
	bool is_memory_approximate;
	bool is_cpu_approximate;
};

/* CM_E_NOT_FOUND: it does not run. */
int cm_local_measure(const struct cm_store_session *s, int64_t deadline_ms,
		     struct cm_local_measure *ret, struct cm_error *err);
/* Of one processor, between two looks at one start; less than 0: not known. */
double cm_local_measure_percent(const struct cm_local_measure *before,
				const struct cm_local_measure *after);

/* Home, /tmp and session directory. is_partial: not all of it could be looked at. */
struct cm_local_disk {
	uint64_t bytes;
	bool is_partial;
};
void cm_local_measure_disk(const struct cm_store_session *s, struct cm_local_disk *ret);

#endif
