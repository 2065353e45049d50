/* SPDX-License-Identifier: Apache-2.0 */
/* Error records: set, wrapped and hinted, with arguments that point into them and long texts. */
#include "tests/unit/test_base.h"

static char long_text[2000];

static int set_up(void **state)
{
	(void)state;
	memset(long_text, 'x', sizeof(long_text) - 1);
	return 0;
}

static void test_set(void **state)
{
	struct cm_error err = { 1, 2, "old", "old hint" };

	(void)state;
	errno = EAGAIN;
	assert_int_equal(cm_error_set(&err, CM_E_SYS, ENOENT, "cannot open '%s'", "x"), CM_E_SYS);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(err.code, CM_E_SYS);
	assert_int_equal(err.sys_errno, ENOENT);
	assert_string_equal(err.msg, "cannot open 'x'");
	/* a hint belongs to one failure */
	assert_string_equal(err.hint, "");
	cm_error_hint(&err, "try %d", 7);
	assert_string_equal(err.hint, "try 7");
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(cm_error_wrap(&err, "file '%s'", "f"), CM_E_SYS);
	assert_string_equal(err.msg, "file 'f': cannot open 'x'");
	assert_string_equal(err.hint, "try 7");
	assert_int_equal(err.sys_errno, ENOENT);
	assert_int_equal(errno, EAGAIN);
	cm_error_clear(&err);
	assert_int_equal(err.code, CM_OK);
	assert_int_equal(err.sys_errno, 0);
	assert_string_equal(err.msg, "");
	assert_string_equal(err.hint, "");
}

static void test_no_record(void **state)
{
	(void)state;
	assert_int_equal(cm_error_set(NULL, CM_E_LIMIT, 0, "%s", "x"), CM_E_LIMIT);
	assert_int_equal(cm_error_wrap(NULL, "%s", "x"), CM_E_BUG);
	cm_error_hint(NULL, "%s", "x");
	cm_error_clear(NULL);
}

static void test_wrapped_success(void **state)
{
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	assert_int_equal(cm_error_wrap(&err, "context"), CM_E_BUG);
	assert_int_equal(err.code, CM_E_BUG);
	assert_string_equal(err.msg, "context: ");
}

static void test_own_texts(void **state)
{
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	cm_error_set(&err, CM_E_INVALID, 0, "inner");
	cm_error_hint(&err, "advice");
	cm_error_set(&err, CM_E_INVALID, 0, "outer (%s; %s; %s)", err.msg, err.hint, err.msg);
	assert_string_equal(err.msg, "outer (inner; advice; inner)");
	cm_error_hint(&err, "%s", "advice");
	cm_error_hint(&err, "%s and %s", err.hint, err.hint);
	assert_string_equal(err.hint, "advice and advice");
	cm_error_hint(&err, "see %s", err.msg);
	assert_string_equal(err.hint, "see outer (inner; advice; inner)");
	cm_error_set(&err, CM_E_INVALID, 0, "m");
	cm_error_wrap(&err, "in %s", err.msg);
	assert_string_equal(err.msg, "in m: m");
}

static void test_long_message(void **state)
{
	struct cm_error err;

	(void)state;
	memset(&err, 0x55, sizeof(err));
	cm_error_set(&err, CM_E_INVALID, 0, "%.*s", CM_ERROR_MSG_SIZE - 1, long_text);
	assert_int_equal(strlen(err.msg), CM_ERROR_MSG_SIZE - 1);
	assert_int_equal(err.msg[CM_ERROR_MSG_SIZE - 2], 'x');
	/* one more: cut, and seen to be */
	cm_error_set(&err, CM_E_INVALID, 0, "%.*s", CM_ERROR_MSG_SIZE, long_text);
	assert_int_equal(strlen(err.msg), CM_ERROR_MSG_SIZE - 1);
	assert_string_equal(err.msg + CM_ERROR_MSG_SIZE - 5, "x...");
	cm_error_hint(&err, "%s", long_text);
	assert_int_equal(strlen(err.hint), CM_ERROR_HINT_SIZE - 1);
	assert_string_equal(err.hint + CM_ERROR_HINT_SIZE - 5, "x...");
}

/* "context: message" is context_len + 2 + message_len long. */
static void check_wrap(int context_len, int message_len)
{
	struct cm_error err = CM_ERROR_INIT;
	size_t whole = (size_t)context_len + 2 + (size_t)message_len;
	size_t len;

	cm_error_set(&err, CM_E_INVALID, 0, "%.*s", message_len, long_text);
	cm_error_wrap(&err, "%.*s", context_len, long_text);
	len = strlen(err.msg);
	if (whole < CM_ERROR_MSG_SIZE) {
		assert_int_equal(len, whole);
		assert_memory_equal(err.msg + context_len, ": ", 2);
		assert_int_equal(strspn(err.msg + context_len + 2, "x"), message_len);
		return;
	}
	/* cut text must not pass for the whole message */
	assert_int_equal(len, CM_ERROR_MSG_SIZE - 1);
	assert_string_equal(err.msg + len - 3, "...");
}

static void test_long_wrap(void **state)
{
	(void)state;
	for (int context = CM_ERROR_MSG_SIZE - 8; context < CM_ERROR_MSG_SIZE + 2; context++) {
		for (int message = 1; message < 10; message++)
			check_wrap(context, message);
	}
	for (int message = CM_ERROR_MSG_SIZE - 20; message < CM_ERROR_MSG_SIZE; message++)
		check_wrap(10, message);
	check_wrap(1900, 1);
	check_wrap(0, 5);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(cm_error_name(CM_OK), "ok");
	assert_string_equal(cm_error_name(CM_E_LIMIT), "limit");
	assert_string_equal(cm_error_name(CM_E_MIN), "too-many-sessions");
	assert_string_equal(cm_error_name(CM_E_MIN - 1), "unknown");
	assert_string_equal(cm_error_name(1), "unknown");
	for (int a = CM_E_MIN; a < 0; a++) {
		for (int b = CM_E_MIN; b < a; b++)
			assert_string_not_equal(cm_error_name(a), cm_error_name(b));
		assert_string_not_equal(cm_error_name(a), "unknown");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_no_record),
		cmocka_unit_test(test_wrapped_success),
		cmocka_unit_test(test_own_texts),
		cmocka_unit_test(test_long_message),
		cmocka_unit_test(test_long_wrap),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
