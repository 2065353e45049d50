/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test_base.h"

#include "isolation/checkout/fetch_error.h"
#include "runtime/cli/reason.h"

static const struct {
	const char *phase;
	int code;
	const char *helper_reason;
	const char *helper_code;
	const char *name;
	const char *detail;
} rows[] = {
	{ "checkout", CM_E_CHECKOUT, "name-unknown", "remote", "egress-blocked", "name" },
	{ "checkout", CM_E_CHECKOUT, "auth-refused", "denied", "clone-failed", "auth" },
	{ "checkout", CM_E_CHECKOUT, "not-found", "not-found", "clone-failed",
	  "missing-repository" },
	{ "checkout", CM_E_CHECKOUT, "", "not-found", "clone-failed", "missing-branch" },
	{ "checkout", CM_E_CHECKOUT, "", "system", "clone-failed", NULL },
	{ "checkout", CM_E_CHECKOUT, "of-a-later-version", "not-found", "clone-failed", NULL },
	{ "checkout", CM_E_TIMEOUT, "", "", "hang-guard", NULL },
	{ "checkout", CM_E_CANCELLED, "broken-off", "remote", "cancelled", NULL },
	{ "setup", CM_E_SETUP, "", "", "setup-failed", NULL },
	{ "setup", CM_E_NOT_FOUND, "", "", "setup-failed", "missing-secret" },
	{ "setup", CM_E_ISOLATION, "", "", "isolation-unavailable", NULL },
	/* what a checkout said is no reason of what came later */
	{ "start", CM_E_SYS, "auth-refused", "denied", "system", NULL },
	{ "run", CM_E_TIMEOUT, "", "", "command-timeout", NULL },
	{ "start", CM_E_TIMEOUT, "", "", "timeout", NULL },
};

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		const struct cm_reason *r = cm_reason_find(
			rows[i].phase, rows[i].code, rows[i].helper_reason, rows[i].helper_code);

		if (strcmp(r->name, rows[i].name) != 0 ||
		    strcmp(r->detail ? r->detail : "", rows[i].detail ? rows[i].detail : "") != 0)
			fail_msg("row %zu: %s (%s)", i, r->name, r->detail ? r->detail : "");
	}
}

/* What the helper can say has a row, and each row can come to something. */
static void test_is_complete(void **state)
{
	static const char *const said[] = {
#define X(id, name) name,
		CM_FETCH_REASONS(X)
#undef X
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(said); i++) {
		const struct cm_reason *r =
			cm_reason_find("checkout", CM_E_CHECKOUT, said[i], "remote");

		if (!r->helper || strcmp(r->helper, said[i]) != 0)
			fail_msg("'%s' has no row", said[i]);
	}
	for (size_t i = 0; i < cm_n_reasons; i++) {
		const struct cm_reason *row = &cm_reasons[i];
		bool is_code = row->helper && strncmp(row->helper, "code:", 5) == 0;
		const char *reason = row->helper && !is_code ? row->helper : "";
		const char *code = is_code ? row->helper + 5 : "";

		if (cm_reason_find(row->phase ? row->phase : "start",
				   row->code ? row->code : CM_E_CHECKOUT, reason, code) != row)
			fail_msg("row %zu is behind another", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_is_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
