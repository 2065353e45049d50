/* SPDX-License-Identifier: Apache-2.0 */
/* Who keeps which capabilities: a pure function of the plan's header. */
#include <linux/capability.h>

#include "isolation/mech/caps.h"
#include "tests/unit/test_base.h"

#define BIT(cap) (1ULL << (cap))

static struct cm_plan_header header;
static const struct cm_plan plan = { .header = &header };

static const uint32_t idmaps[] = { CM_IDMAP_SINGLE, CM_IDMAP_SUBIDS, CM_IDMAP_SLOT };
static const uint32_t all_flags[] = { 0, CM_PLANF_TEMPORARY, CM_PLANF_ROOT_USER,
				      CM_PLANF_TEMPORARY | CM_PLANF_ROOT_USER };
static const uint32_t cgroups[] = { CM_CGROUP_NONE, CM_CGROUP_V1, CM_CGROUP_V2 };

static void for_each_plan(void (*check)(void))
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(idmaps); i++) {
		for (size_t j = 0; j < CM_ARRAY_SIZE(all_flags); j++) {
			for (size_t k = 0; k < CM_ARRAY_SIZE(cgroups); k++) {
				header.idmap = idmaps[i];
				header.flags = all_flags[j];
				header.cgroup = cgroups[k];
				check();
			}
		}
	}
}

/* Else whoever has init's id has all that the kernel asks of one who would change or read it. */
static void check_apart(void)
{
	if ((cm_caps_of_init(&plan) & ~cm_caps_of_exec(&plan)) == 0)
		fail_msg("id map %u, flags %x, cgroup %u: a command has all that init has",
			 (unsigned int)header.idmap, (unsigned int)header.flags,
			 (unsigned int)header.cgroup);
}

static void test_apart(void **state)
{
	(void)state;
	for_each_plan(check_apart);
}

/* What init hands on it must hold. */
static void check_covers(void)
{
	assert_int_equal(cm_caps_of_exec(&plan) & ~cm_caps_of_init(&plan), 0);
}

static void test_covers(void **state)
{
	(void)state;
	for_each_plan(check_covers);
}

static void test_least(void **state)
{
	(void)state;
	header = (struct cm_plan_header){ .idmap = CM_IDMAP_SINGLE, .flags = CM_PLANF_TEMPORARY };
	assert_int_equal(cm_caps_of_init(&plan), BIT(CAP_SYS_PTRACE));
	assert_int_equal(cm_caps_of_exec(&plan), 0);
	header.flags = 0;
	assert_int_equal(cm_caps_of_init(&plan), BIT(CAP_SYS_PTRACE) | BIT(CAP_SYS_ADMIN));
	header.idmap = CM_IDMAP_SLOT;
	assert_int_equal(cm_caps_of_init(&plan), BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_KILL));
	assert_int_equal(cm_caps_of_exec(&plan), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_apart),
		cmocka_unit_test(test_covers),
		cmocka_unit_test(test_least),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
