/* SPDX-License-Identifier: Apache-2.0 */
/* Which provider has the sessions: the rule and its edges, as a table. */
#include "tests/unit/test_base.h"

#include "providers/selection.h"

#define PLATFORM "MASTRA_PROJECT_ID=p", "MASTRA_ENVIRONMENT_ID=e"
#define TOKEN "MASTRA_PLATFORM_ACCESS_TOKEN=t"
#define SECRET "MASTRA_PLATFORM_SECRET_KEY=s"
#define KEY "E2B_API_KEY=k"
#define LOCAL "nothing names another one"
#define HALF LOCAL "; of platform's variables some are missing: 'casemate provider ls'"
#define FACTORY "FACTORY_SANDBOX_PROVIDER chooses 'local' or nothing; CASEMATE_PROVIDER names any"
#define PLATFORM_SET "MASTRA_PROJECT_ID, MASTRA_ENVIRONMENT_ID and a token are set"

static const struct row {
	const char *env[6];
	const char *flag;
	/* NULL: refused, and the reason is the message */
	const char *name;
	const char *reason;
} rows[] = {
	{ { NULL }, NULL, "local", LOCAL },
	/* a token each, and both */
	{ { PLATFORM, TOKEN }, NULL, "platform", PLATFORM_SET },
	{ { PLATFORM, SECRET }, NULL, "platform", PLATFORM_SET },
	{ { PLATFORM, TOKEN, SECRET }, NULL, "platform", PLATFORM_SET },
	{ { PLATFORM, "MASTRA_PLATFORM_ACCESS_TOKEN=", SECRET }, NULL, "platform", PLATFORM_SET },
	/* before e2b, and after it where one is missing */
	{ { PLATFORM, TOKEN, KEY }, NULL, "platform", PLATFORM_SET },
	{ { PLATFORM, KEY }, NULL, "e2b", "E2B_API_KEY is set" },
	{ { PLATFORM }, NULL, "local", HALF },
	{ { "MASTRA_PROJECT_ID=p", TOKEN, KEY }, NULL, "e2b", "E2B_API_KEY is set" },
	{ { "MASTRA_ENVIRONMENT_ID=e", TOKEN }, NULL, "local", HALF },
	{ { "MASTRA_PROJECT_ID= \t", "MASTRA_ENVIRONMENT_ID=e", TOKEN }, NULL, "local", HALF },
	{ { PLATFORM, "MASTRA_PLATFORM_ACCESS_TOKEN= \n" }, NULL, "local", HALF },
	{ { KEY }, NULL, "e2b", "E2B_API_KEY is set" },
	{ { "E2B_API_KEY=" }, NULL, "local", LOCAL },
	{ { "E2B_API_KEY= \t\r\n" }, NULL, "local", LOCAL },
	{ { "E2B_API_KEY= k " }, NULL, "e2b", "E2B_API_KEY is set" },
	/* exactly the word, trimmed */
	{ { "FACTORY_SANDBOX_PROVIDER=local", KEY },
	  NULL,
	  "local",
	  "FACTORY_SANDBOX_PROVIDER names it" },
	{ { "FACTORY_SANDBOX_PROVIDER= local\n", PLATFORM, TOKEN },
	  NULL,
	  "local",
	  "FACTORY_SANDBOX_PROVIDER names it" },
	{ { "FACTORY_SANDBOX_PROVIDER=LOCAL", KEY }, NULL, "e2b", "E2B_API_KEY is set" },
	{ { "FACTORY_SANDBOX_PROVIDER=locally", KEY }, NULL, "e2b", "E2B_API_KEY is set" },
	{ { "FACTORY_SANDBOX_PROVIDER=e2b" }, NULL, "local", FACTORY },
	{ { "FACTORY_SANDBOX_PROVIDER=e2b", PLATFORM, TOKEN }, NULL, "platform", PLATFORM_SET },
	{ { "FACTORY_SANDBOX_PROVIDER=platform", KEY }, NULL, "e2b", "E2B_API_KEY is set" },
	{ { "FACTORY_SANDBOX_PROVIDER=  ", KEY }, NULL, "e2b", "E2B_API_KEY is set" },
	/* who runs the platform's sandboxes is another question */
	{ { "SANDBOX_PROVIDER=e2b" }, NULL, "local", LOCAL },
	/* ours counts first, and is checked */
	{ { "CASEMATE_PROVIDER= local ", KEY }, NULL, "local", "CASEMATE_PROVIDER names it" },
	{ { "CASEMATE_PROVIDER=e2b" }, NULL, "e2b", "CASEMATE_PROVIDER names it" },
	{ { "CASEMATE_PROVIDER=platform", "FACTORY_SANDBOX_PROVIDER=local" },
	  NULL,
	  "platform",
	  "CASEMATE_PROVIDER names it" },
	{ { "CASEMATE_PROVIDER=", KEY }, NULL, "e2b", "E2B_API_KEY is set" },
	{ { "CASEMATE_PROVIDER=E2B", KEY },
	  NULL,
	  NULL,
	  "CASEMATE_PROVIDER names no provider: 'E2B'" },
	/* the command line before all */
	{ { "CASEMATE_PROVIDER=e2b" }, "local", "local", "--provider names it" },
	{ { "CASEMATE_PROVIDER=nonsense" }, "e2b", "e2b", "--provider names it" },
	{ { KEY }, "", NULL, "--provider names no provider: ''" },
	{ { KEY }, "docker", NULL, "--provider names no provider: 'docker'" },
};

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		CM_AUTO_STRV struct cm_strv env = { 0 };
		struct cm_error err = CM_ERROR_INIT;
		struct cm_selection selection;
		int r;

		for (size_t v = 0; v < CM_ARRAY_SIZE(rows[i].env) && rows[i].env[v]; v++)
			assert_int_equal(cm_strv_add(&env, rows[i].env[v]), CM_OK);
		r = cm_provider_select(&env, rows[i].flag, &selection, &err);
		if (!rows[i].name) {
			assert_int_equal(r, CM_E_INVALID);
			assert_string_equal(err.msg, rows[i].reason);
			assert_true(err.hint[0] != '\0');
			continue;
		}
		if (r != CM_OK)
			fail_msg("row %zu: %s", i, err.msg);
		assert_string_equal(cm_provider_kind_name(selection.kind), rows[i].name);
		assert_string_equal(selection.reason, rows[i].reason);
	}
}

/* What each needs is what its selection asks for. */
static void test_variables(void **state)
{
	(void)state;
	for (unsigned int kind = 0; kind < CM_PROVIDER_COUNT_; kind++) {
		CM_AUTO_STRV struct cm_strv env = { 0 };
		struct cm_selection selection;

		for (const struct cm_provider_variable *v =
			     cm_provider_variables((enum cm_provider_kind)kind);
		     v->name; v++) {
			assert_false(v->is_alternative && !v->is_needed);
			if (v->is_needed && !v->is_alternative)
				assert_int_equal(cm_strv_env_set(&env, v->name, "x"), CM_OK);
		}
		assert_int_equal(cm_provider_select(&env, NULL, &selection, NULL), CM_OK);
		assert_int_equal(selection.kind, kind);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_variables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
