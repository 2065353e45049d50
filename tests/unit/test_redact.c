/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test_base.h"

#include "runtime/cli/redact.h"

static const struct {
	/* separated by '|' */
	const char *secrets;
	const char *text;
	const char *want;
} rows[] = {
	{ "A=geheim", "das ist geheim.", "das ist ***." },
	{ "A=geheim", "geheimgeheim", "******" },
	{ "A=geheim", "gegeheim gehei", "ge*** gehei" },
	{ "A=aab", "aaab", "a***" },
	{ "A=abc|B=abcdef", "abcdef abcde abd", "*** ***de abd" },
	{ "A=abcdef|B=abc", "abcdef abcde", "*** ***de" },
	{ "A=a=b", "x a=b y", "x *** y" },
	{ "A=|B=", "nothing", "nothing" },
	{ "A=line\none", "a line\none b", "a *** b" },
	{ "A=x", "", "" },
};

static void split(const char *text, struct cm_strv *ret)
{
	char copy[128];
	char *save = NULL;

	(void)snprintf(copy, sizeof(copy), "%s", text);
	for (char *w = strtok_r(copy, "|", &save); w; w = strtok_r(NULL, "|", &save))
		assert_int_equal(cm_strv_add(ret, w), CM_OK);
}

/* Whatever pieces it comes in, the same comes out. */
static void test_pieces(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		size_t len = strlen(rows[i].text);

		for (size_t step = 1; step <= len + 1; step++) {
			struct cm_strv secrets = { 0 };
			struct cm_redact redact;
			struct cm_buf out;

			split(rows[i].secrets, &secrets);
			cm_redact_init(&redact, &secrets);
			cm_buf_init(&out, 1000);
			for (size_t at = 0; at < len; at += step)
				cm_redact_add(&redact, rows[i].text + at,
					      len - at < step ? len - at : step, false, &out);
			cm_redact_add(&redact, "", 0, true, &out);
			if (strcmp(out.data ? out.data : "", rows[i].want) != 0)
				fail_msg("'%s' in steps of %zu: '%s'", rows[i].text, step,
					 out.data ? out.data : "");
			cm_buf_clear(&out);
			cm_redact_clear(&redact);
			cm_strv_clear(&secrets);
		}
	}
}

/* What cannot be looked through does not come out. */
static void test_no_memory(void **state)
{
	struct cm_strv secrets = { 0 };
	struct cm_redact redact;
	struct cm_buf out;

	(void)state;
	split("A=secret", &secrets);
	cm_redact_init(&redact, &secrets);
	cm_buf_init(&out, 1000);
	cm_alloc_fail_after(0);
	cm_redact_add(&redact, "secret", 6, true, &out);
	cm_alloc_fail_after(-1);
	assert_int_equal(out.len, 0);
	cm_redact_add(&redact, "secret", 6, true, &out);
	assert_string_equal(out.data, CM_REDACTED);
	cm_buf_clear(&out);
	cm_redact_clear(&redact);
	cm_strv_clear(&secrets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
