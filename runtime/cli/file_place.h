/* SPDX-License-Identifier: Apache-2.0 */
/* ID:PATH, a path of this side, or "-". */
#ifndef CM_RUNTIME_CLI_FILE_PLACE_H
#define CM_RUNTIME_CLI_FILE_PLACE_H

#include <stdbool.h>

#include "casemate/error.h"
#include "runtime/base/text.h"

enum cm_file_place_kind {
	CM_PLACE_HERE = 0,
	CM_PLACE_STREAM,
	CM_PLACE_SESSION,
};

struct cm_file_place {
	enum cm_file_place_kind kind;
	char session[CM_SESSION_ID_MAX + 1];
	/* borrowed; of a session "." where nothing follows the colon */
	const char *path;
};

/*
 * A session's where what is before the first ':' could be an id; a file of this side whose name looks
 * like that is written with a directory: ./a:b. CM_E_INVALID for what is empty.
 */
int cm_file_place_parse(const char *text, struct cm_file_place *ret, struct cm_error *err);

#endif
