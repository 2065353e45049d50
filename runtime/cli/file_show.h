/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries and events of files, as lines for people and for programs. In JSON null is what the provider does
 * not know; owner and group are there where they have names and no numbers.
 */
#ifndef CM_RUNTIME_CLI_FILE_SHOW_H
#define CM_RUNTIME_CLI_FILE_SHOW_H

#include "providers/provider.h"
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

/*
 * Appends. Names that are no UTF-8 are in JSON with U+FFFD, and whole in base64 beside that. prefix: the
 * directory before the name, "": none.
 */
void cm_file_show_entry(const struct cm_path_info *info, const char *prefix, enum cm_file_form form,
			struct cm_buf *out);
void cm_file_show_event(const struct cm_watch_event *event, bool is_json, struct cm_buf *out);

#endif
