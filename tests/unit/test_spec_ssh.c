/* SPDX-License-Identifier: Apache-2.0 */
/* Which key of ssh is asked for, and where it contradicts. */
#include "tests/unit/test_spec_files.h"

/* "KEY AGENT PASSPHRASE" */
static char *asked_by(const char *line, struct cm_error *err)
{
	CM_AUTO_FREE char *copy = strdup(line);
	CM_AUTO_LAYER struct cm_layer flags = { 0 };
	struct cm_config config;
	struct cm_spec spec;
	struct cm_merge m = { .spec = &spec };
	char *words[32];
	char *told = NULL;
	int n = 0;

	for (char *rest = copy; rest;)
		words[n++] = strsep(&rest, " ");
	cm_error_clear(err);
	assert_int_equal(cm_config_init(&config, err), CM_OK);
	config.system_file = system_file;
	cm_spec_init(&spec);
	assert_int_equal(cm_flags_parse(n, words, &flags, err), CM_OK);
	if (cm_config_resolve(&config, &flags, &m, err) == CM_OK)
		told = cm_asprintf("%s %d %s", config.ssh_key ? config.ssh_key : "-",
				   config.wants_ssh_agent,
				   config.ssh_passphrase ? config.ssh_passphrase : "-");
	cm_merge_clear(&m);
	cm_spec_clear(&spec);
	cm_config_clear(&config);
	return told;
}

static void test_what_is_asked(void **state)
{
	static const struct {
		const char *line;
		/* %s: the current directory */
		const char *expected;
	} rows[] = {
		{ "--repo ssh://h/a a", "- 0 -" },
		{ "--ssh-key /k --repo ssh://h/a a", "/k 0 -" },
		{ "--ssh-key /k --repo git@h:a a", "/k 0 -" },
		{ "--ssh-key /other --ssh-key /k --session s a", "/k 0 -" },
		{ "--ssh-agent --repo ssh://h/a a", "- 1 -" },
		{ "--ssh-agent --no-ssh-agent --repo https://h/a a", "- 0 -" },
	};
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *cwd = getcwd(NULL, 0);
	CM_AUTO_FREE char *relative = asked_by("--ssh-key k --repo ssh://h/a a", &err);
	CM_AUTO_FREE char *expected = cm_asprintf("%s/k 0 -", cwd);
	CM_AUTO_FREE char *in_home = asked_by("--ssh-key ~/k --repo ssh://h/a a", &err);

	(void)state;
	assert_string_equal(relative, expected);
	assert_non_null(in_home);
	assert_null(strchr(in_home, '~'));
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		CM_AUTO_FREE char *told = asked_by(rows[i].line, &err);

		if (!told)
			fail_msg("'%s': %s", rows[i].line, err.msg);
		assert_string_equal(told, rows[i].expected);
	}
}

static void test_what_contradicts(void **state)
{
	static const struct {
		const char *line;
		const char *msg;
		const char *hint;
	} rows[] = {
		{ "--ssh-key /k --ssh-agent --repo ssh://h/a a",
		  "--ssh-key and --ssh-agent contradict each other", "leave one of them out" },
		{ "--ssh-key /k --git-credential file:f --repo ssh://h/a a",
		  "--ssh-key and --git-credential contradict each other", "leave one of them out" },
		{ "--ssh-agent --git-credential file:f --repo ssh://h/a a",
		  "--ssh-agent and --git-credential contradict each other",
		  "leave one of them out" },
		{ "--ssh-key /k a", "--ssh-key needs --repo or --session",
		  "name the repository with --repo ssh://HOST/PATH" },
		{ "--ssh-agent a", "--ssh-agent needs --repo or --session",
		  "name the repository with --repo ssh://HOST/PATH" },
		{ "--ssh-key /k --repo https://h/a a", "--ssh-key is for a repository by ssh",
		  "leave it out, or give its address by ssh: --repo ssh://HOST/PATH" },
		{ "--ssh-agent --repo /srv/a a", "--ssh-agent is for a repository by ssh",
		  "leave it out, or give its address by ssh: --repo ssh://HOST/PATH" },
	};

	(void)state;
	write_file("f", "secret");
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++)
		assert_refuses(rows[i].line, CM_E_INVALID, rows[i].msg, rows[i].hint);
}

static void test_the_passphrase_is_taken_away(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *told = NULL;
	const char *left;

	(void)state;
	/* as it is: blanks are part of one */
	setenv("CASEMATE_SSH_PASSPHRASE", " a b ", 1);
	left = getenv("CASEMATE_SSH_PASSPHRASE");
	told = asked_by("--repo ssh://h/a a", &err);
	assert_string_equal(told, "- 0  a b ");
	assert_null(getenv("CASEMATE_SSH_PASSPHRASE"));
	assert_string_equal(left, "");
	setenv("CASEMATE_SSH_PASSPHRASE", "", 1);
	free(told);
	told = asked_by("--repo ssh://h/a a", &err);
	assert_string_equal(told, "- 0 -");
	setenv("CASEMATE_SSH_PASSPHRASE", "abc", 1);
	assert_resolves("--pass-env CASEMATE_* -e CASEMATE_SSH_PASSPHRASE --repo ssh://h/a a",
			"repo=ssh://h/a pass-env=CASEMATE_* -- a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_is_asked),
		TEST(test_what_contradicts),
		TEST(test_the_passphrase_is_taken_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
