/* SPDX-License-Identifier: Apache-2.0 */
/* What the caller learns: progress lines while it goes on, one report at the end. */
#ifndef CM_ISOLATION_CHECKOUT_REPORT_H
#define CM_ISOLATION_CHECKOUT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "casemate/error.h"
#include "isolation/checkout/library.h"
#include "isolation/checkout/status.h"
#include "runtime/base/buf.h"

/* of SHA-1 or SHA-256, as text */
#define CM_REPORT_ID_SIZE 65

/* A submodule that may be fetched: where it comes from, and where it belongs. */
struct cm_report_module {
	char *name;
	char *path;
	char *url;
	char commit[CM_OID_HEX_SIZE];
};

struct cm_report {
	/* -1: not wanted */
	int progress_fd;
	int report_fd;
	/* the last progress line, and when it was written */
	const char *stage;
	uint64_t received;
	int64_t written_ms;
	/* of a fetch that failed: a name of fetch_error.h, static; NULL: not told */
	const char *reason;

	/* empty for a repository without commits; of SHA-256 it is longer */
	char commit[CM_REPORT_ID_SIZE];
	/* full name of the ref in the source; NULL: a commit id */
	char *ref;
	/* local branch; NULL: detached */
	char *branch;
	uint64_t files;
	uint64_t submodules;
	uint64_t lfs_pointers;
	/* of an update: it is not on what was asked for, as a note says */
	bool is_held;
	/* NULL: nobody asked; else room for CM_SUBMODULES_MAX */
	struct cm_report_module *modules;
	size_t n_modules;
	struct cm_strv notes;
};

#define CM_REPORT_INIT                                                                             \
	{                                                                                          \
		.progress_fd = -1, .report_fd = -1                                                 \
	}

void cm_report_clear(struct cm_report *rep);
/*
 * stage is a string constant. The last line of a stage (received == total) is always tried, the
 * others at most five a second. A reader that is full or gone loses lines; nothing waits for it.
 */
void cm_report_progress(struct cm_report *rep, const char *stage, uint64_t received,
			uint64_t total);
/* Objects of a fetch that came, and how many bytes came with them. */
void cm_report_transfer(struct cm_report *rep, uint64_t received, uint64_t total, uint64_t bytes);
/* Something goes on that has no measure: at most five lines a second. */
void cm_report_alive(struct cm_report *rep);
int cm_report_note(struct cm_report *rep, struct cm_error *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* How many files are Git LFS pointers; nothing where there are none. */
int cm_report_lfs(struct cm_report *rep, struct cm_error *err);
/*
 * The final object on report_fd: the result, or the failure when failure->code is not CM_OK.
 * Without a report_fd the notes go to standard error.
 */
int cm_report_finish(struct cm_report *rep, const struct cm_error *failure, struct cm_error *err);
/* The answer of --status, on standard output. */
int cm_report_status(const struct cm_status *status, bool with_unsaved, struct cm_error *err);
/* "casemate-checkout: MSG" and "hint: HINT" on standard error, inert on a terminal. */
void cm_report_print_error(const struct cm_error *failure);

#endif
