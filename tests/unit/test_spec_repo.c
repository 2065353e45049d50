/* SPDX-License-Identifier: Apache-2.0 */
/* What is checked out, and which credential its server is told. */
#include "tests/unit/test_spec_files.h"

#include <errno.h>

#include "runtime/base/alloc.h"

static void test_what_can_be_said(void **state)
{
	static const struct {
		const char *line;
		const char *dump;
	} rows[] = {
		{ "--repo /r --pr 42 --depth 1 a", "repo=/r pr=42 depth=1 -- a" },
		{ "--repo /r --pr 2147483647 a", "repo=/r pr=2147483647 -- a" },
		{ "--branch fix/x --from v1 --repo /r a", "repo=/r branch=fix/x from=v1 -- a" },
		{ "--branch x --ref v1 --repo /r a", "repo=/r ref=v1 branch=x -- a" },
		{ "--branch x --pr 1 --repo /r a", "repo=/r pr=1 branch=x -- a" },
		{ "--repo /r --lfs --sparse b/ --sparse a/c a",
		  "repo=/r lfs=true sparse=b sparse=a/c -- a" },
		{ "--repo /r --lfs --no-lfs --filter blob:none a",
		  "repo=/r lfs=false filter=blob:none -- a" },
		{ "--setup m --setup-again --session s a",
		  "setup=m setup-again=true session=s -- a" },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++)
		assert_resolves(rows[i].line, rows[i].dump);
}

static void test_what_contradicts(void **state)
{
	static const struct {
		const char *line;
		int code;
		const char *msg;
		const char *hint;
	} rows[] = {
		{ "--pr 1 a", CM_E_INVALID, "--pr needs --repo",
		  "name the repository with --repo URL" },
		{ "--branch b a", CM_E_INVALID, "--branch needs --repo",
		  "name the repository with --repo URL" },
		{ "--from b --branch c a", CM_E_INVALID, "--branch needs --repo",
		  "name the repository with --repo URL" },
		{ "--depth 1 a", CM_E_INVALID, "--depth needs --repo",
		  "name the repository with --repo URL" },
		{ "--depth 1 --workspace . a", CM_E_INVALID, "--depth needs --repo",
		  "name the repository with --repo URL" },
		{ "--repo /r --from main a", CM_E_INVALID, "--from needs --branch",
		  "--ref checks out what exists; --branch NAME makes a branch" },
		{ "--repo /r --ref v1 --pr 1 a", CM_E_INVALID,
		  "--ref and --pr contradict each other",
		  "--ref names what to check out, and so does --pr" },
		{ "--repo /r --ref v1 --branch b --from v2 a", CM_E_INVALID,
		  "--from and --ref contradict each other",
		  "without --from the branch begins at what they name" },
		{ "--repo /r --pr 1 --branch b --from v2 a", CM_E_INVALID,
		  "--from and --pr contradict each other",
		  "without --from the branch begins at what they name" },
		{ "--repo /r --branch a..b a", CM_E_INVALID,
		  "--branch: a branch cannot be called 'a..b'",
		  "'git help check-ref-format' has the rules; for example --branch fix/login" },
		{ "--repo /r --branch a.lock a", CM_E_INVALID,
		  "--branch: a branch cannot be called 'a.lock'",
		  "'git help check-ref-format' has the rules; for example --branch fix/login" },
		{ "--repo /r --branch -b a", CM_E_INVALID,
		  "--branch must not begin with a dash, as '-b' does",
		  "an option that came without its value takes the next word for it" },
		{ "--repo /r --setup-again a", CM_E_INVALID, "--setup-again needs --setup",
		  "name the commands with --setup CMD: a session does not keep them" },
		{ "--session s --setup-again a", CM_E_INVALID, "--setup-again needs --setup",
		  "name the commands with --setup CMD: a session does not keep them" },
		{ "--setup x --setup-again a", CM_E_INVALID, "--setup needs --repo or --session",
		  "without them put the setup into the command: -c 'npm ci && npm test'" },
		{ "--lfs a", CM_E_INVALID, "--lfs needs --repo",
		  "name the repository with --repo URL" },
		{ "--sparse src a", CM_E_INVALID, "--sparse needs --repo",
		  "name the repository with --repo URL" },
		{ "--filter blob:none a", CM_E_INVALID, "--filter needs --repo",
		  "name the repository with --repo URL" },
		{ "--repo /r --sparse ../x a", CM_E_INVALID,
		  "--sparse takes a directory of the repository, not '../x'",
		  "name it from the repository's top, without '..': for example --sparse src/web" },
		{ "--repo /r --sparse /src a", CM_E_INVALID,
		  "--sparse takes a directory of the repository, not '/src'",
		  "name it from the repository's top, without '..': for example --sparse src/web" },
		{ "--repo /r --sparse -u a", CM_E_INVALID,
		  "--sparse takes a directory of the repository, not '-u'",
		  "name it from the repository's top, without '..': for example --sparse src/web" },
		{ "--repo /r --sparse a/.git/hooks a", CM_E_INVALID,
		  "--sparse takes a directory of the repository, not 'a/.git/hooks'",
		  "name it from the repository's top, without '..': for example --sparse src/web" },
		{ "--repo /r --filter=tree:0 a", CM_E_UNSUPPORTED,
		  "--filter 'tree:0' is not supported: without its directories git asks the server "
		  "for each of them",
		  "use --filter blob:none" },
		{ "--repo /r --filter=blob:limit=1k a", CM_E_INVALID,
		  "--filter must be blob:none or none, not 'blob:limit=1k'",
		  "for example --filter blob:none" },
		{ "--repo /r --filter=blob:none --lfs a", CM_E_INVALID,
		  "--filter and --lfs contradict each other",
		  "of a repository with Git LFS the large files are not among its objects: leave "
		  "--filter out" },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++)
		assert_refuses(rows[i].line, rows[i].code, rows[i].msg, rows[i].hint);
}

/* What the whole line makes the server of its --repo be told; "user:secret", or NULL. */
static char *credential_of(const char *line, struct cm_strv *notes, struct cm_error *err)
{
	CM_AUTO_FREE char *copy = strdup(line);
	CM_AUTO_LAYER struct cm_layer flags = { 0 };
	struct cm_config config;
	struct cm_spec spec;
	struct cm_merge m = { .spec = &spec };
	const char *user = "untouched";
	const char *secret = "untouched";
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
	if (cm_config_resolve(&config, &flags, &m, err) == CM_OK) {
		if (cm_config_git_credential(&config, &spec, &user, &secret))
			told = cm_asprintf("%s:%s", user, secret);
		else
			assert_string_equal(secret, "untouched");
	}
	if (notes)
		*notes = m.notes;
	else
		cm_merge_clear(&m);
	cm_spec_clear(&spec);
	cm_config_clear(&config);
	return told;
}

static void assert_credential(const char *line, const char *expected)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *told = credential_of(line, NULL, &err);

	if (err.code != CM_OK)
		fail_msg("'%s': %s", line, err.msg);
	if (!expected && told)
		fail_msg("'%s': %s", line, told);
	if (expected)
		assert_string_equal(told ? told : "(none)", expected);
}

static void test_which_credential_counts(void **state)
{
	static const struct {
		const char *line;
		/* without and with CASEMATE_GIT_TOKEN */
		const char *without;
		const char *with;
	} rows[] = {
		{ "a", NULL, NULL },
		{ "--repo /srv/a a", NULL, NULL },
		{ "--repo file:///srv/a a", NULL, NULL },
		{ "--repo git://h/a a", NULL, NULL },
		{ "--repo https://h/a a", NULL, "x-access-token:token" },
		{ "--repo http://h/a a", NULL, "x-access-token:token" },
		{ "--repo https://alice@h/a a", "alice:", "alice:token" },
		{ "--repo https://alice:pw@h/a a", "alice:pw", "alice:pw" },
		{ "--repo https://:pw@h/a a", "x-access-token:pw", "x-access-token:pw" },
		/* a token is nothing that ssh takes */
		{ "--repo ssh://h/a a", NULL, NULL },
		{ "--repo git@h:a a", NULL, NULL },
		{ "--repo ssh://bob:pw@h/a a", "bob:pw", "bob:pw" },
		/* what the option names is above all else */
		{ "--git-credential file:f --repo https://alice:pw@h/a a", "alice:1", "alice:1" },
		{ "--git-credential file:f --repo https://h/a a", "x-access-token:1",
		  "x-access-token:1" },
		{ "--git-credential file:pair --repo https://alice:pw@h/a a", "bob:2:3",
		  "bob:2:3" },
		{ "--git-credential file:f --repo ssh://h/a a", "git:1", "git:1" },
		{ "--git-credential file:f --repo bob@h:a a", "bob:1", "bob:1" },
		{ "--git-credential file:f --repo /srv/a a", NULL, NULL },
		/* a helper is asked elsewhere */
		{ "--git-credential helper --repo https://alice:pw@h/a a", NULL, NULL },
		{ "--git-credential none --repo https://alice:pw@h/a a", NULL, NULL },
		{ "--git-credential none --repo ssh://bob:pw@h/a a", "bob:pw", "bob:pw" },
		{ "--git-credential file:no --git-credential file:f --repo https://h/a a",
		  "x-access-token:1", "x-access-token:1" },
	};

	(void)state;
	write_file("f", "1\n");
	write_file("pair", "bob:2:3\r\n");
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		assert_credential(rows[i].line, rows[i].without);
		setenv("CASEMATE_GIT_TOKEN", " token\n", 1);
		assert_credential(rows[i].line, rows[i].with);
	}
}

static void test_a_variable_is_taken_away(void **state)
{
	char *left;

	(void)state;
	setenv("PLAIN", "x", 1);
	setenv("TOKEN_OF_MINE", "abc", 1);
	left = getenv("TOKEN_OF_MINE");
	assert_credential("--git-credential env:TOKEN_OF_MINE --repo https://h/a a",
			  "x-access-token:abc");
	/* not even in the memory that /proc shows */
	assert_null(getenv("TOKEN_OF_MINE"));
	assert_string_equal(left, "");
	setenv("CASEMATE_GIT_TOKEN", "def", 1);
	left = getenv("CASEMATE_GIT_TOKEN");
	assert_credential("--git-credential env:CASEMATE_GIT_TOKEN --repo https://h/a a",
			  "x-access-token:def");
	assert_null(getenv("CASEMATE_GIT_TOKEN"));
	assert_string_equal(left, "");
	/* whatever passes variables comes too late */
	setenv("TOKEN_OF_MINE", "abc", 1);
	assert_resolves("-e PLAIN -e TOKEN_OF_MINE --git-credential env:TOKEN_OF_MINE --repo "
			"https://h/a -e TOKEN_OF_MINE a",
			"repo=https://h/a env=PLAIN=x -- a");
	write_file("t.env", "TOKEN_OF_MINE\n");
	setenv("TOKEN_OF_MINE", "abc", 1);
	assert_resolves("--env-file t.env --git-credential env:TOKEN_OF_MINE --repo https://h/a a",
			"repo=https://h/a -- a");
}

static void test_a_descriptor_is_read_to_its_end(void **state)
{
	CM_AUTO_FREE char *line = NULL;
	CM_AUTO_FREE char *again = NULL;
	struct cm_error err = CM_ERROR_INIT;
	int fd;

	(void)state;
	write_file("f", "secret");
	fd = open("f", O_RDONLY | O_CLOEXEC);
	line = cm_asprintf("--git-credential fd:%d --repo https://h/a a", fd);
	assert_credential(line, "x-access-token:secret");
	again = credential_of(line, NULL, &err);
	assert_null(again);
	assert_int_equal(err.code, CM_E_SYS);
	assert_int_equal(err.sys_errno, EBADF);
}

static void test_a_file_that_all_can_read(void **state)
{
	CM_AUTO_FREE char *told = NULL;
	CM_AUTO_FREE char *again = NULL;
	struct cm_error err = CM_ERROR_INIT;
	struct cm_strv notes = { 0 };

	(void)state;
	write_file("f", "secret");
	assert_int_equal(chmod("f", 0644), 0);
	told = credential_of("--git-credential file:~/f --repo https://h/a a", &notes, &err);
	assert_string_equal(told, "x-access-token:secret");
	assert_int_equal(notes.n, 1);
	assert_non_null(strstr(notes.v[0], "every user of this host can read '"));
	assert_non_null(strstr(notes.v[0], "/f': chmod 600 it"));
	cm_strv_clear(&notes);
	assert_int_equal(chmod("f", 0640), 0);
	again = credential_of("--git-credential file:f --repo https://h/a a", &notes, &err);
	assert_string_equal(again, "x-access-token:secret");
	assert_int_equal(notes.n, 0);
}

#define NO_LINE "--git-credential: what it names has more than one line, or a control character"
#define ONE_LINE "it is to hold one line, a token or USER:PASSWORD"
#define NO_FORM                                                                                    \
	"--git-credential must be env:NAME, file:PATH, fd:N, helper or none, and no secret itself"
#define FORM_HINT                                                                                  \
	"other users of this host can read command lines; put it into the variable "               \
	"CASEMATE_GIT_TOKEN"

static void test_credentials_that_are_none(void **state)
{
	static const struct {
		const char *line;
		int code;
		const char *msg;
		const char *hint;
	} rows[] = {
		{ "--git-credential s3cr3t", CM_E_INVALID, NO_FORM, FORM_HINT },
		{ "--git-credential a:s3cr3t", CM_E_INVALID, NO_FORM, FORM_HINT },
		{ "--git-credential file:", CM_E_INVALID, NO_FORM, FORM_HINT },
		{ "--git-credential fd:s3cr3t", CM_E_INVALID,
		  "--git-credential: fd: needs the number of a descriptor",
		  "for example --git-credential fd:3, with '3<FILE' in the shell" },
		{ "--git-credential env:NOT_THERE", CM_E_NOT_FOUND,
		  "--git-credential: the variable that it names is not set",
		  "write env: and a variable's name, and export the variable" },
		{ "--git-credential env:", CM_E_NOT_FOUND,
		  "--git-credential: the variable that it names is not set",
		  "write env: and a variable's name, and export the variable" },
		{ "--git-credential env:CASEMATE_GIT_TOKEN", CM_E_NOT_FOUND,
		  "--git-credential: the variable that it names is not set",
		  "write env: and a variable's name, and export the variable" },
		{ "--git-credential file:/nonexistent/f", CM_E_NOT_FOUND,
		  "--git-credential: cannot open '/nonexistent/f'",
		  "check the path and its permissions" },
		{ "--git-credential file:/", CM_E_SYS,
		  "--git-credential: cannot read what it names",
		  "name a file, or a descriptor that is open for reading" },
		{ "--git-credential file:two", CM_E_INVALID, NO_LINE, ONE_LINE },
		{ "--git-credential file:escape", CM_E_INVALID, NO_LINE, ONE_LINE },
		{ "--git-credential file:empty", CM_E_INVALID,
		  "--git-credential: what it names is empty", ONE_LINE },
		{ "--git-credential file:user", CM_E_INVALID,
		  "--git-credential: what it names is empty", ONE_LINE },
		{ "--git-credential file:dash", CM_E_INVALID,
		  "--git-credential: what it names has a user name that begins with a dash",
		  ONE_LINE },
		{ "--git-credential file:large", CM_E_LIMIT,
		  "--git-credential: more than 65536 bytes",
		  "a token is much shorter; is it the right one?" },
		{ "--git-credential file:good", CM_E_INVALID,
		  "--git-credential needs --repo or --session",
		  "name the repository with --repo URL" },
		{ "--git-credential file:good --workspace /", CM_E_INVALID,
		  "--git-credential needs --repo or --session",
		  "name the repository with --repo URL" },
	};

	(void)state;
	write_file("two", "s3cr3t\ns3cr3t\n");
	write_file("escape", "s3cr3t\x1b[m");
	write_file("empty", "\n");
	write_file("user", "alice:\n");
	write_file("dash", "-x:s3cr3t");
	write_file("large", "s3cr3t");
	assert_int_equal(truncate("large", 65537), 0);
	write_file("good", "s3cr3t");
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++)
		assert_refuses(rows[i].line, rows[i].code, rows[i].msg, rows[i].hint);
	assert_resolves("--git-credential file:good --session s a", "session=s -- a");
	setenv("CASEMATE_GIT_TOKEN", "s3cr3t\ns3cr3t", 1);
	assert_refuses("a", CM_E_INVALID,
		       "CASEMATE_GIT_TOKEN has more than one line, or a control character",
		       "unset it, or set it to a token");
}

static void test_a_credential_without_memory(void **state)
{
	char words[][32] = { "--git-credential", "file:pair", "--repo", "https://h/a" };
	char *argv[] = { words[0], words[1], words[2], words[3] };
	CM_AUTO_LAYER struct cm_layer flags = { 0 };
	struct cm_config config;
	long allowed = 0;
	int r;

	(void)state;
	write_file("pair", "bob:pw");
	assert_int_equal(cm_flags_parse(4, argv, &flags, NULL), CM_OK);
	assert_int_equal(cm_config_init(&config, NULL), CM_OK);
	config.system_file = system_file;
	do {
		struct cm_spec spec;
		struct cm_merge m = { .spec = &spec };

		cm_spec_init(&spec);
		cm_alloc_fail_after(allowed++);
		r = cm_config_resolve(&config, &flags, &m, NULL);
		cm_alloc_fail_after(-1);
		assert_true(r == CM_OK || r == CM_E_NOMEM);
		cm_merge_clear(&m);
		cm_spec_clear(&spec);
	} while (r != CM_OK);
	assert_true(allowed > 5);
	assert_string_equal(config.git_user, "bob");
	assert_string_equal(config.git_secret, "pw");
	cm_config_clear(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_can_be_said),
		TEST(test_what_contradicts),
		TEST(test_which_credential_counts),
		TEST(test_a_variable_is_taken_away),
		TEST(test_a_descriptor_is_read_to_its_end),
		TEST(test_a_file_that_all_can_read),
		TEST(test_credentials_that_are_none),
		TEST(test_a_credential_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
