/* SPDX-License-Identifier: Apache-2.0 */
/* How a command ended: its exit status, and what people are told about it. */
#ifndef CM_RUNTIME_CLI_OUTCOME_H
#define CM_RUNTIME_CLI_OUTCOME_H

#include "providers/local/local.h"
#include "runtime/cli/cli.h"
#include "runtime/cli/relay.h"
#include "runtime/cli/result.h"

/* All borrowed. */
struct cm_outcome {
	struct cm_cli *cli;
	const struct cm_spec *spec;
	const struct cm_local *local;
	const struct cm_relay *relay;
	/* gets what is told, as its error */
	struct cm_result *result;
};

/* The exit status that an end stands for; failure_exit where the command never began. */
int cm_end_exit(const struct cm_rec_end *end, int failure_exit);
/* Once relay->end says how; prints its own errors. */
int cm_outcome_exit(const struct cm_outcome *o);

#endif
