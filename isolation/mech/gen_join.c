/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Make one program of two of libseccomp's, and that smaller, without changing an answer.
 *
 * Theory of operation.  libseccomp finds the call by a tree with a leaf a number, and tests
 * arguments a rule at a time.  Loading costs time for every instruction (the compiler in the
 * kernel) and for every number times the depth (the kernel tries each number once to learn which
 * are always allowed), and a start of a command pays it.  So:
 *
 *  1. The programs are followed for each number, with its arguments unknown, up to the first
 *     instruction that looks at an argument or returns: the number's leaf, of the second program
 *     where the first allows.  Neighbours with the same leaf become one range, and a search over
 *     ranges, with the fewest instructions that there can be, replaces the trees.
 *  2. What follows a leaf is copied, with equal tails shared, tests of nothing left out, a word
 *     that is there not loaded again, and the tests of several bits of a word made one.
 *
 * The generator runs the result against the table and against the original, so a mistake here
 * stops the build and cannot become a hole.
 */
#include "isolation/mech/gen_join.h"

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAX BPF_MAXINSNS
/* a target that is still a place in the program read */
#define LEAF(pc) ((size_t)MAX + (pc))
#define RANGES_MAX 256
/* compares one after the other: a number that is behind all of them passes them all */
#define CHAIN_MAX 5

/* an instruction with absolute targets, which survive moving */
struct insn {
	uint16_t code;
	uint32_t k;
	size_t t;
	size_t f;
};

struct range {
	uint32_t first;
	size_t leaf;
};

/* How a number is found among ranges: by a compare with one of them, or by compares with each single
 * number of another leaf than the rest. */
struct search {
	size_t n_insns;
	/* the first range of the upper part; 0: a chain */
	size_t split;
	size_t default_leaf;
};

struct work {
	/* both programs, one behind the other */
	struct insn in[2 * MAX];
	size_t n;
	size_t later;
	struct range ranges[RANGES_MAX];
	size_t n_ranges;
	struct search search[RANGES_MAX][RANGES_MAX];
	bool wanted[2 * MAX];
	size_t place[2 * MAX];
	struct insn out[MAX];
	size_t n_out;
	const char *wrong;
};

static bool is_load(const struct insn *i, size_t offset)
{
	return i->code == (BPF_LD | BPF_W | BPF_ABS) && i->k == offset;
}

static bool is_jump(const struct insn *i)
{
	return BPF_CLASS(i->code) == BPF_JMP;
}

/* A compare that leaves the accumulator as it was loaded and has two ways out. */
static bool is_bit_test(const struct insn *i)
{
	return i->code == (BPF_JMP | BPF_JSET | BPF_K);
}

static bool is_ret(const struct insn *i)
{
	return BPF_CLASS(i->code) == BPF_RET;
}

static void read_program(struct work *w, const struct cm_gen_program *p)
{
	size_t first = w->n;

	w->n += p->n;
	for (size_t i = 0; i < p->n; i++) {
		const struct sock_filter *s = &p->insns[i];
		struct insn *d = &w->in[first + i];

		*d = (struct insn){
			.code = s->code, .k = s->k, .t = first + i + 1, .f = first + i + 1
		};
		if (!is_jump(d))
			continue;
		d->t += BPF_OP(s->code) == BPF_JA ? s->k : s->jt;
		d->f += BPF_OP(s->code) == BPF_JA ? s->k : s->jf;
		if (d->t >= w->n || d->f >= w->n)
			w->wrong = "a jump leaves the program";
	}
	if (p->n == 0 || !is_ret(&w->in[w->n - 1]))
		w->wrong = "the program does not end with a return";
}

static bool same_insn(const struct insn *a, const struct insn *b)
{
	return a->code == b->code && a->k == b->k && (is_ret(a) || (a->t == b->t && a->f == b->f));
}

/* The last place that does the same from there on; jumps only go forward. */
static size_t same_later(const struct work *w, size_t pc)
{
	size_t last;

	/* a jump that decides nothing is what it leads to */
	while (is_jump(&w->in[pc]) && w->in[pc].t == w->in[pc].f)
		pc = w->in[pc].t;
	last = pc;
	for (size_t i = pc + 1; i < w->n; i++) {
		if (same_insn(&w->in[pc], &w->in[i]))
			last = i;
	}
	return last;
}

/* Whether the accumulator's value is of no use from there on. */
static bool starts_anew(const struct work *w, size_t pc)
{
	return BPF_CLASS(w->in[pc].code) == BPF_LD || is_ret(&w->in[pc]);
}

static bool is_jumped_to(const struct work *w, size_t pc)
{
	for (size_t i = 0; i < w->n; i++) {
		if (is_jump(&w->in[i]) && (w->in[i].t == pc || w->in[i].f == pc))
			return true;
	}
	return false;
}

/* libseccomp compares with nothing the half of an argument that a rule does not look at. */
static void drop_empty_test(struct work *w, size_t pc)
{
	struct insn *i = &w->in[pc];
	const struct insn *next = &w->in[pc + 1];
	bool nothing = i->code == (BPF_ALU | BPF_AND | BPF_K) && i->k == 0 &&
		       next->code == (BPF_JMP | BPF_JEQ | BPF_K) && next->k == 0;
	bool unread = BPF_CLASS(i->code) == BPF_LD && is_jump(next) && next->t == next->f;
	size_t to = next->t;

	if ((nothing || unread) && starts_anew(w, to))
		*i = (struct insn){ BPF_JMP | BPF_JA, 0, to, to };
}

/* `and bit; jeq bit` becomes `jset bit`, which leaves the accumulator as it was. */
static void make_bit_test(struct work *w, size_t pc)
{
	struct insn *and = &w->in[pc];
	const struct insn *eq = &w->in[pc + 1];
	uint32_t k = and->k;

	if (and->code != (BPF_ALU | BPF_AND | BPF_K) || k == 0 || (k & (k - 1)) != 0 ||
	    eq->code != (BPF_JMP | BPF_JEQ | BPF_K) || eq->k != k || !starts_anew(w, eq->t) ||
	    !starts_anew(w, eq->f))
		return;
	*and = (struct insn){ BPF_JMP | BPF_JSET | BPF_K, k, eq->t, eq->f };
}

/* A load and the compare behind it: what follows need not load the same word again. */
static void keep_loaded(struct work *w, size_t pc)
{
	const struct insn *load = &w->in[pc];
	struct insn *test = &w->in[pc + 1];

	if (BPF_CLASS(load->code) != BPF_LD || !is_jump(test) || is_jumped_to(w, pc + 1))
		return;
	while (is_load(&w->in[test->f], load->k)) {
		const struct insn *next = &w->in[test->f + 1];

		if (is_bit_test(test) && is_bit_test(next) && test->t == next->t) {
			test->k |= next->k;
			test->f = next->f;
		} else {
			test->f++;
		}
	}
	if (is_load(&w->in[test->t], load->k))
		test->t++;
}

/* From the end, so that what an instruction leads to is settled before it is. */
static void simplify(struct work *w)
{
	for (size_t pc = w->n; pc-- > 0;) {
		struct insn *i = &w->in[pc];

		if (is_ret(i))
			continue;
		i->t = same_later(w, i->t);
		i->f = same_later(w, i->f);
		/* the last instruction is a return, so there is one behind this */
		drop_empty_test(w, pc);
		make_bit_test(w, pc);
		keep_loaded(w, pc);
	}
}

/* Where the program that begins at pc looks at an argument, or returns, for this number. */
static size_t follow(const struct work *w, size_t pc, uint32_t audit_arch, uint32_t nr)
{
	uint32_t a = 0;

	for (;;) {
		const struct insn *i = &w->in[pc];
		bool taken;

		if (!is_jump(i)) {
			if (is_load(i, offsetof(struct seccomp_data, arch)))
				a = audit_arch;
			else if (is_load(i, offsetof(struct seccomp_data, nr)))
				a = nr;
			else
				return pc;
			pc++;
			continue;
		}
		switch (BPF_OP(i->code)) {
		case BPF_JEQ:
			taken = a == i->k;
			break;
		case BPF_JGT:
			taken = a > i->k;
			break;
		case BPF_JGE:
			taken = a >= i->k;
			break;
		case BPF_JSET:
			taken = (a & i->k) != 0;
			break;
		default:
			taken = true;
		}
		pc = taken ? i->t : i->f;
	}
}

static bool allows(const struct work *w, size_t pc)
{
	return is_ret(&w->in[pc]) && w->in[pc].k == SECCOMP_RET_ALLOW;
}

static size_t find_leaf(struct work *w, uint32_t audit_arch, uint32_t nr)
{
	size_t first = follow(w, 0, audit_arch, nr);
	size_t later = follow(w, w->later, audit_arch, nr);

	if (allows(w, first))
		return later;
	if (!is_ret(&w->in[first]) && !allows(w, later))
		w->wrong = "a call has rules in both programs";
	return first;
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a;
	uint32_t y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* A leaf can only change where some compare has its constant, or one above it. */
static void find_ranges(struct work *w, uint32_t audit_arch)
{
	static uint32_t edges[4 * MAX + 1];
	size_t n = 0;

	edges[n++] = 0;
	for (size_t i = 0; i < w->n; i++) {
		if (!is_jump(&w->in[i]))
			continue;
		edges[n++] = w->in[i].k;
		edges[n++] = w->in[i].k + 1;
	}
	qsort(edges, n, sizeof(edges[0]), compare_u32);
	for (size_t i = 0; i < n; i++) {
		size_t leaf = same_later(w, find_leaf(w, audit_arch, edges[i]));

		if (w->n_ranges > 0 && w->ranges[w->n_ranges - 1].leaf == leaf)
			continue;
		if (w->n_ranges == RANGES_MAX) {
			w->wrong = "the numbers have too many ranges";
			return;
		}
		w->ranges[w->n_ranges++] = (struct range){ edges[i], leaf };
	}
}

/* Everything that a wanted instruction leads to; jumps only go forward, so once is enough. */
static void want_followers(struct work *w)
{
	for (size_t pc = 0; pc < w->n; pc++) {
		const struct insn *i = &w->in[pc];

		if (!w->wanted[pc] || is_ret(i))
			continue;
		w->wanted[is_jump(i) ? i->t : pc + 1] = true;
		w->wanted[is_jump(i) ? i->f : pc + 1] = true;
	}
}

static size_t emit(struct work *w, uint16_t code, uint32_t k, size_t t, size_t f)
{
	if (w->n_out == MAX) {
		w->wrong = "the program has too many instructions";
		return 0;
	}
	w->out[w->n_out] = (struct insn){ code, k, t, f };
	return w->n_out++;
}

static bool is_single(const struct work *w, size_t range)
{
	return range + 1 < w->n_ranges && w->ranges[range + 1].first - w->ranges[range].first == 1;
}

/* Compares for each of [lo, hi) that has another leaf; SIZE_MAX: that is none of single numbers. */
static size_t chain_cost(const struct work *w, size_t lo, size_t hi, size_t default_leaf)
{
	size_t n = 0;

	for (size_t i = lo; i < hi; i++) {
		if (w->ranges[i].leaf == default_leaf)
			continue;
		if (!is_single(w, i) || ++n > CHAIN_MAX)
			return SIZE_MAX;
	}
	return n;
}

static struct search best_search(const struct work *w, size_t lo, size_t hi)
{
	struct search best = { .n_insns = SIZE_MAX };

	for (size_t i = lo; i < hi; i++) {
		size_t n = chain_cost(w, lo, hi, w->ranges[i].leaf);

		if (n < best.n_insns)
			best = (struct search){ .n_insns = n, .default_leaf = w->ranges[i].leaf };
	}
	for (size_t i = lo + 1; i < hi; i++) {
		size_t n = 1 + w->search[lo][i - 1].n_insns + w->search[i][hi - 1].n_insns;
		bool is_nearer = n == best.n_insns && best.split != 0 && i <= lo + (hi - lo) / 2;

		/* of equal ones the one that halves, so that no number is far away */
		if (n < best.n_insns || is_nearer)
			best = (struct search){ .n_insns = n, .split = i };
	}
	return best;
}

/* For all [lo, hi], the short ones first. */
static void plan_search(struct work *w)
{
	for (size_t len = 1; len <= w->n_ranges; len++) {
		for (size_t lo = 0; lo + len <= w->n_ranges; lo++)
			w->search[lo][lo + len - 1] = best_search(w, lo, lo + len);
	}
}

static void emit_chain(struct work *w, size_t lo, size_t hi, size_t default_leaf)
{
	size_t node = 0;

	for (size_t i = lo; i < hi && !w->wrong; i++) {
		if (w->ranges[i].leaf == default_leaf)
			continue;
		node = emit(w, BPF_JMP | BPF_JEQ | BPF_K, w->ranges[i].first,
			    LEAF(w->ranges[i].leaf), 0);
		w->out[node].f = w->n_out;
	}
	w->out[node].f = LEAF(default_leaf);
}

/* Where [lo, hi) is looked through: a leaf at once, or instructions that are emitted here. */
/* NOLINTNEXTLINE(misc-no-recursion): no deeper than the number of ranges */
static size_t emit_search(struct work *w, size_t lo, size_t hi)
{
	const struct search *search = &w->search[lo][hi - 1];
	size_t node = w->n_out;
	size_t to;

	if (w->wrong)
		return 0;
	if (search->n_insns == 0)
		return LEAF(search->default_leaf);
	if (search->split == 0) {
		emit_chain(w, lo, hi, search->default_leaf);
		return node;
	}
	(void)emit(w, BPF_JMP | BPF_JGE | BPF_K, w->ranges[search->split].first, 0, 0);
	to = emit_search(w, lo, search->split);
	w->out[node].f = to;
	to = emit_search(w, search->split, hi);
	w->out[node].t = to;
	return node;
}

static void copy_leaves(struct work *w)
{
	for (size_t i = 0; i < w->n_ranges; i++)
		w->wanted[w->ranges[i].leaf] = true;
	want_followers(w);
	for (size_t pc = 0; pc < w->n; pc++) {
		const struct insn *i = &w->in[pc];

		if (!w->wanted[pc])
			continue;
		w->place[pc] = emit(w, i->code, i->k, LEAF(i->t), LEAF(i->f));
	}
}

static const char *write_program(const struct work *w, struct cm_gen_program *ret)
{
	for (size_t pc = 0; pc < w->n_out; pc++) {
		const struct insn *i = &w->out[pc];
		struct sock_filter *o = &ret->insns[pc];
		size_t t = i->t >= MAX ? w->place[i->t - MAX] : i->t;
		size_t f = i->f >= MAX ? w->place[i->f - MAX] : i->f;

		*o = (struct sock_filter){ .code = i->code, .k = i->k };
		if (!is_jump(i))
			continue;
		if (t == f)
			return "a jump that decides nothing was left";
		if (t <= pc || f <= pc || t - pc - 1 > UINT8_MAX || f - pc - 1 > UINT8_MAX)
			return "a jump is too far for one instruction: shorten the table's rules";
		o->jt = (uint8_t)(t - pc - 1);
		o->jf = (uint8_t)(f - pc - 1);
	}
	ret->n = w->n_out;
	return NULL;
}

static bool begins_with_arch(const struct work *w, size_t pc, uint32_t audit_arch)
{
	return is_load(&w->in[pc], offsetof(struct seccomp_data, arch)) &&
	       w->in[pc + 1].code == (BPF_JMP | BPF_JEQ | BPF_K) && w->in[pc + 1].k == audit_arch;
}

const char *cm_gen_join(const struct cm_gen_program *first, const struct cm_gen_program *later,
			uint32_t audit_arch, struct cm_gen_program *ret)
{
	static struct work w;
	size_t bad_arch;

	memset(&w, 0, sizeof(w));
	read_program(&w, first);
	w.later = w.n;
	read_program(&w, later);
	if (w.wrong)
		return w.wrong;
	if (!begins_with_arch(&w, 0, audit_arch) || !begins_with_arch(&w, w.later, audit_arch))
		return "a program does not begin with the compare of the architecture";
	simplify(&w);
	find_ranges(&w, audit_arch);
	if (w.wrong)
		return w.wrong;
	if (w.n_ranges < 2)
		return "all numbers have one answer";
	bad_arch = w.in[1].f;
	if (!is_ret(&w.in[bad_arch]))
		return "another architecture's answer is not one instruction";
	emit(&w, w.in[0].code, w.in[0].k, 0, 0);
	emit(&w, w.in[1].code, w.in[1].k, 2, LEAF(bad_arch));
	emit(&w, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	plan_search(&w);
	(void)emit_search(&w, 0, w.n_ranges);
	w.wanted[bad_arch] = true;
	copy_leaves(&w);
	return w.wrong ? w.wrong : write_program(&w, ret);
}
