/* SPDX-License-Identifier: Apache-2.0 */
/* What tests share that resolve a whole line: a directory with files, and an environment. */
#ifndef CM_TESTS_UNIT_TEST_SPEC_FILES_H
#define CM_TESTS_UNIT_TEST_SPEC_FILES_H

#include "tests/unit/test_spec_env.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/path.h"
#include "runtime/spec/config.h"

static char top[64];
/* a file in place of /etc's */
static char system_file[128];

static inline void write_file(const char *name, const char *text)
{
	CM_AUTO_FREE char *path = cm_path_join(top, name);
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static inline void make_dir(const char *name)
{
	CM_AUTO_FREE char *path = cm_path_join(top, name);

	assert_int_equal(mkdir(path, 0755), 0);
}

static const char *const variables[] = {
	"CASEMATE_ROOT",
	"CASEMATE_PROVIDER",
	"CASEMATE_PROFILE",
	"CASEMATE_CONFIG",
	"CASEMATE_GIT_TOKEN",
	"TOKEN_OF_MINE",
	"NO_COLOR",
	"XDG_CONFIG_HOME",
	"MASTRACODE_LOCAL_SANDBOX_ROOT",
	"FACTORY_SANDBOX_PROVIDER",
};

static inline int set_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(variables); i++)
		unsetenv(variables[i]);
	memcpy(top, "/tmp/casemate-test-XXXXXX", sizeof("/tmp/casemate-test-XXXXXX"));
	if (!mkdtemp(top) || chdir(top) != 0)
		return -1;
	(void)snprintf(system_file, sizeof(system_file), "%s/etc.json", top);
	setenv("HOME", top, 1);
	make_dir(".config");
	make_dir(".config/casemate");
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	return chdir("/") == 0 && cm_remove_tree_at(AT_FDCWD, top) == 0 ? 0 : -1;
}

/* struct cm_spec's of the last one that was resolved */
__attribute__((unused)) static uint64_t last_asked;

/* The whole way; *ret_dump is the caller's on success. Words are separated by blanks. */
static inline int resolve(const char *line, char **ret_dump, struct cm_error *err)
{
	CM_AUTO_FREE char *copy = strdup(line);
	CM_AUTO_LAYER struct cm_layer flags = { 0 };
	CM_AUTO_ORIGINS struct cm_origins origins = { 0 };
	struct cm_config config;
	struct cm_spec spec;
	struct cm_merge m = { .spec = &spec, .origins = &origins };
	char *words[32];
	int n = 0;
	int r;

	for (char *rest = copy; rest && *line != '\0';)
		words[n++] = strsep(&rest, " ");
	cm_error_clear(err);
	assert_int_equal(cm_config_init(&config, err), CM_OK);
	config.system_file = system_file;
	cm_spec_init(&spec);
	r = cm_flags_parse(n, words, &flags, err);
	if (r == CM_OK)
		r = cm_config_resolve(&config, &flags, &m, err);
	if (r == CM_OK)
		*ret_dump = test_dump(&spec, &origins);
	last_asked = spec.asked;
	cm_merge_clear(&m);
	cm_spec_clear(&spec);
	cm_config_clear(&config);
	return r;
}

static inline void assert_resolves(const char *line, const char *expected)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *dump = NULL;

	if (resolve(line, &dump, &err) != CM_OK)
		fail_msg("'%s': %s", line, err.msg);
	assert_string_equal(dump, expected);
}

static inline void assert_refuses(const char *line, int code, const char *msg, const char *hint)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *dump = NULL;

	if (resolve(line, &dump, &err) == CM_OK)
		fail_msg("'%s' was taken: %s", line, dump);
	assert_string_equal(err.msg, msg);
	assert_string_equal(err.hint, hint);
	assert_int_equal(err.code, code);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
