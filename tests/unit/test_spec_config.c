/* SPDX-License-Identifier: Apache-2.0 */
/* The environment and the files, in a directory of the test's own. */
#include "tests/unit/test_spec_env.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/path.h"
#include "runtime/spec/config.h"

static char top[64];
/* a file in place of /etc's */
static char system_file[128];

static void write_file(const char *name, const char *text)
{
	CM_AUTO_FREE char *path = cm_path_join(top, name);
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void make_dir(const char *name)
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

static int set_up(void **state)
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

static int tear_down(void **state)
{
	(void)state;
	return chdir("/") == 0 && cm_remove_tree_at(AT_FDCWD, top) == 0 ? 0 : -1;
}

/* struct cm_spec's of the last one that was resolved */
static uint64_t last_asked;

/* The whole way; *ret_dump is the caller's on success. Words are separated by blanks. */
static int resolve(const char *line, char **ret_dump, struct cm_error *err)
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

static void assert_resolves(const char *line, const char *expected)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *dump = NULL;

	if (resolve(line, &dump, &err) != CM_OK)
		fail_msg("'%s': %s", line, err.msg);
	assert_string_equal(dump, expected);
}

static void assert_refuses(const char *line, int code, const char *msg, const char *hint)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *dump = NULL;

	if (resolve(line, &dump, &err) == CM_OK)
		fail_msg("'%s' was taken: %s", line, dump);
	assert_string_equal(err.msg, msg);
	assert_string_equal(err.hint, hint);
	assert_int_equal(err.code, code);
}

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

static void test_providers(void **state)
{
	(void)state;
	setenv("FACTORY_SANDBOX_PROVIDER", "local", 1);
	assert_resolves("", "");
	/* Factory ignores any other word */
	setenv("FACTORY_SANDBOX_PROVIDER", "e2b", 1);
	assert_resolves("", "");
	setenv("CASEMATE_PROVIDER", " local ", 1);
	assert_resolves("", "");
	setenv("CASEMATE_PROVIDER", "e2b", 1);
	assert_refuses("", CM_E_UNSUPPORTED, "provider 'e2b' is not supported yet",
		       "unset CASEMATE_PROVIDER, or set it to local");
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
	assert_int_equal(notes.n, 0);
}

#define NO_LINE "--git-credential: what it names has more than one line, or a control character"
#define ONE_LINE "it is to hold one line, a token or USER:PASSWORD"
#define NO_FORM "--git-credential must be env:NAME, file:PATH or fd:N, and no secret itself"
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
	r = cm_config_repository(top, &m, err);
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

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
		TEST(test_providers),
		TEST(test_environment),
		TEST(test_which_credential_counts),
		TEST(test_a_variable_is_taken_away),
		TEST(test_a_descriptor_is_read_to_its_end),
		TEST(test_a_file_that_all_can_read),
		TEST(test_credentials_that_are_none),
		TEST(test_a_credential_without_memory),
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
