/* SPDX-License-Identifier: Apache-2.0 */
/* The blob of an EXEC record as arguments, environment, directory and candidate paths. */
#ifndef CM_ISOLATION_KEEPER_IMAGE_H
#define CM_ISOLATION_KEEPER_IMAGE_H

#include <stdint.h>

#include "isolation/keeper/exec.h"
#include "isolation/keeper/proto.h"

/*
 * Copies msg's blob and fills argv, env, paths and cwd of the image. The memory behind them is
 * *ret_memory[0..1], freed by the caller when the child has reported. CM_E_PROTOCOL when the counts
 * and the blob do not agree; then the image is as it was.
 */
int cm_image_parse(struct cm_msg *msg, struct cm_exec_image *image, void *ret_memory[2],
		   struct cm_error *err);

#endif
