/* SPDX-License-Identifier: Apache-2.0 */
/* The blob of an EXEC record as arguments, environment, directory and candidate paths. */
#ifndef CM_ISOLATION_KEEPER_IMAGE_H
#define CM_ISOLATION_KEEPER_IMAGE_H

#include <stdint.h>

#include "isolation/keeper/exec.h"
#include "isolation/keeper/proto.h"

/* What an image points to: kept from one command of a slot to the next, wiped. Zero-initialise. */
struct cm_image_memory {
	void *at;
	size_t size;
};
#define CM_IMAGE_MEMORIES 2

/*
 * Copies msg's blob and fills argv, env, paths and cwd of the image. What they point to is in memory,
 * the caller's until the child has reported. CM_E_PROTOCOL when the counts and the blob do not agree;
 * then the image is as it was.
 */
int cm_image_parse(struct cm_msg *msg, struct cm_exec_image *image,
		   struct cm_image_memory memory[CM_IMAGE_MEMORIES], struct cm_error *err);
/* The child has reported: what is large is given back, the rest is wiped for the next command. */
void cm_image_settle(struct cm_image_memory memory[CM_IMAGE_MEMORIES]);

#endif
