/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/signal_names.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/fd.h"

static void test_parse(void **state)
{
	static const struct {
		const char *text;
		/* 0: refused */
		int sig;
	} rows[] = {
		{ "TERM", SIGTERM },
		{ "SIGTERM", SIGTERM },
		{ "sigterm", SIGTERM },
		{ "kill", SIGKILL },
		{ "15", 15 },
		{ "64", 64 },
		{ "1", 1 },
		{ "0", 0 },
		{ "65", 0 },
		{ "-9", 0 },
		{ "", 0 },
		{ "SIG", 0 },
		{ "TERMS", 0 },
		{ "9x", 0 },
		{ " 9", 0 },
		{ "SIG9", 0 },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		struct cm_error err = CM_ERROR_INIT;
		int sig = 0;
		int r = cm_signal_parse(rows[i].text, &sig, &err);

		assert_int_equal(r, rows[i].sig != 0 ? CM_OK : CM_E_INVALID);
		assert_int_equal(sig, rows[i].sig);
		if (r < 0)
			assert_true(strlen(err.msg) > 0 && strlen(err.hint) > 0);
	}
}

static void test_name(void **state)
{
	(void)state;
	assert_string_equal(cm_signal_name(SIGTERM), "TERM");
	assert_string_equal(cm_signal_name(SIGSYS), "SYS");
	assert_null(cm_signal_name(40));
	assert_null(cm_signal_name(0));
	for (int sig = 1; sig < 32; sig++) {
		int again = 0;

		assert_non_null(cm_signal_name(sig));
		assert_int_equal(cm_signal_parse(cm_signal_name(sig), &again, NULL), CM_OK);
		assert_int_equal(again, sig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
