/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, sizes, durations and thousandths: every bad form, every overflow, the messages. */
#include "runtime/base/num.h"
#include "tests/unit/test_base.h"

typedef int (*parse_fn)(const char *s, const char *what, uint64_t min, uint64_t max, uint64_t *ret,
			struct cm_error *err);

struct good {
	const char *s;
	uint64_t v;
};

static void check_good(parse_fn parse, const struct good *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct cm_error err = CM_ERROR_INIT;
		uint64_t v = UNTOUCHED;

		if (parse(rows[i].s, "--x", 0, UINT64_MAX, &v, &err) != CM_OK)
			fail_msg("'%s': %s", rows[i].s, err.msg);
		if (v != rows[i].v)
			fail_msg("'%s' is %llu", rows[i].s, (unsigned long long)v);
		assert_int_equal(err.code, CM_OK);
	}
}

static void check_bad(parse_fn parse, const char *s)
{
	struct cm_error err = CM_ERROR_INIT;
	uint64_t v = UNTOUCHED;

	if (parse(s, "--x", 0, UINT64_MAX, &v, &err) != CM_E_INVALID)
		fail_msg("'%s' was taken as %llu", s ? s : "NULL", (unsigned long long)v);
	assert_int_equal(v, UNTOUCHED);
	assert_int_equal(err.code, CM_E_INVALID);
	assert_memory_equal(err.msg, "--x must be ", 12);
	assert_true(err.hint[0] != '\0');
	/* no record asked for */
	assert_int_equal(parse(s, "--x", 0, UINT64_MAX, &v, NULL), CM_E_INVALID);
}

/* Wrong whatever the unit is. */
static const char *const never[] = {
	NULL,
	"",
	" ",
	"-",
	"+1",
	"-1",
	"-0",
	" 1",
	"1 ",
	"\t1",
	"1\n",
	"0x10",
	"1e3",
	"1,5",
	"1_000",
	"one",
	"inf",
	"nan",
	".",
	".5",
	"1.",
	"1..5",
	"1.5.2",
	"--1",
	"1-",
	"1/2",
	"\xc2\xb9",
	"1\xc2\xa0",
	"'1'",
	"1;",
	"99999999999999999999",
	"18446744073709551616",
	"1%",
	"$1",
};

static void check_never(parse_fn parse)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(never); i++)
		check_bad(parse, never[i]);
}

static void test_u64(void **state)
{
	static const struct good rows[] = {
		{ "0", 0 },
		{ "00", 0 },
		{ "007", 7 },
		{ "1", 1 },
		{ "18446744073709551614", UINT64_MAX - 1 },
		{ "18446744073709551615", UINT64_MAX },
		{ "000000000000000000000000000000018446744073709551615", UINT64_MAX },
	};
	static const char *const bad[] = { "1.0", "1k", "1s", "184467440737095516150" };

	(void)state;
	check_good(cm_parse_u64, rows, CM_ARRAY_SIZE(rows));
	check_never(cm_parse_u64);
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++)
		check_bad(cm_parse_u64, bad[i]);
}

static void test_u64_bounds(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	uint64_t v = UNTOUCHED;

	(void)state;
	assert_int_equal(cm_parse_u64("2", "--n", 2, 4, &v, &err), CM_OK);
	assert_int_equal(v, 2);
	assert_int_equal(cm_parse_u64("4", "--n", 2, 4, &v, &err), CM_OK);
	assert_int_equal(v, 4);
	assert_int_equal(cm_parse_u64("1", "--n", 2, 4, &v, &err), CM_E_INVALID);
	assert_string_equal(err.msg, "--n must be 2 to 4, not '1'");
	assert_string_equal(err.hint, "give --n a value from 2 to 4");
	assert_int_equal(cm_parse_u64("5", "--n", 2, 4, &v, &err), CM_E_INVALID);
	assert_int_equal(cm_parse_u64("x", "--n", 2, 4, &v, &err), CM_E_INVALID);
	assert_string_equal(err.msg, "--n must be 2 to 4, not 'x'");
	assert_int_equal(cm_parse_u64(NULL, "--n", 0, UINT64_MAX, &v, &err), CM_E_INVALID);
	assert_string_equal(err.msg, "--n must be 0 to 18446744073709551615, not ''");
	assert_int_equal(v, 4);
}

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)

static void test_size(void **state)
{
	static const struct good rows[] = {
		{ "0", 0 },
		{ "17", 17 },
		{ "17B", 17 },
		{ "17b", 17 },
		{ "1k", KIB },
		{ "1K", KIB },
		{ "1KB", KIB },
		{ "1kB", KIB },
		{ "1KiB", KIB },
		{ "1kib", KIB },
		{ "2m", 2 * MIB },
		{ "2MB", 2 * MIB },
		{ "2MiB", 2 * MIB },
		{ "3g", 3 * GIB },
		{ "3GB", 3 * GIB },
		{ "3GiB", 3 * GIB },
		{ "4t", 4 * TIB },
		{ "4TB", 4 * TIB },
		{ "4TiB", 4 * TIB },
		{ "1.5G", GIB + GIB / 2 },
		{ "0.5k", 512 },
		{ "1.000001T", TIB + 1099511 },
		/* not to 0, which often means "no limit" */
		{ "0.000001k", 1 },
		{ "0.0k", 0 },
		/* the largest of each unit */
		{ "18446744073709551615", UINT64_MAX },
		{ "18014398509481983K", UINT64_MAX - KIB + 1 },
		{ "17592186044415M", UINT64_MAX - MIB + 1 },
		{ "17179869183G", UINT64_MAX - GIB + 1 },
		{ "16777215T", UINT64_MAX - TIB + 1 },
		{ "16777215.999999T", UINT64_MAX - TIB + 1 + UINT64_C(1099510528264) },
	};
	static const char *const bad[] = {
		"k",
		"G",
		"1 k",
		"1kk",
		"1ki",
		"1p",
		"1e",
		"1s",
		"1k1",
		"-1k",
		"1.5",
		"1.0",
		"1.5B",
		"1.5b",
		"1.k",
		".5k",
		"1.1234567G",
		"1,5G",
		"1.5 G",
		"0x1k",
		"1M512K",
		"1kibi",
		"1\xc2\xb5",
		/* one too many of each unit */
		"18446744073709551616B",
		"18014398509481984K",
		"17592186044416M",
		"17179869184G",
		"16777216T",
		"16777216.0T",
		"99999999999999999999K",
	};

	(void)state;
	check_good(cm_parse_size, rows, CM_ARRAY_SIZE(rows));
	check_never(cm_parse_size);
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++)
		check_bad(cm_parse_size, bad[i]);
}

static void test_size_messages(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	uint64_t v = UNTOUCHED;

	(void)state;
	assert_int_equal(cm_parse_size("4X", "--memory", 0, UINT64_MAX, &v, &err), CM_E_INVALID);
	assert_string_equal(err.msg, "--memory must be a size such as 512M or 1.5G, not '4X'");
	assert_string_equal(err.hint, "give --memory as a size such as 512M or 1.5G");
	assert_int_equal(cm_parse_size("1M", "--memory", 4 * MIB, TIB, &v, &err), CM_E_INVALID);
	assert_string_equal(err.msg, "--memory must be 4.0 MiB to 1.0 TiB, not '1M'");
	assert_int_equal(cm_parse_size("2T", "--memory", 4 * MIB, TIB, &v, &err), CM_E_INVALID);
	assert_string_equal(err.hint, "give --memory a value from 4.0 MiB to 1.0 TiB");
	assert_int_equal(v, UNTOUCHED);
	assert_int_equal(cm_parse_size("4M", "--memory", 4 * MIB, TIB, &v, &err), CM_OK);
	assert_int_equal(v, 4 * MIB);
}

static void test_duration(void **state)
{
	static const struct good rows[] = {
		{ "0", 0 },
		{ "0s", 0 },
		{ "90", 90000 },
		{ "90s", 90000 },
		{ "1.5", 1500 },
		{ "0.25s", 250 },
		{ "250ms", 250 },
		{ "3m", 180000 },
		{ "1.5h", 5400000 },
		{ "2d", 172800000 },
		{ "2m30s", 150000 },
		{ "1d2h3m4s5ms", 93784005 },
		{ "1h0m0s", 3600000 },
		{ "1.5m30s", 120000 },
		{ "1m500ms", 60500 },
		/* rounded down, but not to 0 */
		{ "0.0001s", 1 },
		{ "0.0001", 1 },
		{ "1.0019s", 1001 },
		/* the largest of each unit */
		{ "18446744073709551615ms", UINT64_MAX },
		{ "18446744073709551s", UINT64_C(18446744073709551000) },
		{ "307445734561825m", UINT64_C(18446744073709500000) },
		{ "5124095576030h", UINT64_C(18446744073708000000) },
		{ "213503982334d", UINT64_C(18446744073657600000) },
		{ "18446744073709551s615ms", UINT64_MAX },
	};
	static const char *const bad[] = {
		"s",
		"m30s",
		"1 s",
		"1s ",
		"1sec",
		"1min",
		"1S",
		"1H",
		"1w",
		"1y",
		"30m1h",
		"1m1m",
		"1s1m",
		"1ms1s",
		"1s1",
		"1h30",
		"1.5ms",
		"1.0ms",
		"1.s",
		".5s",
		"1:30",
		"-1s",
		"1h-1m",
		"1h 1m",
		"1us",
		"1ns",
		"1.1234567s",
		"PT1H",
		/* one too many of each unit, and of a sum */
		"18446744073709551616ms",
		"18446744073709552s",
		"307445734561826m",
		"5124095576031h",
		"213503982335d",
		"18446744073709552",
		"18446744073709551s616ms",
		"213503982334d23h59m59s999ms1",
	};

	(void)state;
	check_good(cm_parse_duration, rows, CM_ARRAY_SIZE(rows));
	check_never(cm_parse_duration);
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++)
		check_bad(cm_parse_duration, bad[i]);
}

static void test_duration_messages(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	uint64_t v = UNTOUCHED;

	(void)state;
	assert_int_equal(cm_parse_duration("soon", "--timeout", 0, 1, &v, &err), CM_E_INVALID);
	assert_string_equal(err.msg,
			    "--timeout must be a duration such as 90s, 1.5h or 2m30s, not 'soon'");
	assert_int_equal(cm_parse_duration("3d", "--timeout", 100, 86400000, &v, &err),
			 CM_E_INVALID);
	assert_string_equal(err.msg, "--timeout must be 100 ms to 24 h, not '3d'");
	assert_int_equal(cm_parse_duration("99ms", "--timeout", 100, 86400000, &v, &err),
			 CM_E_INVALID);
	assert_int_equal(v, UNTOUCHED);
	assert_int_equal(cm_parse_duration("0.1", "--timeout", 100, 86400000, &v, &err), CM_OK);
	assert_int_equal(v, 100);
}

static void test_milli(void **state)
{
	static const struct good rows[] = {
		{ "0", 0 },
		{ "2", 2000 },
		{ "1.5", 1500 },
		{ "0.25", 250 },
		{ "0.001", 1 },
		{ "1.000", 1000 },
		{ "18446744073709551", UINT64_C(18446744073709551000) },
		{ "18446744073709551.615", UINT64_MAX },
	};
	static const char *const bad[] = {
		"1k",
		"1s",
		"0.0001",
		"1.0000",
		"1.5000",
		"18446744073709551.616",
		"18446744073709552",
		"1.5x",
	};
	struct cm_error err = CM_ERROR_INIT;
	uint64_t v = UNTOUCHED;

	(void)state;
	check_good(cm_parse_milli, rows, CM_ARRAY_SIZE(rows));
	check_never(cm_parse_milli);
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++)
		check_bad(cm_parse_milli, bad[i]);
	assert_int_equal(cm_parse_milli("9", "--cpus", 10, 64250, &v, &err), CM_OK);
	assert_int_equal(v, 9000);
	assert_int_equal(cm_parse_milli("64.251", "--cpus", 10, 64250, &v, &err), CM_E_INVALID);
	assert_string_equal(err.msg, "--cpus must be 0.01 to 64.25, not '64.251'");
	assert_int_equal(cm_parse_milli("1", "--cpus", 1500, 2125, &v, &err), CM_E_INVALID);
	assert_string_equal(err.hint, "give --cpus a value from 1.5 to 2.125");
	assert_int_equal(cm_parse_milli("x", "--cpus", 1, 2, &v, &err), CM_E_INVALID);
	assert_string_equal(err.msg, "--cpus must be a number with at most 3 decimals, such as "
				     "1.5, not 'x'");
}

struct shown {
	uint64_t v;
	const char *s;
};

static void test_format_size(void **state)
{
	static const struct shown rows[] = {
		{ 0, "0 B" },
		{ 17, "17 B" },
		{ 1023, "1023 B" },
		{ 1024, "1.0 KiB" },
		{ 1536, "1.5 KiB" },
		{ 512 * MIB, "512 MiB" },
		{ 4 * GIB, "4.0 GiB" },
		/* never "1024 KiB" */
		{ MIB - 1, "1.0 MiB" },
		{ GIB - 1, "1.0 GiB" },
		{ 1023 * KIB, "1023 KiB" },
		{ 99 * KIB + 1000, "100 KiB" },
		{ UINT64_C(1) << 60, "1.0 EiB" },
		{ UINT64_MAX, "16.0 EiB" },
	};
	char buf[48];

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		cm_format_size(rows[i].v, buf, sizeof(buf));
		assert_string_equal(buf, rows[i].s);
	}
	/* cut, never over the end */
	memset(buf, 'x', sizeof(buf));
	cm_format_size(UINT64_MAX, buf, 4);
	assert_memory_equal(buf, "16.\0xxx", 7);
}

static void test_format_duration(void **state)
{
	static const struct shown rows[] = {
		{ 0, "0 ms" },
		{ 350, "350 ms" },
		{ 999, "999 ms" },
		{ 1000, "1 s" },
		{ 2500, "2.5 s" },
		{ 59949, "59.9 s" },
		{ 59950, "1 min" },
		{ 180000, "3 min" },
		{ 90000, "1.5 min" },
		{ 3600000, "1 h" },
		{ 5 * 3600000, "5 h" },
		{ 71 * UINT64_C(3600000), "71 h" },
		{ 72 * UINT64_C(3600000), "3 d" },
		{ UINT64_MAX, "213503982334.6 d" },
	};
	char buf[48];

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		cm_format_duration(rows[i].v, buf, sizeof(buf));
		assert_string_equal(buf, rows[i].s);
	}
	memset(buf, 'x', sizeof(buf));
	cm_format_duration(350, buf, 3);
	assert_memory_equal(buf, "35\0xxx", 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_u64),
		cmocka_unit_test(test_u64_bounds),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_size_messages),
		cmocka_unit_test(test_duration),
		cmocka_unit_test(test_duration_messages),
		cmocka_unit_test(test_milli),
		cmocka_unit_test(test_format_size),
		cmocka_unit_test(test_format_duration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
