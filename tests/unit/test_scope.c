/* SPDX-License-Identifier: Apache-2.0 */
/* Names and paths of casemate-scope; systemd itself is met in a virtual machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "isolation/keeper/scope_text.h"
#include "runtime/base/fd.h"

static void test_unit_name(void **state)
{
	static const char *const bad[] = { "", "a/b", "a b", "a\n", "a@b", "\xc3\xa9", "a\\x2d" };
	char name[CM_SCOPE_UNIT_SIZE] = "untouched";
	char longest[130];

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++)
		assert_false(cm_scope_unit_name(bad[i], name, sizeof(name)));
	assert_true(cm_scope_unit_name("My_repo-1.x", name, sizeof(name)));
	assert_string_equal(name, "casemate-My_repo-1.x.scope");
	memset(longest, 'z', sizeof(longest));
	longest[129] = '\0';
	assert_false(cm_scope_unit_name(longest, name, sizeof(name)));
	longest[128] = '\0';
	assert_true(cm_scope_unit_name(longest, name, sizeof(name)));
	assert_int_equal(strlen(name), strlen("casemate-.scope") + 128);
	assert_false(cm_scope_unit_name("abc", name, 10));
}

static void test_own_dir(void **state)
{
	static const char unit[] = "casemate-a.scope";
	char dir[256];

	(void)state;
	assert_true(cm_scope_own_dir("0::/user.slice/user-1000.slice/user@1000.service/"
				     "casemate.slice/casemate-a.scope\n",
				     unit, dir, sizeof(dir)));
	assert_string_equal(dir, "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/"
				 "casemate.slice/casemate-a.scope");
	/* a hybrid host: the v2 line is not the first */
	assert_true(cm_scope_own_dir("1:name=systemd:/x\n0::/casemate-a.scope", unit, dir,
				     sizeof(dir)));
	assert_string_equal(dir, "/sys/fs/cgroup/casemate-a.scope");
}

static void test_not_own_dir(void **state)
{
	static const char *const texts[] = {
		"",
		"0::",
		"0::/",
		"0::/user.slice/session-3.scope\n",
		/* only the end of the name */
		"0::/user.slice/other-casemate-a.scope\n",
		/* below it, not it: the move did not happen, or twice */
		"0::/casemate-a.scope/keeper\n",
		"0::/casemate-a.scope (deleted)\n",
		"0::/../casemate-a.scope\n",
		"0::casemate-a.scope\n",
		"4:memory:/casemate-a.scope\n",
		"10::/casemate-a.scope\n",
	};
	char dir[64] = "untouched";

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(texts); i++)
		assert_false(cm_scope_own_dir(texts[i], "casemate-a.scope", dir, sizeof(dir)));
	assert_string_equal(dir, "untouched");
	assert_false(cm_scope_own_dir("0::/casemate-a.scope\n", "casemate-a.scope", dir, 20));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unit_name),
		cmocka_unit_test(test_own_dir),
		cmocka_unit_test(test_not_own_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
