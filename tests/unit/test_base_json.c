/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON reader: good and bad texts, bounds, lines, allocations; and what the writer writes. */
#include "runtime/base/json.h"
#include "runtime/base/json_copy.h"
#include "runtime/base/json_write.h"
#include "tests/unit/test_base.h"

#define OUT_MAX (8UL * 1024 * 1024)

static struct cm_json_doc *parse(const char *text, size_t len, unsigned int flags,
				 struct cm_error *err)
{
	struct cm_json_doc *doc = NULL;
	/* exactly as large, so that a sanitizer sees a byte too many read */
	char *copy = malloc(len ? len : 1);
	int r;

	assert_non_null(copy);
	if (len > 0)
		memcpy(copy, text, len);
	cm_error_clear(err);
	r = cm_json_parse(copy, len, "FILE", flags, &doc, err);
	free(copy);
	if (r == CM_OK) {
		assert_non_null(doc);
		assert_non_null(cm_json_root(doc));
		assert_int_equal(err->code, CM_OK);
		return doc;
	}
	assert_null(doc);
	assert_int_equal(err->code, r);
	assert_memory_equal(err->msg, "FILE:", 5);
	assert_true(err->hint[0] != '\0');
	return NULL;
}

static struct cm_json_doc *parse_good(const char *text)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_json_doc *doc = parse(text, strlen(text), 0, &err);

	if (!doc)
		fail_msg("%s: %s", text, err.msg);
	return doc;
}

static char *write_doc(const struct cm_json_doc *doc, bool is_pretty)
{
	struct cm_json_writer w;
	struct cm_buf out;

	cm_buf_init(&out, OUT_MAX);
	cm_jw_init(&w, &out, is_pretty);
	cm_json_copy(&w, cm_json_root(doc));
	assert_int_equal(w.depth, 0);
	assert_int_equal(cm_buf_status(&out), CM_OK);
	return cm_buf_take(&out);
}

struct row {
	const char *text;
	/* as it is written again; NULL: as it was */
	const char *again;
};

static const struct row good[] = {
	{ "null", NULL },
	{ "true", NULL },
	{ "false", NULL },
	{ "0", NULL },
	{ "-0", "0" },
	{ "7", NULL },
	{ "-9223372036854775808", NULL },
	{ "9223372036854775807", NULL },
	{ "1.5", NULL },
	{ "-0.0", "0" },
	{ "1e3", "1000" },
	{ "1E+2", "100" },
	{ "1.25e-3", "0.00125" },
	{ "1e300", "1e+300" },
	{ "0.1", NULL },
	{ "1e-400", "0" },
	{ "\"\"", NULL },
	{ "\"text\"", NULL },
	{ "\"\\u0041\\n\\t\\\"\\\\\\/\"", "\"A\\n\\t\\\"\\\\/\"" },
	{ "\"\\b\\f\\r\"", NULL },
	{ "\"\\u00e9\"", "\"\xc3\xa9\"" },
	{ "\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\"" },
	{ "\"\\uD83D\\uDE00x\\n\"", "\"\xf0\x9f\x98\x80x\\n\"" },
	/* a backslash, and then text that only looks like half of a pair */
	{ "\"\\\\ud800 \\n\"", NULL },
	{ "\"\\u001b]52;c;x\\u0007\"", NULL },
	{ "\"\\u007f\\u0080\\u009f\"", NULL },
	{ "\"\xf4\x8f\xbf\xbf\xef\xbf\xbd\"", NULL },
	{ "[]", NULL },
	{ "{}", NULL },
	{ "[[],{},[[]]]", NULL },
	{ " \t\r\n[ 1 , 2 ] \n", "[1,2]" },
	{ "{\"a\":1,\"b\":[true,null],\"c\":{\"a\":\"x\"}}", NULL },
	{ "{\"\":1,\" \":2}", NULL },
	{ "{\"a\":1,\"A\":2,\"aa\":3}", NULL },
	{ "{\"b\":1,\"a\":2}", NULL },
};

static void test_good(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(good); i++) {
		const char *expected = good[i].again ? good[i].again : good[i].text;
		struct cm_json_doc *doc = parse_good(good[i].text);
		CM_AUTO_FREE char *plain = write_doc(doc, false);
		CM_AUTO_FREE char *pretty = write_doc(doc, true);
		CM_AUTO_FREE char *again = NULL;
		struct cm_json_doc *second;

		assert_string_equal(plain, expected);
		/* the pretty form says the same */
		second = parse_good(pretty);
		again = write_doc(second, false);
		assert_string_equal(again, expected);
		cm_json_free(second);
		cm_json_free(doc);
	}
}

struct bad {
	const char *text;
	/* part of the message, behind "FILE:" */
	const char *message;
};

static const struct bad bad_texts[] = {
	{ "", "1: " },
	{ "  ", "1: " },
	{ "{", "1: " },
	{ "[", "1: " },
	{ "\"", "1: " },
	{ "\"abc", "1: " },
	{ "]", "1: " },
	{ "[}", "1: " },
	{ "[1,]", "1: " },
	{ "[,1]", "1: " },
	{ "[1 2]", "1: " },
	{ "{\"a\":1,}", "1: " },
	{ "{\"a\" 1}", "1: " },
	{ "{\"a\"}", "1: " },
	{ "{\"a\":}", "1: " },
	{ "{a:1}", "1: " },
	{ "{1:1}", "1: " },
	{ "{null:1}", "1: " },
	{ "'a'", "1: " },
	{ "nul", "1: " },
	{ "nulll", "1: " },
	{ "True", "1: " },
	{ "NaN", "1: " },
	{ "Infinity", "1: " },
	{ "-", "1: " },
	{ "+1", "1: " },
	{ "1.", "1: " },
	{ ".5", "1: " },
	{ "1e", "1: " },
	{ "0x10", "1: " },
	{ "01", "1: " },
	{ "1 2", "1: " },
	{ "{}{}", "1: " },
	{ "{} x", "1: " },
	{ "\"\\x\"", "1: " },
	{ "\"\\u12\"", "1: " },
	{ "\"\\u12g4\"", "1: " },
	{ "\"a\nb\"", "1: " },
	{ "\"a\tb\"", "1: " },
	{ "\"\x1b\"", "1: " },
	{ "// c\n1", "1: " },
	{ "/* c */ 1", "1: " },
	{ "# c\n1", "1: " },
	/* not UTF-8: a mark at the start, overlong, surrogate, cut, latin-1, too large */
	{ "\xff\xfe", "1: byte 0xff is not UTF-8 text" },
	{ "\"\xc0\xaf\"", "1: byte 0xc0 is not UTF-8 text" },
	{ "\"\xed\xa0\x80\"", "1: byte 0xed is not UTF-8 text" },
	{ "\"\xe2\x82\"", "1: byte 0xe2 is not UTF-8 text" },
	{ "\"caf\xe9\"", "1: byte 0xe9 is not UTF-8 text" },
	{ "\"\xf4\x90\x80\x80\"", "1: byte 0xf4 is not UTF-8 text" },
	{ "[1,\n\n\"\x80\"]", "3: byte 0x80 is not UTF-8 text" },
	/* half of a pair, in every place */
	{ "\"\\ud800\"", "1: a string has half of a surrogate pair" },
	{ "\"\\udc00\"", "1: a string has half of a surrogate pair" },
	{ "\"\\ud800\\ud800\"", "1: a string has half of a surrogate pair" },
	{ "\"\\ud83d\\ude00\\udbff\"", "1: a string has half of a surrogate pair" },
	{ "\"\\ud800x\\udc00\"", "1: a string has half of a surrogate pair" },
	{ "\"\\ud800\\n\"", "1: a string has half of a surrogate pair" },
	{ "\"\\\"\\ud800\"", "1: a string has half of a surrogate pair" },
	{ "\"\\\\\\ud800\"", "1: a string has half of a surrogate pair" },
	{ "{\"\\udc00\":1}", "1: a string has half of a surrogate pair" },
	{ "\"a\\u0000b\"", "1: a string has a NUL character" },
	{ "{\"a\\u0000\":1}", "1: a string has a NUL character" },
	{ "9223372036854775808",
	  "1: number '9223372036854775808' is not between -9223372036854775808 and "
	  "9223372036854775807" },
	{ "-9223372036854775809", "1: number '-9223372036854775809' is not between " },
	{ "1e309", "1: number '1e309' is too large" },
	{ "-1e309", "1: number '-1e309' is too large" },
	{ "{\"a\":1,\"a\":1}", "1: key 'a' is there twice" },
	{ "{\"a\":1,\n\"b\":2,\n\"a\":\n3}", "4: key 'a' is there twice" },
	{ "{\"\":1,\"\":2}", "1: key '' is there twice" },
	{ "[{\"x\":{\"a\":1,\"\\u0061\":2}}]", "1: key 'a' is there twice" },
	{ "{\n\n\n  \"a\": nope\n}", "4: " },
	{ "[\n1,\n2,\n]", "4: " },
	{ "{\"a\":\n[1,\n2\n", "4: " },
	{ "\r\n\r\n}", "3: " },
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad_texts); i++) {
		const struct bad *b = &bad_texts[i];
		struct cm_error err = CM_ERROR_INIT;

		if (parse(b->text, strlen(b->text), 0, &err))
			fail_msg("'%s' was taken", b->text);
		assert_int_equal(err.code, CM_E_INVALID);
		if (strncmp(err.msg + 5, b->message, strlen(b->message)) != 0)
			fail_msg("'%s': %s", b->text, err.msg);
		/* one line, no full stop */
		assert_null(strchr(err.msg, '\n'));
		assert_true(err.msg[strlen(err.msg) - 1] != '.');
		assert_true(strlen(err.msg) > 8);
	}
}

static void test_raw_nul(void **state)
{
	static const char texts[][6] = { "\0    ", "1\0   ", "\"a\0b\"", "[1]\0\n" };
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(texts); i++) {
		assert_null(parse(texts[i], 5, 0, &err));
		assert_string_equal(err.msg, "FILE:1: byte 0x00 is not UTF-8 text");
	}
}

/* Every beginning of a good text is refused; every byte of it flipped does no harm. */
static void test_cut_and_flipped(void **state)
{
	static const char text[] =
		"{\"a\":[1,-2.5e1,true,null,\"x\\u00e9\\ud83d\\ude00\"],\"b\":{}}";
	char flipped[sizeof(text)];
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	for (size_t len = 0; len < sizeof(text) - 1; len++) {
		assert_null(parse(text, len, 0, &err));
		assert_int_equal(err.code, CM_E_INVALID);
	}
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		for (unsigned int bit = 0; bit < 8; bit++) {
			struct cm_json_doc *doc;

			memcpy(flipped, text, sizeof(text));
			flipped[i] = (char)(flipped[i] ^ (1 << bit));
			doc = parse(flipped, sizeof(text) - 1, 0, &err);
			if (doc) {
				CM_AUTO_FREE char *s = write_doc(doc, false);

				assert_non_null(s);
				cm_json_free(doc);
			}
		}
	}
}

static void test_comments(void **state)
{
	static const char *const with[] = {
		"// c\n1",
		"/* c */1",
		"1 // c",
		"1/* \n\n */",
		"/**/[/* a */1/* b */,//\n2]//",
		"{\"a\"/*:*/:/*\"*/1}",
		"\"//\"",
		"\"/* \"",
	};
	/* the value is whole: what comes after it may be cut */
	static const char *const cut[] = { "1 /* c", "{} //", "[] /* c *" };
	static const char *const never[] = { "# c\n1",	  "/1",	  "/* c",	"/*/1",
					     "<!-- -->1", "// c", "/* \xff */1" };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_json_doc *doc;

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(with); i++) {
		doc = parse(with[i], strlen(with[i]), CM_JSON_COMMENTS, &err);
		if (!doc)
			fail_msg("'%s': %s", with[i], err.msg);
		cm_json_free(doc);
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(cut); i++) {
		doc = parse(cut[i], strlen(cut[i]), CM_JSON_COMMENTS, &err);
		assert_non_null(doc);
		cm_json_free(doc);
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(never); i++) {
		if (parse(never[i], strlen(never[i]), CM_JSON_COMMENTS, &err))
			fail_msg("'%s' was taken", never[i]);
		assert_int_equal(err.code, CM_E_INVALID);
	}
	/* lines go on through a comment */
	doc = parse("/*\n\n*/{//\n\"a\":/*\n*/1}", 21, CM_JSON_COMMENTS, &err);
	assert_non_null(doc);
	assert_int_equal(cm_json_root(doc)->line, 3);
	assert_int_equal(cm_json_get(cm_json_root(doc), "a")->line, 5);
	cm_json_free(doc);
}

static void test_lines(void **state)
{
	struct cm_json_doc *doc =
		parse_good("{\n\"a\":\n1, \"b\": [\n\n2,\n{\"c\": \"x\"}\n],\n\n\n\"d\":null}\n\n");
	const struct cm_json *root = cm_json_root(doc);
	const struct cm_json *b = cm_json_get(root, "b");

	(void)state;
	assert_int_equal(root->line, 1);
	assert_int_equal(cm_json_get(root, "a")->line, 3);
	assert_int_equal(b->line, 3);
	assert_int_equal(b->first_child->line, 5);
	assert_int_equal(b->first_child->next->line, 6);
	assert_int_equal(cm_json_get(b->first_child->next, "c")->line, 6);
	assert_int_equal(cm_json_get(root, "d")->line, 10);
	cm_json_free(doc);
}

static void test_getters(void **state)
{
	struct cm_json_doc *doc = parse_good(
		"{\"s\":\"x\",\"i\":-5,\"b\":true,\"n\":null,\"d\":1.5,\"a\":[1,2],\"o\":{}}");
	const struct cm_json *root = cm_json_root(doc);

	(void)state;
	assert_int_equal(root->n_children, 7);
	assert_null(root->key);
	assert_string_equal(root->first_child->key, "s");
	assert_string_equal(cm_json_str(root, "s", "f"), "x");
	assert_string_equal(cm_json_str(root, "i", "f"), "f");
	assert_null(cm_json_str(root, "n", NULL));
	assert_int_equal(cm_json_int(root, "i", 7), -5);
	assert_int_equal(cm_json_int(root, "d", 7), 7);
	assert_int_equal(cm_json_int(root, "none", 7), 7);
	assert_true(cm_json_bool(root, "b", false));
	assert_true(cm_json_bool(root, "i", true));
	assert_null(cm_json_get(root, "S"));
	assert_null(cm_json_get(cm_json_get(root, "a"), "s"));
	assert_null(cm_json_get(NULL, "s"));
	assert_int_equal(cm_json_get(root, "a")->n_children, 2);
	assert_null(cm_json_get(root, "a")->first_child->key);
	assert_null(cm_json_get(root, "o")->first_child);
	assert_int_equal(root->type, CM_JSON_OBJECT);
	assert_int_equal(cm_json_get(root, "d")->type, CM_JSON_DOUBLE);
	cm_json_free(doc);
	cm_json_free(NULL);
}

/* `depth` brackets, one in the other. */
static struct cm_json_doc *parse_nested(size_t depth, bool is_object, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf b;

	cm_buf_init(&b, OUT_MAX);
	for (size_t i = 0; i < depth; i++)
		cm_buf_puts(&b, is_object ? "{\"a\":" : "[");
	if (is_object)
		cm_buf_puts(&b, "1");
	for (size_t i = 0; i < depth; i++)
		cm_buf_puts(&b, is_object ? "}" : "]");
	return parse(b.data, b.len, 0, err);
}

static void test_depth(void **state)
{
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	for (int is_object = 0; is_object < 2; is_object++) {
		struct cm_json_doc *doc = parse_nested(CM_JSON_MAX_DEPTH, is_object, &err);
		CM_AUTO_FREE char *text = NULL;

		assert_non_null(doc);
		/* what can be read can be written */
		text = write_doc(doc, true);
		assert_non_null(text);
		cm_json_free(doc);
		assert_null(parse_nested(CM_JSON_MAX_DEPTH + 1, is_object, &err));
		assert_int_equal(err.code, CM_E_LIMIT);
		assert_string_equal(err.msg, "FILE:1: nested more than 32 levels deep");
		assert_null(parse_nested(100000, is_object, &err));
		assert_int_equal(err.code, CM_E_LIMIT);
	}
}

/* "[0,0,...]" of n zeros. */
static struct cm_json_doc *parse_many(size_t n, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf b;

	cm_buf_init(&b, OUT_MAX);
	cm_buf_puts(&b, "[0");
	for (size_t i = 1; i < n; i++)
		cm_buf_puts(&b, ",0");
	cm_buf_puts(&b, "]");
	return parse(b.data, b.len, 0, err);
}

static void test_number_of_values(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	/* the array counts too */
	struct cm_json_doc *doc = parse_many(CM_JSON_MAX_NODES - 1, &err);

	(void)state;
	assert_non_null(doc);
	assert_int_equal(cm_json_root(doc)->n_children, CM_JSON_MAX_NODES - 1);
	cm_json_free(doc);
	assert_null(parse_many(CM_JSON_MAX_NODES, &err));
	assert_int_equal(err.code, CM_E_LIMIT);
	assert_string_equal(err.msg, "FILE:1: more than 65536 values");
}

static void test_size(void **state)
{
	char *text = malloc(CM_JSON_MAX_BYTES + 1);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_json_doc *doc;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', CM_JSON_MAX_BYTES + 1);
	text[0] = text[CM_JSON_MAX_BYTES - 1] = '"';
	doc = parse(text, CM_JSON_MAX_BYTES, 0, &err);
	assert_non_null(doc);
	assert_int_equal(strlen(cm_json_root(doc)->u.string), CM_JSON_MAX_BYTES - 2);
	cm_json_free(doc);
	text[CM_JSON_MAX_BYTES - 1] = 'x';
	text[CM_JSON_MAX_BYTES] = '"';
	assert_null(parse(text, CM_JSON_MAX_BYTES + 1, 0, &err));
	assert_int_equal(err.code, CM_E_LIMIT);
	assert_string_equal(err.msg, "FILE: larger than 1.0 MiB");
	assert_string_equal(err.hint, "make 'FILE' smaller");
	free(text);
}

static void test_garbage(void **state)
{
	size_t size = 10UL * 1024 * 1024;
	char *text = malloc(size);
	uint32_t random = 12345;
	struct cm_error err = CM_ERROR_INIT;
	struct cm_json_doc *doc;
	static const char bytes[] = "{}[]\",:\\u0123456789abcdeE+-. \n\ttruefalsn/*";

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < size; i++) {
		random = random * 1664525 + 1013904223;
		text[i] = (char)(random >> 24);
	}
	assert_null(parse(text, size, 0, &err));
	assert_int_equal(err.code, CM_E_LIMIT);
	assert_null(parse(text, CM_JSON_MAX_BYTES, 0, &err));
	assert_int_equal(err.code, CM_E_INVALID);
	/* nearly JSON */
	for (size_t i = 0; i < size; i++) {
		random = random * 1664525 + 1013904223;
		text[i] = bytes[(random >> 16) % (sizeof(bytes) - 1)];
	}
	for (size_t at = 0; at + 200 < size; at += 211) {
		doc = parse(text + at, 1 + at % 200, at & 1, &err);
		cm_json_free(doc);
	}
	/* much work for a reader that looks at things again and again */
	text[0] = '"';
	for (size_t i = 1; i + 2 < CM_JSON_MAX_BYTES; i += 2)
		memcpy(text + i, i % 4 == 1 ? "\\\\" : "\\\"", 2);
	text[CM_JSON_MAX_BYTES - 1] = '"';
	doc = parse(text, CM_JSON_MAX_BYTES, 0, &err);
	assert_non_null(doc);
	assert_int_equal(strlen(cm_json_root(doc)->u.string), CM_JSON_MAX_BYTES / 2 - 1);
	cm_json_free(doc);
	memcpy(text + CM_JSON_MAX_BYTES - 7, "\\udc00\"", 7);
	assert_null(parse(text, CM_JSON_MAX_BYTES, 0, &err));
	assert_non_null(strstr(err.msg, "half of a surrogate pair"));
	free(text);
}

struct alloc_case {
	const char *text;
	size_t len;
};

static bool parse_once(void *data)
{
	const struct alloc_case *c = data;
	struct cm_error err = CM_ERROR_INIT;
	struct cm_json_doc *doc = NULL;
	int r = cm_json_parse(c->text, c->len, "FILE", CM_JSON_COMMENTS, &doc, &err);

	if (r == CM_OK) {
		cm_json_free(doc);
		return true;
	}
	assert_null(doc);
	assert_int_equal(r, CM_E_NOMEM);
	assert_int_equal(err.code, CM_E_NOMEM);
	assert_int_equal(err.sys_errno, ENOMEM);
	assert_string_equal(err.msg, "out of memory reading 'FILE'");
	assert_true(err.hint[0] != '\0');
	return false;
}

static void test_no_memory(void **state)
{
	static char big[60000];
	size_t len = 0;
	struct alloc_case c = { "{\"a\":[1,2,{\"\\u00e9\":\"\\n\"}],\"b\":[[[[[]]]]]}", 0 };

	(void)state;
	c.len = strlen(c.text);
	assert_in_range(fail_each_allocation(parse_once, &c), 5, 100);
	/* more than one chunk, objects that need sorting, a long escaped string */
	big[len++] = '{';
	for (int i = 0; i < 500; i++)
		len += (size_t)snprintf(big + len, sizeof(big) - len, "\"k%d\":{\"x\":1,\"y\":2},",
					i);
	len += (size_t)snprintf(big + len, sizeof(big) - len, "\"z\":\"\\n");
	memset(big + len, 's', 20000);
	len += 20000;
	len += (size_t)snprintf(big + len, sizeof(big) - len, "\"}");
	c = (struct alloc_case){ big, len };
	assert_in_range(fail_each_allocation(parse_once, &c), 10, 1000);
}

static void test_no_record(void **state)
{
	struct cm_json_doc *doc = NULL;

	(void)state;
	assert_int_equal(cm_json_parse("{", 1, "FILE", 0, &doc, NULL), CM_E_INVALID);
	assert_int_equal(cm_json_parse("{\"a\":1,\"a\":2}", 13, "FILE", 0, &doc, NULL),
			 CM_E_INVALID);
	cm_alloc_fail_after(0);
	assert_int_equal(cm_json_parse("1", 1, "FILE", 0, &doc, NULL), CM_E_NOMEM);
	cm_alloc_fail_after(-1);
	assert_null(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_raw_nul),
		cmocka_unit_test(test_cut_and_flipped),
		cmocka_unit_test(test_comments),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_getters),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_number_of_values),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_no_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
