/* SPDX-License-Identifier: Apache-2.0 */
/* Which branches and tags a shallow fetch brings. */
#include <stdio.h>
#include <string.h>

#include "casemate/error.h"
#include "isolation/checkout/names.h"
#include "tests/unit/test_base.h"

#define ID(c) c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c

/* what there is: a tag and a branch of one name, an annotated tag, a request's head */
static const char *const server[][2] = {
	{ "HEAD", ID("1") },
	{ "refs/heads/both", ID("2") },
	{ "refs/heads/main", ID("1") },
	{ "refs/heads/side", ID("3") },
	{ "refs/pull/7/head", ID("4") },
	{ "refs/tags/both", ID("5") },
	{ "refs/tags/v1", ID("6") },
	{ "refs/tags/v1^{}", ID("7") },
};

/* The names that are fetched, each with a space after it; "all". */
static const char *chosen(const char *ref, const char *branch, const char *had)
{
	static char text[400];
	struct cm_names names = { 0 };
	size_t len = 0;

	assert_int_equal(cm_names_init(&names, ref, branch), CM_OK);
	assert_int_equal(cm_names_want(&names, "refs/heads/main"), CM_OK);
	if (had)
		assert_int_equal(cm_names_had(&names, had), CM_OK);
	for (size_t i = 0; i < CM_ARRAY_SIZE(server); i++)
		assert_int_equal(cm_names_offer(&names, server[i][0], server[i][1]), CM_OK);
	cm_names_end(&names);
	text[0] = '\0';
	for (size_t i = 0; i < names.chosen.n; i++) {
		assert_true(names.is_all || cm_names_has(&names, names.chosen.v[i]));
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s ",
					strrchr(names.chosen.v[i], '/') - 1);
	}
	if (names.is_all)
		(void)snprintf(text, sizeof(text), "all");
	cm_names_clear(&names);
	return text;
}

static void test_choice(void **state)
{
	(void)state;
	assert_string_equal(chosen(NULL, NULL, NULL), "s/main ");
	assert_string_equal(chosen("HEAD", NULL, NULL), "s/main ");
	assert_string_equal(chosen("side", NULL, NULL), "s/main s/side ");
	assert_string_equal(chosen("heads/side", NULL, NULL), "s/main s/side ");
	assert_string_equal(chosen("refs/heads/side", NULL, NULL), "s/main s/side ");
	assert_string_equal(chosen("v1", NULL, NULL), "s/main s/v1 ");
	/* that it is ambiguous is told by who sees both */
	assert_string_equal(chosen("both", NULL, NULL), "s/both s/main s/both ");
	assert_string_equal(chosen("v1", "side", NULL), "s/main s/side s/v1 ");
	assert_string_equal(chosen(NULL, "new", NULL), "s/main ");
	/* it is fetched beside branches and tags */
	assert_string_equal(chosen("refs/pull/7/head", NULL, NULL), "s/main ");
}

static void test_ids(void **state)
{
	(void)state;
	assert_string_equal(chosen(ID("3"), NULL, NULL), "s/main s/side ");
	assert_string_equal(chosen("3333", NULL, NULL), "s/main s/side ");
	assert_string_equal(chosen(ID("6"), NULL, NULL), "s/main s/v1 ");
	assert_string_equal(chosen(ID("7"), NULL, NULL), "s/main s/v1 ");
	assert_string_equal(chosen(ID("8"), NULL, NULL), "all");
	assert_string_equal(chosen(ID("4"), NULL, NULL), "all");
	assert_string_equal(chosen("333", NULL, NULL), "all");
	assert_string_equal(chosen("none", NULL, NULL), "all");
}

static void test_mirror(void **state)
{
	(void)state;
	assert_string_equal(chosen(NULL, NULL, "refs/heads/side"), "s/main s/side ");
	assert_string_equal(chosen("side", NULL, "refs/heads/side"), "s/main s/side ");
	assert_string_equal(chosen(NULL, NULL, "refs/heads/gone"), "s/main ");
	assert_string_equal(chosen(NULL, NULL, "refs/pull/7/head"), "s/main ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_mirror),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
