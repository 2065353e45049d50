/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of fields, as the files of accounts have them. */
#include "runtime/base/fields.h"
#include "tests/unit/test_base.h"

#define MAX 4

static void test_split(void **state)
{
	static const struct {
		const char *text;
		size_t n;
		const char *fields[MAX];
	} rows[] = {
		{ "", 1, { "" } },
		{ "\n", 1, { "" } },
		{ "a", 1, { "a" } },
		{ "a\nb:c", 1, { "a" } },
		{ "a:\n", 2, { "a", "" } },
		{ ":", 2, { "", "" } },
		{ "a:b c:\nd", 3, { "a", "b c", "" } },
		{ "a:b:c:d\n", 4, { "a", "b", "c", "d" } },
		/* the last has the rest */
		{ "a:b:c:d:e:\nf", 4, { "a", "b", "c", "d:e:" } },
	};
	struct cm_field fields[MAX];

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		assert_int_equal(cm_fields_split(rows[i].text, ':', fields, MAX), rows[i].n);
		for (size_t n = 0; n < rows[i].n; n++) {
			const char *wanted = rows[i].fields[n];

			assert_true(cm_field_is(&fields[n], wanted, strlen(wanted)));
		}
	}
	assert_int_equal(cm_fields_split("1 0:5 /", ' ', fields, MAX), 3);
	assert_true(cm_field_is(&fields[1], "0:5", 3));
	assert_false(cm_field_is(&fields[1], "0:", 2));
	assert_false(cm_field_is(&fields[1], "0:55", 4));
}

static void test_lines(void **state)
{
	const char *text = "a\n\nb:c";

	(void)state;
	text = cm_next_line(text);
	assert_string_equal(text, "\nb:c");
	text = cm_next_line(text);
	assert_string_equal(text, "b:c");
	text = cm_next_line(text);
	assert_string_equal(text, "");
	assert_string_equal(cm_next_line(text), "");
	assert_string_equal(cm_next_line("a\n"), "");
}

static void test_numbers(void **state)
{
	static const struct {
		const char *text;
		bool is_number;
		uint64_t v;
	} rows[] = {
		{ "0", true, 0 },    { "1000\n", true, 1000 },
		{ "007", true, 7 },  { "4294967295", true, UINT32_MAX },
		{ "", false, 0 },    { "-1", false, 0 },
		{ "+1", false, 0 },  { " 1", false, 0 },
		{ "1 ", false, 0 },  { "0x1", false, 0 },
		{ "12a", false, 0 },
	};
	/* the first three are 0, 0 and 1 where they wrap around */
	static const char *const above[] = { "4294967296", "18446744073709551616",
					     "18446744073709551617",
					     "99999999999999999999999999999999999999999" };
	struct cm_field field;
	uint64_t v;

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		v = 77;
		(void)cm_fields_split(rows[i].text, ':', &field, 1);
		assert_int_equal(cm_field_number(&field, &v), rows[i].is_number);
		assert_int_equal(v, rows[i].is_number ? rows[i].v : 77);
		assert_int_equal(cm_field_is_id(&field, (uint32_t)rows[i].v), rows[i].is_number);
		assert_false(cm_field_is_id(&field, (uint32_t)rows[i].v + 1));
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(above); i++) {
		(void)cm_fields_split(above[i], ':', &field, 1);
		assert_true(cm_field_number(&field, &v));
		assert_true(v > UINT32_MAX);
		assert_false(cm_field_is_id(&field, 0) || cm_field_is_id(&field, 1));
	}
}

static void test_copy(void **state)
{
	char buf[4] = "old";
	struct cm_field field = { "abcd", 4 };

	(void)state;
	assert_false(cm_field_copy(&field, buf, sizeof(buf)));
	assert_string_equal(buf, "old");
	field.len = 3;
	assert_true(cm_field_copy(&field, buf, sizeof(buf)));
	assert_string_equal(buf, "abc");
	field.len = 0;
	assert_true(cm_field_copy(&field, buf, 1));
	assert_string_equal(buf, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
