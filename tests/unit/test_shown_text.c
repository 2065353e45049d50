/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test_base.h"

#include "runtime/cli/shown_text.h"

#define EURO "\xe2\x82\xac"
#define SMILE "\xf0\x9f\x98\x80"

/* text, given in pieces of `step` bytes */
static char *shown(const char *text, size_t len, size_t step)
{
	struct cm_shown_text t = { .n_held = 0 };
	struct cm_buf out;

	cm_buf_init(&out, 10000);
	for (size_t i = 0; i < len; i += step)
		cm_shown_text_add(&t, text + i, len - i < step ? len - i : step, &out);
	cm_shown_text_end(&t, &out);
	cm_buf_puts(&out, "");
	return cm_buf_take(&out);
}

static void test_pieces(void **state)
{
	static const struct {
		const char *text;
		const char *want;
	} rows[] = {
		{ "", "" },
		{ "plain\n\ttext\n", "plain\n\ttext\n" },
		{ "a" EURO "b" SMILE "c\xc3\xa4", "a" EURO "b" SMILE "c\xc3\xa4" },
		{ "\x1b[31mred\x1b[0m\a", "\\x1b[31mred\\x1b[0m\\x07" },
		/* as a terminal ends its lines; elsewhere it moves the cursor */
		{ "one\r\ntwo\r\n", "one\ntwo\n" },
		{ "over\rwritten\r", "over\\x0dwritten\\x0d" },
		{ "\r\r\n", "\\x0d\n" },
		/* what is no character at all, and what ends in the middle of one */
		{ "a\xff\x80z", "a\\xff\\x80z" },
		{ "\xe2\x82z", "\\xe2\\x82z" },
		{ "end\xf0\x9f\x98", "end\\xf0\\x9f\\x98" },
		{ "\xf0\xf0\xf0\xf0", "\\xf0\\xf0\\xf0\\xf0" },
		{ "\xc2\x9b"
		  "1m",
		  "\\xc2\\x9b1m" },
		{ "\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80" },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		for (size_t step = 1; step < 20; step++) {
			CM_AUTO_FREE char *got = shown(rows[i].text, strlen(rows[i].text), step);

			assert_string_equal(got, rows[i].want);
		}
	}
}

static void test_gap(void **state)
{
	struct cm_shown_text t = { .n_held = 0 };
	CM_AUTO_BUF struct cm_buf out = { 0 };

	(void)state;
	cm_buf_init(&out, 1000);
	cm_shown_text_add(&t, "head" EURO "\xe2\x82", 9, &out);
	cm_shown_text_gap(&t);
	/* the end of a character whose beginning is gone, in two pieces */
	cm_shown_text_add(&t, "\x98", 1, &out);
	cm_shown_text_add(&t, "\x80tail", 5, &out);
	/* from then on it is the command's own */
	cm_shown_text_add(&t, "\x80", 1, &out);
	cm_shown_text_gap(&t);
	cm_shown_text_add(&t, "\x80\x80\x80\x80", 4, &out);
	cm_shown_text_end(&t, &out);
	assert_string_equal(out.data, "head" EURO "tail\\x80\\x80");
}

static bool add_text(void *data)
{
	struct cm_shown_text t = { .n_held = 0 };
	CM_AUTO_BUF struct cm_buf out = { 0 };

	(void)data;
	cm_buf_init(&out, 1000);
	cm_shown_text_add(&t, "text\xe2", 5, &out);
	cm_shown_text_end(&t, &out);
	return cm_buf_status(&out) == CM_OK;
}

static void test_no_memory(void **state)
{
	(void)state;
	assert_true(fail_each_allocation(add_text, NULL) >= 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_gap),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
