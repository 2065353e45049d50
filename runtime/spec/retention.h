/* SPDX-License-Identifier: Apache-2.0 */
/* How long sessions stay that nobody uses: "older-than=7d,keep-last=20,files". */
#ifndef CM_RUNTIME_SPEC_RETENTION_H
#define CM_RUNTIME_SPEC_RETENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "casemate/error.h"

struct cm_retention {
	/* 0: whenever they were used last */
	uint64_t older_ms;
	/* how many stay, however old */
	size_t keep_last;
	/* their directories go, too, but not where work would be lost */
	bool with_files;
};

/* what names the option or key in messages. One of the first two has to be there. */
int cm_retention_parse(const char *text, const char *what, struct cm_retention *ret,
		       struct cm_error *err);

#endif
