/* SPDX-License-Identifier: Apache-2.0 */
/* Build time only: run a program against the table. */
#ifndef CM_ISOLATION_MECH_GEN_VERIFY_H
#define CM_ISOLATION_MECH_GEN_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "isolation/mech/gen_join.h"

/* above the numbers of every kernel known here */
#define CM_GEN_NR_END 1024

struct cm_gen_subject {
	/* for messages */
	const char *machine;
	uint32_t audit_arch;
	unsigned int profile;
	/* the call of each number, NULL where the table has none */
	const char *calls[CM_GEN_NR_END];
	const struct cm_gen_program *program;
	/* loaded over it; NULL: that is all */
	const struct cm_gen_program *over;
};

/* False when some answer differs from the table's; says which on stderr. */
bool cm_gen_verify(const struct cm_gen_subject *s);

#endif
