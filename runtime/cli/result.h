/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a run ended, for programs: the object of --json and --result.
 *
 *	v           1
 *	session     id
 *	exec        of a command in a session that lasts: its id, "3.17"
 *	phase       "checkout", "setup", "start" or "run": the last one reached
 *	end         "exit", "signal", "timeout", "memory-limit", "output-limit", "killed",
 *	            "not-executed"; "detached": it goes on; "lost": it was started, and how it ended, or all that
 *	            it printed, cannot be known; "failed": Casemate failed, and the command did not start;
 *	            null: no command was asked for
 *	exitCode    what the process exits with
 *	code, message, hint         of a failure (code: a name of casemate/error.h)
 *	reason, detail              of a failure: names of reason.c, the second only where there is one
 *	phases      a list of those that ended: name, durationMs
 *	signal, timedOut, killed, memoryLimit, childrenLeft
 *	wallMs, cpuUserMs, cpuSystemMs, maxRssBytes, memoryPeakBytes, usageApproximate
 *	            (these and childrenLeft: null where a remote provider does not tell)
 *	moved       false: 'casemate checkout' left the checkout, or its branch, where it was, as a note
 *	            says; else absent
 *	level       "full", "full-single-id", "no-cgroup-single-id+hostnet", ...
 *	setup       of one that ran: state ("done", "failed", "interrupted"), exit, durationMs,
 *	            tail: the end of what it printed; teardown where that ran: state ("done",
 *	            "failed"), exit, and reason ("teardown-failed")
 *	stdout, stderr, outputBytes only --json has the first two
 */
#ifndef CM_RUNTIME_CLI_RESULT_H
#define CM_RUNTIME_CLI_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "casemate/error.h"
#include "providers/local/jail.h"
#include "runtime/base/buf.h"
#include "runtime/cli/reason.h"
#include "runtime/cli/relay.h"
#include "runtime/cli/setup.h"

#define CM_RESULT_PHASES_MAX 32

struct cm_result_phase {
	char name[96];
	uint64_t duration_us;
};

struct cm_result {
	char session[132];
	const char *phase;
	/* 0: none */
	uint64_t exec_id;
	/* of a session elsewhere, in its place; borrowed; NULL: none */
	const char *exec_name;
	bool is_detached;
	char level[64];
	int exit_code;
	/* code 0: nothing failed */
	struct cm_error error;
	/* with it; NULL: by its code */
	const struct cm_reason *reason;
	/* of the start, in order; the last says no more where there are more */
	struct cm_result_phase phases[CM_RESULT_PHASES_MAX];
	size_t n_phases;
	bool has_end;
	struct cm_rec_end end;
	/* elsewhere: what became of it is not known */
	bool is_lost;
	/* elsewhere: of what it used nothing but the time is known, and that if it is not 0 */
	bool is_unmeasured;
	bool is_over_output;
	uint64_t output_bytes;
	/* of an update of a checkout */
	bool is_held;
	/* borrowed; NULL: none ran */
	const struct cm_setup_report *setup;
};

/* One line with a newline; relay may be NULL (no output in it). */
void cm_result_write(const struct cm_result *result, const struct cm_relay *relay,
		     struct cm_buf *out);
/*
 * Where --result points to: "fd:N", or a file, which is written atomically at the end into the
 * directory that was there when it was opened: what the command makes of its path is not looked at.
 */
struct cm_result_target {
	/* as it was given; borrowed */
	const char *text;
	/* fd:N is the caller's, a directory is owned */
	int fd;
	bool is_file;
};
/* What cannot be written at the end is better known before the command has run. */
int cm_result_open(const char *text, struct cm_result_target *ret, struct cm_error *err);
int cm_result_deliver(const struct cm_result_target *target, const struct cm_buf *text,
		      struct cm_error *err);
void cm_result_close(struct cm_result_target *target);

#endif
