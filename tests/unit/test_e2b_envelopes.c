/* SPDX-License-Identifier: Apache-2.0 */
/* Envelopes of a stream, however they are cut; its end; errors by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "providers/e2b/connect.h"
#include "runtime/base/fd.h"

#define START "{\"event\":{\"start\":{\"pid\":15029}}}"
#define DATA "{\"event\":{\"data\":{\"stdout\":\"b3V0Cg==\"}}}"

static void put(struct cm_buf *out, uint8_t flags, const char *json)
{
	size_t at = out->len;

	cm_e2b_envelope_write(out, json, strlen(json));
	assert_int_equal(cm_buf_status(out), CM_OK);
	out->data[at] = (char)flags;
}

static char letter_of(const char *json)
{
	if (strcmp(json, START) == 0)
		return 'S';
	return strcmp(json, DATA) == 0 ? 'D' : '?';
}

/* All of a stream: what it has, one letter a message and 'E' for its end, or '!' for an error. */
static void letters_of(const struct cm_buf *stream, size_t piece, size_t first, char *ret)
{
	struct cm_e2b_envelopes e;
	size_t at = 0;
	size_t n = first;

	cm_e2b_envelopes_init(&e);
	while (at < stream->len) {
		size_t len = stream->len - at < n ? stream->len - at : n;
		size_t used = 0;
		int r = cm_e2b_envelopes_take(&e, stream->data + at, len, &used, NULL);

		assert_true(used <= len);
		at += used;
		n = n - used > 0 ? n - used : piece;
		if (r < 0) {
			*ret++ = '!';
			break;
		}
		if (r == CM_E2B_ENVELOPE_END)
			*ret++ = 'E';
		if (r == CM_E2B_ENVELOPE_MESSAGE && e.body.len == 0)
			*ret++ = '0';
		else if (r == CM_E2B_ENVELOPE_MESSAGE)
			*ret++ = letter_of(e.body.data);
	}
	*ret = '\0';
	cm_e2b_envelopes_clear(&e);
}

static void test_split_anywhere(void **state)
{
	CM_AUTO_BUF struct cm_buf stream = { .max = 4096 };
	char letters[64];

	(void)state;
	put(&stream, 0, START);
	put(&stream, 0, "");
	put(&stream, 0, DATA);
	put(&stream, 0, DATA);
	put(&stream, 2, "{}");
	/* in two pieces, at each byte; then in pieces of each length */
	for (size_t i = 1; i <= stream.len; i++) {
		letters_of(&stream, SIZE_MAX, i, letters);
		assert_string_equal(letters, "S0DDE");
		letters_of(&stream, i, i, letters);
		assert_string_equal(letters, "S0DDE");
	}
}

static void test_bad(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		int code;
	} rows[] = {
		{ "\x01\0\0\0\0", 5, CM_E_PROTOCOL },
		{ "\x03\0\0\0\0", 5, CM_E_PROTOCOL },
		{ "\x04\0\0\0\0", 5, CM_E_PROTOCOL },
		{ "\x80\0\0\0\0", 5, CM_E_PROTOCOL },
		{ "\0\xff\xff\xff\xff", 5, CM_E_LIMIT },
		{ "\0\x01\0\0\x01", 5, CM_E_LIMIT },
		/* after the end */
		{ "\x02\0\0\0\x02{}x", 8, CM_E_PROTOCOL },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		struct cm_error err = CM_ERROR_INIT;
		struct cm_e2b_envelopes e;
		size_t used = 0;
		int r;

		cm_e2b_envelopes_init(&e);
		r = cm_e2b_envelopes_take(&e, rows[i].bytes, rows[i].len, &used, &err);
		if (r == CM_E2B_ENVELOPE_END)
			r = cm_e2b_envelopes_take(&e, rows[i].bytes + used, rows[i].len - used,
						  &used, &err);
		assert_int_equal(r, rows[i].code);
		assert_int_equal(err.code, rows[i].code);
		cm_e2b_envelopes_clear(&e);
	}
}

/* A length that is promised costs nothing. */
static void test_promise(void **state)
{
	struct cm_e2b_envelopes e;
	size_t used = 0;

	(void)state;
	cm_e2b_envelopes_init(&e);
	assert_int_equal(cm_e2b_envelopes_take(&e, "\0\x01\0\0\0abc", 8, &used, NULL),
			 CM_E2B_ENVELOPE_NONE);
	assert_int_equal(used, 8);
	assert_true(e.body.capacity < 65536);
	/* and nothing more is nothing yet */
	assert_int_equal(cm_e2b_envelopes_take(&e, "", 0, &used, NULL), CM_E2B_ENVELOPE_NONE);
	cm_e2b_envelopes_clear(&e);
}

static int end_of(const char *json, char name[32], struct cm_error *err)
{
	return cm_e2b_end_of(json, strlen(json), "do it", name, 32, err);
}

static void test_end(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	char name[32];

	(void)state;
	assert_int_equal(end_of("{}", name, &err), CM_OK);
	assert_int_equal(end_of("{\"metadata\":{\"a\":[\"b\"]}}", name, &err), CM_OK);
	assert_int_equal(end_of("{\"error\":null}", name, &err), CM_OK);
	assert_string_equal(name, "");
	assert_int_equal(
		end_of("{\"error\":{\"code\":\"not_found\",\"message\":\"process with pid 9 "
		       "not found\"}}",
		       name, &err),
		CM_E_NOT_FOUND);
	assert_string_equal(name, "not_found");
	assert_string_equal(err.msg, "cannot do it: process with pid 9 not found (not_found)");
	assert_int_equal(end_of("{\"error\":{}}", name, &err), CM_E_REMOTE);
	assert_int_equal(end_of("{\"error\":{\"code\":7}}", name, &err), CM_E_REMOTE);
	assert_int_equal(end_of("", name, &err), CM_E_PROTOCOL);
	assert_int_equal(end_of("[]", name, &err), CM_E_PROTOCOL);
	assert_int_equal(end_of("{", name, &err), CM_E_PROTOCOL);
}

static void test_codes(void **state)
{
	static const struct {
		const char *name;
		int code;
	} rows[] = {
		{ "invalid_argument", CM_E_INVALID },
		{ "failed_precondition", CM_E_INVALID },
		{ "out_of_range", CM_E_INVALID },
		{ "unauthenticated", CM_E_DENIED },
		{ "permission_denied", CM_E_DENIED },
		{ "not_found", CM_E_NOT_FOUND },
		{ "already_exists", CM_E_EXISTS },
		{ "aborted", CM_E_BUSY },
		{ "resource_exhausted", CM_E_LIMIT },
		{ "unimplemented", CM_E_UNSUPPORTED },
		{ "deadline_exceeded", CM_E_TIMEOUT },
		/* what our own caller does is another thing */
		{ "canceled", CM_E_REMOTE },
		{ "unknown", CM_E_REMOTE },
		{ "internal", CM_E_REMOTE },
		{ "data_loss", CM_E_REMOTE },
		{ "unavailable", CM_E_REMOTE },
		{ "of next year", CM_E_REMOTE },
		{ "", CM_E_REMOTE },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++)
		assert_int_equal(cm_e2b_code(rows[i].name), rows[i].code);
	assert_int_equal(cm_e2b_code(NULL), CM_E_REMOTE);
	assert_int_equal(cm_e2b_error_of(NULL, "do it", NULL), CM_E_REMOTE);
}

static void test_file_faults(void **state)
{
	static const struct {
		const char *name;
		int status;
		const char *message;
		const char *text;
	} rows[] = {
		{ "not_found", 404, "file not found: lstat /a: no such file", "it is not there" },
		{ "not_found", 404, NULL, "it is not there" },
		{ NULL, 404, "path '/a' does not exist", "it is not there" },
		{ "already_exists", 409, "directory already exists: /a", "something is there" },
		{ "permission_denied", 403, "no", "the session's user may not" },
		{ "internal", 500, "mkdir /a: permission denied", "the session's user may not" },
		{ NULL, 500, "open /a: permission denied", "the session's user may not" },
		{ NULL, 400, "path '/a' is a directory", "it is a directory" },
		{ "internal", 500, "lstat /a/b: not a directory",
		  "a part of the path is no directory" },
		{ "invalid_argument", 400, "path is not a directory: /a", "it is no directory" },
		{ "internal", 500, "a permission denied is no end", NULL },
		{ NULL, 500, "error", NULL },
		{ NULL, 500, "", NULL },
		{ NULL, 500, NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		const char *text = cm_e2b_file_fault(rows[i].name, rows[i].status, rows[i].message);

		if (rows[i].text)
			assert_string_equal(text, rows[i].text);
		else
			assert_null(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split_anywhere), cmocka_unit_test(test_bad),
		cmocka_unit_test(test_promise),	       cmocka_unit_test(test_end),
		cmocka_unit_test(test_codes),	       cmocka_unit_test(test_file_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
