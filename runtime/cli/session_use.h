/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session uses, as people and programs get it. For programs, an object:
 *
 *	id
 *	memoryBytes, memoryPeakBytes, memoryLimitBytes
 *	cpuMs, cpuPercent (of one processor), cpuLimit (in processors)
 *	processes, processesLimit
 *	commands    how many run
 *	diskBytes, diskPartial
 *	            with --size: home, /tmp and session directory; partial: some could not be looked at
 *	approximate names of those that are: summed over processes
 *
 * null: not known, or not limited.
 */
#ifndef CM_RUNTIME_CLI_SESSION_USE_H
#define CM_RUNTIME_CLI_SESSION_USE_H

#include "providers/local/measure.h"
#include "runtime/base/json_write.h"
#include "runtime/base/text.h"

struct cm_session_use {
	char id[CM_SESSION_ID_MAX + 1];
	bool is_running;
	/* generation 0: it was not looked at yet */
	struct cm_local_measure last;
	/* of one processor since the look before; less than 0: not known */
	double percent;
	bool has_disk;
	struct cm_local_disk disk;
	/* CLOCK_MONOTONIC: when it is to be looked at again */
	int64_t disk_due_ms;
};

/* One more look. CM_E_NOT_FOUND: it does not run. */
int cm_session_use_update(struct cm_session_use *use, const struct cm_store_session *s,
			  struct cm_error *err);
void cm_session_use_write(struct cm_json_writer *w, const struct cm_session_use *use);
void cm_session_use_header(struct cm_buf *out, bool with_size);
void cm_session_use_row(struct cm_buf *out, const struct cm_session_use *use, bool with_size);
/* Looks twice at one that runs, for its percent; is_running says whether. */
void cm_session_use_look(struct cm_session_use *use, const struct cm_store_session *s,
			 bool with_size);
/*
 * `resources` of inspect, as Mastra's SandboxInfo has it: memoryMB, memoryUsedMB, cpuCores, cpuPercent,
 * diskMB, diskUsedMB.
 */
void cm_session_use_resources(struct cm_json_writer *w, const struct cm_session_use *use);

#endif
