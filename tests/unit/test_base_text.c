/* SPDX-License-Identifier: Apache-2.0 */
/* Escaping for terminals and shells, UTF-8, patterns, edit distance, and how times are shown. */
#include "runtime/base/clock.h"
#include "runtime/base/hash.h"
#include "runtime/base/text.h"
#include "tests/helpers/utf8.h"
#include "tests/unit/test_base.h"

static void assert_escaped(const char *s, size_t len, bool keep_newlines, const char *expected)
{
	CM_AUTO_BUF struct cm_buf out;

	cm_buf_init(&out, 100000);
	cm_buf_puts(&out, "");
	cm_text_escape(&out, s, len, keep_newlines);
	assert_int_equal(cm_buf_status(&out), CM_OK);
	assert_string_equal(out.data, expected);
	assert_int_equal(out.len, strlen(expected));
}

static void test_escape(void **state)
{
	static const struct {
		const char *s;
		const char *escaped;
	} rows[] = {
		{ "", "" },
		{ "plain ~", "plain ~" },
		{ "a\x1b[31mred", "a\\x1b[31mred" },
		/* OSC 52, which writes the clipboard; both ends */
		{ "\x1b]52;c;cHduZWQ=\x07", "\\x1b]52;c;cHduZWQ=\\x07" },
		{ "\x1b]52;c;cHduZWQ=\x1b\\", "\\x1b]52;c;cHduZWQ=\\x1b\\" },
		/* the same in its C1 form, as UTF-8 and as the bare byte */
		{ "\xc2\x9d"
		  "52;c;eA==\xc2\x9c",
		  "\\xc2\\x9d52;c;eA==\\xc2\\x9c" },
		{ "\x9d"
		  "52;c;eA==\x9c",
		  "\\x9d52;c;eA==\\x9c" },
		/* directions and ends of lines; an ordinary dash of the same block stays */
		{ "\xe2\x80\xae\xe2\x80\xac\xe2\x81\xa6\xe2\x81\xa9",
		  "\\xe2\\x80\\xae\\xe2\\x80\\xac\\xe2\\x81\\xa6\\xe2\\x81\\xa9" },
		{ "\xe2\x80\xa8\xd8\x9c\xe2\x80\x94", "\\xe2\\x80\\xa8\\xd8\\x9c\xe2\x80\x94" },
		{ "\xc2\x80\xc2\x9f\xc2\xa0", "\\xc2\\x80\\xc2\\x9f\xc2\xa0" },
		{ "del\x7f", "del\\x7f" },
		{ "\r\n\t\b", "\\x0d\\x0a\\x09\\x08" },
		{ "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
		  "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80" },
		/* not UTF-8: overlong, surrogate, above U+10FFFF, cut, stray */
		{ "\xc0\xaf", "\\xc0\\xaf" },
		{ "\xe0\x80\xaf", "\\xe0\\x80\\xaf" },
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80" },
		{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" },
		{ "\xe2\x82", "\\xe2\\x82" },
		{ "\xe2\x1b[m", "\\xe2\\x1b[m" },
		{ "\xff\xfe", "\\xff\\xfe" },
		{ "ok\x80ok", "ok\\x80ok" },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++)
		assert_escaped(rows[i].s, strlen(rows[i].s), false, rows[i].escaped);
	assert_escaped("a\0b", 3, false, "a\\x00b");
	assert_escaped("a\nb\tc\rd\x1b", 8, true, "a\nb\tc\\x0dd\\x1b");
	/* cut by its length, not by its NUL */
	assert_escaped("\xe2\x82\xac", 2, false, "\\xe2\\x82");
}

/* Whatever the two bytes are, nothing is left that a terminal obeys. */
static void test_escape_all_pairs(void **state)
{
	(void)state;
	for (unsigned int v = 0; v < 0x10000; v++) {
		const char s[2] = { (char)(v >> 8), (char)(v & 0xff) };
		CM_AUTO_BUF struct cm_buf out;

		cm_buf_init(&out, 64);
		cm_text_escape(&out, s, sizeof(s), false);
		assert_true(is_utf8(out.data, out.len));
		for (size_t i = 0; i < out.len; i++) {
			unsigned char c = (unsigned char)out.data[i];

			assert_true(c >= 0x20 && c != 0x7f);
			assert_false(c == 0xc2 && (unsigned char)out.data[i + 1] < 0xa0);
		}
	}
}

static void test_escape_full(void **state)
{
	struct cm_buf out;

	(void)state;
	cm_buf_init(&out, 5);
	cm_text_escape(&out, "ab\x1b", 3, false);
	assert_int_equal(cm_buf_status(&out), CM_E_LIMIT);
	cm_buf_clear(&out);
}

static void assert_trimmed(const char *s, const char *expected)
{
	size_t len = 0;
	const char *at = cm_text_trimmed(s, &len);

	if (!expected) {
		assert_null(at);
		return;
	}
	assert_non_null(at);
	assert_int_equal(len, strlen(expected));
	assert_memory_equal(at, expected, len);
}

static void test_trimmed(void **state)
{
	(void)state;
	assert_trimmed(NULL, NULL);
	assert_trimmed("", NULL);
	assert_trimmed(" \t\n\v\f\r", NULL);
	assert_trimmed("a", "a");
	assert_trimmed(" \v a b\t\n", "a b");
}

static void test_utf8(void **state)
{
	static const struct {
		const char *s;
		size_t n;
	} rows[] = {
		{ "a", 1 },
		{ "\x7f", 1 },
		{ "\xc2\x80", 2 },
		{ "\xdf\xbf", 2 },
		{ "\xe0\xa0\x80", 3 },
		{ "\xed\x9f\xbf", 3 },
		{ "\xee\x80\x80", 3 },
		{ "\xef\xbf\xbf", 3 },
		{ "\xf0\x90\x80\x80", 4 },
		{ "\xf4\x8f\xbf\xbf", 4 },
		{ "\x80", 0 },
		{ "\xbf", 0 },
		{ "\xc0\x80", 0 },
		{ "\xc1\xbf", 0 },
		{ "\xc2", 0 },
		{ "\xc2\x7f", 0 },
		{ "\xc2\xc0", 0 },
		{ "\xe0\x9f\xbf", 0 },
		{ "\xe1\x80", 0 },
		{ "\xe1\x80\x7f", 0 },
		{ "\xed\xa0\x80", 0 },
		{ "\xed\xbf\xbf", 0 },
		{ "\xf0\x8f\xbf\xbf", 0 },
		{ "\xf0\x90\x80", 0 },
		{ "\xf1\x80\x80\xc0", 0 },
		{ "\xf4\x90\x80\x80", 0 },
		{ "\xf5\x80\x80\x80", 0 },
		{ "\xff", 0 },
	};

	(void)state;
	assert_int_equal(cm_text_utf8_len("a", 0), 0);
	assert_int_equal(cm_text_utf8_len("\0", 1), 1);
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		size_t len = strlen(rows[i].s);
		/* exactly as large, so that a sanitizer sees a byte too many read */
		char *s = malloc(len);

		assert_non_null(s);
		memcpy(s, rows[i].s, len);
		assert_int_equal(cm_text_utf8_len(s, len), rows[i].n);
		assert_int_equal(is_utf8(s, len), rows[i].n != 0);
		for (size_t cut = 1; cut < rows[i].n; cut++)
			assert_int_equal(cm_text_utf8_len(s, cut), 0);
		free(s);
	}
	assert_true(is_utf8("", 0));
	assert_true(is_utf8("a\xc3\xa9\0b", 5));
	assert_false(is_utf8("a\xc3", 2));
}

static void test_fitting(void **state)
{
	static const struct {
		const char *s;
		size_t columns;
		size_t n;
	} rows[] = {
		{ "", 3, 0 },
		{ "abc", 0, 0 },
		{ "abc", 2, 2 },
		{ "abc", 4, 3 },
		{ "\xc3\xa9\xc3\xa9x", 2, 4 },
		{ "\xe2\x82\xac", 1, 3 },
		{ "\xff\xc3\xa9", 2, 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(cm_text_fitting(rows[i].s, strlen(rows[i].s), rows[i].columns),
				 rows[i].n);
}

static void test_matches(void **state)
{
	static const struct {
		const char *pattern;
		const char *s;
		bool matches;
	} rows[] = {
		{ "", "", true },
		{ "", "a", false },
		{ "a", "", false },
		{ "a", "a", true },
		{ "a", "aa", false },
		{ "aa", "a", false },
		{ "*", "", true },
		{ "*", "anything", true },
		{ "**", "", true },
		{ "?", "", false },
		{ "?", "a", true },
		{ "?", "ab", false },
		{ "*?", "a", true },
		{ "?*", "", false },
		{ "a*", "a", true },
		{ "a*", "ba", false },
		{ "*a", "ba", true },
		{ "*a", "ab", false },
		{ "a*c", "abcbc", true },
		{ "a*c", "abcb", false },
		{ "*.pem", "a.pem.pem", true },
		{ "a*b*c", "aXbYbZc", true },
		{ "a*b*c", "aXcYb", false },
		{ "*ab*ab*", "abab", true },
		{ "*ab*ab*", "aba", false },
		{ "SSH_*", "SSH_AUTH_SOCK", true },
		{ "SSH_*", "ssh_a", false },
		{ "[ab]", "a", false },
		{ "\\*", "\\x", true },
		{ "a?c", "a*c", true },
	};
	char pattern[400];
	char s[20001];

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		if (cm_text_matches(rows[i].pattern, rows[i].s) != rows[i].matches)
			fail_msg("'%s' on '%s'", rows[i].pattern, rows[i].s);
	}
	assert_true(cm_text_matches_len("A*C", "ABC=D", 3));
	assert_false(cm_text_matches_len("A*D", "ABC=D", 3));
	assert_true(cm_text_matches_len("*", "", 0));
	/* what takes for ever where each star is tried anew */
	for (size_t i = 0; i + 2 < sizeof(pattern); i += 2)
		memcpy(pattern + i, "*a", 2);
	memcpy(pattern + sizeof(pattern) - 2, "b", 2);
	memset(s, 'a', sizeof(s) - 1);
	s[sizeof(s) - 1] = '\0';
	assert_false(cm_text_matches(pattern, s));
	assert_true(cm_text_has_prefix("abc", "ab"));
	assert_true(cm_text_has_prefix("abc", ""));
	assert_true(cm_text_has_prefix("abc", "abc"));
	assert_false(cm_text_has_prefix("abc", "abcd"));
	assert_false(cm_text_has_prefix("", "a"));
}

static void test_session_ids(void **state)
{
	static const char *const bad[] = { "",	 ".a", "-a",  "a/b", "a b",	  "a\n",
					   "..", "-",  "a:b", "a%b", "a\xc3\xa9", "a\x7f" };
	static const char *const good[] = { "a", "9", "_a", "_", "a-", "a.", "A.b_c-d" };
	char longest[CM_SESSION_ID_MAX + 2];

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		if (cm_text_is_session_id(bad[i]))
			fail_msg("taken: '%s'", bad[i]);
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(good); i++) {
		if (!cm_text_is_session_id(good[i]))
			fail_msg("refused: '%s'", good[i]);
	}
	memset(longest, 'a', sizeof(longest));
	longest[CM_SESSION_ID_MAX + 1] = '\0';
	assert_false(cm_text_is_session_id(longest));
	longest[CM_SESSION_ID_MAX] = '\0';
	assert_true(cm_text_is_session_id(longest));
}

static void test_distance(void **state)
{
	static const struct {
		const char *a;
		const char *b;
		unsigned int distance;
	} rows[] = {
		{ "", "", 0 },
		{ "", "abc", 3 },
		{ "network", "network", 0 },
		{ "network", "netwrok", 1 },
		{ "network", "netwok", 1 },
		{ "network", "networks", 1 },
		{ "network", "netwurk", 1 },
		{ "memory", "meomry", 1 },
		{ "kitten", "sitting", 3 },
		{ "ab", "ba", 1 },
		{ "abc", "cba", 2 },
		{ "ca", "abc", 3 },
		{ "pids", "cpus", 3 },
	};
	char a[200];
	char b[200];

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		assert_int_equal(cm_text_distance(rows[i].a, rows[i].b, 10), rows[i].distance);
		assert_int_equal(cm_text_distance(rows[i].b, rows[i].a, 10), rows[i].distance);
		if (rows[i].distance > 0)
			assert_int_equal(
				cm_text_distance(rows[i].a, rows[i].b, rows[i].distance - 1),
				rows[i].distance);
	}
	/* capped */
	assert_int_equal(cm_text_distance("aaaaaaaa", "bbbbbbbb", 2), 3);
	memset(a, 'a', sizeof(a));
	memset(b, 'a', sizeof(b));
	a[64] = '\0';
	b[63] = '\0';
	assert_int_equal(cm_text_distance(a, b, 2), 1);
	/* longer than any name of ours */
	a[64] = 'a';
	a[65] = '\0';
	b[63] = 'a';
	b[64] = '\0';
	assert_int_equal(cm_text_distance(a, b, 2), 3);
	assert_int_equal(cm_text_distance(a, a, 2), 0);
}

static void assert_quoted(const char *s, const char *expected)
{
	CM_AUTO_BUF struct cm_buf out;

	cm_buf_init(&out, 1000);
	cm_text_shell_quote(&out, s);
	assert_string_equal(out.data, expected);
}

static void test_shell_quote(void **state)
{
	(void)state;
	assert_quoted("", "''");
	assert_quoted("plain-1.2_x@y%z+a:b,c/d", "plain-1.2_x@y%z+a:b,c/d");
	assert_quoted("a b", "'a b'");
	assert_quoted("it's", "'it'\\''s'");
	assert_quoted("'", "''\\'''");
	assert_quoted("$(id)", "'$(id)'");
	assert_quoted("`id`", "'`id`'");
	assert_quoted("a\nb", "'a\nb'");
	assert_quoted("~", "'~'");
	assert_quoted("*", "'*'");
	assert_quoted("#x", "'#x'");
	assert_quoted("{a,b}", "'{a,b}'");
	assert_quoted("\\", "'\\'");
	assert_quoted("caf\xc3\xa9", "'caf\xc3\xa9'");
	/* would be an assignment as a first word */
	assert_quoted("A=b", "'A=b'");
	assert_quoted("--a=b", "--a=b");
	assert_quoted("=b", "=b");
}

/* What a shell makes of it again, for every byte but NUL. */
static void test_shell_quote_by_shell(void **state)
{
	CM_AUTO_BUF struct cm_buf out;
	char all[256];
	char got[256];
	size_t n;
	FILE *f;

	(void)state;
	for (int c = 1; c < 256; c++)
		all[c - 1] = (char)c;
	all[255] = '\0';
	cm_buf_init(&out, 10000);
	cm_buf_puts(&out, "LC_ALL=C printf %s ");
	cm_text_shell_quote(&out, all);
	f = popen(out.data, "r");
	assert_non_null(f);
	n = fread(got, 1, sizeof(got), f);
	assert_int_equal(pclose(f), 0);
	assert_int_equal(n, 255);
	assert_memory_equal(got, all, 255);
}

static void test_rfc3339(void **state)
{
	static const struct {
		int64_t ms;
		const char *s;
	} rows[] = {
		{ 0, "1970-01-01T00:00:00.000Z" },
		{ -1, "1969-12-31T23:59:59.999Z" },
		{ 951782399999, "2000-02-28T23:59:59.999Z" },
		{ 951782400000, "2000-02-29T00:00:00.000Z" },
		{ 951868800000, "2000-03-01T00:00:00.000Z" },
		{ 4107542400000, "2100-03-01T00:00:00.000Z" },
		{ 4107542399000, "2100-02-28T23:59:59.000Z" },
		{ 1795985546123, "2026-11-29T20:52:26.123Z" },
		{ 253402300799999, "9999-12-31T23:59:59.999Z" },
		{ 253402300800000, "10000-01-01T00:00:00.000Z" },
		{ -62167219200000, "0000-01-01T00:00:00.000Z" },
		{ INT64_MAX, "292278994-08-17T07:12:55.807Z" },
		{ INT64_MIN, "-292275055-05-16T16:47:04.192Z" },
	};
	char buf[CM_CLOCK_RFC3339_SIZE];
	int64_t before = cm_clock_mono_ms();

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		cm_clock_rfc3339(rows[i].ms, buf);
		assert_string_equal(buf, rows[i].s);
	}
	assert_true(cm_clock_mono_us() / 1000 >= before);
	assert_true(cm_clock_real_ms() > INT64_C(1700000000000));
}

/* Of the algorithm's authors: names on disk are made of these. */
static void test_hash(void **state)
{
	(void)state;
	assert_true(cm_hash_text("") == CM_HASH_START);
	assert_true(cm_hash_text("a") == 0xaf63dc4c8601ec8cULL);
	assert_true(cm_hash_text("foobar") == 0x85944171f73967e8ULL);
	assert_true(cm_hash(cm_hash_text("foo"), "bar", 3) == cm_hash_text("foobar"));
	/* a byte is no negative number, and a NUL is one, too */
	assert_true(cm_hash_text("\xff") == 0xaf64724c8602eb6eULL);
	assert_true(cm_hash(CM_HASH_START, "", 1) == 0xaf63bd4c8601b7dfULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_escape_all_pairs),
		cmocka_unit_test(test_escape_full),
		cmocka_unit_test(test_trimmed),
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_fitting),
		cmocka_unit_test(test_matches),
		cmocka_unit_test(test_distance),
		cmocka_unit_test(test_session_ids),
		cmocka_unit_test(test_shell_quote),
		cmocka_unit_test(test_shell_quote_by_shell),
		cmocka_unit_test(test_rfc3339),
		cmocka_unit_test(test_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
