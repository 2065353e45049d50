/* SPDX-License-Identifier: Apache-2.0 */
/* What is told with the end of a command that could not reach the network. */
#include <sys/resource.h>

#include "isolation/keeper/serve.h"
#include "tests/unit/test_base.h"

static struct cm_serve serve;
static struct cm_plan_header header = { .flags = CM_PLANF_NETNS };
static const struct cm_plan plan = { .header = &header };

/* The attempts that are told of a command that exits with 1. */
static uint32_t attempts(uint64_t before)
{
	struct cm_serve_exec exec = { .serve = &serve, .wait_status = 1 << 8 };
	struct cm_rec_end end = { 0 };

	serve.plan = &plan;
	serve.refused_before = before;
	cm_serve_fill_end(&exec, &end);
	assert_int_equal(end.kind, CM_END_EXIT);
	assert_int_equal(end.status, 1);
	return end.detail;
}

static void test_unreadable(void **state)
{
	struct rlimit was;
	struct rlimit none;
	uint32_t told;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = was.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	told = attempts(5);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(told, 0);
	/* what was told already is not told again, once it can be read */
	assert_int_equal(serve.refused_before, 5);
}

static void test_fewer_than_before(void **state)
{
	(void)state;
	assert_int_equal(attempts(UINT64_MAX), 0);
	if (access("/proc/self/net/snmp", R_OK) == 0)
		assert_true(serve.refused_before < UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_fewer_than_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
