/* SPDX-License-Identifier: Apache-2.0 */
/* How far something is that takes long: a bar on a terminal, now and then a line elsewhere. */
#ifndef CM_RUNTIME_CLI_PROGRESS_H
#define CM_RUNTIME_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct cm_progress {
	/* nothing is ever shown */
	bool is_off;
	/* the caller's TERM, borrowed; NULL where it has none */
	const char *term;
	/* a bar stands on the terminal's last line */
	bool is_shown;
	/* 0: nothing was told yet */
	int64_t begun_ms;
	int64_t shown_ms;
};

void cm_progress_init(struct cm_progress *progress, bool is_off, const char *term);
/*
 * stage as struct cm_local_events has it. What is done within a second is not shown; elsewhere than
 * on a terminal there is a line for each ten.
 */
void cm_progress_tell(struct cm_progress *progress, const char *stage, uint64_t received,
		      uint64_t total, uint64_t bytes);
/* Before anything else is written to standard error: takes the bar away. */
void cm_progress_clear(struct cm_progress *progress);

#endif
