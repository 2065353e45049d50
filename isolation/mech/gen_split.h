/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Build time only: a profile in two programs, of which the second is small.
 *
 * A command's filter is most of what its start costs beside the program itself. Init, which starts it,
 * makes two calls that a command may not make: clone3 and unshare. All the rest holds for init as well:
 * it loads that for itself once, its commands have it from there, and load what is left.
 */
#ifndef CM_ISOLATION_MECH_GEN_SPLIT_H
#define CM_ISOLATION_MECH_GEN_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

#include "isolation/mech/gen_join.h"

/* Is the call init's too, so that its own program allows it whatever the table says? */
bool cm_gen_is_of_init(const char *call);

/*
 * What the table says of those calls, and all others allowed. nr: the number of a call on the machine.
 * Returns NULL, or what is wrong with the table.
 */
const char *cm_gen_rest(unsigned int profile, uint32_t audit_arch,
			int (*nr)(const char *call, const void *data), const void *data,
			struct cm_gen_program *ret);

#endif
