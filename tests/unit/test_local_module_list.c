/* SPDX-License-Identifier: Apache-2.0 */
/* Submodules of a checkout's report: what the helper would not have told is not believed. */
#include "providers/local/module_list.h"
#include "runtime/base/buf.h"
#include "tests/unit/test_base.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define URL "https://example.org/lib"

static int read_text(const char *text, struct cm_module_list *list, struct cm_error *err)
{
	struct cm_json_doc *doc = NULL;
	int r;

	assert_int_equal(cm_json_parse(text, strlen(text), "test", 0, &doc, NULL), CM_OK);
	r = cm_module_list_read(cm_json_root(doc), list, err);
	cm_json_free(doc);
	return r;
}

static char *one(const char *name, const char *path, const char *url, const char *commit)
{
	return cm_asprintf("{\"name\":\"%s\",\"path\":\"%s\",\"url\":\"%s\",\"commit\":\"%s\"}",
			   name, path, url, commit);
}

static void test_taken(void **state)
{
	CM_AUTO_FREE char *first = one("a", "third/a", URL, COMMIT);
	CM_AUTO_FREE char *text = cm_asprintf("[%s,%s]", first, first);
	struct cm_module_list list = { NULL, 0 };

	(void)state;
	assert_int_equal(read_text("[]", &list, NULL), CM_OK);
	assert_int_equal(list.n, 0);
	cm_module_list_clear(&list);
	assert_int_equal(read_text(text, &list, NULL), CM_OK);
	assert_int_equal(list.n, 2);
	assert_string_equal(list.v[1].name, "a");
	assert_string_equal(list.v[1].path, "third/a");
	assert_string_equal(list.v[1].url, URL);
	assert_string_equal(list.v[1].commit, COMMIT);
	cm_module_list_clear(&list);
	assert_null(list.v);
}

static const char *const bad[][4] = {
	{ "../a", "a", URL, COMMIT },
	{ "", "a", URL, COMMIT },
	{ "a", "../a", URL, COMMIT },
	{ "a", "/etc/a", URL, COMMIT },
	{ "a", ".git/hooks", URL, COMMIT },
	{ "a", "-a", URL, COMMIT },
	{ "a", "a\\n", URL, COMMIT },
	{ "a", "a", "/srv/lib", COMMIT },
	{ "a", "a", "../lib", COMMIT },
	{ "a", "a", "http://example.org/lib", COMMIT },
	{ "a", "a", "file:///srv/lib", COMMIT },
	{ "a", "a", "ext::x", COMMIT },
	{ "a", "a", "", COMMIT },
	/* the helper had taken it out */
	{ "a", "a", "https://user:secret@example.org/lib", COMMIT },
	{ "a", "a", "HTTPS://example.org/lib", COMMIT },
	{ "a", "a", URL, "" },
	{ "a", "a", URL, "HEAD" },
	{ "a", "a", URL, "--0123456789abcdef0123456789abcdef012345" },
	{ "a", "a", URL, COMMIT "0" },
};

static void check_refused(const char *text)
{
	struct cm_module_list list = { NULL, 4711 };
	struct cm_error err = CM_ERROR_INIT;

	assert_int_equal(read_text(text, &list, &err), CM_E_PROTOCOL);
	assert_int_equal(list.n, 4711);
	assert_true(err.hint[0] != '\0');
}

static void test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		CM_AUTO_FREE char *module = one(bad[i][0], bad[i][1], bad[i][2], bad[i][3]);
		CM_AUTO_FREE char *text = cm_asprintf("[%s]", module);

		check_refused(text);
	}
	check_refused("{}");
	check_refused("null");
	check_refused("[1]");
	check_refused("[{}]");
	check_refused("[{\"name\":\"a\",\"path\":\"a\",\"url\":\"" URL "\",\"commit\":1}]");
}

static char *many(size_t n)
{
	CM_AUTO_FREE char *module = one("a", "a", URL, COMMIT);
	CM_AUTO_BUF struct cm_buf text = { 0 };

	cm_buf_init(&text, 65536);
	for (size_t i = 0; i < n; i++)
		cm_buf_printf(&text, "%c%s", i == 0 ? '[' : ',', module);
	cm_buf_putc(&text, ']');
	return cm_buf_take(&text);
}

static void test_count(void **state)
{
	CM_AUTO_FREE char *most = many(64);
	CM_AUTO_FREE char *more = many(65);
	struct cm_module_list list = { NULL, 0 };

	(void)state;
	assert_int_equal(read_text(most, &list, NULL), CM_OK);
	assert_int_equal(list.n, 64);
	cm_module_list_clear(&list);
	check_refused(more);
}

static bool read_once(void *data)
{
	struct cm_module_list list = { NULL, 0 };
	int r = cm_module_list_read(data, &list, NULL);

	cm_module_list_clear(&list);
	if (r == CM_OK)
		return true;
	assert_int_equal(r, CM_E_NOMEM);
	return false;
}

static void test_without_memory(void **state)
{
	CM_AUTO_FREE char *text = many(2);
	struct cm_json_doc *doc = NULL;

	(void)state;
	assert_int_equal(cm_json_parse(text, strlen(text), "test", 0, &doc, NULL), CM_OK);
	assert_true(fail_each_allocation(read_once, (void *)(uintptr_t)cm_json_root(doc)) >= 9);
	cm_json_free(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_count),
		cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
