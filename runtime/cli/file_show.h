/* SPDX-License-Identifier: Apache-2.0 */
/* Entries and events of file operations, as lines for people and for programs. */
#ifndef CM_RUNTIME_CLI_FILE_SHOW_H
#define CM_RUNTIME_CLI_FILE_SHOW_H

#include "providers/local/files.h"
#include "runtime/base/buf.h"

enum cm_file_form {
	/* a name a line, escaped */
	CM_FILE_NAMES = 0,
	/* names as they are, each with a NUL behind */
	CM_FILE_NUL,
	/* as ls -l */
	CM_FILE_LONG,
	/* one JSON object a line */
	CM_FILE_JSON,
	/* stat, for people */
	CM_FILE_BLOCK,
};

/* Appends. Names that are no UTF-8 are in JSON with U+FFFD, and whole in base64 beside that. */
void cm_file_show_entry(const struct cm_file_msg *msg, enum cm_file_form form, struct cm_buf *out);
void cm_file_show_event(const struct cm_file_msg *msg, bool is_json, struct cm_buf *out);
/* "file", "directory", "symlink", "fifo", "socket", "device"; "unknown" */
const char *cm_file_type_name(uint32_t mode);

#endif
