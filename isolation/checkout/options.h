/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of casemate-checkout. */
#ifndef CM_ISOLATION_CHECKOUT_OPTIONS_H
#define CM_ISOLATION_CHECKOUT_OPTIONS_H

#include <stdbool.h>

#include "casemate/error.h"
#include "isolation/checkout/checkout.h"
#include "isolation/checkout/fetch.h"

/* What is to be done. Bits: an option says which of them it goes with. */
enum cm_task {
	CM_TASK_CHECKOUT = 1U << 0,
	CM_TASK_FETCH = 1U << 1,
	CM_TASK_STATUS = 1U << 2,
	CM_TASK_UPDATE = 1U << 3,
};

/* Texts are argv's. */
struct cm_options {
	enum cm_task task;
	struct cm_checkout_options checkout;
	struct cm_fetch_options fetch;
	/* goes to both of them */
	struct cm_host_git_wants wants;
	/* --filter */
	const char *filter;
	/* --update */
	const char *update_path;
	bool is_unshallow;
	bool keeps_branches;
	bool is_finish;
	/* --from */
	const char *base;
	/* --status, --unsaved */
	const char *status_path;
	bool wants_unsaved;
	/* -1: none */
	int credential_fd;
	int progress_fd;
	int report_fd;
	bool wants_help;
};

#define CM_OPTIONS_INIT                                                                            \
	{                                                                                          \
		.credential_fd = -1, .progress_fd = -1, .report_fd = -1                            \
	}

/* What was read before a mistake stays in *ret: a failure is told where it asks for. */
int cm_options_parse(int argc, char **argv, struct cm_options *ret, struct cm_error *err);
/* On standard output; nonzero when that does not take it. */
int cm_options_print_help(void);

#endif
