/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input as a file's content. */
#ifndef CM_RUNTIME_CLI_FILE_SOURCE_H
#define CM_RUNTIME_CLI_FILE_SOURCE_H

#include <sys/types.h>

#include "providers/provider.h"

struct cm_file_source {
	/* readable when it is to be given up */
	int cancel_fd;
	/* why it was; code 0: it was not */
	struct cm_error *why;
	/* a file's bytes are there */
	bool is_file;
	/* how many bytes there are still to come; UINT64_MAX: not known */
	uint64_t left;
	/* holes are asked for: up to where there are bytes, and where all ends */
	bool knows_holes;
	off_t at;
	off_t data_end;
	off_t end;
};

/* ret: fill, pass_hole, data, len, waits, wait_fd; s is its data. wants_length: where that can be known. */
void cm_file_source_init(struct cm_file_source *s, int cancel_fd, bool wants_length,
			 struct cm_error *why, struct cm_write_request *ret);

#endif
