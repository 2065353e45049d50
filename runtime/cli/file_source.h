/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input as a file's content. */
#ifndef CM_RUNTIME_CLI_FILE_SOURCE_H
#define CM_RUNTIME_CLI_FILE_SOURCE_H

#include "runtime/cli/file_session.h"

/*
 * All of standard input as content and END, into an operation `write`, and until that is done. 0, and
 * f->value is how many bytes were written; else a code.
 */
int cm_file_source_send(struct cm_files *f, struct cm_error *err);

#endif
