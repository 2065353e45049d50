/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent says of files, what the service says of sandboxes; and errors of both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "providers/e2b/e2b_internal.h"
#include "providers/e2b/entry.h"
#include "runtime/base/fd.h"

static struct cm_json_doc *parse(const char *json)
{
	struct cm_json_doc *doc = NULL;

	assert_int_equal(cm_json_parse(json, strlen(json), "test", 0, &doc, NULL), CM_OK);
	return doc;
}

static void test_entry(void **state)
{
	static const struct {
		const char *json;
		enum cm_path_type type;
		uint32_t mode;
		uint64_t size;
		const char *target;
	} rows[] = {
		{ "{\"name\":\"f\",\"type\":\"FILE_TYPE_FILE\",\"path\":\"/d/f\",\"size\":\"5\",\"mode\":420,"
		  "\"permissions\":\"-rw-r--r--\",\"owner\":\"user\",\"group\":\"user\","
		  "\"modifiedTime\":\"2026-11-29T16:11:26.429910732Z\"}",
		  CM_PATH_FILE, 0644, 5, NULL },
		/* what is 0 is left out */
		{ "{\"path\":\"/d/f\",\"type\":\"FILE_TYPE_FILE\"}", CM_PATH_FILE, 0, 0, NULL },
		{ "{\"path\":\"/d\",\"type\":\"FILE_TYPE_DIRECTORY\",\"mode\":\"493\",\"size\":40}",
		  CM_PATH_DIRECTORY, 0755, 40, NULL },
		{ "{\"path\":\"/l\",\"type\":\"FILE_TYPE_DIRECTORY\",\"symlinkTarget\":\"/usr/lib\","
		  "\"permissions\":\"Lrwxrwxrwx\",\"mode\":493,\"size\":\"7\"}",
		  CM_PATH_LINK, 0777, 7, "/usr/lib" },
		{ "{\"path\":\"/l\",\"symlink_target\":\"x\"}", CM_PATH_LINK, 0777, 0, "x" },
		/* a broken one */
		{ "{\"path\":\"/l\",\"permissions\":\"Lrwxrwxrwx\"}", CM_PATH_LINK, 0777, 0, NULL },
		{ "{\"path\":\"/p\",\"permissions\":\"prw-r--r--\",\"mode\":420}", CM_PATH_OTHER,
		  0644, 0, NULL },
		{ "{\"path\":\"/p\",\"type\":2,\"mode\":2541}", CM_PATH_DIRECTORY, 0755, 0, NULL },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		struct cm_json_doc *doc = parse(rows[i].json);
		struct cm_path_info info;

		assert_int_equal(cm_e2b_entry_read(cm_json_root(doc), &info, NULL), CM_OK);
		assert_int_equal(info.type, rows[i].type);
		assert_int_equal(info.mode, rows[i].mode);
		assert_int_equal(info.size, rows[i].size);
		if (rows[i].target)
			assert_string_equal(info.target, rows[i].target);
		else
			assert_null(info.target);
		if (i == 0) {
			assert_int_equal(info.mtime_sec, 1795968686);
			assert_int_equal(info.mtime_nsec, 429910732);
			assert_string_equal(info.owner, "user");
		}
		cm_json_free(doc);
	}
}

static void test_bad_entry(void **state)
{
	static const char *const rows[] = { "{}", "{\"path\":\"\"}", "{\"path\":7}", "[]",
					    "{\"path\":\"/f\",\"size\":\"-1\"}" };
	struct cm_path_info info = { .size = 77 };

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		struct cm_json_doc *doc = parse(rows[i]);

		assert_int_equal(cm_e2b_entry_read(cm_json_root(doc), &info, NULL), CM_E_PROTOCOL);
		cm_json_free(doc);
	}
	assert_int_equal(cm_e2b_entry_read(NULL, &info, NULL), CM_E_PROTOCOL);
	assert_int_equal(info.size, 77);
}

static void test_prefix(void **state)
{
	static const struct {
		const char *json;
		long len;
	} rows[] = {
		{ "[{\"path\":\"/a\"},{\"path\":\"/b/c\"},{\"path\":\"/b\"}]", 1 },
		{ "[{\"path\":\"/d/e/f\"},{\"path\":\"/d/e\"}]", 3 },
		{ "[{\"path\":\"/d/e\"},{\"path\":\"/x/f\"}]", -1 },
		{ "[{\"path\":\"/d/e\"},{\"path\":\"/dd/e\"}]", -1 },
		{ "[{\"path\":\"/d/\"}]", -1 },
		{ "[{\"path\":\"e\"}]", -1 },
		{ "[{}]", -1 },
		{ "[7]", -1 },
		{ "[]", 0 },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		struct cm_json_doc *doc = parse(rows[i].json);

		assert_int_equal(cm_e2b_entries_prefix(cm_json_root(doc)), rows[i].len);
		cm_json_free(doc);
	}
}

static void test_paths(void **state)
{
	static const struct {
		const char *path;
		const char *parent;
		/* NULL: it has none */
		const char *base;
	} rows[] = {
		{ "/a/b", "/a", "b" },	{ "/a/b//", "/a", "b" },   { "/a", "/", "a" },
		{ "a", ".", "a" },	{ "a/b", "a", "b" },	   { "//a", "/", "a" },
		{ "/", "/", NULL },	{ "/a/..", "/a", NULL },   { ".", ".", NULL },
		{ "/a/.", "/a", NULL }, { "/a/...", "/a", "..." }, { "a//b", "a", "b" },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		CM_AUTO_FREE char *parent = cm_e2b_parent(rows[i].path);
		const char *base = NULL;
		size_t len = 0;

		assert_non_null(parent);
		assert_string_equal(parent, rows[i].parent);
		assert_int_equal(cm_e2b_base(rows[i].path, &base, &len), rows[i].base != NULL);
		if (rows[i].base) {
			assert_int_equal(len, strlen(rows[i].base));
			assert_memory_equal(base, rows[i].base, len);
		}
	}
}

/* --- errors of the API ------------------------------------------------------------------------------ */

#define KEY "e2b_5ec2e7"

static void test_refused(void **state)
{
	static const struct {
		int status;
		const char *body;
		int code;
		/* of the message; NULL: nothing of it */
		const char *says;
		const char *hint;
		/* the service itself says so */
		bool is_said;
	} rows[] = {
		{ 400, "{\"code\":400,\"message\":\"Timeout must be greater than 0\"}",
		  CM_E_INVALID, "Timeout must be greater", NULL, true },
		{ 401, "{\"code\":401,\"message\":\"authorization header is missing\"}",
		  CM_E_DENIED, "authorization header", "E2B_API_KEY", true },
		{ 401, "no JSON", CM_E_DENIED, NULL, "E2B_API_KEY", false },
		{ 403, "{\"code\":403,\"message\":\"no\"}", CM_E_DENIED, NULL, NULL, true },
		{ 404, "{\"code\":404,\"message\":\"template 'x' not found\"}", CM_E_NOT_FOUND,
		  "template 'x' not found", NULL, true },
		{ 404, "{\"code\":\"404\"}", CM_E_NOT_FOUND, NULL, NULL, false },
		{ 404, "page not found", CM_E_NOT_FOUND, NULL, NULL, false },
		{ 409, "{\"code\":409,\"message\":\"already paused\"}", CM_E_BUSY, "already paused",
		  NULL, true },
		{ 429, "{\"code\":429,\"message\":\"slow\"}", CM_E_LIMIT, "slow", NULL, true },
		{ 503, "", CM_E_REMOTE, "503", NULL, false },
		/* who repeats the key is not repeated */
		{ 401, "{\"code\":401,\"message\":\"no such key: " KEY "\"}", CM_E_DENIED, "401",
		  NULL, true },
	};
	struct cm_e2b e = { .key_header = (char *)"X-API-Key: " KEY };

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		struct cm_error err = CM_ERROR_INIT;
		struct cm_e2b_reply reply = { .method = "GET",
					      .url = cm_strdup("https://api.e2b.app/x") };

		reply.answer.status = rows[i].status;
		(void)cm_json_parse(rows[i].body, strlen(rows[i].body), "body", 0, &reply.doc,
				    NULL);
		assert_int_equal(cm_e2b_refused(&e, &reply, "do it", &err), rows[i].code);
		assert_int_equal(err.code, rows[i].code);
		assert_non_null(strstr(err.msg, "do it"));
		if (rows[i].says && !strstr(err.msg, rows[i].says))
			fail_msg("row %zu: %s", i, err.msg);
		if (rows[i].hint && !strstr(err.hint, rows[i].hint))
			fail_msg("row %zu: %s", i, err.hint);
		assert_null(strstr(err.msg, KEY));
		assert_int_equal(cm_e2b_reply_says(&reply, rows[i].status), rows[i].is_said);
		cm_e2b_reply_clear(&reply);
	}
}

/* --- what is taken over of a sandbox ------------------------------------------------------------------ */

static int adopt(struct cm_e2b_session *s, const char *json)
{
	struct cm_json_doc *doc = parse(json);
	int r = cm_e2b_session_adopt(s, cm_json_root(doc), NULL);

	cm_json_free(doc);
	return r;
}

static void test_adopt(void **state)
{
	static const char *const bad[] = {
		"{}",
		"[]",
		"{\"sandboxID\":\"../x\"}",
		"{\"sandboxID\":\"i1\",\"domain\":\"evil.dev/x?\"}",
		"{\"sandboxID\":\"i1\",\"domain\":\"a@b\"}",
		"{\"sandboxID\":\"i1\",\"envdAccessToken\":\"a\\r\\nX: y\"}",
	};
	struct cm_e2b e = { .places = { .domain = (char *)"e2b.app" } };
	struct cm_e2b_session *s = NULL;

	(void)state;
	assert_int_equal(cm_e2b_session_new(&e, "mine", &s, NULL), CM_OK);
	assert_int_equal(
		adopt(s, "{\"templateID\":\"base\",\"sandboxID\":\"i1-6532622b\",\"clientID\":"
			 "\"6532622b\",\"envdVersion\":\"0.6.13\",\"envdAccessToken\":\"70ce\","
			 "\"trafficAccessToken\":null,\"domain\":null}"),
		CM_OK);
	assert_string_equal(s->sandbox_id, "i1");
	assert_string_equal(s->agent_url, "https://sandbox.e2b.app");
	assert_string_equal(s->token_header, "X-Access-Token: 70ce");
	assert_true(s->takes_octets);
	assert_int_equal(
		adopt(s, "{\"sandboxID\":\"i2\",\"envdVersion\":\"0.4.0\",\"domain\":\"x.dev\"}"),
		CM_OK);
	assert_string_equal(s->agent_url, "https://49983-i2.x.dev");
	assert_string_equal(s->id_header, "E2b-Sandbox-Id: i2");
	assert_null(s->token_header);
	assert_false(s->takes_octets);
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++)
		assert_int_equal(adopt(s, bad[i]), CM_E_PROTOCOL);
	cm_e2b_session_release(&s->base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entry),	cmocka_unit_test(test_bad_entry),
		cmocka_unit_test(test_prefix),	cmocka_unit_test(test_paths),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_adopt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
