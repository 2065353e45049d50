/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions of templates: made, written as they were read, and every bound of the service. */
#include "providers/platform/template.h"
#include "runtime/base/json_copy.h"
#include "tests/unit/test_base.h"

#define OUT_MAX (4UL * 1024 * 1024)

static int check(const struct cm_buf *text, struct cm_json_doc **ret, struct cm_error *err)
{
	return cm_platform_template_check(text->data, text->len, "t", ret, err);
}

static int check_text(const char *text, struct cm_error *err)
{
	struct cm_json_doc *doc = NULL;
	int r = cm_platform_template_check(text, strlen(text), "t", &doc, err);

	assert_int_equal(r == CM_OK, doc != NULL);
	cm_json_free(doc);
	return r;
}

static void test_made(void **state)
{
	CM_AUTO_STRV struct cm_strv commands = { 0 };
	struct cm_template_request request = {
		.name = "app", .commands = &commands, .cpus = 2, .memory_bytes = 1500000000
	};
	struct cm_error err = CM_ERROR_INIT;
	struct cm_json_doc *doc = NULL;
	struct cm_json_writer w;
	struct cm_buf made;
	struct cm_buf written;

	(void)state;
	assert_int_equal(cm_strv_add(&commands, "npm ci"), CM_OK);
	assert_int_equal(cm_strv_add(&commands, "echo \"\xc3\xa9\"\n"), CM_OK);
	cm_buf_init(&made, OUT_MAX);
	cm_buf_init(&written, OUT_MAX);
	assert_int_equal(cm_platform_template_make(&request, &made, &err), CM_OK);
	assert_string_equal(made.data,
			    "{\"schemaVersion\":1,\"operations\":["
			    "{\"method\":\"cpuCount\",\"args\":[2]},"
			    "{\"method\":\"memoryMB\",\"args\":[1431]},"
			    "{\"method\":\"runCmd\",\"args\":[\"npm ci\"]},"
			    "{\"method\":\"runCmd\",\"args\":[\"echo \\\"\xc3\xa9\\\"\\n\"]}],"
			    "\"family\":\"app\"}");
	assert_int_equal(check(&made, &doc, &err), CM_OK);
	cm_jw_init(&w, &written, false);
	cm_json_copy(&w, cm_json_root(doc));
	assert_string_equal(written.data, made.data);
	cm_json_free(doc);
	cm_buf_reset(&made);
	request = (struct cm_template_request){ .name = "app" };
	assert_int_equal(cm_platform_template_make(&request, &made, &err), CM_OK);
	assert_string_equal(made.data,
			    "{\"schemaVersion\":1,\"operations\":[],\"family\":\"app\"}");
	cm_buf_clear(&made);
	cm_buf_clear(&written);
}

#define OP(method, args) "{\"method\":\"" method "\",\"args\":" args "}"
#define DEF(operations) "{\"schemaVersion\":1,\"operations\":[" operations "]}"

static void test_good(void **state)
{
	static const char *const rows[] = {
		DEF(""),
		DEF(OP("cpuCount", "[1]") "," OP("memoryMB", "[9007199254740991]")),
		DEF(OP("runCmd", "[\"a\"]") "," OP("runCmd", "[[\"a\",\"b\"]]")),
		DEF(OP("setWorkdir", "[\"/x\"]") "," OP("setEnvs", "[{\"A\":\"\"}]")),
		DEF(OP("aptInstall",
		       "[[\"git\"],{\"noInstallRecommends\":true,\"fixMissing\":false}]")),
		DEF(OP("pipInstall", "[]") "," OP("pipInstall", "[null,{\"g\":true}]")),
		DEF(OP("npmInstall", "[\"x\",{\"g\":true,\"dev\":true}]")),
		"{\"schemaVersion\":1,\"operations\":[],\"family\":\"repo:x\"}",
	};
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		if (check_text(rows[i], &err) != CM_OK)
			fail_msg("'%s': %s", rows[i], err.msg);
	}
}

static void test_bad(void **state)
{
	static const char *const rows[] = {
		"",
		"[]",
		"{}",
		"{\"schemaVersion\":1}",
		"{\"operations\":[]}",
		"{\"schemaVersion\":2,\"operations\":[]}",
		"{\"schemaVersion\":1,\"operations\":{}}",
		"{\"schemaVersion\":1,\"operations\":[],\"x\":1}",
		"{\"schemaVersion\":1,\"operations\":[],\"family\":\" \"}",
		"{\"schemaVersion\":1,\"operations\":[],\"family\":7}",
		DEF("1"),
		DEF("{\"method\":\"runCmd\"}"),
		DEF("{\"method\":\"runCmd\",\"args\":[\"a\"],\"x\":1}"),
		DEF("{\"method\":\"runCmd\",\"args\":\"a\"}"),
		DEF(OP("copy", "[\"a\"]")),
		DEF(OP("cpuCount", "[]")),
		DEF(OP("cpuCount", "[0]")),
		DEF(OP("cpuCount", "[-1]")),
		DEF(OP("cpuCount", "[1.5]")),
		DEF(OP("cpuCount", "[\"1\"]")),
		DEF(OP("cpuCount", "[1,2]")),
		DEF(OP("memoryMB", "[9007199254740992]")),
		DEF(OP("runCmd", "[\"\"]")),
		DEF(OP("runCmd", "[[]]")),
		DEF(OP("runCmd", "[[\"a\",7]]")),
		DEF(OP("runCmd", "[\"a\",\"b\"]")),
		DEF(OP("setWorkdir", "[[\"a\"]]")),
		DEF(OP("setEnvs", "[{}]")),
		DEF(OP("setEnvs", "[{\"A\":1}]")),
		DEF(OP("setEnvs", "[{\"A=B\":\"\"}]")),
		/* what is a secret of the build is no part of a definition */
		DEF(OP("setEnvs", "[{\"A\":\"x\"},{\"ephemeral\":true}]")),
		DEF(OP("aptInstall", "[null]")),
		DEF(OP("aptInstall", "[\"git\",{\"g\":true}]")),
		DEF(OP("aptInstall", "[\"git\",{\"fixMissing\":1}]")),
		DEF(OP("pipInstall", "[null]")),
		DEF(OP("pipInstall", "[\"x\",{\"dev\":true}]")),
		DEF(OP("npmInstall", "[\"x\",{},{}]")),
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		struct cm_error err = CM_ERROR_INIT;

		if (check_text(rows[i], &err) != CM_E_INVALID)
			fail_msg("'%s' was taken, or not by its form", rows[i]);
		assert_true(err.msg[0] != '\0');
	}
}

/* n times `text` and a comma between, inside what stands around it. */
static int check_repeated(const char *before, const char *text, const char *between, size_t n,
			  const char *after)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_json_doc *doc = NULL;
	struct cm_buf out;
	int r;

	cm_buf_init(&out, OUT_MAX);
	cm_buf_puts(&out, before);
	for (size_t i = 0; i < n; i++) {
		cm_buf_puts(&out, i == 0 ? "" : between);
		cm_buf_puts(&out, text);
	}
	cm_buf_puts(&out, after);
	assert_int_equal(cm_buf_status(&out), CM_OK);
	r = check(&out, &doc, &err);
	cm_json_free(doc);
	cm_buf_clear(&out);
	return r;
}

static void test_bounds(void **state)
{
	static const char begin[] = "{\"schemaVersion\":1,\"operations\":[";
	static const char command[] = "{\"schemaVersion\":1,\"operations\":[{\"method\":\"runCmd\","
				      "\"args\":[\"";
	static const char list[] = "{\"schemaVersion\":1,\"operations\":[{\"method\":\"runCmd\","
				   "\"args\":[[";
	static const char family[] = "{\"schemaVersion\":1,\"operations\":[],\"family\":\"";

	(void)state;
	assert_int_equal(check_repeated(begin, OP("runCmd", "[\"a\"]"), ",", 256, "]}"), CM_OK);
	assert_int_equal(check_repeated(begin, OP("runCmd", "[\"a\"]"), ",", 257, "]}"),
			 CM_E_LIMIT);
	assert_int_equal(check_repeated(command, "x", "", 32768, "\"]}]}"), CM_OK);
	assert_int_equal(check_repeated(command, "x", "", 32769, "\"]}]}"), CM_E_LIMIT);
	/* characters, and those above U+FFFF are two */
	assert_int_equal(check_repeated(command, "\xc3\xa9", "", 32768, "\"]}]}"), CM_OK);
	assert_int_equal(check_repeated(command, "\xf0\x9f\x98\x80", "", 16384, "\"]}]}"), CM_OK);
	assert_int_equal(check_repeated(command, "\xf0\x9f\x98\x80", "", 16385, "\"]}]}"),
			 CM_E_LIMIT);
	assert_int_equal(check_repeated(list, "\"a\"", ",", 512, "]]}]}"), CM_OK);
	assert_int_equal(check_repeated(list, "\"a\"", ",", 513, "]]}]}"), CM_E_LIMIT);
	assert_int_equal(check_repeated(family, "f", "", 200, "\"}"), CM_OK);
	assert_int_equal(check_repeated(family, "f", "", 201, "\"}"), CM_E_LIMIT);
	/* 256 KiB in all */
	assert_int_equal(check_repeated(begin, "  ", "", CM_PLATFORM_DEFINITION_MAX / 2 - 20, "]}"),
			 CM_OK);
	assert_int_equal(check_repeated(begin, "  ", "", CM_PLATFORM_DEFINITION_MAX / 2, "]}"),
			 CM_E_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made),
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
