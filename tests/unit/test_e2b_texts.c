/* SPDX-License-Identifier: Apache-2.0 */
/* Texts for E2B and from it: filters, environments, times, versions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "providers/e2b/e2b_internal.h"
#include "providers/e2b/texts.h"
#include "runtime/base/fd.h"

static void test_metadata_query(void **state)
{
	static const struct {
		const char *key;
		const char *value;
		const char *query;
	} rows[] = {
		/* as the service's own client sends them */
		{ "a b", "x&y=z", "a%252520b%3Dx%252526y%25253Dz" },
		{ "mastra-sandbox-id", "mastra-123", "mastra-sandbox-id%3Dmastra-123" },
		{ "k", "", "k%3D" },
		{ "k", "\xc3\xa4", "k%3D%2525C3%2525A4" },
		{ "k", "%", "k%3D%252525" },
		{ "k", "a.b_c~d", "k%3Da.b_c~d" },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		CM_AUTO_BUF struct cm_buf out = { .max = 4096 };

		cm_e2b_metadata_query(&out, rows[i].key, rows[i].value);
		assert_int_equal(cm_buf_status(&out), CM_OK);
		assert_string_equal(out.data, rows[i].query);
	}
}

static void test_env(void **state)
{
	static char *const second[] = { (char *)"B=of the request", (char *)"C=1",
					(char *)"C=\"2\"", NULL };
	CM_AUTO_STRV struct cm_strv first = { 0 };
	CM_AUTO_BUF struct cm_buf out = { .max = 4096 };
	struct cm_json_writer w;

	(void)state;
	assert_int_equal(cm_strv_add(&first, "A=old"), CM_OK);
	assert_int_equal(cm_strv_add(&first, "B=of the session"), CM_OK);
	assert_int_equal(cm_strv_add(&first, "A=x=y"), CM_OK);
	assert_int_equal(cm_strv_add(&first, "AB="), CM_OK);
	/* what is no variable */
	assert_int_equal(cm_strv_add(&first, "=x"), CM_OK);
	assert_int_equal(cm_strv_add(&first, "alone"), CM_OK);
	cm_jw_init(&w, &out, false);
	cm_e2b_write_env(&w, &first, second);
	assert_string_equal(out.data, "{\"A\":\"x=y\",\"AB\":\"\",\"B\":\"of the request\","
				      "\"C\":\"\\\"2\\\"\"}");
	cm_buf_reset(&out);
	cm_jw_init(&w, &out, false);
	cm_e2b_write_env(&w, NULL, NULL);
	assert_string_equal(out.data, "{}");
}

static void test_time(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = {
		{ "1970-01-01T00:00:00Z", 0 },
		{ "2026-11-29T16:11:26.42726751Z", INT64_C(1795968686427267510) },
		{ "2026-11-29T16:11:26Z", INT64_C(1795968686000000000) },
		{ "2026-11-29T16:11:26.1234567891Z", INT64_C(1795968686123456789) },
		{ "2026-11-29t18:11:26+02:00", INT64_C(1795968686000000000) },
		{ "2026-11-29T10:41:26-05:30", INT64_C(1795968686000000000) },
		{ "2024-02-29T00:00:00Z", INT64_C(1709164800000000000) },
		{ "2000-03-01T00:00:00Z", INT64_C(951868800000000000) },
	};
	static const char *const bad[] = {
		"",
		"now",
		"2026-11-29",
		"2026-11-29T16:11:26",
		"2026-11-29 16:11:26Z",
		"2026-13-29T16:11:26Z",
		"2026-11-29T24:11:26Z",
		"2026-11-29T16:11:26Zx",
		"2026-11-29T16:11:26+0200",
		"9999-11-29T16:11:26Z",
		"-026-11-29T16:11:26Z",
		"2026-11-29T16:11:26.Zx",
	};
	int64_t ns = 77;

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(good); i++) {
		assert_true(cm_e2b_time(good[i].text, &ns));
		assert_int_equal(ns, good[i].ns);
	}
	ns = 77;
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++)
		assert_false(cm_e2b_time(bad[i], &ns));
	assert_false(cm_e2b_time(NULL, &ns));
	assert_int_equal(ns, 77);
}

static void test_version(void **state)
{
	(void)state;
	assert_true(cm_e2b_is_version("0.6.13", 0, 5, 7));
	assert_true(cm_e2b_is_version("0.5.7", 0, 5, 7));
	assert_true(cm_e2b_is_version("0.5.10", 0, 5, 7));
	assert_true(cm_e2b_is_version("1.0", 0, 5, 7));
	assert_false(cm_e2b_is_version("0.5.6", 0, 5, 7));
	assert_false(cm_e2b_is_version("0.5", 0, 5, 7));
	assert_false(cm_e2b_is_version("", 0, 5, 7));
	assert_false(cm_e2b_is_version("v9", 0, 5, 7));
	assert_false(cm_e2b_is_version("99999999999999999999.0.0", 0, 5, 7));
	assert_false(cm_e2b_is_version(NULL, 0, 5, 7));
}

static void test_utf8(void **state)
{
	(void)state;
	assert_true(cm_e2b_is_text(""));
	assert_true(cm_e2b_is_text("h\xc3\xa9llo"));
	assert_false(cm_e2b_is_text("h\xe9llo"));
	assert_false(cm_e2b_is_text("\xff"));
	assert_false(cm_e2b_is_text("a\xc3"));
}

static void test_seconds(void **state)
{
	(void)state;
	assert_int_equal(cm_e2b_seconds(0), 1);
	assert_int_equal(cm_e2b_seconds(999), 1);
	assert_int_equal(cm_e2b_seconds(1001), 2);
	assert_int_equal(cm_e2b_seconds(60000), 60);
}

/* Without a key, or with half an address, nothing is opened; and no message has the key. */
static void test_open(void **state)
{
	static const struct {
		const char *key;
		const char *names;
	} bad[] = {
		{ NULL, "E2B_API_KEY" },
		{ " \n", "E2B_API_KEY" },
		{ "e2b_secret\r\nX-Evil: 1", "E2B_API_KEY" },
		{ "e2b secret", "E2B_API_KEY" },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		struct cm_config config = { .cwd = NULL };
		const struct cm_provider_config of = { .config = &config };
		struct cm_error err = CM_ERROR_INIT;
		struct cm_provider *p = NULL;

		if (bad[i].key)
			assert_int_equal(cm_strv_env_set(&config.env, "E2B_API_KEY", bad[i].key),
					 CM_OK);
		assert_int_equal(cm_e2b_ops.open(&of, &p, &err), CM_E_INVALID);
		assert_null(p);
		assert_non_null(strstr(err.msg, bad[i].names));
		assert_non_null(strstr(err.hint, bad[i].names));
		assert_null(strstr(err.msg, "secret"));
		cm_strv_clear(&config.env);
	}
}

static void test_open_trims(void **state)
{
	struct cm_config config = { .cwd = NULL };
	const struct cm_provider_config of = { .config = &config };
	struct cm_provider *p = NULL;

	(void)state;
	assert_int_equal(cm_strv_env_set(&config.env, "E2B_API_KEY", "  e2b_0a \n"), CM_OK);
	assert_int_equal(cm_e2b_ops.open(&of, &p, NULL), CM_OK);
	assert_string_equal(((struct cm_e2b *)(void *)p)->key_header, "X-API-Key: e2b_0a");
	assert_string_equal(((struct cm_e2b *)(void *)p)->places.api_url, "https://api.e2b.app");
	cm_e2b_ops.close(p);
	cm_strv_clear(&config.env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_metadata_query), cmocka_unit_test(test_env),
		cmocka_unit_test(test_time),	       cmocka_unit_test(test_version),
		cmocka_unit_test(test_utf8),	       cmocka_unit_test(test_seconds),
		cmocka_unit_test(test_open),	       cmocka_unit_test(test_open_trims),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
