/* SPDX-License-Identifier: Apache-2.0 */
/* state.flat: the same as state.json, or nothing. */
#include "tests/unit/test_store_env.h"

static void make(struct env *e, struct cm_store_session *s)
{
	struct cm_session_record r = env_record("a");

	r.workspace = (char *)(uintptr_t) "/w";
	r.settings_json = (char *)(uintptr_t) "{\"memory\":\"1G\"}";
	r.generation = UINT64_C(1) << 40;
	r.setup_state = CM_SETUP_FAILED;
	r.setup_exit = -3;
	r.created_ms = 1234567890123;
	r.is_workspace_read_only = true;
	r.unknown_json = (char *)(uintptr_t) "\"later\":[1,2]";
	assert_int_equal(cm_strv_add(&r.labels, "team=web"), CM_OK);
	assert_int_equal(cm_strv_add(&r.labels, "empty="), CM_OK);
	assert_int_equal(cm_store_session_create(&e->store, &r, s, NULL), CM_OK);
	cm_strv_clear(&r.labels);
}

/* As state.json is written: with all that there is to a record. */
static char *text_of(const struct cm_session_record *r)
{
	struct cm_buf out;

	cm_buf_init(&out, 65536);
	assert_int_equal(cm_record_format(r, &out), CM_OK);
	return cm_buf_take(&out);
}

static char *read_at(int dir_fd, const char *name, size_t *ret_len)
{
	char *text = calloc(1, 65536);
	ssize_t n;

	assert_non_null(text);
	n = cm_read_file_at(dir_fd, name, text, 65536);
	assert_true(n > 0);
	*ret_len = (size_t)n;
	return text;
}

static bool load(int dir_fd, const char *state, size_t len, const char *id,
		 struct cm_session_record *ret)
{
	cm_session_record_init(ret);
	return cm_record_flat_load(dir_fd, state, len, id, ret);
}

static void test_same(void **state)
{
	struct env *e = *state;
	struct cm_session_record r;
	struct cm_store_session s;
	size_t len = 0;
	char *json;
	char *again;

	make(e, &s);
	json = read_at(s.dir_fd, CM_STORE_STATE, &len);
	assert_true(load(s.dir_fd, json, len, "a", &r));
	again = text_of(&r);
	assert_string_equal(again, json);
	assert_string_equal(r.unknown_json, "\"later\":[1,2]");
	cm_session_record_clear(&r);
	/* nobody else's, and of no other text */
	assert_false(load(s.dir_fd, json, len, "b", &r));
	assert_false(load(s.dir_fd, json, len - 1, "a", &r));
	json[len / 2] ^= 1;
	assert_false(load(s.dir_fd, json, len, "a", &r));
	free(json);
	free(again);
	cm_store_session_close(&s);
}

/* With any byte changed or cut off it is passed over, and the session is what it is. */
static void test_damaged(void **state)
{
	struct env *e = *state;
	struct cm_session_record r;
	struct cm_store_session s;
	struct cm_store_session opened;
	size_t len = 0;
	size_t flat_len = 0;
	char *json;
	char *flat;

	make(e, &s);
	json = read_at(s.dir_fd, CM_STORE_STATE, &len);
	flat = read_at(s.dir_fd, CM_STORE_STATE_FLAT, &flat_len);
	for (size_t i = 0; i < 2 * flat_len; i++) {
		size_t keep = i < flat_len ? i : flat_len;

		if (i >= flat_len)
			flat[i - flat_len] ^= 0x10;
		assert_int_equal(
			cm_replace_file_at(s.dir_fd, CM_STORE_STATE_FLAT, flat, keep, 0600, false),
			0);
		if (i >= flat_len)
			flat[i - flat_len] ^= 0x10;
		assert_false(load(s.dir_fd, json, len, "a", &r));
	}
	cm_store_session_close(&s);
	assert_int_equal(cm_store_session_open(&e->store, "a", false, 0, &opened, NULL), CM_OK);
	assert_string_equal(opened.record.workspace, "/w");
	assert_int_equal(opened.record.labels.n, 2);
	cm_store_session_close(&opened);
	free(json);
	free(flat);
}

/* What state.json says decides: changed by hand, or damaged. */
static void test_decides_nothing(void **state)
{
	static const char edited[] =
		"{\"v\":1,\"id\":\"a\",\"root\":\"/r\",\"workspace\":\"/else\"}\n";
	struct env *e = *state;
	struct cm_error err = CM_ERROR_INIT;
	struct cm_store_session s;

	make(e, &s);
	assert_int_equal(cm_replace_file_at(s.dir_fd, CM_STORE_STATE, edited, sizeof(edited) - 1,
					    0600, false),
			 0);
	cm_store_session_close(&s);
	assert_int_equal(cm_store_session_open_as(&e->store, "a",
						  CM_STORE_CHANGE | CM_STORE_ANY_ROOT, 0, &s, NULL),
			 CM_OK);
	assert_string_equal(s.record.workspace, "/else");
	assert_int_equal(cm_store_session_save(&s, false, NULL), CM_OK);
	assert_int_equal(cm_replace_file_at(s.dir_fd, CM_STORE_STATE, edited, 30, 0600, false), 0);
	cm_store_session_close(&s);
	assert_int_equal(cm_store_session_open_as(&e->store, "a", CM_STORE_ANY_ROOT, 0, &s, &err),
			 CM_E_PROTOCOL);
	assert_non_null(strstr(err.msg, "damaged"));
}

/* Text that JSON cannot say is not said here either: the session is the same with and without it. */
static void test_no_utf8(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;

	make(e, &s);
	assert_int_equal(faccessat(s.dir_fd, CM_STORE_STATE_FLAT, F_OK, 0), 0);
	free(s.record.workspace);
	s.record.workspace = strdup("/caf\xe9");
	assert_non_null(s.record.workspace);
	assert_int_equal(cm_store_session_save(&s, false, NULL), CM_OK);
	assert_int_equal(faccessat(s.dir_fd, CM_STORE_STATE_FLAT, F_OK, 0), -1);
	cm_store_session_close(&s);
	assert_int_equal(cm_store_session_open(&e->store, "a", false, 0, &s, NULL), CM_OK);
	assert_string_equal(s.record.workspace, "/caf\xef\xbf\xbd");
	cm_store_session_close(&s);
}

/* Nor a value that has no name. */
static void test_no_value(void **state)
{
	struct env *e = *state;
	struct cm_session_record r;
	struct cm_store_session s;
	size_t len = 0;
	char *json;

	make(e, &s);
	s.record.network = (enum cm_network)77;
	assert_int_equal(cm_store_session_save(&s, false, NULL), CM_OK);
	json = read_at(s.dir_fd, CM_STORE_STATE, &len);
	assert_false(load(s.dir_fd, json, len, "a", &r));
	free(json);
	cm_store_session_close(&s);
}

/* What is too large for it is read from state.json. */
static void test_large(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;
	char *large = calloc(1, 20001);

	assert_non_null(large);
	memset(large, 'x', 20000);
	make(e, &s);
	free(s.record.settings_json);
	s.record.settings_json = large;
	assert_int_equal(cm_store_session_save(&s, false, NULL), CM_OK);
	cm_store_session_close(&s);
	assert_int_equal(cm_store_session_open(&e->store, "a", false, 0, &s, NULL), CM_OK);
	assert_int_equal(strlen(s.record.settings_json), 20000);
	cm_store_session_close(&s);
}

#define T(name) cmocka_unit_test_setup_teardown(name, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_same),	 T(test_damaged),  T(test_decides_nothing),
		T(test_no_utf8), T(test_no_value), T(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
