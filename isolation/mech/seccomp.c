/* SPDX-License-Identifier: Apache-2.0 */
/* System-call filters: the programs of this machine, and how they are loaded. */
#include "isolation/mech/seccomp.h"

#include <asm/unistd.h>
#include <errno.h>
#include <linux/seccomp.h>

#include "runtime/base/raw_syscall.h"

/* made at build time: MACHINE_PROFILE[] */
#include "isolation/mech/seccomp_programs.h"

#if defined(__x86_64__)
#define MACHINE(array) x86_64_##array
#elif defined(__aarch64__)
#define MACHINE(array) aarch64_##array
#endif
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define PROGRAM(text, array)                                                                       \
	{                                                                                          \
		.name = (text), .insns = MACHINE(array), .n = COUNT(MACHINE(array))                \
	}
#define PROFILE(text, array)                                                                       \
	{                                                                                          \
		[CM_SECCOMP_WHOLE] = PROGRAM(text, array),                                         \
		[CM_SECCOMP_OF_INIT] = PROGRAM(text, array##_init),                                \
		[CM_SECCOMP_REST] = PROGRAM(text, array##_rest),                                   \
	}

static const struct cm_seccomp_profile profiles[CM_SECCOMP_COUNT_][CM_SECCOMP_PARTS_] = {
	[CM_SECCOMP_DEFAULT] = PROFILE("default", default),
	[CM_SECCOMP_STRICT] = PROFILE("strict", strict),
	[CM_SECCOMP_NO_UNIX] = PROFILE("no-unix", no_unix),
};

const struct cm_seccomp_profile *cm_seccomp_profile_get(enum cm_plan_seccomp profile,
							enum cm_seccomp_part part)
{
	/* the number comes out of a plan, so from another process */
	if (profile < CM_SECCOMP_DEFAULT || profile >= CM_SECCOMP_COUNT_)
		return NULL;
	return &profiles[profile][part];
}

int cm_seccomp_load(const struct cm_seccomp_profile *profile)
{
	struct sock_fprog prog = {
		.len = profile->n,
		/* the kernel's structure lacks the const that the kernel keeps to */
		.filter = (struct sock_filter *)profile->insns,
	};

	return (int)cm_raw_syscall3(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, cm_raw_ptr(&prog));
}

#define NO_UNIX (1U << CM_SECCOMP_NO_UNIX)
#define DEFAULT (1U << CM_SECCOMP_DEFAULT | NO_UNIX)
#define STRICT (1U << CM_SECCOMP_STRICT)
#define BOTH (DEFAULT | STRICT)
#define SC_PLAIN(call, why) { call, "allow", 0, BOTH, why },
#define SC_ALLOW(call, nr, who, why) { call, "allow", 0, who, why },
#define SC_ALLOW_IF(call, nr, rule, who, why) { call, "args", 0, who, why },
#define SC_ERRNO(call, nr, err, who, why) { call, "errno", err, who, why },
#define SC_ARGS(call, nr, err, rule, who, why) { call, "args", err, who, why },

static const struct cm_seccomp_row rows[] = {
#include "isolation/mech/seccomp.def"
};

const struct cm_seccomp_row *cm_seccomp_rows(size_t *ret_n)
{
	*ret_n = sizeof(rows) / sizeof(rows[0]);
	return rows;
}
