/* SPDX-License-Identifier: Apache-2.0 */
/* The table of keys holds what everything else assumes about it. */
#include "tests/unit/test_spec_env.h"

#include <fcntl.h>

#include "runtime/base/alloc.h"

#define KEYS(info)                                                                                 \
	for (const struct cm_key_info *info = cm_key_info((enum cm_key)0);                         \
	     info < cm_key_info((enum cm_key)0) + CM_KEY_COUNT; info++)

static void apply_text(struct cm_spec *spec, const struct cm_key_info *info, const char *text)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_setting setting = { .key = info->key };

	setting.value = cm_strdup(text);
	setting.what = cm_asprintf("--%s", info->name);
	if (cm_spec_apply(spec, NULL, &setting, NULL, &test_caller, 0, &err) != CM_OK)
		fail_msg("--%s %s: %s", info->name, text, err.msg);
	free(setting.value);
	free(setting.what);
}

static void assert_refused(const struct cm_key_info *info, const char *text)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_setting setting = { .key = info->key };
	struct cm_spec spec;

	setting.value = cm_strdup(text);
	setting.what = cm_asprintf("--%s", info->name);
	cm_spec_init(&spec);
	if (cm_spec_apply(&spec, NULL, &setting, NULL, &test_caller, 0, &err) == CM_OK)
		fail_msg("--%s %s was taken", info->name, text);
	assert_string_not_equal(err.msg, "");
	cm_spec_clear(&spec);
	free(setting.value);
	free(setting.what);
}

static char *format(const struct cm_key_info *info, const struct cm_spec *spec, size_t i)
{
	struct cm_buf out;

	cm_buf_init(&out, 1U << 20);
	cm_buf_puts(&out, "");
	cm_key_format(info, spec, i, &out);
	return cm_buf_take(&out);
}

static void test_rows_are_whole(void **state)
{
	(void)state;
	KEYS(info)
	{
		assert_true(strlen(info->name) > 1 && strlen(info->name) < 32);
		assert_true(strlen(info->help) > 10);
		assert_true(info->help[strlen(info->help) - 1] != '.');
		assert_true(info->min <= info->max);
		assert_true(cm_key_is_switch(info) == (info->metavar == NULL));
		assert_true(info->example != NULL || info->kind == CM_KIND_HELP);
		/* one word for a key, on the command line and in files */
		if (info->flags & CM_KEYF_FILE)
			assert_string_equal(info->json, info->name);
		else
			assert_null(info->json);
		if (info->flags & CM_KEYF_CEILING)
			assert_true(info->flags & CM_KEYF_FILE);
		if (info->kind == CM_KIND_WORD)
			assert_non_null(info->words);
		assert_ptr_equal(cm_key_by_flag(info->name, strlen(info->name)), info);
		if (info->letter != '\0')
			assert_ptr_equal(cm_key_by_letter(info->letter), info);
		if (info->json)
			assert_ptr_equal(cm_key_by_json(info->json), info);
	}
	assert_ptr_equal(cm_key_by_flag("cwd", 3), cm_key_info(CM_KEY_WORKDIR));
	assert_null(cm_key_by_flag("cw", 2));
	assert_null(cm_key_by_flag("", 0));
	assert_null(cm_key_by_letter('z'));
	assert_null(cm_key_by_json("session"));
}

static void test_built_in_values(void **state)
{
	struct cm_spec spec;

	(void)state;
	cm_spec_init(&spec);
	KEYS(info)
	{
		CM_AUTO_FREE char *text = NULL;

		if (!info->fallback)
			continue;
		text = format(info, &spec, 0);
		assert_string_equal(text, info->fallback);
		if (cm_key_is_limit(info))
			assert_false(((struct cm_limit *)cm_key_field(info, &spec))->is_set);
	}
	assert_int_equal(spec.limits.pids.value, 4096);
	assert_true(spec.limits.pids.is_optional);
	assert_int_equal(spec.network, CM_NETWORK_NONE);
	assert_int_equal(spec.min_level, CM_LEVEL_NO_CGROUP);
	assert_true(spec.limits.memory.value == CM_UNLIMITED && !spec.limits.memory.is_set);
	assert_int_equal(spec.failure_exit, -1);
	cm_spec_clear(&spec);
}

/* text -> value -> text -> value -> text: nothing is lost on the way */
static void test_round_trip_of_text(void **state)
{
	(void)state;
	KEYS(info)
	{
		CM_AUTO_FREE char *once = NULL;
		CM_AUTO_FREE char *twice = NULL;
		struct cm_spec spec;

		if (info->offset == SIZE_MAX)
			continue;
		cm_spec_init(&spec);
		apply_text(&spec, info, info->example);
		assert_int_equal(cm_key_count_values(info, &spec), 1);
		once = format(info, &spec, 0);
		assert_string_equal(once, info->example);
		cm_spec_clear(&spec);
		cm_spec_init(&spec);
		apply_text(&spec, info, once);
		twice = format(info, &spec, 0);
		assert_string_equal(once, twice);
		cm_spec_clear(&spec);
	}
}

/* What is shown as JSON is what a file may say. */
static void test_round_trip_of_json(void **state)
{
	(void)state;
	KEYS(info)
	{
		struct cm_error err = CM_ERROR_INIT;
		struct cm_file file = { 0 };
		struct cm_merge m = { .caller = &test_caller };
		struct cm_origins origins = { 0 };
		struct cm_json_writer w;
		struct cm_spec spec;
		struct cm_spec back;
		struct cm_buf json;
		CM_AUTO_FREE char *text = NULL;

		if (!info->json)
			continue;
		cm_spec_init(&spec);
		cm_spec_init(&back);
		apply_text(&spec, info, info->example);
		cm_buf_init(&json, 4096);
		cm_jw_init(&w, &json, false);
		cm_jw_object(&w);
		cm_jw_key(&w, info->json);
		cm_key_write_json(info, &spec, &w);
		cm_jw_end_object(&w);
		if (cm_file_parse(json.data, json.len, "f", "/", 0, &file, &err) != CM_OK)
			fail_msg("%s: %s", json.data, err.msg);
		m.spec = &back;
		m.origins = &origins;
		assert_int_equal(cm_merge_layer(&m, &file.keys, &err), CM_OK);
		text = format(info, &back, 0);
		assert_string_equal(text, info->example);
		assert_string_equal(origins.of[info->key].v[0], "f:1");
		cm_origins_clear(&origins);
		cm_buf_clear(&json);
		cm_file_clear(&file);
		cm_spec_clear(&spec);
		cm_spec_clear(&back);
	}
}

static void test_bounds(void **state)
{
	(void)state;
	KEYS(info)
	{
		struct cm_limit limit = { .is_set = true };
		struct cm_spec spec;
		struct cm_limit *field;

		if (!cm_key_is_limit(info))
			continue;
		for (int i = 0; i < 3; i++) {
			CM_AUTO_FREE char *text = NULL;

			limit.value = i == 0 ? info->min : i == 1 ? info->max : CM_UNLIMITED;
			limit.is_optional = i == 0;
			cm_spec_init(&spec);
			field = cm_key_field(info, &spec);
			*field = limit;
			text = format(info, &spec, 0);
			cm_spec_clear(&spec);
			cm_spec_init(&spec);
			apply_text(&spec, info, text);
			field = cm_key_field(info, &spec);
			assert_true(field->value == limit.value && field->is_set);
			assert_true(field->is_optional == limit.is_optional);
			cm_spec_clear(&spec);
		}
		for (int i = 0; i < 2; i++) {
			CM_AUTO_FREE char *text = NULL;

			if (i == 0 && info->min == 0)
				continue;
			cm_spec_init(&spec);
			field = cm_key_field(info, &spec);
			field->value = i == 0 ? info->min - 1 : info->max + 1;
			field->is_optional = false;
			text = format(info, &spec, 0);
			assert_refused(info, text);
			cm_spec_clear(&spec);
		}
		assert_refused(info, "18446744073709551616");
		assert_refused(info, "99999999999999999999999999999999");
		assert_refused(info, "-1");
		assert_refused(info, "");
		assert_refused(info, "?");
		assert_refused(info, "4??");
		assert_refused(info, " 4");
		assert_refused(info, "unlimite");
	}
}

static void test_texts_are_bounded(void **state)
{
	(void)state;
	KEYS(info)
	{
		CM_AUTO_FREE char *text = NULL;

		if (info->offset == SIZE_MAX || cm_key_is_limit(info) || cm_key_is_switch(info))
			continue;
		text = cm_malloc(info->max + 10);
		memset(text, 'a', info->max + 9);
		text[info->max + 9] = '\0';
		text[0] = info->kind == CM_KIND_ROOT ? '/' : 'a';
		if (info->kind != CM_KIND_WORD && info->kind != CM_KIND_NUMBER)
			assert_refused(info, text);
		assert_refused(info, info->kind == CM_KIND_LIST ? "" : "a\x1b[2Jb\n\t=");
	}
}

static void test_nearest(void **state)
{
	(void)state;
	assert_string_equal(cm_key_nearest_flag("memroy"), "memory");
	assert_string_equal(cm_key_nearest_flag("pid-limit"), "pids-limit");
	assert_string_equal(cm_key_nearest_flag("netwrk"), "network");
	assert_string_equal(cm_key_nearest_json("volumes"), "volume");
	assert_null(cm_key_nearest_json("sessio"));
	assert_null(cm_key_nearest_flag("rm"));
	assert_null(cm_key_nearest_flag(""));
	assert_null(cm_key_nearest_flag("something-else"));
}

static void fill(struct cm_spec *spec)
{
	cm_spec_init(spec);
	KEYS(info)
	{
		/* --repo takes --workspace's place */
		if (info->offset != SIZE_MAX)
			apply_text(spec, info, info->example);
	}
	apply_text(spec, cm_key_info(CM_KEY_REPO), "https://alice:pw@example.org/app.git");
	assert_int_equal(cm_strv_add(&spec->argv, "true"), CM_OK);
}

static void test_copy(void **state)
{
	struct cm_spec spec;
	struct cm_spec copy;

	(void)state;
	fill(&spec);
	assert_int_equal(cm_spec_copy(&copy, &spec), CM_OK);
	KEYS(info)
	{
		assert_int_equal(cm_key_count_values(info, &copy),
				 cm_key_count_values(info, &spec));
		for (size_t i = 0; i < cm_key_count_values(info, &copy); i++) {
			CM_AUTO_FREE char *a = format(info, &spec, i);
			CM_AUTO_FREE char *b = format(info, &copy, i);

			assert_string_equal(a, b);
		}
	}
	assert_string_equal(copy.argv.v[0], "true");
	assert_ptr_not_equal(copy.repo, spec.repo);
	assert_string_equal(copy.repo_user, "alice");
	assert_string_equal(copy.repo_secret, "pw");
	assert_ptr_not_equal(copy.repo_secret, spec.repo_secret);
	cm_spec_clear(&copy);
	cm_spec_clear(&spec);
}

static void test_copy_without_memory(void **state)
{
	struct cm_spec spec;
	struct cm_spec copy;
	long allowed = 0;

	(void)state;
	fill(&spec);
	for (;; allowed++) {
		int r;

		cm_alloc_fail_after(allowed);
		r = cm_spec_copy(&copy, &spec);
		cm_alloc_fail_after(-1);
		if (r == CM_OK)
			break;
		assert_int_equal(r, CM_E_NOMEM);
		assert_null(copy.repo);
		assert_null(copy.repo_secret);
		assert_null(copy.volumes);
	}
	assert_true(allowed > 5);
	cm_spec_clear(&copy);
	cm_spec_clear(&spec);
}

static void test_session_ids(void **state)
{
	static const char *const bad[] = { "",	  "-a", ".a",  "a/b", "a b", "\xc3\xa4",
					   "a\n", "~",	"a:b", "..",  "a=b" };
	char id[130];

	(void)state;
	memset(id, 'a', sizeof(id));
	id[128] = '\0';
	assert_int_equal(cm_session_id_check(id, NULL), CM_OK);
	id[128] = 'a';
	id[129] = '\0';
	assert_int_equal(cm_session_id_check(id, NULL), CM_E_INVALID);
	assert_int_equal(cm_session_id_check("a", NULL), CM_OK);
	assert_int_equal(cm_session_id_check("Fix_login-2.1", NULL), CM_OK);
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		struct cm_error err = CM_ERROR_INIT;

		assert_int_equal(cm_session_id_check(bad[i], &err), CM_E_INVALID);
		assert_string_equal(err.hint, "use 1 to 128 of A-Z a-z 0-9 . _ - and begin with "
					      "none of . -");
	}
}

static void test_schema_is_installed_as_made(void **state)
{
	static char text[65536];
	struct cm_buf made;
	ssize_t len;

	(void)state;
	cm_buf_init(&made, sizeof(text));
	cm_schema_write(&made);
	len = cm_read_file_at(AT_FDCWD, CM_SCHEMA_FILE, text, sizeof(text));
	assert_true(len > 0);
	/* 'casemate config schema > runtime/share/config.schema.json' makes it anew */
	assert_string_equal(made.data, text);
	cm_buf_clear(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_are_whole),
		cmocka_unit_test(test_built_in_values),
		cmocka_unit_test(test_round_trip_of_text),
		cmocka_unit_test(test_round_trip_of_json),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_texts_are_bounded),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_copy_without_memory),
		cmocka_unit_test(test_session_ids),
		cmocka_unit_test(test_schema_is_installed_as_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
