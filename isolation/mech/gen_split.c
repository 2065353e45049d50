/* SPDX-License-Identifier: Apache-2.0 */
/* Build-time program: what a command's filter has beside init's. */
#include "isolation/mech/gen_split.h"

#include <linux/seccomp.h>
#include <string.h>

#include "isolation/mech/seccomp_table.h"

#define N_CALLS (sizeof(of_init) / sizeof(of_init[0]))
/* the architecture's load and compare, the number's load */
#define HEAD 3

static const char *const of_init[] = { "clone3", "unshare" };

bool cm_gen_is_of_init(const char *call)
{
	for (size_t i = 0; i < N_CALLS; i++) {
		if (strcmp(of_init[i], call) == 0)
			return true;
	}
	return false;
}

static void emit(struct cm_gen_program *p, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
	p->insns[p->n++] = (struct sock_filter){ code, jt, jf, k };
}

static void emit_answer(struct cm_gen_program *p, int error)
{
	emit(p, BPF_RET | BPF_K,
	     error ? SECCOMP_RET_ERRNO | (uint32_t)error : (uint32_t)SECCOMP_RET_ALLOW, 0, 0);
}

/* What the rows of one call come to: refused, or refused where one of these bits is set. */
struct verdict {
	int error;
	uint32_t bits;
};

static bool is_one_bit(uint32_t mask)
{
	return mask != 0 && (mask & (mask - 1)) == 0;
}

static const char *read_rows(const char *call, unsigned int profile, struct verdict *ret)
{
	*ret = (struct verdict){ 0 };
	for (size_t i = 0; i < CM_SC_TABLE_N; i++) {
		const struct cm_sc_entry *e = &cm_sc_table[i];
		const struct cm_sc_cmp *c = &e->rule.cmps[0];

		if (strcmp(e->call, call) != 0 || (e->profiles & 1U << profile) == 0 ||
		    e->kind == CM_SC_ALLOW)
			continue;
		if (ret->error != 0 && (e->error != ret->error || ret->bits == 0))
			return "rows that cannot be left out of init's program";
		ret->error = e->error;
		if (e->kind == CM_SC_ERRNO)
			continue;
		if (e->kind != CM_SC_ARGS || e->rule.n != 1 || c->arg != 0 ||
		    c->op != CM_SC_MASKED || c->mask != c->value || !is_one_bit(c->mask))
			return "a rule that cannot be left out of init's program";
		ret->bits |= c->mask;
	}
	return ret->error != 0 ? NULL : "nothing is refused of a call of init's";
}

static void emit_verdict(struct cm_gen_program *p, const struct verdict *v)
{
	if (v->bits != 0) {
		/* the low half: both machines are little-endian */
		emit(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]), 0, 0);
		emit(p, BPF_JMP | BPF_JSET | BPF_K, v->bits, 1, 0);
		emit_answer(p, 0);
	}
	emit_answer(p, v->error);
}

const char *cm_gen_rest(unsigned int profile, uint32_t audit_arch,
			int (*nr)(const char *call, const void *data), const void *data,
			struct cm_gen_program *ret)
{
	ret->n = 0;
	/* init's program has an answer to other architectures */
	emit(ret, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
	emit(ret, BPF_JMP | BPF_JEQ | BPF_K, audit_arch, 0, 1 + N_CALLS);
	emit(ret, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	for (size_t i = 0; i < N_CALLS; i++)
		emit(ret, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr(of_init[i], data), 0, 0);
	emit_answer(ret, 0);
	for (size_t i = 0; i < N_CALLS; i++) {
		struct verdict v;
		const char *wrong = read_rows(of_init[i], profile, &v);

		if (wrong)
			return wrong;
		ret->insns[HEAD + i].jt = (uint8_t)(ret->n - (HEAD + i + 1));
		emit_verdict(ret, &v);
	}
	return NULL;
}
