/* SPDX-License-Identifier: Apache-2.0 */
/* The environment and the files, in a directory of the test's own. */
#include "tests/unit/test_spec_files.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

static void test_no_files(void **state)
{
	(void)state;
	assert_resolves("", "");
	assert_resolves("--memory 1G a", "memory=1G -- a");
}

static void test_precedence(void **state)
{
	(void)state;
	write_file("etc.json", "{\"memory\": \"1G\", \"cpus\": 1, \"timeout\": 1, \"git\": \"rw\","
			       "\"profiles\": {\"ci\": {\"cpus\": 3, \"timeout\": 3}},"
			       "\"ceiling\": {\"git\": \"pinned\", \"timeout\": \"4s\"}}");
	write_file(".config/casemate/config.json",
		   "{\"memory\": \"2G\", \"cpus\": 2, \"profiles\": {\"ci\": {\"cpus\": 4},"
		   "\"mine\": {\"swap\": 0}}}");
	write_file("policy.json", "{\"cpus\": 5}");
	assert_resolves("", "timeout=1s memory=2G cpus=2 git=pinned");
	assert_resolves("--profile ci", "timeout=3s memory=2G cpus=4 git=pinned");
	assert_resolves("--profile mine", "timeout=1s memory=2G swap=0 cpus=2 git=pinned");
	assert_resolves("--profile ci --policy policy.json",
			"timeout=3s memory=2G cpus=5 git=pinned");
	assert_resolves("--policy policy.json --cpus 6 --timeout 9s",
			"timeout=4s memory=2G cpus=6 git=pinned");
	setenv("CASEMATE_PROFILE", "ci", 1);
	assert_resolves("", "timeout=3s memory=2G cpus=4 git=pinned");
	assert_resolves("--profile mine", "timeout=1s memory=2G swap=0 cpus=2 git=pinned");
	assert_refuses("--profile no", CM_E_NOT_FOUND, "profile 'no' not found",
		       "there are: ci, mine");
}

static void assert_asks(const char *line, const enum cm_key *keys, size_t n)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *dump = NULL;
	uint64_t asked = 0;

	for (size_t i = 0; i < n; i++)
		asked |= UINT64_C(1) << keys[i];
	if (resolve(line, &dump, &err) != CM_OK)
		fail_msg("'%s': %s", line, err.msg);
	if (last_asked != asked)
		fail_msg("'%s' asks for %" PRIx64 ", not for %" PRIx64, line, last_asked, asked);
}

#define ASKS(line, ...)                                                                            \
	assert_asks(line, (const enum cm_key[]){ __VA_ARGS__ },                                    \
		    sizeof((const enum cm_key[]){ __VA_ARGS__ }) / sizeof(enum cm_key))

static void test_what_is_asked_for(void **state)
{
	(void)state;
	write_file("etc.json", "{\"memory\": \"1G\", \"workspace\": \"/w\","
			       "\"profiles\": {\"ci\": {\"cpus\": 3}},"
			       "\"ceiling\": {\"git\": \"pinned\", \"network\": \"none\"}}");
	write_file(".config/casemate/config.json", "{\"cpus\": 2, \"user\": \"root\"}");
	write_file("policy.json", "{\"git\": \"rw\", \"volume\": [\"/a\"]}");
	assert_asks("", NULL, 0);
	ASKS("--network none", CM_KEY_NETWORK);
	ASKS("--policy policy.json", CM_KEY_POLICY, CM_KEY_GIT, CM_KEY_VOLUME);
	ASKS("--profile ci", CM_KEY_PROFILE, CM_KEY_CPUS);
	setenv("CASEMATE_PROFILE", "ci", 1);
	assert_asks("", NULL, 0);
	/* by the key that it is about, whatever the spelling */
	ASKS("--ulimit nofile=20 --mount type=bind,src=/a", CM_KEY_OPEN_FILES, CM_KEY_VOLUME);
	/* what another option has replaced is not asked for */
	write_file("policy.json", "{\"repo\": \"/r\", \"ref\": \"a\"}");
	ASKS("--policy policy.json --workspace /w", CM_KEY_POLICY, CM_KEY_WORKSPACE);
	write_file("policy.json", "{\"workspace\": \"/v\"}");
	ASKS("--policy policy.json --repo /r", CM_KEY_POLICY, CM_KEY_REPO);
}

static void test_profile_without_any(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	char *dump = NULL;

	(void)state;
	assert_int_equal(resolve("--profile no", &dump, &err), CM_E_NOT_FOUND);
	assert_non_null(strstr(err.hint, "none is defined; write \"profiles\": { \"no\""));
	assert_non_null(strstr(err.hint, ".config/casemate/config.json"));
}

static void test_where_the_users_file_is(void **state)
{
	CM_AUTO_FREE char *other = cm_path_join(top, "other.json");

	(void)state;
	make_dir("xdg");
	make_dir("xdg/casemate");
	write_file("xdg/casemate/config.json", "{\"cpus\": 1}");
	write_file(".config/casemate/config.json", "{\"cpus\": 2}");
	write_file("other.json", "{\"cpus\": 3}");
	assert_resolves("", "cpus=2");
	/* a relative one is to be ignored */
	setenv("XDG_CONFIG_HOME", "xdg", 1);
	assert_resolves("", "cpus=2");
	{
		CM_AUTO_FREE char *xdg = cm_path_join(top, "xdg");

		setenv("XDG_CONFIG_HOME", xdg, 1);
	}
	assert_resolves("", "cpus=1");
	setenv("CASEMATE_CONFIG", other, 1);
	assert_resolves("", "cpus=3");
	setenv("CASEMATE_CONFIG", "", 1);
	assert_resolves("", "cpus=1");
	setenv("CASEMATE_CONFIG", "/nonexistent/c.json", 1);
	assert_refuses("", CM_E_NOT_FOUND, "CASEMATE_CONFIG: cannot open '/nonexistent/c.json'",
		       "check the path and its permissions");
	unsetenv("CASEMATE_CONFIG");
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("HOME");
	assert_resolves("", "");
}

static void test_roots(void **state)
{
	(void)state;
	write_file(".config/casemate/config.json", "{\"root\": \"/file\"}");
	assert_resolves("", "root=/file");
	setenv("MASTRACODE_LOCAL_SANDBOX_ROOT", " /mastra ", 1);
	assert_resolves("", "root=/mastra");
	setenv("CASEMATE_ROOT", "/ours", 1);
	assert_resolves("", "root=/ours");
	assert_resolves("--root /flag", "root=/flag");
	setenv("CASEMATE_ROOT", "relative", 1);
	assert_refuses("", CM_E_INVALID, "CASEMATE_ROOT must be an absolute path, not 'relative'",
		       "write it in full, or from '~/'");
}

static void assert_root(const char *flag, const char *expected)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_config config;
	CM_AUTO_FREE char *root = NULL;

	assert_int_equal(cm_config_init(&config, &err), CM_OK);
	config.system_file = system_file;
	if (cm_config_root(&config, flag, &root, &err) != CM_OK)
		fail_msg("%s", err.msg);
	cm_config_clear(&config);
	if (expected)
		assert_string_equal(root, expected);
	else
		assert_null(root);
}

static void test_the_root_alone(void **state)
{
	(void)state;
	assert_root(NULL, NULL);
	/* contradicts itself, which is `run`'s business */
	write_file("etc.json", "{\"setup\": \"x\", \"root\": \"/etc-root\"}");
	assert_root(NULL, "/etc-root");
	write_file(".config/casemate/config.json",
		   "{\"root\": \"/user\", \"profiles\": {\"ci\": {\"root\": \"/ci\"}}}");
	assert_root(NULL, "/user");
	setenv("CASEMATE_PROFILE", "ci", 1);
	assert_root(NULL, "/ci");
	setenv("CASEMATE_ROOT", "/env", 1);
	assert_root(NULL, "/env");
	assert_root("/flag/", "/flag");
}

static void test_environment(void **state)
{
	struct cm_config config;

	(void)state;
	setenv("CASEMATE_GIT_TOKEN", "secret", 1);
	setenv("NO_COLOR", "1", 1);
	setenv("PLAIN", "x", 1);
	assert_int_equal(cm_config_init(&config, NULL), CM_OK);
	/* no pattern, however wide, can pass it, and no program of ours gets it */
	assert_null(cm_strv_env_get(&config.env, "CASEMATE_GIT_TOKEN"));
	assert_null(getenv("CASEMATE_GIT_TOKEN"));
	assert_string_equal(config.git_token, "secret");
	assert_string_equal(cm_strv_env_get(&config.env, "PLAIN"), "x");
	assert_true(config.has_no_colour);
	assert_string_equal(config.home, top);
	assert_string_equal(config.cwd, top);
	assert_string_equal(config.system_file, "/etc/casemate/config.json");
	cm_config_clear(&config);
	setenv("NO_COLOR", "", 1);
	setenv("HOME", "relative", 1);
	assert_int_equal(cm_config_init(&config, NULL), CM_OK);
	assert_false(config.has_no_colour);
	assert_null(config.home);
	cm_config_clear(&config);
	setenv("CASEMATE_GIT_TOKEN", "secret", 1);
	assert_resolves("-e PLAIN -e CASEMATE_GIT_TOKEN a", "env=PLAIN=x -- a");
}

static void test_env_file_at_its_place(void **state)
{
	(void)state;
	write_file("a.env", "A=file\nB=file\n");
	assert_resolves("-e A=before --env-file a.env -e B=after x", "env=A=file env=B=after -- x");
	write_file("bad.env", "A=1\nB C=2\n");
	assert_refuses("--env-file bad.env x", CM_E_INVALID,
		       "bad.env:2: --env-file: a variable's name must not have blanks or control "
		       "characters",
		       "write NAME=VALUE, with no blank before the '='");
	assert_refuses("--env-file none.env x", CM_E_NOT_FOUND, "cannot open 'none.env'",
		       "check the path and its permissions");
}

static void test_policy_paths(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *dump = NULL;
	CM_AUTO_FREE char *expected = cm_asprintf("volume=%s/sub/d:/d", top);

	(void)state;
	make_dir("sub");
	write_file("sub/p.json", "{\"volume\": \"./d:/d\"}");
	assert_int_equal(resolve("--policy sub/p.json", &dump, &err), CM_OK);
	assert_string_equal(dump, expected);
	write_file("sub/p.json", "{\"profiles\": {}}");
	assert_refuses("--policy sub/p.json", CM_E_INVALID,
		       "sub/p.json:1: 'profiles' cannot be in this file",
		       "profiles are in the configuration files");
	assert_refuses("--policy sub", CM_E_INVALID, "'sub' is not a regular file", "name a file");
}

static void test_files_of_others(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *path = cm_path_join(top, ".config/casemate/config.json");
	char *dump = NULL;

	(void)state;
	write_file(".config/casemate/config.json", "{}");
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(resolve("", &dump, &err), CM_E_DENIED);
	assert_non_null(strstr(err.msg, "is writable by everyone"));
	assert_int_equal(chmod(path, 0644), 0);
	assert_resolves("", "");
	if (geteuid() != 0) {
		print_message("the rest needs root\n");
		return;
	}
	/* sudo with the user's HOME: that user's file must not configure root's session */
	assert_int_equal(chown(path, 12345, 12345), 0);
	assert_int_equal(resolve("", &dump, &err), CM_E_DENIED);
	assert_non_null(strstr(err.msg, "belongs to another user (uid 12345)"));
	assert_non_null(strstr(err.hint, "sudo -H"));
}

static void test_a_fifo_is_no_file(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	char *dump = NULL;

	(void)state;
	assert_int_equal(mkfifo(system_file, 0644), 0);
	/* and opening it does not wait for a writer */
	assert_int_equal(resolve("", &dump, &err), CM_E_INVALID);
	assert_non_null(strstr(err.msg, "is not a regular file"));
}

static void test_a_large_file(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	char *dump = NULL;

	(void)state;
	write_file("etc.json", "{}");
	assert_int_equal(truncate(system_file, 10L << 20), 0);
	assert_int_equal(resolve("", &dump, &err), CM_E_LIMIT);
	assert_non_null(strstr(err.msg, "is larger than 1048576 bytes"));
}

static int repository(const char *flags, char **ret_dump, struct cm_strv *notes,
		      struct cm_error *err)
{
	CM_AUTO_LAYER struct cm_layer layer = { 0 };
	CM_AUTO_ORIGINS struct cm_origins origins = { 0 };
	struct cm_spec spec;
	struct cm_merge m = { .spec = &spec, .origins = &origins, .caller = &test_caller };
	char *words[] = { (char *)(uintptr_t)flags };
	int r;

	cm_spec_init(&spec);
	assert_int_equal(cm_flags_parse(1, words, &layer, err), CM_OK);
	assert_int_equal(cm_merge_layer(&m, &layer, err), CM_OK);
	r = cm_config_repository(top, NULL, &m, err);
	if (r == CM_OK)
		*ret_dump = test_dump(&spec, &origins);
	if (notes)
		*notes = m.notes;
	else
		cm_merge_clear(&m);
	cm_spec_clear(&spec);
	return r;
}

static void test_the_repositorys_file(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *without = NULL;
	CM_AUTO_FREE char *with = NULL;
	CM_AUTO_FREE char *path = cm_path_join(top, ".casemate.json");
	struct cm_strv notes = { 0 };
	char *dump = NULL;

	(void)state;
	assert_int_equal(repository("--memory=8G", &without, NULL, &err), CM_OK);
	assert_string_equal(without, "memory=8G");
	write_file(".casemate.json", "{\"memory\": \"4G\", \"network\": \"host\"}");
	assert_int_equal(repository("--memory=8G", &with, &notes, &err), CM_OK);
	assert_string_equal(with, "memory=4G");
	assert_int_equal(notes.n, 1);
	assert_non_null(strstr(notes.v[0], "/.casemate.json:1: 'network' cannot widen"));
	cm_strv_clear(&notes);
	write_file(".casemate.json", "{\"ceiling\": {}}");
	assert_int_equal(repository("-q", &dump, NULL, &err), CM_E_INVALID);
	/* a link could point at a file that only the caller can read, and show it in a message */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(repository("-q", &dump, NULL, &err), CM_E_INVALID);
	assert_non_null(strstr(err.msg, "is not a regular file"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0644), 0);
	assert_int_equal(repository("-q", &dump, NULL, &err), CM_E_INVALID);
	assert_null(dump);
}

static void test_project_directory(void **state)
{
	CM_AUTO_FREE char *deep = cm_path_join(top, "repo/a/b");
	CM_AUTO_FREE char *repo = cm_path_join(top, "repo");
	CM_AUTO_FREE char *nested = cm_path_join(top, "repo/a");
	CM_AUTO_FREE char *of_deep = NULL;
	CM_AUTO_FREE char *of_root = cm_config_project_dir("/");
	CM_AUTO_FREE char *of_none = NULL;

	(void)state;
	make_dir("repo");
	make_dir("repo/a");
	make_dir("repo/a/b");
	of_none = cm_config_project_dir(deep);
	assert_string_equal(of_none, deep);
	/* a linked work tree has a file there */
	write_file("repo/.git", "gitdir: elsewhere\n");
	of_deep = cm_config_project_dir(deep);
	assert_string_equal(of_deep, repo);
	assert_string_equal(of_root, "/");
	/* what git takes for none hides no settings: the workspace is the repository all the same */
	make_dir("repo/a/.git");
	free(of_deep);
	of_deep = cm_config_project_dir(deep);
	assert_string_equal(of_deep, repo);
	write_file("repo/a/.git/HEAD", "ref: refs/heads/main\n");
	make_dir("repo/a/.git/objects");
	free(of_deep);
	of_deep = cm_config_project_dir(deep);
	assert_string_equal(of_deep, nested);
}

static void test_check(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_config config;

	(void)state;
	write_file("a.json", "{\"profiles\": {}, \"ceiling\": {}}");
	write_file(".casemate.json", "{\"profiles\": {}}");
	assert_int_equal(cm_config_init(&config, &err), CM_OK);
	assert_int_equal(cm_config_check(&config, "a.json", &err), CM_OK);
	assert_int_equal(cm_config_check(&config, ".casemate.json", &err), CM_E_INVALID);
	assert_string_equal(err.msg, ".casemate.json:1: 'profiles' cannot be in this file");
	assert_int_equal(cm_config_check(&config, "none.json", &err), CM_E_NOT_FOUND);
	assert_int_equal(err.sys_errno, ENOENT);
	cm_config_clear(&config);
}

static void test_no_current_directory(void **state)
{
	CM_AUTO_FREE char *gone = cm_path_join(top, "gone");

	(void)state;
	make_dir("gone");
	assert_int_equal(chdir(gone), 0);
	assert_int_equal(rmdir(gone), 0);
	assert_refuses("a", CM_E_NOT_FOUND, "the current directory does not exist any more",
		       "cd into a directory that does");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_no_files),
		TEST(test_precedence),
		TEST(test_what_is_asked_for),
		TEST(test_profile_without_any),
		TEST(test_where_the_users_file_is),
		TEST(test_roots),
		TEST(test_the_root_alone),
		TEST(test_environment),
		TEST(test_env_file_at_its_place),
		TEST(test_policy_paths),
		TEST(test_files_of_others),
		TEST(test_a_fifo_is_no_file),
		TEST(test_a_large_file),
		TEST(test_the_repositorys_file),
		TEST(test_project_directory),
		TEST(test_check),
		TEST(test_no_current_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
