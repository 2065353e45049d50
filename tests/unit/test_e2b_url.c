/* SPDX-License-Identifier: Apache-2.0 */
/* Signed addresses of files, as the service's own client makes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "providers/e2b/url.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"

#define BASE "http://127.0.0.1:3939"
#define TOKEN "6eed1f78079897974ab459263f8cff0712e1580d72dade394ceedd7d73fa554e"

/* The first two are what that client sent; the others are another implementation's. */
static const struct row {
	struct cm_e2b_url url;
	const char *expected;
} rows[] = {
	{ { BASE, "/tmp/su", NULL, TOKEN, false, 0 },
	  BASE "/files?path=%2Ftmp%2Fsu"
	       "&signature=v1_yZKbOAr%2BFvdaV8zhL7RdVDAjbkfFsC9HZ0Csm%2BRJtFQ" },
	{ { BASE, "/tmp/su", NULL, TOKEN, true, 1795968747 },
	  BASE "/files?path=%2Ftmp%2Fsu"
	       "&signature=v1_mXVzi3%2FmueNa9gr3VpVj3%2BTFX7slaaGFPlorZnlG064"
	       "&signature_expiration=1795968747" },
	{ { BASE, "/tmp/su", "root", TOKEN, false, 0 },
	  BASE "/files?path=%2Ftmp%2Fsu&username=root"
	       "&signature=v1_0%2F6u7gBDuCf2y7Zl8Jh9WyhzElJ%2BzrtqL2Hjnoi2jAY" },
	/* signed as it is, and not as it stands in the query */
	{ { BASE, "notes/\xc3\xa4 b+c&d:e", NULL, TOKEN, false, 0 },
	  BASE "/files?path=notes%2F%C3%A4%20b%2Bc%26d%3Ae"
	       "&signature=v1_JRZX1SYfhVAPJoeHxUr34XK7zlizXTJMpQNxSk1Po%2FI" },
	{ { BASE, "/tmp/su", NULL, "t", false, 1 },
	  BASE "/files?path=%2Ftmp%2Fsu"
	       "&signature=v1_9HY%2F1Nb3GWuDFHDioBJ9f5FL4KmTw0rtOZPrxXf90Hs"
	       "&signature_expiration=1" },
	{ { "https://49983-i.example.org", "./~x", "root", "t", true, 253402300799 },
	  "https://49983-i.example.org/files?path=.%2F~x&username=root"
	  "&signature=v1_kpUsAQ5ncI2WmMjqi%2BJGwcoangDv27Fmv%2B85PlenvOs"
	  "&signature_expiration=253402300799" },
	{ { BASE, "/tmp/su", NULL, NULL, true, 0 }, BASE "/files?path=%2Ftmp%2Fsu" },
	{ { BASE, "/tmp/su", "root", NULL, false, 0 },
	  BASE "/files?path=%2Ftmp%2Fsu&username=root" },
};

static void test_addresses(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		CM_AUTO_FREE char *url = cm_e2b_url_make(&rows[i].url);

		assert_non_null(url);
		assert_string_equal(url, rows[i].expected);
		/* what is signed with is not told */
		assert_null(strstr(url, TOKEN));
	}
}

/* All of it, or nothing: half of an address would be one without a signature. */
static void test_no_memory(void **state)
{
	CM_AUTO_FREE char *url = NULL;
	long n = 0;

	(void)state;
	for (; !url && n < 100; n++) {
		cm_alloc_fail_after(n);
		url = cm_e2b_url_make(&rows[1].url);
		cm_alloc_fail_after(-1);
	}
	assert_true(n > 3);
	assert_non_null(url);
	assert_string_equal(url, rows[1].expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
