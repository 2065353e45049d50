/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What setup has printed, in a session's state directory: how it began and how it ended. What comes
 * between is left out, so that a command that prints for hours fills no disk.
 *
 * The file is complete after each write, since who writes it may be killed at any time: a header
 * with the number of bytes that there were, the first of them, and a ring with the last.
 */
#ifndef CM_RUNTIME_STORE_SETUP_LOG_H
#define CM_RUNTIME_STORE_SETUP_LOG_H

#include <stdint.h>

#include "casemate/error.h"
#include "runtime/base/buf.h"

#define CM_STORE_SETUP_LOG "setup.log"
#define CM_SETUP_LOG_HEAD (256UL * 1024)
#define CM_SETUP_LOG_TAIL (768UL * 1024)

struct cm_setup_log {
	/* -1: nothing is kept */
	int fd;
	uint64_t total;
	/* errno of the first write that failed; what came after it is not in the file */
	int error;
};

/* Begins anew; mode 0600. On failure *ret keeps nothing and may be used all the same. */
int cm_setup_log_create(int dir_fd, struct cm_setup_log *ret, struct cm_error *err);
void cm_setup_log_add(struct cm_setup_log *log, const void *data, size_t len);
void cm_setup_log_close(struct cm_setup_log *log);
/* All that was kept, with a line that says how much is missing. CM_E_NOT_FOUND: there is none. */
int cm_setup_log_read(int dir_fd, struct cm_buf *out, struct cm_error *err);

#endif
