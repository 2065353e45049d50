/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets taken out of a stream of bytes, wherever it is cut into pieces. */
#ifndef CM_RUNTIME_CLI_REDACT_H
#define CM_RUNTIME_CLI_REDACT_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/buf.h"

/* What stands for each. */
#define CM_REDACTED "***"

struct cm_redact {
	/* "NAME=value"; borrowed. Values that are empty count for nothing. */
	const struct cm_strv *secrets;
	/* what may be the beginning of one */
	struct cm_buf held;
};

void cm_redact_init(struct cm_redact *redact, const struct cm_strv *secrets);
/*
 * What is known to be none comes out, in order; the rest with a later piece, or with is_last. Out of
 * memory nothing comes out.
 */
void cm_redact_add(struct cm_redact *redact, const char *bytes, size_t len, bool is_last,
		   struct cm_buf *out);
void cm_redact_clear(struct cm_redact *redact);

#endif
