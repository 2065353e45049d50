/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command printed, on its way to a terminal a piece at a time: escaped, and no character is
 * torn where one piece ends or where bytes are missing.
 */
#ifndef CM_RUNTIME_CLI_SHOWN_TEXT_H
#define CM_RUNTIME_CLI_SHOWN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/buf.h"

struct cm_shown_text {
	/* the beginning of a character, or of the end of a line, of which more may come */
	char held[4];
	size_t n_held;
	/* how many bytes of a character whose beginning is missing may still come */
	unsigned int n_torn;
};

/* Append what can be shown. The end of a line may be CR LF, as a terminal's is. */
void cm_shown_text_add(struct cm_shown_text *t, const char *data, size_t len, struct cm_buf *out);
/* Bytes are missing here, or it begins in the middle. */
void cm_shown_text_gap(struct cm_shown_text *t);
/* It ends here: append what was held. */
void cm_shown_text_end(struct cm_shown_text *t, struct cm_buf *out);

#endif
