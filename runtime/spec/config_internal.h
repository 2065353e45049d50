/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that read what configures a run. */
#ifndef CM_RUNTIME_SPEC_CONFIG_INTERNAL_H
#define CM_RUNTIME_SPEC_CONFIG_INTERNAL_H

#include <stddef.h>

#include "casemate/error.h"

/* what a file must be to be read */
enum {
	/* an absent file is empty */
	CM_READ_OPTIONAL = 1U << 0,
	/* a regular file, so that opening cannot hang */
	CM_READ_REGULAR = 1U << 1,
	/* no symbolic link: another may have made it */
	CM_READ_NO_LINK = 1U << 2,
	/* the caller's own, or root's */
	CM_READ_OWN = 1U << 3,
};

/* CM_READ_*. *ret_text stays NULL when the file is optional and absent. */
int cm_config_read_file(const char *path, unsigned int flags, char **ret_text, size_t *ret_len,
			struct cm_error *err);

#endif
