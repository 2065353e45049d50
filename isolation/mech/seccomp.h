/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System-call filters, made at build time from seccomp.def by libseccomp and loaded as they are.
 *
 * One program a profile: the allow-list (unknown numbers answer ENOSYS, listed refusals their
 * errno), and for what that allows the argument rules (masked 32-bit compares that refuse), which so
 * can only narrow. Loading one costs 45 us, for every command: where there are many, init loads most of
 * it for itself, once, and each command the rest, which is small.
 */
#ifndef CM_ISOLATION_MECH_SECCOMP_H
#define CM_ISOLATION_MECH_SECCOMP_H

#include <linux/filter.h>
#include <stddef.h>

#include "isolation/plan/plan.h"

struct cm_seccomp_profile {
	const char *name;
	const struct sock_filter *insns;
	unsigned short n;
};

enum cm_seccomp_part {
	/* by itself all that the profile is */
	CM_SECCOMP_WHOLE,
	/* what also holds for init: all but clone3 and unshare, which it starts commands with */
	CM_SECCOMP_OF_INIT,
	/* over that of init: the two make a whole */
	CM_SECCOMP_REST,
	CM_SECCOMP_PARTS_,
};

/* NULL for a number that is not a profile. Static storage, for this architecture. */
const struct cm_seccomp_profile *cm_seccomp_profile_get(enum cm_plan_seccomp profile,
							enum cm_seccomp_part part);
/*
 * Load the program into the calling thread; no_new_privs or CAP_SYS_ADMIN must be set.
 * Raw system calls only (it runs in a child that shares init's memory): 0 or -errno.
 */
int cm_seccomp_load(const struct cm_seccomp_profile *profile);

/* One row of the table, for the tests. */
struct cm_seccomp_row {
	const char *syscall;
	/* "allow", "errno", "args": of args, error 0 is allowed and else refused by an argument */
	const char *action;
	/* of a refusal, else 0 */
	int error;
	/* bits 1U << enum cm_plan_seccomp: the profiles that have this row */
	unsigned int profiles;
	const char *reason;
};
const struct cm_seccomp_row *cm_seccomp_rows(size_t *ret_n);

#endif
