/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run a program against the table: each number, and for calls with rules each argument
 * value at which a compare can turn over, alone and with the high half set.
 */
#include "isolation/mech/gen_verify.h"

#include <linux/audit.h>
#include <stdio.h>
#include <stdlib.h>

#include "isolation/mech/seccomp_sim.h"

#define VALUES_MAX 512

struct values {
	uint64_t v[VALUES_MAX];
	size_t n;
};

static void add_value(struct values *vs, uint64_t v)
{
	for (size_t i = 0; i < vs->n; i++) {
		if (vs->v[i] == v)
			return;
	}
	if (vs->n == VALUES_MAX)
		abort();
	vs->v[vs->n++] = v;
}

static void add_around(struct values *vs, uint32_t v)
{
	const uint32_t near[] = { v, v - 1, v + 1, ~v };

	for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
		add_value(vs, near[i]);
		add_value(vs, near[i] | UINT64_C(1) << 32);
		add_value(vs, near[i] | UINT64_C(0xffffffff) << 32);
	}
}

static void collect(const char *call, unsigned int arg, struct values *ret)
{
	ret->n = 0;
	add_around(ret, 0);
	for (unsigned int b = 0; b < 64; b++)
		add_value(ret, UINT64_C(1) << b);
	for (size_t i = 0; i < CM_SC_TABLE_N; i++) {
		const struct cm_sc_entry *e = &cm_sc_table[i];

		for (unsigned int c = 0; strcmp(e->call, call) == 0 && c < e->rule.n; c++) {
			if (e->rule.cmps[c].arg != arg)
				continue;
			add_around(ret, e->rule.cmps[c].value);
			add_value(ret, e->rule.cmps[c].mask);
		}
	}
}

static uint32_t answer(const struct cm_gen_subject *s, uint32_t arch, uint32_t nr,
		       const uint64_t args[6])
{
	struct seccomp_data data = { .nr = (int)nr, .arch = arch };

	memcpy(data.args, args, sizeof(data.args));
	if (!s->over)
		return cm_sim_run(s->program->insns, s->program->n, &data);
	return cm_sim_over(cm_sim_run(s->over->insns, s->over->n, &data),
			   cm_sim_run(s->program->insns, s->program->n, &data));
}

static bool check(const struct cm_gen_subject *s, uint32_t arch, uint32_t nr,
		  const uint64_t args[6], int expected)
{
	uint32_t want = expected ? SECCOMP_RET_ERRNO | (uint32_t)expected : SECCOMP_RET_ALLOW;
	uint32_t got = answer(s, arch, nr, args);

	if (got == want)
		return true;
	fprintf(stderr,
		"gen_seccomp: %s, profile %u: architecture 0x%x, call %u (0x%llx, 0x%llx, 0x%llx,"
		" 0x%llx) gives 0x%x, not 0x%x\n",
		s->machine, s->profile, arch, nr, (unsigned long long)args[0],
		(unsigned long long)args[1], (unsigned long long)args[2],
		(unsigned long long)args[3], got, want);
	return false;
}

/* All pairs of values of two arguments: no rule looks at more than two. */
static bool check_pairs(const struct cm_gen_subject *s, uint32_t nr, unsigned int a, unsigned int b)
{
	const char *call = s->calls[nr];
	static struct values va, vb;
	uint64_t args[6] = { 0 };

	collect(call, a, &va);
	collect(call, b, &vb);
	for (size_t i = 0; i < va.n; i++) {
		for (size_t k = 0; k < vb.n; k++) {
			args[a] = va.v[i];
			args[b] = vb.v[k];
			if (!check(s, s->audit_arch, nr, args,
				   cm_sim_expected(call, s->profile, args)))
				return false;
		}
	}
	return true;
}

/* The arguments that rules of the call look at, as bits. */
static unsigned int ruled_args(const char *call)
{
	unsigned int args = 0;

	for (size_t i = 0; i < CM_SC_TABLE_N; i++) {
		const struct cm_sc_entry *e = &cm_sc_table[i];

		for (unsigned int c = 0; strcmp(e->call, call) == 0 && c < e->rule.n; c++)
			args |= 1U << e->rule.cmps[c].arg;
	}
	return args;
}

/* Each argument with a rule, together with each other that has one, or else with any other. */
static bool check_ruled(const struct cm_gen_subject *s, uint32_t nr, unsigned int ruled)
{
	for (unsigned int a = 0; a < 6; a++) {
		unsigned int others = ruled & ~(1U << a);

		if (!(ruled & 1U << a))
			continue;
		if (!others)
			return check_pairs(s, nr, a, a == 0 ? 1 : 0);
		for (unsigned int b = a + 1; b < 6; b++) {
			if ((others & 1U << b) && !check_pairs(s, nr, a, b))
				return false;
		}
	}
	return true;
}

static bool check_number(const struct cm_gen_subject *s, uint32_t nr)
{
	static const uint64_t zeroes[6];
	static const uint64_t ones[6] = { UINT64_MAX, UINT64_MAX, UINT64_MAX,
					  UINT64_MAX, UINT64_MAX, UINT64_MAX };
	const char *call = s->calls[nr];
	unsigned int ruled = call ? ruled_args(call) : 0;
	int expected = call ? cm_sim_expected(call, s->profile, zeroes) : ENOSYS;

	if (ruled)
		return check_ruled(s, nr, ruled);
	return check(s, s->audit_arch, nr, zeroes, expected) &&
	       check(s, s->audit_arch, nr, ones, expected);
}

bool cm_gen_verify(const struct cm_gen_subject *s)
{
	static const uint32_t foreign[] = { AUDIT_ARCH_I386, AUDIT_ARCH_X86_64, AUDIT_ARCH_ARM,
					    AUDIT_ARCH_AARCH64, 0 };
	static const uint64_t zeroes[6];

	for (uint32_t nr = 0; nr < CM_GEN_NR_END; nr++) {
		if (!check_number(s, nr) || !check(s, s->audit_arch, ~nr, zeroes, ENOSYS))
			return false;
		/* bit 30 are x32's numbers */
		for (uint32_t high = 10; high < 32; high++) {
			if (!check(s, s->audit_arch, nr | UINT32_C(1) << high, zeroes, ENOSYS))
				return false;
		}
		for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
			if (foreign[i] != s->audit_arch &&
			    !check(s, foreign[i], nr, zeroes, ENOSYS))
				return false;
		}
	}
	return true;
}
