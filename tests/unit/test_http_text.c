/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, escapes, headers and errors of the HTTP layer, without a server. */
#include "tests/unit/test_base.h"

#include <stdlib.h>
#include <time.h>

#include "providers/http_internal.h"
#include "runtime/base/clock.h"

static void addresses_are_https_or_loopback(void **state)
{
	static const char *const good[] = {
		"https://api.example.test",
		"HTTPS://API.example.test:8443/base/",
		"https://a_b-c.d",
		"https://[2001:db8::1]:443/x",
		"https://10.0.0.1/a%20b;c=d,e@f:g",
		"http://localhost",
		"http://LOCALHOST:3000/",
		"http://127.0.0.1:1",
		"http://127.255.0.3:65535/x",
		"http://[::1]:80/",
	};
	static const struct {
		const char *url;
		const char *says;
	} bad[] = {
		{ "", "begins neither" },
		{ "api.example.test", "begins neither" },
		{ "ftp://example.test", "begins neither" },
		{ "file:///etc/passwd", "begins neither" },
		{ " https://example.test", "begins neither" },
		{ "https:/example.test", "begins neither" },
		{ "https://", "no host" },
		{ "https:///path", "no host" },
		{ "https://:80", "no host" },
		{ "https://user:secret@example.test", "user name" },
		{ "https://secret@example.test/", "user name" },
		{ "https://example.test\\@other.test", "user name" },
		{ "https://example.test:0", "port" },
		{ "https://example.test:", "port" },
		{ "https://example.test:65536", "port" },
		{ "https://example.test:123456", "port" },
		{ "https://example.test:80a", "host has a character" },
		{ "https://exa mple.test", "host has a character" },
		{ "https://ex%61mple.test", "host has a character" },
		{ "https://b\xc3\xbc"
		  "cher.test",
		  "host has a character" },
		{ "https://[::1", "IPv6" },
		{ "https://[zz]", "IPv6" },
		{ "https://[fe80::1%25eth0]", "IPv6" },
		{ "https://[127.0.0.1]", "IPv6" },
		{ "https://example.test/a b", "%XX" },
		{ "https://example.test/a\r\nX: y", "%XX" },
		{ "https://example.test/a%2", "%XX" },
		{ "https://example.test/a%zz", "%XX" },
		{ "https://example.test/\"", "%XX" },
		{ "https://example.test/\xc3\xa4", "%XX" },
		{ "https://example.test/?key=secret", "query" },
		{ "https://example.test?", "query" },
		{ "https://example.test/#secret", "fragment" },
		{ "http://example.test", "'example.test', which is not this machine" },
		{ "http://128.0.0.1", "not this machine" },
		{ "http://127.1", "not this machine" },
		{ "http://0x7f.0.0.1", "not this machine" },
		{ "http://2130706433", "not this machine" },
		{ "http://127.0.0.1.example.test", "not this machine" },
		{ "http://localhost.example.test", "not this machine" },
		{ "http://localhost.", "not this machine" },
		{ "http://[::]", "not this machine" },
		{ "http://[::ffff:127.0.0.1]", "not this machine" },
		{ "http://0.0.0.0", "not this machine" },
	};
	char *longest = malloc(CM_HTTP_URL_MAX + 1);
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(good); i++) {
		if (cm_http_check_url(good[i], "X_URL", &err) != CM_OK)
			fail_msg("%s: %s", good[i], err.msg);
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		cm_error_clear(&err);
		if (cm_http_check_url(bad[i].url, "X_URL", &err) != CM_E_INVALID)
			fail_msg("%s is taken", bad[i].url);
		if (!strstr(err.msg, bad[i].says))
			fail_msg("%s: %s", bad[i].url, err.msg);
		assert_memory_equal(err.msg, "X_URL is no address", 19);
		assert_null(strstr(err.msg, "secret"));
		assert_int_not_equal(err.hint[0], '\0');
	}
	assert_non_null(longest);
	memset(longest, 'a', CM_HTTP_URL_MAX);
	memcpy(longest, "https://", 8);
	longest[CM_HTTP_URL_MAX] = '\0';
	assert_int_equal(cm_http_check_url(longest, "X_URL", &err), CM_E_INVALID);
	free(longest);
}

static void parts_are_where_they_are(void **state)
{
	struct cm_http_url url;
	char subject[CM_HTTP_SUBJECT_SIZE];

	(void)state;
	assert_null(cm_http_url_read("https://h.test:8443/a/b?c=/d", &url));
	assert_true(url.is_tls && !url.is_loopback && url.has_query);
	cm_http_url_subject(&url, subject);
	assert_string_equal(subject, "https://h.test:8443/a/b");
	assert_null(cm_http_url_read("http://[::1]:1?x", &url));
	assert_true(!url.is_tls && url.is_loopback && url.has_query);
	assert_memory_equal(url.host, "::1]", url.host_len + 1);
	cm_http_url_subject(&url, subject);
	assert_string_equal(subject, "http://[::1]:1");
	assert_null(
		cm_http_url_read("https://h/"
				 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
				 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
				 &url));
	cm_http_url_subject(&url, subject);
	assert_string_equal(subject + strlen(subject) - 4, "a...");
}

static void proxies_are_those_of_the_environment(void **state)
{
	CM_AUTO_STRV struct cm_strv env = { 0 };
	struct cm_http_url tls;
	struct cm_http_url loopback;

	(void)state;
	assert_null(cm_http_url_read("https://example.test", &tls));
	assert_null(cm_http_url_read("https://127.0.0.1", &loopback));
	assert_string_equal(cm_http_url_proxy(NULL, &tls), "");
	assert_string_equal(cm_http_url_no_proxy(NULL), "");
	assert_int_equal(cm_strv_add(&env, "http_proxy=http://plain:1"), CM_OK);
	assert_string_equal(cm_http_url_proxy(&env, &tls), "");
	assert_int_equal(cm_strv_add(&env, "ALL_PROXY=http://all:1"), CM_OK);
	assert_string_equal(cm_http_url_proxy(&env, &tls), "http://all:1");
	assert_int_equal(cm_strv_add(&env, "HTTPS_PROXY=http://upper:1"), CM_OK);
	assert_string_equal(cm_http_url_proxy(&env, &tls), "http://upper:1");
	assert_int_equal(cm_strv_add(&env, "https_proxy=http://lower:1"), CM_OK);
	assert_string_equal(cm_http_url_proxy(&env, &tls), "http://lower:1");
	assert_string_equal(cm_http_url_proxy(&env, &loopback), "");
	assert_int_equal(cm_strv_add(&env, "NO_PROXY=a,b"), CM_OK);
	assert_string_equal(cm_http_url_no_proxy(&env), "a,b");
	/* empty: none, as for curl */
	assert_int_equal(cm_strv_env_set(&env, "https_proxy", ""), CM_OK);
	assert_string_equal(cm_http_url_proxy(&env, &tls), "");
}

static void escape_leaves_what_stands_for_itself(void **state)
{
	CM_AUTO_BUF struct cm_buf out = { .max = 256 };

	(void)state;
	cm_http_escape(&out, "AZaz09-._~");
	assert_string_equal(out.data, "AZaz09-._~");
	cm_buf_reset(&out);
	cm_http_escape(&out, "a b/c?d=&%+\n\xc3\xa4\x7f");
	assert_string_equal(out.data, "a%20b%2Fc%3Fd%3D%26%25%2B%0A%C3%A4%7F");
}

static void add(struct cm_http_answer *answer, const char *line)
{
	assert_int_equal(cm_http_answer_add(answer, line, strlen(line)), CM_OK);
}

static void headers_are_read(void **state)
{
	struct cm_http_answer answer = { 0 };

	(void)state;
	add(&answer, "Content-TYPE:\t Application/JSON ; charset=utf-8 ");
	add(&answer, "X-Empty:");
	add(&answer, "X-Twice: 1");
	add(&answer, "X-Twice: 2");
	add(&answer, " folded: x");
	add(&answer, "no colon");
	add(&answer, ": no name");
	add(&answer, "X-Amzn-RequestId: second");
	add(&answer, "X-Request-Id: \x1b[31mid\xc3\xa4 1");
	assert_string_equal(cm_http_header(&answer, "x-empty"), "");
	assert_string_equal(cm_http_header(&answer, "x-twice"), "1");
	assert_null(cm_http_header(&answer, "x-twic"));
	assert_null(cm_http_header(&answer, "folded"));
	assert_int_equal(answer.headers.n, 6);
	cm_http_answer_settle(&answer);
	assert_string_equal(answer.content_type, "application/json");
	assert_string_equal(answer.request_id, "[31mid1");
	cm_http_answer_clear(&answer);
	assert_null(cm_http_header(&answer, "x-empty"));

	add(&answer,
	    "CF-Ray: 0123456789012345678901234567890123456789012345678901234567890123456789"
	    "012345678901234567890123456789");
	cm_http_answer_settle(&answer);
	assert_int_equal(strlen(answer.request_id), sizeof(answer.request_id) - 1);
	assert_string_equal(answer.content_type, "");
	cm_http_answer_clear(&answer);
}

static void retry_after_is_read(void **state)
{
	/* 2026-11-29T20:00:00Z */
	const int64_t now = INT64_C(1795982400) * 1000;
	static const struct {
		const char *value;
		int64_t ms;
	} cases[] = {
		{ "0", 0 },
		{ "7", 7000 },
		{ "99999999999999999999", INT64_C(999999999000) },
		{ "", -1 },
		{ "-1", -1 },
		{ "soon", -1 },
		{ "Sun, 29 Nov 2026 20:00:30 GMT", 30000 },
		{ "Sun, 29 Nov 2026 19:00:00 GMT", 0 },
		{ "Sunday, 29-Nov-26 20:01:00 GMT", 60000 },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(cases); i++) {
		struct cm_http_answer answer = { 0 };

		assert_int_equal(cm_http_retry_after_ms(&answer, now), -1);
		assert_int_equal(cm_strv_addf(&answer.headers, "retry-after: %s", cases[i].value),
				 CM_OK);
		assert_int_equal(cm_http_retry_after_ms(&answer, now), cases[i].ms);
		/* a clock of this machine that is wrong does not matter where theirs is known */
		add(&answer, "Date: Sun, 29 Nov 2026 20:00:00 GMT");
		assert_int_equal(cm_http_retry_after_ms(&answer, 0), cases[i].ms);
		cm_http_answer_clear(&answer);
	}
}

static int64_t ahead_of(struct cm_http_answer *answer, const char *line)
{
	int64_t ahead_ms;

	if (line)
		add(answer, line);
	cm_http_answer_settle(answer);
	ahead_ms = answer->clock_ahead_ms;
	cm_http_answer_clear(answer);
	return ahead_ms;
}

static void a_clock_that_differs_is_told(void **state)
{
	static const int64_t hour_ms = INT64_C(3600000);
	static const int64_t ahead_ms[] = { 0, 2 * hour_ms, -2 * hour_ms, 1000, -1000 };
	struct cm_http_answer answer = { 0 };

	(void)state;
	assert_int_equal(ahead_of(&answer, NULL), 0);
	for (size_t i = 0; i < CM_ARRAY_SIZE(ahead_ms); i++) {
		time_t then = (time_t)((cm_clock_real_ms() + ahead_ms[i]) / 1000);
		char line[64];
		struct tm tm;
		int64_t told;

		(void)strftime(line, sizeof(line), "Date: %a, %d %b %Y %H:%M:%S GMT",
			       gmtime_r(&then, &tm));
		told = ahead_of(&answer, line);
		if (llabs(ahead_ms[i]) < CM_HTTP_CLOCK_MS)
			assert_int_equal(told, 0);
		else
			assert_in_range(llabs(told - ahead_ms[i]), 0, 1500);
	}
	assert_int_equal(ahead_of(&answer, "Date: soon"), 0);
	/* further than anybody's clock is wrong */
	assert_int_equal(ahead_of(&answer, "Date: Mon, 30 Nov 2147483647 20:21:14 GMT"), 0);
	assert_int_equal(ahead_of(&answer, "Date: Mon, 30 Nov 9999 20:21:14 GMT"), 0);
}

static void statuses_have_codes(void **state)
{
	static const struct {
		int status;
		int code;
	} cases[] = {
		{ 400, CM_E_INVALID },	 { 401, CM_E_DENIED },	{ 403, CM_E_DENIED },
		{ 404, CM_E_NOT_FOUND }, { 408, CM_E_TIMEOUT }, { 409, CM_E_BUSY },
		{ 410, CM_E_NOT_FOUND }, { 413, CM_E_INVALID }, { 418, CM_E_REMOTE },
		{ 422, CM_E_INVALID },	 { 429, CM_E_LIMIT },	{ 500, CM_E_REMOTE },
		{ 502, CM_E_REMOTE },	 { 503, CM_E_REMOTE },	{ 504, CM_E_TIMEOUT },
	};
	struct cm_http_request request = { .url = "https://h.test:1/path?secret" };
	struct cm_http_answer answer = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	char message[2001];

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(cases); i++) {
		answer.status = cases[i].status;
		assert_int_equal(cm_http_error(&request, &answer, "do it", NULL, &err),
				 cases[i].code);
		assert_int_equal(err.code, cases[i].code);
		assert_string_equal(err.hint, "");
	}
	assert_string_equal(err.msg, "cannot do it: h.test:1 says 504");
	answer.status = 503;
	(void)snprintf(answer.request_id, sizeof(answer.request_id), "abc");
	add(&answer, "Retry-After: 90");
	assert_int_equal(cm_http_error(&request, &answer, "do it", "full", &err), CM_E_REMOTE);
	assert_string_equal(err.msg, "cannot do it: h.test:1 says 503 (full), request abc");
	assert_non_null(strstr(err.hint, "try again"));
	/* however much a service says, the request's id is there */
	memset(message, '\x1b', sizeof(message) - 1);
	message[sizeof(message) - 1] = '\0';
	assert_int_equal(cm_http_error(&request, &answer, "do it", message, &err), CM_E_REMOTE);
	assert_non_null(strstr(err.msg, "\\x1b...), request abc"));
	memset(message, 'm', sizeof(message) - 1);
	assert_int_equal(cm_http_error(&request, &answer, "do it", message, &err), CM_E_REMOTE);
	assert_non_null(strstr(err.msg, "m...), request abc"));
	cm_http_answer_clear(&answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_https_or_loopback),
		cmocka_unit_test(parts_are_where_they_are),
		cmocka_unit_test(proxies_are_those_of_the_environment),
		cmocka_unit_test(escape_leaves_what_stands_for_itself),
		cmocka_unit_test(headers_are_read),
		cmocka_unit_test(retry_after_is_read),
		cmocka_unit_test(a_clock_that_differs_is_told),
		cmocka_unit_test(statuses_have_codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
