/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of files: what they are good for without any key, and what they are not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/http.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "tests/conformance/provider/suite.h"

#define TOP "/tmp/urls"
#define MIB (1024UL * 1024)
/* the service's clock is known to the second, and ends are told by this host's */
#define CLOCK_MS 1000

/* The status; what was answered is appended. body NULL: GET, else POST. */
static int fetch(struct suite *t, const char *url, const char *body, struct cm_buf *out)
{
	static const char *const headers[] = { "Content-Type: application/octet-stream", NULL };
	const struct cm_http_options options = { .env = NULL };
	const struct cm_http_request request = {
		.method = body ? "POST" : "GET",
		.url = url,
		.headers = body ? headers : NULL,
		.body = body,
		.body_len = body ? strlen(body) : 0,
	};
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_http_answer answer = { 0 };
	struct cm_http *http = NULL;
	int status = -1;
	int r = cm_http_open(&options, &http, &err);

	if (r == CM_OK)
		r = cm_http_send(http, &request, &call, &answer, &err);
	if (CHECK_OK(t, r, err, url)) {
		status = answer.status;
		if (out)
			cm_buf_append(out, answer.body.data ? answer.body.data : "",
				      answer.body.len);
		cm_http_answer_clear(&answer);
	}
	cm_http_close(http);
	return status;
}

static void is_status(struct suite *t, const char *url, const char *body, int want,
		      const char *what)
{
	int got = fetch(t, url, body, NULL);

	CHECK(t, got == want, "%s: %d, wanted %d", what, got, want);
}

/* NULL, and it was said why. */
static char *url_of(struct suite *t, struct cm_session *s, const char *path, uint32_t flags,
		    uint64_t lifetime_ms, int64_t *ret_end_ms)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	char *url = NULL;
	int r = cm_session_file_url(s, path, flags, lifetime_ms, &call, &url, ret_end_ms, &err);

	if (!CHECK_OK(t, r, err, path))
		return NULL;
	CHECK(t, !suite_has_secret(t, url), "'%s' has a secret", url);
	return url;
}

static void reads(struct suite *t, struct cm_session *s, const char *path, const char *want)
{
	CM_AUTO_BUF struct cm_buf got = { 0 };
	int64_t end_ms = -1;
	CM_AUTO_FREE char *url = url_of(t, s, path, 0, 0, &end_ms);
	int status;

	if (!url)
		return;
	cm_buf_init(&got, MIB);
	status = fetch(t, url, NULL, &got);
	CHECK(t, status == 200 && got.len == strlen(want) && strcmp(got.data, want) == 0,
	      "%s: %d, '%.100s'", path, status, got.data ? got.data : "");
	CHECK(t, end_ms == 0 && !strstr(url, "expiration"), "it ends: '%s'", url);
}

static void read_by_address(struct suite *t)
{
	static const char *const names[] = { TOP "/plain", TOP "/\xc3\xa4 b+c&d=e%2F?#:read::x",
					     "url-below", "~url" };

	for (size_t i = 0; i < CM_ARRAY_SIZE(names); i++) {
		struct cm_error err = CM_ERROR_INIT;
		int r = suite_write(t, names[i], names[i], CM_WRITE_PARENTS, UINT32_MAX, &err);

		if (CHECK_OK(t, r, err, names[i]))
			reads(t, t->s, names[i], names[i]);
	}
}

static void write_by_address(struct suite *t)
{
	int64_t end_ms = -1;
	CM_AUTO_FREE char *url = url_of(t, t->s, TOP "/new/written", CM_URL_WRITE, 60000, &end_ms);
	int64_t left_ms = end_ms - cm_clock_real_ms();

	if (!url)
		return;
	CHECK(t, left_ms > 0 && left_ms <= 60000 + CLOCK_MS, "%lld ms are left",
	      (long long)left_ms);
	is_status(t, url, "first and long", 200, "a new file");
	suite_sh_is(t, t->s, "cat " TOP "/new/written", "first and long");
	is_status(t, url, "second", 200, "one that is there");
	suite_sh_is(t, t->s, "cat " TOP "/new/written", "second");
}

/* An address with one part of it changed. The caller frees. */
static char *changed(const char *url, const char *part, const char *with)
{
	const char *at = strstr(url, part);

	return at ? cm_asprintf("%.*s%s%s", (int)(at - url), url, with, at + strlen(part)) : NULL;
}

static void is_refused(struct suite *t, const char *url, const char *part, const char *with)
{
	CM_AUTO_FREE char *other = changed(url, part, with);

	if (CHECK(t, other, "'%s' is not in '%s'", part, url))
		is_status(t, other, NULL, 401, part);
}

/* One file, one way, and by nobody who has the address of something else. */
static void for_one_thing(struct suite *t)
{
	int64_t end_ms = 0;
	struct cm_error err = CM_ERROR_INIT;
	int r = suite_write(t, TOP "/one", "one", CM_WRITE_PARENTS, UINT32_MAX, &err);
	CM_AUTO_FREE char *to_read = url_of(t, t->s, TOP "/one", 0, 0, &end_ms);
	CM_AUTO_FREE char *to_write = url_of(t, t->s, TOP "/one", CM_URL_WRITE, 0, &end_ms);

	CHECK_OK(t, r, err, "a file");
	if (!to_read || !to_write)
		return;
	is_status(t, to_read, "changed", 401, "what is to be read is written");
	is_status(t, to_write, NULL, 401, "what is to be written is read");
	is_refused(t, to_read, "one", "two");
	is_refused(t, to_read, "&signature=v1_", "&username=root&signature=v1_");
	is_refused(t, to_read, "&signature=v1_", "&signature_expiration=99999999999&signature=v1_");
	is_status(t, to_read, NULL, 200, "and as it is");
	suite_sh_is(t, t->s, "cat " TOP "/one", "one");
}

static void has_an_end(struct suite *t)
{
	int64_t late_ms = 0;
	int64_t end_ms = 0;
	struct cm_error err = CM_ERROR_INIT;
	int r = suite_write(t, TOP "/short", "short", CM_WRITE_PARENTS, UINT32_MAX, &err);
	CM_AUTO_FREE char *late = url_of(t, t->s, TOP "/short", 0, 3600000, &late_ms);
	CM_AUTO_FREE char *soon = url_of(t, t->s, TOP "/short", 0, 1000, &end_ms);

	CHECK_OK(t, r, err, "a file");
	if (!late || !soon)
		return;
	CHECK(t, llabs(late_ms - end_ms - 3599000) <= 1000 + CLOCK_MS, "they end %lld ms apart",
	      (long long)(late_ms - end_ms));
	CHECK(t, end_ms <= cm_clock_real_ms() + 1000 + CLOCK_MS, "it ends at %lld",
	      (long long)end_ms);
	while (cm_clock_real_ms() < end_ms + 1000 + CLOCK_MS)
		suite_sleep(100);
	is_status(t, soon, NULL, 401, "after its end");
	is_refused(t, late, "signature_expiration=", "signature_expiration=1");
	is_status(t, late, NULL, 200, "before its end");
}

static void what_it_cannot(struct suite *t)
{
	static const struct {
		const char *path;
		uint64_t lifetime_ms;
	} rows[] = {
		{ "", 0 },
		{ TOP "/one", 1 },
		{ TOP "/one", 999 },
		{ "/tmp/\xff", 0 },
		{ TOP "/one", UINT64_MAX },
		{ TOP "/one", INT64_MAX },
		{ "/tmp/\xc3", 60000 },
	};
	struct cm_call call = suite_call(SUITE_MS);

	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		struct cm_error err = CM_ERROR_INIT;
		int64_t end_ms = -1;
		char *url = NULL;
		int r = cm_session_file_url(t->s, rows[i].path, 0, rows[i].lifetime_ms, &call, &url,
					    &end_ms, &err);

		CHECK_CODE(t, r, err, CM_E_INVALID, rows[i].path);
		CHECK(t, !url && end_ms == -1, "row %zu: there is one nevertheless", i);
	}
}

/* What the session's commands are, the address is, too. */
static void of_root(struct suite *t)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_session *s;
	struct cm_session *same = NULL;
	int64_t end_ms = 0;
	char *url = NULL;
	char name[64];
	int r;

	suite_name(t, name);
	s = suite_create_root(t, name);
	if (!s)
		return;
	suite_sh_is(t, s, "printf mine >of-root", "");
	/* found by name, and not started: nothing is known of it yet */
	r = cm_session_attach(t->p, name, &call, &same, &err);
	if (CHECK_OK(t, r, err, "it is found")) {
		reads(t, same, "of-root", "mine");
		url = url_of(t, same, "of-root", 0, 0, &end_ms);
	}
	if (url)
		is_refused(t, url, "&username=root", "");
	free(url);
	cm_session_release(same);
	suite_end(t, s);
}

const struct test suite_urls[] = {
	{ "a file is read by its address", CM_CAP_FILE_URL, read_by_address },
	{ "a file is written by its address", CM_CAP_FILE_URL, write_by_address },
	{ "for one file and one way", CM_CAP_FILE_URL, for_one_thing },
	{ "an address that ends", CM_CAP_FILE_URL, has_an_end },
	{ "what has no address", CM_CAP_FILE_URL, what_it_cannot },
	{ "of a session of root's", CM_CAP_FILE_URL | CM_CAP_ROOT_USER, of_root },
	{ NULL, 0, NULL },
};
