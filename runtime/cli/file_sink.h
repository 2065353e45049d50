/* SPDX-License-Identifier: Apache-2.0 */
/* A file's content on its way to standard output. */
#ifndef CM_RUNTIME_CLI_FILE_SINK_H
#define CM_RUNTIME_CLI_FILE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "casemate/error.h"
#include "runtime/cli/outlet.h"
#include "runtime/cli/shown_text.h"

struct cm_file_sink {
	/* readable when it is to be given up */
	int cancel_fd;
	/* it goes to a terminal: escaped, as what `logs` shows */
	bool is_terminal;
	struct cm_shown_text text;
	/* a file that ends here: holes can be holes */
	bool can_seek;
	bool ends_with_hole;
	struct cm_outlet outlet;
};

void cm_file_sink_init(struct cm_file_sink *sink, int cancel_fd);
/* Text of ours: as it is. CM_OK, CM_E_CANCELLED, or an error of standard output. */
int cm_file_sink_text(struct cm_file_sink *sink, const char *text, size_t len,
		      struct cm_error *err);
/* Bytes of a file. */
int cm_file_sink_data(struct cm_file_sink *sink, const void *bytes, size_t len,
		      struct cm_error *err);
/* So many zeros that take no room in it. */
int cm_file_sink_hole(struct cm_file_sink *sink, uint64_t len, struct cm_error *err);
/* All of it is written. */
int cm_file_sink_end(struct cm_file_sink *sink, struct cm_error *err);
void cm_file_sink_close(struct cm_file_sink *sink);

#endif
