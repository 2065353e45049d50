/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts in a session, under dash and busybox. */
#include "providers/remote/shell.h"

#include "tests/unit/fake_provider.h"
#include "tests/unit/test_base.h"

#include "runtime/base/clock.h"

static struct fake_provider fake;

static int open_dash(void **state)
{
	(void)state;
	return fake_provider_open(&fake, "dash") ? 0 : -1;
}

static int open_busybox(void **state)
{
	(void)state;
	if (!fake_provider_open(&fake, "busybox"))
		fake.top[0] = '\0';
	return 0;
}

static int close_fake(void **state)
{
	(void)state;
	if (fake.top[0] != '\0')
		fake_provider_close(&fake);
	return 0;
}

static void need_session(void)
{
	if (fake.top[0] == '\0')
		skip();
}

static int run(const char *script, const char *const *args, struct cm_shell_end *end)
{
	const struct cm_shell shell = { .session = &fake.session, .script = script, .args = args };
	const struct cm_call call = fake_call();

	return cm_shell_run(&shell, &call, end, NULL);
}

static void test_output(void **state)
{
	static const char *const args[] = { "a b", "-n", "x\ny'\"$(id)", NULL };
	struct cm_shell_end end;

	(void)state;
	need_session();
	assert_int_equal(run("printf '%s|' \"$@\"; echo oops >&2; exit 3", args, &end), CM_OK);
	assert_int_equal(end.exit_code, 3);
	assert_string_equal(end.out.data, "a b|-n|x\ny'\"$(id)|");
	assert_string_equal(end.tail, "oops\n");
	assert_null(cm_shell_verdict(&end));
	cm_shell_end_clear(&end);
}

static void test_verdict(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_shell_end end;

	(void)state;
	need_session();
	assert_int_equal(run(CM_SHELL_FAIL "echo words >&2; fail no-such", NULL, &end), CM_OK);
	assert_true(cm_shell_says(&end, "no-such"));
	assert_false(cm_shell_says(&end, "such"));
	assert_false(cm_shell_says(&end, "no"));
	assert_non_null(cm_shell_verdict(&end));
	cm_shell_end_clear(&end);
	/* by its words alone, or its status alone, it is none */
	assert_int_equal(run("printf '\\ncasemate-verdict no-such\\n' >&2; exit 1", NULL, &end),
			 CM_OK);
	assert_false(cm_shell_says(&end, "no-such"));
	cm_shell_end_clear(&end);
	assert_int_equal(run("echo no-such >&2; exit 77", NULL, &end), CM_OK);
	assert_false(cm_shell_says(&end, "no-such"));
	assert_null(cm_shell_verdict(&end));
	assert_int_equal(cm_shell_failed(&end, CM_E_REMOTE, &err, "cannot look at '%s'", "x"),
			 CM_E_REMOTE);
	assert_string_equal(err.msg, "cannot look at 'x': no-such");
	cm_shell_end_clear(&end);
}

static void test_tail(void **state)
{
	struct cm_shell_end end = CM_SHELL_END_INIT;
	char many[3 * CM_SHELL_TAIL];

	(void)state;
	memset(many, 'x', sizeof(many));
	many[sizeof(many) - 1] = 'e';
	cm_shell_tail_add(&end, "abc", 3);
	assert_string_equal(end.tail, "abc");
	cm_shell_tail_add(&end, many, sizeof(many));
	assert_int_equal(end.tail_len, CM_SHELL_TAIL);
	assert_int_equal(end.tail[CM_SHELL_TAIL - 1], 'e');
	cm_shell_tail_add(&end, "f\0g", 3);
	assert_int_equal(end.tail_len, CM_SHELL_TAIL);
	assert_string_equal(end.tail + CM_SHELL_TAIL - 4, "ef g");
}

static void test_bounds(void **state)
{
	const struct cm_call call = fake_call();
	struct cm_shell shell = { .session = &fake.session, .script = "yes", .out_max = 1000 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_shell_end end;
	int64_t before = cm_clock_mono_ms();

	(void)state;
	need_session();
	assert_int_equal(cm_shell_run(&shell, &call, &end, &err), CM_E_LIMIT);
	cm_shell_end_clear(&end);
	shell.script = "sleep 600";
	shell.timeout_ms = 200;
	assert_int_equal(cm_shell_run(&shell, &call, &end, &err), CM_E_TIMEOUT);
	cm_shell_end_clear(&end);
	assert_true(cm_clock_mono_ms() - before < 60000);
}

struct feed {
	size_t left;
	size_t taken;
};

static ssize_t fill(void *data, void *buf, size_t size)
{
	struct feed *f = data;
	size_t n = size < f->left ? size : f->left;

	memset(buf, 'z', n);
	f->left -= n;
	return (ssize_t)n;
}

static ssize_t fill_badly(void *data, void *buf, size_t size)
{
	(void)data;
	(void)buf;
	(void)size;
	return -EIO;
}

static int take(void *data, const void *bytes, size_t len)
{
	struct feed *f = data;

	(void)bytes;
	f->taken += len;
	return 0;
}

static void test_input(void **state)
{
	const struct cm_call call = fake_call();
	struct feed feed = { .left = 3UL * 1024 * 1024 };
	struct cm_shell shell = { .session = &fake.session,
				  .script = "cat",
				  .fill = fill,
				  .fill_data = &feed,
				  .take = take,
				  .take_data = &feed };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_shell_end end;

	(void)state;
	need_session();
	/* it writes all that it reads: who only wrote would wait for ever */
	assert_int_equal(cm_shell_run(&shell, &call, &end, &err), CM_OK);
	assert_int_equal(feed.taken, 3UL * 1024 * 1024);
	assert_int_equal(end.exit_code, 0);
	cm_shell_end_clear(&end);
	/* one that reads nothing is none that fails */
	feed = (struct feed){ .left = 3UL * 1024 * 1024 };
	shell.script = "exit 5";
	assert_int_equal(cm_shell_run(&shell, &call, &end, &err), CM_OK);
	assert_int_equal(end.exit_code, 5);
	cm_shell_end_clear(&end);
	shell.script = "cat";
	shell.fill = fill_badly;
	assert_int_equal(cm_shell_run(&shell, &call, &end, &err), CM_E_SYS);
	assert_int_equal(err.sys_errno, EIO);
	cm_shell_end_clear(&end);
	fake.base.caps &= ~(uint32_t)CM_CAP_STDIN;
	assert_int_equal(cm_shell_run(&shell, &call, &end, &err), CM_E_UNSUPPORTED);
	cm_shell_end_clear(&end);
}

static bool attempt(void *data)
{
	struct cm_shell_end end;
	struct cm_error err = CM_ERROR_INIT;
	const struct cm_call call = fake_call();
	const struct cm_shell shell = { .session = &fake.session, .script = "echo x" };
	int r = cm_shell_run(&shell, &call, &end, &err);

	(void)data;
	cm_shell_end_clear(&end);
	assert_true(r == CM_OK || r == CM_E_NOMEM);
	return r == CM_OK;
}

static void test_no_memory(void **state)
{
	static const struct fake_answer answers[8] = {
		{ "x\n", 2, NULL, 0 }, { "x\n", 2, NULL, 0 }, { "x\n", 2, NULL, 0 },
		{ "x\n", 2, NULL, 0 }, { "x\n", 2, NULL, 0 }, { "x\n", 2, NULL, 0 },
	};

	(void)state;
	fake.answers = answers;
	fake.n_answers = CM_ARRAY_SIZE(answers);
	assert_true(fail_each_allocation(attempt, NULL) > 0);
	fake.n_answers = 0;
}

static void test_number(void **state)
{
	uint64_t v = UNTOUCHED;

	(void)state;
	assert_true(cm_shell_number("18446744073709551615", UINT64_MAX, &v));
	assert_true(v == UINT64_MAX);
	v = UNTOUCHED;
	assert_false(cm_shell_number("18446744073709551616", UINT64_MAX, &v));
	assert_false(cm_shell_number("99999999999999999999", UINT64_MAX, &v));
	assert_false(cm_shell_number("", UINT64_MAX, &v));
	assert_false(cm_shell_number("-1", UINT64_MAX, &v));
	assert_false(cm_shell_number("1 ", UINT64_MAX, &v));
	assert_false(cm_shell_number("11", 10, &v));
	assert_true(v == UNTOUCHED);
}

#define BOTH(test)                                                                                 \
	cmocka_unit_test_setup_teardown(test, open_dash, close_fake),                              \
		cmocka_unit_test_setup_teardown(test, open_busybox, close_fake)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_output),
		BOTH(test_verdict),
		BOTH(test_bounds),
		BOTH(test_input),
		cmocka_unit_test(test_tail),
		cmocka_unit_test_setup_teardown(test_no_memory, open_dash, close_fake),
		cmocka_unit_test(test_number),
	};

	return cmocka_run_group_tests_name("remote_shell", tests, NULL, NULL);
}
