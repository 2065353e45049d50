/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Build-time program: turn seccomp.def into BPF with libseccomp, print it as C.
 *
 * Theory of operation.  libseccomp translates a rule's number for a foreign machine by name and
 * so refuses a number that it has no name for.  Both machines are therefore compiled as if they
 * were the one this program runs on, with the target's numbers, and the one instruction that
 * compares the architecture is rewritten.  Arguments lie alike in seccomp_data on both (64 bits,
 * little-endian).
 *
 * libseccomp chooses the order of overlapping rules and has got compares wrong before, so every
 * program is run here against the table for each number and for each interesting argument, and
 * the build fails when an answer differs.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "isolation/mech/gen_join.h"
#include "isolation/mech/gen_split.h"
#include "isolation/mech/gen_verify.h"
#include "isolation/mech/seccomp_table.h"

struct target {
	const char *name;
	uint32_t scmp_arch;
	uint32_t audit_arch;
};

static const struct target targets[] = {
	{ "x86_64", SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64 },
	{ "aarch64", SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64 },
};

static const char *const profiles[CM_SECCOMP_COUNT_] = {
	[CM_SECCOMP_DEFAULT] = "default",
	[CM_SECCOMP_STRICT] = "strict",
	[CM_SECCOMP_NO_UNIX] = "no_unix",
};

static _Noreturn void die(const char *what, const char *subject, int err)
{
	fprintf(stderr, "gen_seccomp: %s '%s': %s\n", what, subject, strerror(err));
	exit(1);
}

/* data: the target */
static int named_nr(const char *call, const void *data)
{
	const struct target *t = data;
	int nr = seccomp_syscall_resolve_name_arch(t->scmp_arch, call);

	/* a misspelt name must not become a call that is silently refused */
	if (nr == __NR_SCMP_ERROR)
		die("libseccomp does not know", call, ENOENT);
	/* libseccomp's own negative numbers stand for "not on this machine" */
	return nr < 0 ? CM_SC_NR_ABSENT : nr;
}

static int entry_nr(const struct cm_sc_entry *e, const struct target *t)
{
	int nr = t->audit_arch == AUDIT_ARCH_X86_64 ? e->nr_x86_64 : e->nr_aarch64;

	return nr == CM_SC_NR_NAMED ? named_nr(e->call, t) : nr;
}

static bool in_profile(const struct cm_sc_entry *e, unsigned int profile)
{
	return e->profiles & (1U << profile);
}

static bool has_allow_if(const char *call, unsigned int profile)
{
	for (size_t i = 0; i < CM_SC_TABLE_N; i++) {
		if (cm_sc_table[i].kind == CM_SC_ALLOW_IF && in_profile(&cm_sc_table[i], profile) &&
		    strcmp(cm_sc_table[i].call, call) == 0)
			return true;
	}
	return false;
}

static void add_rule(scmp_filter_ctx ctx, uint32_t action, const struct cm_sc_entry *e, int nr,
		     const struct cm_sc_rule *rule)
{
	struct scmp_arg_cmp cmps[CM_SC_MAX_CMPS];
	int r;

	for (unsigned int i = 0; i < rule->n; i++) {
		const struct cm_sc_cmp *c = &rule->cmps[i];

		cmps[i] = (struct scmp_arg_cmp){
			.arg = c->arg,
			.op = c->op == CM_SC_MASKED ? SCMP_CMP_MASKED_EQ
			      : c->op == CM_SC_NE64 ? SCMP_CMP_NE
						    : SCMP_CMP_GE,
			.datum_a = c->op == CM_SC_MASKED ? c->mask : c->value,
			.datum_b = c->op == CM_SC_MASKED ? c->value : 0,
		};
	}
	r = seccomp_rule_add_array(ctx, action, nr, rule->n, cmps);
	if (r < 0)
		die("cannot add the rule of", e->call, -r);
}

static void add_allow_rule(scmp_filter_ctx ctx, const struct cm_sc_entry *e, int nr,
			   unsigned int profile)
{
	/* an unconditional rule would swallow the conditional ones of its call */
	static const struct cm_sc_rule always = { 1, { { 0, CM_SC_GE64, 0, 0 } } };

	if (e->kind == CM_SC_ALLOW || e->kind == CM_SC_ALLOW_IF)
		add_rule(ctx, SCMP_ACT_ALLOW, e, nr, &e->rule);
	/* ENOSYS is what the program answers anyway */
	else if (e->kind == CM_SC_ERRNO && e->error != ENOSYS)
		add_rule(ctx, SCMP_ACT_ERRNO((uint16_t)e->error), e, nr,
			 has_allow_if(e->call, profile) ? &always : &e->rule);
}

static void export_program(scmp_filter_ctx ctx, const struct target *t, struct cm_gen_program *ret)
{
	FILE *f = tmpfile();
	ssize_t len;
	int patched = 0;
	int r;

	if (!f)
		die("cannot make a temporary file for", t->name, errno);
	r = seccomp_export_bpf(ctx, fileno(f));
	if (r < 0)
		die("cannot export the program of", t->name, -r);
	len = pread(fileno(f), ret->insns, sizeof(ret->insns), 0);
	if (len <= 0 || (size_t)len == sizeof(ret->insns))
		die("cannot read the program of", t->name, len < 0 ? errno : EFBIG);
	(void)fclose(f);
	ret->n = (size_t)len / sizeof(ret->insns[0]);
	for (size_t i = 1; i < ret->n; i++) {
		const struct sock_filter *load = &ret->insns[i - 1];

		if (load->code != (BPF_LD | BPF_W | BPF_ABS) ||
		    load->k != offsetof(struct seccomp_data, arch))
			continue;
		ret->insns[i].k = t->audit_arch;
		patched++;
	}
	if (patched != 1)
		die("not exactly one compare of the architecture in the program of", t->name,
		    EINVAL);
}

/* libseccomp wants one action for all that no rule is of, and so two programs */
static void export_rules(const struct target *t, unsigned int profile, bool is_of_init, bool args,
			 struct cm_gen_program *ret)
{
	static const struct cm_sc_rule always = { 0 };
	scmp_filter_ctx ctx = seccomp_init(args ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(ENOSYS));

	if (!ctx || seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)) < 0 ||
	    /* a binary tree over the numbers instead of a list: a third of the time to load */
	    seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2) < 0)
		die("cannot begin the filter of", t->name, ENOMEM);
	for (size_t i = 0; i < CM_SC_TABLE_N; i++) {
		const struct cm_sc_entry *e = &cm_sc_table[i];
		int nr = entry_nr(e, t);

		if (nr == CM_SC_NR_ABSENT || !in_profile(e, profile))
			continue;
		if (is_of_init && cm_gen_is_of_init(e->call)) {
			/* of each such call there is one row that is not of its arguments */
			if (!args && e->kind != CM_SC_ARGS)
				add_rule(ctx, SCMP_ACT_ALLOW, e, nr, &always);
			continue;
		}
		if (!args)
			add_allow_rule(ctx, e, nr, profile);
		else if (e->kind == CM_SC_ARGS)
			add_rule(ctx, SCMP_ACT_ERRNO((uint16_t)e->error), e, nr, &e->rule);
	}
	export_program(ctx, t, ret);
	seccomp_release(ctx);
}

static void make_program(const struct target *t, unsigned int profile, bool is_of_init,
			 struct cm_gen_program *ret)
{
	static struct cm_gen_program allow;
	static struct cm_gen_program args;
	const char *wrong;

	export_rules(t, profile, is_of_init, false, &allow);
	export_rules(t, profile, is_of_init, true, &args);
	wrong = cm_gen_join(&allow, &args, t->audit_arch, ret);
	if (wrong)
		die(wrong, t->name, EINVAL);
}

static void make_rest(const struct target *t, unsigned int profile, struct cm_gen_program *ret)
{
	const char *wrong = cm_gen_rest(profile, t->audit_arch, named_nr, t, ret);

	if (wrong)
		die(wrong, t->name, EINVAL);
}

static void print_program(FILE *out, const struct target *t, const char *profile, const char *part,
			  const struct cm_gen_program *p)
{
	fprintf(out, "/* %zu instructions */\n", p->n);
	fprintf(out, "static const struct sock_filter %s_%s%s[] = {\n", t->name, profile, part);
	for (size_t i = 0; i < p->n; i++)
		fprintf(out, "\t{ 0x%02x, %u, %u, 0x%x },\n", p->insns[i].code, p->insns[i].jt,
			p->insns[i].jf, p->insns[i].k);
	fprintf(out, "};\n");
}

static void verify(const struct target *t, unsigned int profile,
		   const struct cm_gen_program *program, const struct cm_gen_program *over)
{
	struct cm_gen_subject s = {
		.machine = t->name,
		.audit_arch = t->audit_arch,
		.profile = profile,
		.program = program,
		.over = over,
	};

	for (size_t i = 0; i < CM_SC_TABLE_N; i++) {
		int nr = entry_nr(&cm_sc_table[i], t);

		if (nr == CM_SC_NR_ABSENT)
			continue;
		if (nr >= CM_GEN_NR_END ||
		    (s.calls[nr] && strcmp(s.calls[nr], cm_sc_table[i].call) != 0))
			die("the number cannot be right of", cm_sc_table[i].call, EINVAL);
		s.calls[nr] = cm_sc_table[i].call;
	}
	if (!cm_gen_verify(&s))
		exit(1);
}

static void print_target(FILE *out, const struct target *t)
{
	static struct cm_gen_program program;
	static struct cm_gen_program rest;

	for (unsigned int p = 1; p < CM_SECCOMP_COUNT_; p++) {
		make_program(t, p, false, &program);
		verify(t, p, &program, NULL);
		print_program(out, t, profiles[p], "", &program);
		make_program(t, p, true, &program);
		make_rest(t, p, &rest);
		verify(t, p, &program, &rest);
		print_program(out, t, profiles[p], "_init", &program);
		print_program(out, t, profiles[p], "_rest", &rest);
	}
}

int main(int argc, char **argv)
{
	FILE *out;

	if (argc != 2) {
		fprintf(stderr, "usage: gen_seccomp OUTPUT\n");
		return 1;
	}
	out = fopen(argv[1], "we");
	if (!out)
		die("cannot write", argv[1], errno);
	fprintf(out, "/* SPDX-License-Identifier: Apache-2.0 */\n/* made by gen_seccomp.c */\n");
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		fprintf(out, "#if defined(__%s__) || defined(CM_SECCOMP_ALL_MACHINES)\n",
			targets[i].name);
		print_target(out, &targets[i]);
		fprintf(out, "#endif\n");
	}
	if (fclose(out) != 0)
		die("cannot write", argv[1], errno);
	return 0;
}
