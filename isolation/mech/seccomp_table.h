/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp.def as plain data, for the filter generator and the tests.
 *
 * How the rows of one call combine: those of a profile are read in the order of the table and
 * the first whose rule holds decides; when none holds, the call is allowed if it has only SC_ARGS
 * rows beside its allowing one, and answers ENOSYS if it has only SC_ALLOW_IF rows.
 */
#ifndef CM_ISOLATION_MECH_SECCOMP_TABLE_H
#define CM_ISOLATION_MECH_SECCOMP_TABLE_H

#include <errno.h>
#include <stdint.h>

#include "isolation/plan/plan.h"

enum cm_sc_kind {
	CM_SC_ALLOW = 1,
	/* allowed when the rule holds; the rest is for the rows below, then ENOSYS */
	CM_SC_ALLOW_IF,
	CM_SC_ERRNO,
	/* an errno when the rule holds */
	CM_SC_ARGS,
};

enum cm_sc_op {
	/* of the low 32 bits: (arg & mask) == value */
	CM_SC_MASKED = 1,
	/* of all 64 bits, so that set high bits fall on the refusing side */
	CM_SC_NE64,
	CM_SC_GE64,
};

struct cm_sc_cmp {
	unsigned int arg;
	enum cm_sc_op op;
	uint32_t mask;
	uint32_t value;
};

#define CM_SC_MAX_CMPS 2

struct cm_sc_rule {
	unsigned int n;
	struct cm_sc_cmp cmps[CM_SC_MAX_CMPS];
};

/* The number is asked of libseccomp by name; a call that the machine lacks has no row there. */
#define CM_SC_NR_NAMED (-1)
#define CM_SC_NR_ABSENT (-2)

struct cm_sc_entry {
	const char *call;
	enum cm_sc_kind kind;
	int nr_x86_64;
	int nr_aarch64;
	int error;
	/* bit enum cm_plan_seccomp */
	unsigned int profiles;
	struct cm_sc_rule rule;
	const char *reason;
};

#define NAMED CM_SC_NR_NAMED, CM_SC_NR_NAMED
/* since Linux 5.0 all machines number new calls alike */
#define RAW(n) n, n
#define RAW_X86_64(n) n, CM_SC_NR_ABSENT
#define NO_UNIX (1U << CM_SECCOMP_NO_UNIX)
/* one word for two, so that whoever adds a row for the one cannot forget the other */
#define DEFAULT (1U << CM_SECCOMP_DEFAULT | NO_UNIX)
#define STRICT (1U << CM_SECCOMP_STRICT)
#define BOTH (DEFAULT | STRICT)
/* clang-format 14 spreads a brace of a macro over lines of its own */
/* clang-format off */
#define IF(...) { 1, { __VA_ARGS__ } }
#define IF_BOTH(...) { 2, { __VA_ARGS__ } }
#define EQ(a, v) { a, CM_SC_MASKED, UINT32_MAX, v }
#define BITS(a, m, v) { a, CM_SC_MASKED, m, v }
#define BIT(a, b) { a, CM_SC_MASKED, b, b }
#define NE(a, v) { a, CM_SC_NE64, 0, v }
#define GE(a, v) { a, CM_SC_GE64, 0, v }
/* clang-format on */
#define SC_PLAIN(call, why) { call, CM_SC_ALLOW, NAMED, 0, BOTH, { 0 }, why },
#define SC_ALLOW(call, nr, who, why) { call, CM_SC_ALLOW, nr, 0, who, { 0 }, why },
#define SC_ALLOW_IF(call, nr, rule, who, why) { call, CM_SC_ALLOW_IF, nr, 0, who, rule, why },
#define SC_ERRNO(call, nr, err, who, why) { call, CM_SC_ERRNO, nr, err, who, { 0 }, why },
#define SC_ARGS(call, nr, err, rule, who, why) { call, CM_SC_ARGS, nr, err, who, rule, why },

/* The macros above are spelled short for the table's sake, and end with it. */
static const struct cm_sc_entry cm_sc_table[] = {
#include "isolation/mech/seccomp.def"
};
#undef NAMED
#undef RAW
#undef RAW_X86_64
#undef NO_UNIX
#undef DEFAULT
#undef STRICT
#undef BOTH
#undef IF
#undef IF_BOTH
#undef EQ
#undef BITS
#undef BIT
#undef NE
#undef GE
#undef SC_PLAIN
#undef SC_ALLOW
#undef SC_ALLOW_IF
#undef SC_ERRNO
#undef SC_ARGS

#define CM_SC_TABLE_N (sizeof(cm_sc_table) / sizeof(cm_sc_table[0]))

#endif
