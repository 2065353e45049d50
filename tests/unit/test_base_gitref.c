/* SPDX-License-Identifier: Apache-2.0 */
/* Names of branches: git's own rules, by a table that git agrees with. */
#include "runtime/base/gitref.h"
#include "tests/unit/test_base.h"

static const char *const taken[] = {
	"a",	    "main",   "a/b",	  "a/b/c.d",	  "fix-login", "a-",  "a.b",  "a.lockx",
	"x.lock.y", "a{b}",   "a@b",	  "a@",		  "@a",	       "@/a", "a/@",  "a/-b",
	"HEAD/a",   "a/HEAD", "head",	  "refs/heads/a", "a!b",       "a'b", "a\"b", "a$b",
	"a(b)",	    "a;b",    "a#b",	  "a%b",	  "a&b",       "a,b", "a=b",  "a]b",
	"a|b",	    "a<b",    "\xc3\xa4", "\xff",
};

static const char *const refused[] = {
	/* components */
	"",
	"/",
	"a/",
	"/a",
	"a//b",
	".a",
	"a/.b",
	".",
	"..",
	"a/.",
	"a.lock",
	"a.lock/b",
	"a/b.lock",
	".lock",
	/* sequences */
	"a..b",
	"a/..",
	"a.",
	"a/b.",
	"a@{b",
	"@{",
	"@{-1}",
	"@{u}",
	/* bytes */
	"a b",
	" a",
	"a\t",
	"a\nb",
	"a\x01",
	"a\x1f",
	"a\x7f",
	"a~b",
	"a^b",
	"a:b",
	"a?b",
	"a*b",
	"a[b",
	"a\\b",
	/* other names */
	"@",
	"HEAD",
	"-",
	"-a",
	"--orphan",
};

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(taken); i++) {
		if (!cm_gitref_is_branch(taken[i]))
			fail_msg("'%s' is refused", taken[i]);
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(refused); i++) {
		if (cm_gitref_is_branch(refused[i]))
			fail_msg("'%s' is taken", refused[i]);
	}
}

static void test_lengths(void **state)
{
	char name[600];

	(void)state;
	memset(name, 'a', sizeof(name));
	name[250] = '\0';
	assert_true(cm_gitref_is_branch(name));
	name[250] = 'a';
	name[251] = '\0';
	assert_false(cm_gitref_is_branch(name));
	name[200] = '/';
	name[251] = 'a';
	name[400] = '\0';
	assert_true(cm_gitref_is_branch(name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
