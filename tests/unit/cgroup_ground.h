/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real control groups for tests, as root: plans, processes in groups, and where the host has what.
 *
 * Every test runs once on v1 and once on v2, with whichever of the two hierarchies the host has;
 * a test whose controllers are on the other one is skipped. Nothing may be left behind.
 */
#ifndef CM_TESTS_UNIT_CGROUP_GROUND_H
#define CM_TESTS_UNIT_CGROUP_GROUND_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "isolation/mech/cgroup.h"
#include "isolation/mech/cgroup_internal.h"

#define INIT_KUID (CM_ID_SLOT_BASE + CM_ID_INIT)
#define MIB (1024ULL * 1024)

/* One kind of hierarchy, as found here. */
struct ground {
	enum cm_plan_cgroup kind;
	uint32_t controllers;
	/* v2: the base was there before the tests */
	bool had_base;
	/* of the plan: one path (v2), or CM_CG_N lines */
	char base[CM_CG_N * PATH_MAX];
	char dir[CM_CG_N][PATH_MAX];
};

/* v1, v2 */
extern struct ground grounds[2];

/* The one plan under construction. */
struct maker {
	struct cm_plan_header header;
	char strings[sizeof(grounds[0].base) + 512];
	size_t len;
	struct cm_plan plan;
};
extern struct maker maker;

uint32_t plan_put(const char *s);
/* Starts the plan anew, without limits; the tests add theirs. */
struct cm_plan_header *plan_for(const struct ground *g, const char *id);
const char *own_id(void);
/* The group of the plan; the test fails without. */
void make(struct cm_cgroup *cg);
/* The test's ground; skips when that lacks one of these. */
struct ground *need(void **state, uint32_t controllers);
bool is_there(const struct ground *g, size_t i, const char *id);
void assert_all_gone(const struct ground *g, const char *id);

pid_t clone_into(int group_fd);
/* fork into the group, as init is, or into a leaf, as an exec is: 0 in the child. */
pid_t fork_in(const struct cm_cgroup *cg);
pid_t fork_in_leaf(const struct cm_cgroup *cg, const struct cm_cgroup_leaf *leaf);
pid_t sleeper_in(const struct cm_cgroup *cg);
/* Never the same process twice: what a reader of process numbers cannot catch up with. */
_Noreturn void run_chain(void);
int wait_for(pid_t pid);
void reap_all(void);
/* A file of the group in one hierarchy, without the newline. */
const char *value_of(const struct cm_cgroup *cg, size_t i, const char *file);

/* Runs the tests; 77 when none could run here. */
int ground_main(const struct CMUnitTest *tests, size_t n);

#define ON(n, test)                                                                                \
	{                                                                                          \
		"v" #n "_" #test, test, NULL, NULL, &grounds[(n)-1]                                \
	}
#define BOTH(test) ON(1, test), ON(2, test)

#endif
