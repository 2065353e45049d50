/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses a configuration of E2B means; and which ones are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "providers/e2b/places.h"
#include "runtime/base/fd.h"

#define ID "i7piecou5rpm8e43pyg66"

struct row {
	/* what the variables are; NULL: not set */
	const char *domain;
	const char *api_url;
	const char *sandbox_url;
	/* what the service says of the sandbox */
	const char *told;
	/* what comes of it */
	const char *api;
	const char *agent;
	const char *port;
};

static const struct row rows[] = {
	{ NULL, NULL, NULL, NULL, "https://api.e2b.app", "https://sandbox.e2b.app",
	  "https://3000-" ID ".e2b.app" },
	{ "my.dev", NULL, NULL, NULL, "https://api.my.dev", "https://49983-" ID ".my.dev",
	  "https://3000-" ID ".my.dev" },
	{ "e2b.dev", NULL, NULL, NULL, "https://api.e2b.dev", "https://sandbox.e2b.dev",
	  "https://3000-" ID ".e2b.dev" },
	{ NULL, NULL, NULL, "other.dev", "https://api.e2b.app", "https://49983-" ID ".other.dev",
	  "https://3000-" ID ".other.dev" },
	{ NULL, "http://127.0.0.1:3939", "http://127.0.0.1:3939", "localhost:3939",
	  "http://127.0.0.1:3939", "http://127.0.0.1:3939", "https://3000-" ID ".localhost:3939" },
	{ NULL, "http://127.0.0.1:3939/", " http://127.0.0.1:4040/x/ ", NULL,
	  "http://127.0.0.1:3939", "http://127.0.0.1:4040/x", "https://3000-" ID ".e2b.app" },
	/* the pair is not disturbed by a domain */
	{ "my.dev", "https://api.one", "https://box.one", NULL, "https://api.one",
	  "https://box.one", "https://3000-" ID ".my.dev" },
	/* who names the domain says where the other side is */
	{ "my.dev", "https://api.one", NULL, NULL, "https://api.one", "https://49983-" ID ".my.dev",
	  "https://3000-" ID ".my.dev" },
	/* blanks and nothing are nothing */
	{ "  ", "", NULL, NULL, "https://api.e2b.app", "https://sandbox.e2b.app",
	  "https://3000-" ID ".e2b.app" },
};

static void set(struct cm_strv *env, const char *name, const char *value)
{
	if (value)
		assert_int_equal(cm_strv_env_set(env, name, value), CM_OK);
}

static void fill(struct cm_strv *env, const char *domain, const char *api, const char *sandbox)
{
	set(env, "E2B_DOMAIN", domain);
	set(env, "E2B_API_URL", api);
	set(env, "E2B_SANDBOX_URL", sandbox);
}

static void assert_text(char *text, const char *expected)
{
	assert_non_null(text);
	assert_string_equal(text, expected);
	free(text);
}

static void test_matrix(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];
		CM_AUTO_STRV struct cm_strv env = { 0 };
		struct cm_error err = CM_ERROR_INIT;
		struct cm_e2b_places places;

		fill(&env, row->domain, row->api_url, row->sandbox_url);
		if (cm_e2b_places_read(&env, &places, &err) != CM_OK)
			fail_msg("row %zu: %s", i, err.msg);
		assert_string_equal(places.api_url, row->api);
		assert_text(cm_e2b_agent_url(&places, row->told, ID), row->agent);
		assert_text(cm_e2b_port_url(&places, row->told, ID, 3000), row->port);
		cm_e2b_places_clear(&places);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *domain;
		const char *api_url;
		const char *sandbox_url;
		const char *debug;
		/* of the message or the hint */
		const char *names;
	} bad[] = {
		/* half of a pair would have the other half go to the cloud */
		{ NULL, "http://127.0.0.1:3939", NULL, NULL, "E2B_SANDBOX_URL" },
		{ NULL, "https://api.mine.dev", " ", NULL, "E2B_SANDBOX_URL" },
		{ NULL, NULL, "http://127.0.0.1:3939", NULL, "E2B_API_URL" },
		{ NULL, "http://10.0.0.1:3939", "http://127.0.0.1:3939", NULL, "E2B_API_URL" },
		{ NULL, "http://127.0.0.1:3939", "ftp://127.0.0.1", NULL, "E2B_SANDBOX_URL" },
		{ NULL, "https://u:p@host", "https://host", NULL, "E2B_API_URL" },
		{ "https://e2b.app", NULL, NULL, NULL, "E2B_DOMAIN" },
		{ "e2b.app/x", NULL, NULL, NULL, "E2B_DOMAIN" },
		{ "u@e2b.app", NULL, NULL, NULL, "E2B_DOMAIN" },
		{ ".app", NULL, NULL, NULL, "E2B_DOMAIN" },
		{ NULL, NULL, NULL, "true", "E2B_DEBUG" },
		{ NULL, NULL, NULL, "TRUE", "E2B_DEBUG" },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		CM_AUTO_STRV struct cm_strv env = { 0 };
		struct cm_error err = CM_ERROR_INIT;
		struct cm_e2b_places places;
		int r;

		fill(&env, bad[i].domain, bad[i].api_url, bad[i].sandbox_url);
		set(&env, "E2B_DEBUG", bad[i].debug);
		r = cm_e2b_places_read(&env, &places, &err);
		if (r == CM_OK)
			fail_msg("row %zu is taken", i);
		assert_int_equal(r, err.code);
		if (!strstr(err.msg, bad[i].names) && !strstr(err.hint, bad[i].names))
			fail_msg("row %zu: '%s', '%s'", i, err.msg, err.hint);
		assert_true(err.hint[0] != '\0');
		cm_e2b_places_clear(&places);
	}
}

static void test_debug_off(void **state)
{
	CM_AUTO_STRV struct cm_strv env = { 0 };
	struct cm_e2b_places places;

	(void)state;
	set(&env, "E2B_DEBUG", "false");
	assert_int_equal(cm_e2b_places_read(&env, &places, NULL), CM_OK);
	cm_e2b_places_clear(&places);
}

static void test_names(void **state)
{
	(void)state;
	assert_true(cm_e2b_is_sandbox_id(ID));
	assert_false(cm_e2b_is_sandbox_id(""));
	assert_false(cm_e2b_is_sandbox_id("a-b"));
	assert_false(cm_e2b_is_sandbox_id("A"));
	assert_false(cm_e2b_is_sandbox_id("a/../b"));
	assert_true(cm_e2b_is_domain("localhost:3939"));
	assert_false(cm_e2b_is_domain("a b"));
	assert_false(cm_e2b_is_domain("a\r\nX: y"));
	assert_false(cm_e2b_is_domain("a?b"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matrix),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_debug_off),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
