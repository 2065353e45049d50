/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a filter answers and what the table says it must answer, for the generator and the tests.
 *
 * The interpreter knows the part of classic BPF that seccomp(2) accepts and that libseccomp
 * makes; anything else is an error, as it is for the kernel.
 */
#ifndef CM_ISOLATION_MECH_SECCOMP_SIM_H
#define CM_ISOLATION_MECH_SECCOMP_SIM_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "isolation/mech/seccomp_table.h"

/* no action of the kernel's has this value */
#define CM_SIM_BROKEN UINT32_MAX

static inline bool cm_sim_jump(const struct sock_filter *in, uint32_t a, size_t *pc)
{
	bool taken;

	switch (BPF_OP(in->code)) {
	case BPF_JA:
		*pc += in->k;
		return true;
	case BPF_JEQ:
		taken = a == in->k;
		break;
	case BPF_JGT:
		taken = a > in->k;
		break;
	case BPF_JGE:
		taken = a >= in->k;
		break;
	case BPF_JSET:
		taken = (a & in->k) != 0;
		break;
	default:
		return false;
	}
	*pc += taken ? in->jt : in->jf;
	return true;
}

/* The value that the program returns, or CM_SIM_BROKEN. */
static inline uint32_t cm_sim_run(const struct sock_filter *prog, size_t n,
				  const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < n; pc++) {
		const struct sock_filter *in = &prog[pc];

		switch (in->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (in->k > sizeof(*data) - sizeof(a) || in->k % sizeof(a) != 0)
				return CM_SIM_BROKEN;
			memcpy(&a, (const char *)data + in->k, sizeof(a));
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= in->k;
			break;
		case BPF_RET | BPF_K:
			return in->k;
		default:
			if (BPF_CLASS(in->code) != BPF_JMP || BPF_SRC(in->code) != BPF_K ||
			    !cm_sim_jump(in, a, &pc))
				return CM_SIM_BROKEN;
		}
	}
	return CM_SIM_BROKEN;
}

/* Of two programs the kernel takes the more restrictive answer, and of equals the later program's. */
static inline uint32_t cm_sim_over(uint32_t later, uint32_t earlier)
{
	if (later == CM_SIM_BROKEN || earlier == CM_SIM_BROKEN)
		return CM_SIM_BROKEN;
	return (int32_t)(earlier & SECCOMP_RET_ACTION_FULL) <
			       (int32_t)(later & SECCOMP_RET_ACTION_FULL)
		       ? earlier
		       : later;
}

static inline bool cm_sim_rule_holds(const struct cm_sc_rule *rule, const uint64_t args[6])
{
	for (unsigned int i = 0; i < rule->n; i++) {
		const struct cm_sc_cmp *c = &rule->cmps[i];
		uint64_t v = args[c->arg];
		bool holds = c->op == CM_SC_MASKED ? ((uint32_t)v & c->mask) == c->value
			     : c->op == CM_SC_NE64 ? v != c->value
						   : v >= c->value;

		if (!holds)
			return false;
	}
	return true;
}

/*
 * The table's answer for a call: 0 allowed, else the errno.  A name that is not in the table is
 * an unknown number's, so ENOSYS.
 */
static inline int cm_sim_expected(const char *call, unsigned int profile, const uint64_t args[6])
{
	bool allowed = false;

	for (size_t i = 0; i < CM_SC_TABLE_N; i++) {
		const struct cm_sc_entry *e = &cm_sc_table[i];

		if (strcmp(e->call, call) != 0 || !(e->profiles & (1U << profile)))
			continue;
		if (e->kind == CM_SC_ALLOW)
			allowed = true;
		else if (e->kind == CM_SC_ERRNO)
			return e->error;
		else if (cm_sim_rule_holds(&e->rule, args))
			return e->kind == CM_SC_ARGS ? e->error : 0;
	}
	return allowed ? 0 : ENOSYS;
}

#endif
