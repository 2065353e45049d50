/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in program of file operations (file_proto.h). */
#ifndef CM_ISOLATION_KEEPER_FILE_OPS_H
#define CM_ISOLATION_KEEPER_FILE_OPS_H

#include "isolation/keeper/exec.h"

/* The image's command is the built-in program, with a stack that is large enough for it. */
void cm_file_image(struct cm_exec_image *image);

#endif
