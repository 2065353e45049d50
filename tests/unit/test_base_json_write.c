/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer: forms, escapes, numbers that read back the same, buffers that fill up. */
#include <float.h>
#include <locale.h>
#include <math.h>

#include "runtime/base/json.h"
#include "runtime/base/json_write.h"
#include "tests/helpers/utf8.h"
#include "tests/unit/test_base.h"

static void fill(struct cm_json_writer *w)
{
	cm_jw_object(w);
	cm_jw_kstring(w, "s", "x\"y");
	cm_jw_kstring(w, "none", NULL);
	cm_jw_kint(w, "i", INT64_MIN);
	cm_jw_kuint(w, "u", UINT64_MAX);
	cm_jw_kbool(w, "b", true);
	cm_jw_key(w, "empty");
	cm_jw_array(w);
	cm_jw_end_array(w);
	cm_jw_key(w, "a");
	cm_jw_array(w);
	cm_jw_null(w);
	cm_jw_object(w);
	cm_jw_end_object(w);
	cm_jw_array(w);
	cm_jw_double(w, 1.5);
	cm_jw_end_array(w);
	cm_jw_bool(w, false);
	cm_jw_end_array(w);
	cm_jw_end_object(w);
}

static void test_plain(void **state)
{
	CM_AUTO_BUF struct cm_buf out;
	struct cm_json_writer w;

	(void)state;
	cm_buf_init(&out, 1000);
	cm_jw_init(&w, &out, false);
	fill(&w);
	assert_string_equal(out.data, "{\"s\":\"x\\\"y\",\"none\":null,\"i\":-9223372036854775808,"
				      "\"u\":18446744073709551615,\"b\":true,\"empty\":[],"
				      "\"a\":[null,{},[1.5],false]}");
}

static void test_pretty(void **state)
{
	CM_AUTO_BUF struct cm_buf out;
	struct cm_json_writer w;

	(void)state;
	cm_buf_init(&out, 1000);
	cm_jw_init(&w, &out, true);
	fill(&w);
	assert_string_equal(out.data, "{\n"
				      "  \"s\": \"x\\\"y\",\n"
				      "  \"none\": null,\n"
				      "  \"i\": -9223372036854775808,\n"
				      "  \"u\": 18446744073709551615,\n"
				      "  \"b\": true,\n"
				      "  \"empty\": [],\n"
				      "  \"a\": [\n"
				      "    null,\n"
				      "    {},\n"
				      "    [\n"
				      "      1.5\n"
				      "    ],\n"
				      "    false\n"
				      "  ]\n"
				      "}");
}

static void assert_string(const char *s, size_t len, const char *expected)
{
	CM_AUTO_BUF struct cm_buf out;
	struct cm_json_writer w;

	cm_buf_init(&out, 1000);
	cm_jw_init(&w, &out, false);
	cm_jw_string_len(&w, s, len);
	assert_string_equal(out.data, expected);
}

static void test_strings(void **state)
{
	(void)state;
	assert_string("", 0, "\"\"");
	assert_string("a\0b", 3, "\"a\\u0000b\"");
	assert_string("\b\t\n\f\r\"\\/", 8, "\"\\b\\t\\n\\f\\r\\\"\\\\/\"");
	/* the text may end on a terminal */
	assert_string("\x1b]52;c;x\x07", 9, "\"\\u001b]52;c;x\\u0007\"");
	assert_string("\x7f\xc2\x9d", 3, "\"\\u007f\\u009d\"");
	assert_string("\xc3\xa9\xf0\x9f\x98\x80", 6, "\"\xc3\xa9\xf0\x9f\x98\x80\"");
	/* each byte that is not UTF-8 */
	assert_string("a\xff\xc3", 3, "\"a\xef\xbf\xbd\xef\xbf\xbd\"");
	assert_string("\xc3\xa9", 1, "\"\xef\xbf\xbd\"");
	assert_string("\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

/* Whatever the bytes are, the reader takes it, and gets the text where it was UTF-8. */
static void test_all_pairs_read_back(void **state)
{
	(void)state;
	for (unsigned int v = 0; v < 0x10000; v++) {
		const char s[3] = { (char)(v >> 8), (char)(v & 0xff), '\0' };
		CM_AUTO_BUF struct cm_buf out;
		struct cm_error err = CM_ERROR_INIT;
		struct cm_json_writer w;
		struct cm_json_doc *doc = NULL;

		cm_buf_init(&out, 100);
		/* a NUL is what the reader refuses */
		if ((v >> 8) == 0 || (v & 0xff) == 0)
			continue;
		cm_jw_init(&w, &out, false);
		cm_jw_string(&w, s);
		if (cm_json_parse(out.data, out.len, "x", 0, &doc, &err) != CM_OK)
			fail_msg("%04x: %s", v, err.msg);
		if (is_utf8(s, 2))
			assert_string_equal(cm_json_root(doc)->u.string, s);
		cm_json_free(doc);
	}
}

static void assert_number(double v, const char *expected)
{
	CM_AUTO_BUF struct cm_buf out;
	struct cm_json_writer w;

	cm_buf_init(&out, 100);
	cm_jw_init(&w, &out, false);
	cm_jw_double(&w, v);
	assert_string_equal(out.data, expected);
}

static void test_doubles(void **state)
{
	static const double values[] = {
		0.1,
		1.0 / 3,
		DBL_MAX,
		-DBL_MAX,
		DBL_MIN,
		DBL_MIN / 4,
		DBL_EPSILON,
		1e22,
		1e-7,
		9007199254740993.0,
		123456789.123456789,
		5e-324,
	};

	(void)state;
	assert_number(0.0, "0");
	assert_number(-0.0, "0");
	assert_number(0.1, "0.1");
	assert_number(-2.5, "-2.5");
	assert_number(1e100, "1e+100");
	assert_number((double)NAN, "null");
	assert_number((double)INFINITY, "null");
	assert_number(-(double)INFINITY, "null");
	for (size_t i = 0; i < CM_ARRAY_SIZE(values); i++) {
		CM_AUTO_BUF struct cm_buf out;
		struct cm_error err = CM_ERROR_INIT;
		struct cm_json_writer w;
		struct cm_json_doc *doc = NULL;
		const struct cm_json *root;

		cm_buf_init(&out, 100);
		cm_jw_init(&w, &out, false);
		cm_jw_double(&w, values[i]);
		assert_int_equal(cm_json_parse(out.data, out.len, "x", 0, &doc, &err), CM_OK);
		root = cm_json_root(doc);
		if (root->type == CM_JSON_DOUBLE)
			assert_memory_equal(&root->u.number, &values[i], sizeof(double));
		else
			assert_true((double)root->u.integer == values[i]);
		cm_json_free(doc);
	}
}

/* A user of the library may have set a locale whose decimal point is a comma. */
static void test_locale(void **state)
{
	static const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8" };
	struct cm_json_doc *doc = NULL;
	const char *set = NULL;

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(names) && !set; i++)
		set = setlocale(LC_NUMERIC, names[i]);
	if (!set)
		skip();
	assert_number(1.5, "1.5");
	assert_int_equal(cm_json_parse("[2.25,1e2]", 10, "x", 0, &doc, NULL), CM_OK);
	assert_true(cm_json_root(doc)->first_child->u.number == 2.25);
	cm_json_free(doc);
	(void)setlocale(LC_NUMERIC, "C");
}

static void test_depth(void **state)
{
	struct cm_json_writer w;
	struct cm_buf out;

	(void)state;
	cm_buf_init(&out, 10000);
	cm_jw_init(&w, &out, false);
	for (int i = 0; i < CM_JSON_WRITE_MAX_DEPTH; i++)
		cm_jw_array(&w);
	for (int i = 0; i < CM_JSON_WRITE_MAX_DEPTH; i++)
		cm_jw_end_array(&w);
	/* one end too many is nothing */
	cm_jw_end_array(&w);
	assert_int_equal(cm_buf_status(&out), CM_OK);
	assert_int_equal(out.len, 2 * CM_JSON_WRITE_MAX_DEPTH);
	cm_buf_clear(&out);
	cm_jw_init(&w, &out, false);
	for (int i = 0; i <= CM_JSON_WRITE_MAX_DEPTH; i++)
		cm_jw_object(&w);
	assert_int_equal(cm_buf_status(&out), CM_E_LIMIT);
	for (int i = 0; i < 100; i++)
		cm_jw_end_object(&w);
	assert_int_equal(w.depth, 0);
	cm_buf_clear(&out);
}

static bool write_once(void *data)
{
	struct cm_json_writer w;
	struct cm_buf out;
	int r;

	cm_buf_init(&out, *(size_t *)data);
	cm_jw_init(&w, &out, true);
	fill(&w);
	assert_int_equal(w.depth, 0);
	r = cm_buf_status(&out);
	cm_buf_clear(&out);
	return r == CM_OK;
}

static void test_full_and_no_memory(void **state)
{
	size_t max = 0;

	(void)state;
	while (max < 1000 && !write_once(&max))
		max++;
	assert_in_range(max, 180, 190);
	assert_in_range(fail_each_allocation(write_once, &max), 2, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),	cmocka_unit_test(test_pretty),
		cmocka_unit_test(test_strings), cmocka_unit_test(test_all_pairs_read_back),
		cmocka_unit_test(test_doubles), cmocka_unit_test(test_locale),
		cmocka_unit_test(test_depth),	cmocka_unit_test(test_full_and_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
