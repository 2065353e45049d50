/* SPDX-License-Identifier: Apache-2.0 */
/* Policies and configuration files: good ones, and each way to be wrong with its message. */
#include "tests/unit/test_spec_env.h"

#include "runtime/base/alloc.h"
#include "runtime/base/json.h"

#define BOTH (CM_FILE_PROFILES | CM_FILE_CEILING)

static int parse(const char *text, size_t len, unsigned int allowed, char **ret_dump,
		 struct cm_error *err)
{
	CM_AUTO_FILE struct cm_file file = { 0 };
	struct cm_origins origins = { 0 };
	struct cm_spec spec;
	struct cm_merge m = { .spec = &spec, .origins = &origins, .caller = &test_caller };
	int r = cm_file_parse(text, len, "p.json", "/etc/pol", allowed, &file, err);

	if (r != CM_OK)
		return r;
	cm_spec_init(&spec);
	r = cm_merge_layer(&m, &file.keys, err);
	if (r == CM_OK)
		*ret_dump = test_dump(&spec, &origins);
	cm_origins_clear(&origins);
	cm_spec_clear(&spec);
	return r;
}

static const struct {
	const char *text;
	const char *dump;
} good[] = {
	{ "{}", "" },
	{ "{ /* nothing */ }", "" },
	{ "{ \"$schema\": \"x\" }", "" },
	{ "{\"memory\": \"4G\"}", "memory=4G" },
	{ "{\"memory\": \"4G?\"}", "memory=4G?" },
	{ "{\"memory\": 4294967296}", "memory=4G" },
	{ "{\"memory\": {\"max\": \"4G\"}}", "memory=4G" },
	{ "{\"memory\": {\"max\": \"4G\", \"optional\": false}}", "memory=4G" },
	{ "{\"memory\": {\"optional\": true, \"max\": 4294967296}}", "memory=4G?" },
	{ "{\"memory\": \"unlimited\"}", "memory=unlimited" },
	{ "{\"cpus\": 1.5}", "cpus=1.5" },
	{ "{\"cpus\": 2}", "cpus=2" },
	{ "{\"cpus\": {\"max\": 0.5, \"optional\": true}}", "cpus=0.5?" },
	{ "{\"cpuset\": {\"max\": \"0-1\", \"optional\": true}}", "cpuset=0-1?" },
	{ "{\"label\": {\"team\": \"web\", \"n\": \"\"}}", "label=team=web label=n=" },
	{ "{\"label\": [\"team=web\", \"team=x\"]}", "label=team=x" },
	{ "{\"retention\": {\"older-than\": \"7d\", \"keep-last\": 5, \"files\": true}}",
	  "retention=older-than=7d,keep-last=5,files" },
	{ "{\"retention\": {\"files\": false, \"keep-last\": 5}}", "retention=keep-last=5" },
	{ "{\"retention\": \"older-than=7d\"}", "retention=older-than=7d" },
	{ "{\"timeout\": \"15m\"}", "timeout=15m" },
	{ "{\"timeout\": 90}", "timeout=90s" },
	{ "{\"pids-limit\": 512}", "pids-limit=512" },
	{ "{\"network\": \"host\"}", "network=host" },
	{ "{\"network\": {\"mode\": \"host\"}}", "network=host" },
	{ "{\"tty\": true}", "tty=true" },
	{ "{\"tty\": false}", "tty=false" },
	{ "{\"tty\": \"auto\"}", "tty=auto" },
	{ "{\"quiet\": true}", "quiet=true" },
	{ "{\"failure-exit\": 2}", "failure-exit=2" },
	{ "{\"env\": {\"A\": \"b\", \"E\": \"\"}}", "env=A=b env=E=" },
	{ "{\"env\": [\"A=b\", \"FOO\"]}", "env=A=b env=FOO=bar" },
	{ "{\"env\": {}}", "" },
	{ "{\"setup\": \"npm ci\", \"repo\": \"/r\"}", "repo=/r setup=npm ci" },
	{ "{\"setup\": [\"a\", \"b\"], \"repo\": \"/r\"}", "repo=/r setup=a setup=b" },
	/* relative paths start from the file's own directory */
	{ "{\"volume\": [\"./d:/d:ro\", \"~/x\"]}",
	  "volume=/etc/pol/d:/d:ro volume=/home/alice/x" },
	{ "{\"volume\": \"/d\"}", "volume=/d" },
	{ "{\"repo\": \"r\"}", "repo=/etc/pol/r" },
	{ "{\"repo\": \"/r\", \"pr\": 7, \"branch\": \"b\", \"depth\": 1}",
	  "repo=/r pr=7 branch=b depth=1" },
	{ "{\"repo\": \"/r\", \"lfs\": true, \"sparse\": [\"a\", \"b/c/\"], \"filter\": \"none\"}",
	  "repo=/r lfs=true sparse=a sparse=b/c filter=none" },
	{ "{\"repo\": \"https://alice@example.org/a\"}", "repo=https://example.org/a" },
	{ "{\"workspace\": \"w:ro\"}", "workspace=/etc/pol/w:ro" },
	{ "{\"workspace\": false}", "workspace=" },
	{ "{\"user\": \"root\", \"git\": \"rw\", \"min-level\": \"full\"}",
	  "user=root git=rw min-level=full" },
	{ "{\"profiles\": {\"ci\": {\"memory\": \"1G\"}}, \"ceiling\": {\"memory\": \"2G\"}}", "" },
	{ "{\"profiles\": {}, \"ceiling\": {}}", "" },
};

static void test_good_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(good); i++) {
		struct cm_error err = CM_ERROR_INIT;
		CM_AUTO_FREE char *dump = NULL;

		if (parse(good[i].text, strlen(good[i].text), BOTH, &dump, &err) != CM_OK)
			fail_msg("'%s': %s", good[i].text, err.msg);
		if (!dump || strcmp(dump, good[i].dump) != 0)
			fail_msg("'%s': '%s', not '%s'", good[i].text, dump, good[i].dump);
	}
}

#define SIZE_HINT "for example \"memory\": \"4G\""
#define LIMIT_HINT "for example 4G, '4G?' to go on where it cannot be enforced, or unlimited"
#define CPU_HINT "for example 1.5, '1.5?' to go on where it cannot be enforced, or unlimited"
#define TIME_HINT "for example 15m, '15m?' to go on where it cannot be enforced, or unlimited"
#define SCHEMA_HINT "'casemate config schema' prints what a file may hold"
#define ENV_HINT "for example \"env\": { \"CI\": \"1\" }"
#define ID_HINT "use 1 to 128 of A-Z a-z 0-9 . _ - and begin with none of . -"

static const struct {
	const char *text;
	unsigned int allowed;
	const char *msg;
	const char *hint;
} bad[] = {
	{ "{\n\n\"memroy\": \"4G\"}", 0, "p.json:3: unknown key 'memroy'",
	  "did you mean 'memory'?" },
	{ "{\"xyzzy\": 1}", 0, "p.json:1: unknown key 'xyzzy'",
	  "'casemate config show' lists the keys" },
	{ "{\"cwd\": \"/x\"}", 0, "p.json:1: unknown key 'cwd'", "did you mean 'workdir'?" },
	{ "{\"session\": \"x\"}", 0, "p.json:1: 'session' cannot be in a file",
	  "use the option --session" },
	{ "{\"result\": \"x\"}", 0, "p.json:1: 'result' cannot be in a file",
	  "use the option --result" },
	{ "{\"policy\": \"x\"}", 0, "p.json:1: 'policy' cannot be in a file",
	  "use the option --policy" },
	{ "[]", 0, "p.json:1: the file must be an object, not a list", SCHEMA_HINT },
	{ "\"x\"", 0, "p.json:1: the file must be an object, not a string", SCHEMA_HINT },
	{ "{\n\"memory\": true}", 0, "p.json:2: 'memory' must be a size, not true", SIZE_HINT },
	{ "{\"retention\": {\"older-then\": \"7d\"}}", 0,
	  "p.json:1: unknown key 'older-then' in 'retention'",
	  "there are \"older-than\", \"keep-last\" and \"files\"" },
	{ "{\"retention\": {\"files\": true}}", 0,
	  "p.json:1: 'retention' does not say which sessions may go",
	  "for example older-than=7d,keep-last=20; 'files' adds their directories" },
	{ "{\"retention\": {\"files\": \"yes\"}}", 0,
	  "p.json:1: \"files\" of 'retention' must be true or false, not a string", "" },
	{ "{\"label\": {\"a=b\": \"c\"}}", 0, "p.json:1: the key of a label must not have '='",
	  "for example \"label\": { \"team\": \"web\" }" },
	{ "{\"label\": {\"a\": 1}}", 0,
	  "p.json:1: 'label' must be an object of strings, or a list of strings, not a number",
	  "for example \"label\": { \"team\": \"web\" }" },
	{ "{\"memory\": 4.5}", 0, "p.json:1: 'memory' must be a size, not a fraction", SIZE_HINT },
	{ "{\"memory\": null}", 0, "p.json:1: 'memory' must be a size, not null", SIZE_HINT },
	{ "{\"memory\": []}", 0, "p.json:1: 'memory' must be a size, not a list", SIZE_HINT },
	{ "{\"memory\": {}}", 0, "p.json:1: 'memory' needs \"max\"",
	  "for example \"memory\": { \"max\": \"4G\", \"optional\": true }" },
	{ "{\"memory\": {\"max\": {\"max\": 1}}}", 0, "p.json:1: 'memory' needs \"max\"",
	  "for example \"memory\": { \"max\": \"4G\", \"optional\": true }" },
	{ "{\"memory\": {\"max\": \"4G\",\n\"optinal\": true}}", 0,
	  "p.json:2: unknown key 'optinal' in 'memory'", "there are \"max\" and \"optional\"" },
	{ "{\"memory\": {\"max\": \"4G\", \"optional\": 1}}", 0,
	  "p.json:1: \"optional\" of 'memory' must be true or false, not a number", "" },
	{ "{\"memory\": \"\"}", 0, "p.json:1: 'memory' must not be empty", SIZE_HINT },
	{ "{\"memory\": 1}", 0, "p.json:1: 'memory' must be 4.0 MiB to 1.0 PiB, not '1'",
	  LIMIT_HINT },
	{ "{\n\"memory\": -1}", 0,
	  "p.json:2: 'memory' must be a size such as 512M or 1.5G, not '-1'", LIMIT_HINT },
	{ "{\"memory\": \"99999999999999999999T\"}", 0,
	  "p.json:1: 'memory' must be a size such as 512M or 1.5G, not '99999999999999999999T'",
	  LIMIT_HINT },
	{ "{\"timeout\": \"9999999999999999999d\"}", 0,
	  "p.json:1: 'timeout' must be a duration such as 90s, 1.5h or 2m30s, not "
	  "'9999999999999999999d'",
	  TIME_HINT },
	{ "{\"timeout\": \"4000d\"}", 0, "p.json:1: 'timeout' must be 1 ms to 3650 d, not '4000d'",
	  TIME_HINT },
	{ "{\"cpus\": 1e300}", 0, NULL, CPU_HINT },
	{ "{\"cpus\": 0.0001}", 0, "p.json:1: 'cpus' must be 0.01 to 8192, not '0.000'", CPU_HINT },
	{ "{\"quiet\": \"true\"}", 0, "p.json:1: 'quiet' must be true or false, not a string",
	  "for example \"quiet\": true" },
	{ "{\"tty\": 1}", 0, "p.json:1: 'tty' must be true, false or \"auto\", not a number",
	  "for example \"tty\": true" },
	{ "{\"failure-exit\": \"2\"}", 0,
	  "p.json:1: 'failure-exit' must be a whole number, not a string",
	  "for example \"failure-exit\": 2" },
	{ "{\"workspace\": true}", 0, "p.json:1: 'workspace' must be a string or false, not true",
	  "for example \"workspace\": \"/srv/app:ro\"" },
	{ "{\"workspace\": \"\"}", 0, "p.json:1: 'workspace' must not be empty",
	  "for example \"workspace\": \"/srv/app:ro\"" },
	{ "{\"env\": \"A=b\"}", 0,
	  "p.json:1: 'env' must be an object of strings, or a list of strings, not a string",
	  ENV_HINT },
	{ "{\"env\": {\"A\": 1}}", 0,
	  "p.json:1: 'env' must be an object of strings, or a list of strings, not a number",
	  ENV_HINT },
	{ "{\"env\": {\"A=B\": \"c\"}}", 0, "p.json:1: a variable's name must not have '='",
	  ENV_HINT },
	{ "{\"env\": {\"\": \"c\"}}", 0, "p.json:1: 'env': a variable without a name",
	  "write NAME=VALUE, or NAME to pass the caller's" },
	{ "{\"volume\": [\"/a:/b\",\n5]}", 0,
	  "p.json:2: 'volume' must be a string or a list of strings, not a number",
	  "for example \"volume\": [\"/srv/cache:/cache:ro\"]" },
	{ "{\"volume\": [\"/a:/b\",\n\"/c:/b\"]}", 0, "p.json:2: 'volume': two volumes at '/b'",
	  "" },
	{ "{\"root\": \"r\"}", 0, "p.json:1: 'root' must be an absolute path, not 'r'",
	  "write it in full, or from '~/'" },
	{ "{\"network\": \"allow\"}", 0, "p.json:1: 'network' 'allow' is not supported yet",
	  "there are --network none and --network host" },
	{ "{\"network\": {\"mode\": \"none\",\n\"allow\": []}}", 0,
	  "p.json:2: 'allow' of 'network' is not supported yet",
	  "there are \"network\": \"none\" and \"network\": \"host\"" },
	{ "{\"network\": {}}", 0, "p.json:1: 'network' needs \"mode\"",
	  "for example \"network\": \"none\"" },
	{ "{\"network\": {\"x\": 1}}", 0, "p.json:1: unknown key 'x' in 'network'",
	  "there is \"mode\"" },
	{ "{\"repo\": \"/a\",\n\"workspace\": \"/b\"}", 0,
	  "p.json:1: 'workspace' and 'repo' contradict each other",
	  "--workspace works on a tree as it is, --repo on a new checkout" },
	{ "{\n\"repo\": \"https://u:secret@example.org/a\"}", 0,
	  "p.json:2: 'repo' must not have a password in its address",
	  "a file is no place for one: leave it out, and put it into the variable "
	  "CASEMATE_GIT_TOKEN" },
	{ "{\"repo\": \"https:/u:secret@example.org/a\"}", 0,
	  "p.json:1: 'repo': the repository's address is of an unknown kind",
	  "there are https://, http://, ssh://, git:// and file://, HOST:PATH for ssh, and the "
	  "path of a repository" },
	{ "{\"pr\": 0}", 0, "p.json:1: 'pr' must be 1 to 2147483647, not '0'",
	  "give 'pr' a value from 1 to 2147483647" },
	{ "{\"filter\": \"tree:0\"}", 0,
	  "p.json:1: 'filter' 'tree:0' is not supported: without its directories git asks the server "
	  "for each of them",
	  "use --filter blob:none" },
	{ "{\"depth\": \"1\"}", 0, "p.json:1: 'depth' must be a whole number, not a string",
	  "for example \"depth\": 1" },
	{ "{\"repo\": \"/r\", \"ref\": \"v1\",\n\"pr\": 1}", 0,
	  "p.json:2: 'ref' and 'pr' contradict each other",
	  "--ref names what to check out, and so does --pr" },
	{ "{\"setup-again\": true}", 0, "p.json:1: 'setup-again' cannot be in a file",
	  "use the option --setup-again" },
	{ "{\"git-credential\": \"env:T\"}", 0, "p.json:1: 'git-credential' cannot be in a file",
	  "use the option --git-credential" },
	{ "{\"profiles\": {}}", 0, "p.json:1: 'profiles' cannot be in this file",
	  "profiles are in the configuration files" },
	{ "{\"ceiling\": {}}", CM_FILE_PROFILES, "p.json:1: 'ceiling' cannot be in this file",
	  "a ceiling holds only in /etc/casemate/config.json" },
	{ "{\"profiles\": []}", BOTH, "p.json:1: 'profiles' must be an object, not a list",
	  SCHEMA_HINT },
	{ "{\"profiles\": {\"a\": 1}}", BOTH,
	  "p.json:1: profile 'a' must be an object, not a number", SCHEMA_HINT },
	{ "{\"profiles\": {\"-a\": {}}}", BOTH, "p.json:1: bad profile name '-a'", ID_HINT },
	/* a profile that nobody uses is checked too */
	{ "{\"profiles\": {\"a\": {\n\"memory\": \"1\"}}}", BOTH,
	  "p.json:2: 'memory' must be 4.0 MiB to 1.0 PiB, not '1'", LIMIT_HINT },
	{ "{\"profiles\": {\"a\": {\"profiles\": {}}}}", BOTH, "p.json:1: unknown key 'profiles'",
	  "'casemate config show' lists the keys" },
	{ "{\"ceiling\": 1}", BOTH, "p.json:1: 'ceiling' must be an object, not a number",
	  SCHEMA_HINT },
	{ "{\"ceiling\": {\n\"env\": {\"A\": \"b\"}}}", BOTH,
	  "p.json:2: 'env' cannot be in a ceiling",
	  "a ceiling holds limits, network, user, git, min-level and read-only" },
	{ "{\"ceiling\": {\"memory\": \"x\"}}", BOTH,
	  "p.json:1: 'memory' must be a size such as 512M or 1.5G, not 'x'", LIMIT_HINT },
};

static void test_bad_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		struct cm_error err = CM_ERROR_INIT;
		CM_AUTO_FREE char *dump = NULL;

		if (parse(bad[i].text, strlen(bad[i].text), bad[i].allowed, &dump, &err) == CM_OK)
			fail_msg("'%s' was taken: %s", bad[i].text, dump);
		if (bad[i].msg && strcmp(err.msg, bad[i].msg) != 0)
			fail_msg("'%s':\n'%s', not\n'%s'", bad[i].text, err.msg, bad[i].msg);
		if (strcmp(err.hint, bad[i].hint) != 0)
			fail_msg("'%s':\n'%s', not\n'%s'", bad[i].text, err.hint, bad[i].hint);
	}
}

/* What the reader below refuses; here only that it does, with the file's name. */
static void test_malformed(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} texts[] = {
		{ "", 0 },
		{ "{", 1 },
		{ "{}}", 3 },
		{ "{} {}", 5 },
		{ "{\"memory\": \"4G\", \"memory\": \"8G\"}", 32 },
		{ "{\"env\": {\"A\": \"1\", \"A\": \"2\"}}", 29 },
		{ "{\"profiles\": {\"a\": {}, \"a\": {}}}", 32 },
		{ "{\"env\": {\"A\": \"\xff\"}}", 19 },
		{ "{\"env\": {\"A\": \"\xc0\x80\"}}", 20 },
		{ "{\"env\": {\"A\": \"\xed\xa0\x80\"}}", 21 },
		{ "{\"env\": {\"A\": \"\\u0000\"}}", 24 },
		{ "{\"pids-limit\": 99999999999999999999}", 36 },
		{ "{\"memory\": \"4G\",}", 17 },
		{ "{\0}", 3 },
		{ "\xef\xbb\xbf{}", 5 },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(texts); i++) {
		struct cm_error err = CM_ERROR_INIT;
		CM_AUTO_FREE char *dump = NULL;

		if (parse(texts[i].text, texts[i].len, BOTH, &dump, &err) == CM_OK)
			fail_msg("'%s' was taken", texts[i].text);
		assert_non_null(strstr(err.msg, "p.json"));
	}
}

static void test_large_and_deep(void **state)
{
	static const size_t sizes[] = { 10UL << 20, CM_JSON_MAX_BYTES + 1, CM_JSON_MAX_BYTES };
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *text = malloc(10UL << 20);
	CM_AUTO_FREE char *dump = NULL;
	uint32_t seed = 12345;

	(void)state;
	assert_non_null(text);
	for (size_t s = 0; s < CM_ARRAY_SIZE(sizes); s++) {
		for (size_t i = 0; i < sizes[s]; i++) {
			seed = seed * 1664525U + 1013904223U;
			text[i] = (char)(seed >> 24);
		}
		assert_int_not_equal(parse(text, sizes[s], BOTH, &dump, &err), CM_OK);
		memset(text, ' ', sizes[s]);
		text[0] = '{';
		text[sizes[s] - 1] = '}';
		if (sizes[s] > CM_JSON_MAX_BYTES)
			assert_int_not_equal(parse(text, sizes[s], BOTH, &dump, &err), CM_OK);
		memset(text, '[', sizes[s]);
		assert_int_not_equal(parse(text, sizes[s], BOTH, &dump, &err), CM_OK);
	}
	for (size_t i = 0; i < CM_JSON_MAX_BYTES / 5 * 5; i++)
		text[i] = "{\"a\":"[i % 5];
	assert_int_not_equal(parse(text, CM_JSON_MAX_BYTES / 5 * 5, BOTH, &dump, &err), CM_OK);
	assert_null(dump);
}

static void test_many_settings(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *dump = NULL;
	struct cm_buf text;

	(void)state;
	cm_buf_init(&text, CM_JSON_MAX_BYTES);
	cm_buf_puts(&text, "{\"setup\": [\"a\"");
	for (int i = 0; i < 20000; i++)
		cm_buf_puts(&text, ",\"a\"");
	cm_buf_puts(&text, "]}");
	assert_int_equal(parse(text.data, text.len, 0, &dump, &err), CM_E_LIMIT);
	assert_string_equal(err.msg, "p.json:1: more than 16384 settings");
	cm_buf_clear(&text);
}

static void test_lines_are_origins(void **state)
{
	static const char text[] =
		"{\n\"memory\": \"4G\",\n\"env\": {\"A\": \"1\",\n\"B\": \"2\"}}";
	struct cm_error err = CM_ERROR_INIT;
	struct cm_file file = { 0 };
	struct cm_origins origins = { 0 };
	struct cm_spec spec;
	struct cm_merge m = { .spec = &spec, .origins = &origins, .caller = &test_caller };

	(void)state;
	cm_spec_init(&spec);
	assert_int_equal(cm_file_parse(text, strlen(text), "a/b.json", "/", 0, &file, &err), CM_OK);
	assert_int_equal(cm_merge_layer(&m, &file.keys, &err), CM_OK);
	assert_string_equal(origins.of[CM_KEY_MEMORY].v[0], "a/b.json:2");
	assert_int_equal(origins.of[CM_KEY_ENV].n, 2);
	assert_string_equal(origins.of[CM_KEY_ENV].v[0], "a/b.json:3");
	assert_string_equal(origins.of[CM_KEY_ENV].v[1], "a/b.json:4");
	cm_origins_clear(&origins);
	cm_file_clear(&file);
	cm_spec_clear(&spec);
}

static void test_env_files(void **state)
{
	static const char text[] = "# comment\n\nA=b\n  B=c d \r\nFOO\nABSENT\nQ=\"x\"\nlast=1";
	struct cm_error err = CM_ERROR_INIT;
	struct cm_layer layer = { 0 };
	struct cm_origins origins = { 0 };
	struct cm_spec spec;
	struct cm_merge m = { .spec = &spec, .origins = &origins, .caller = &test_caller };
	CM_AUTO_FREE char *dump = NULL;

	(void)state;
	cm_spec_init(&spec);
	assert_int_equal(cm_env_file_parse(text, strlen(text), ".env", &layer, &err), CM_OK);
	assert_int_equal(cm_merge_layer(&m, &layer, &err), CM_OK);
	dump = test_dump(&spec, &origins);
	assert_string_equal(dump, "env=A=b env=B=c d  env=FOO=bar env=Q=\"x\" env=last=1");
	assert_string_equal(origins.of[CM_KEY_ENV].v[1], ".env:4");
	cm_layer_clear(&layer);

	assert_int_equal(cm_env_file_parse("A=b\nexport B=c", 14, ".env", &layer, &err), CM_OK);
	assert_int_equal(cm_merge_layer(&m, &layer, &err), CM_E_INVALID);
	assert_string_equal(err.msg, ".env:2: --env-file: a variable's name must not have blanks "
				     "or control characters");
	cm_layer_clear(&layer);
	assert_int_equal(cm_env_file_parse("A\0b", 3, ".env", &layer, &err), CM_E_INVALID);
	assert_string_equal(err.msg, "'.env' is not a text file");
	assert_string_equal(err.hint, "--env-file takes lines of NAME=VALUE");
	assert_int_equal(cm_env_file_parse("", 0, ".env", &layer, &err), CM_OK);
	assert_int_equal(layer.n, 0);
	cm_origins_clear(&origins);
	cm_spec_clear(&spec);
}

static void test_without_memory(void **state)
{
	static const char text[] =
		"{\"memory\": {\"max\": \"4G\", \"optional\": true}, \"env\": {\"A\": \"b\"},"
		"\"volume\": [\"/a:/b\"], \"network\": {\"mode\": \"host\"},"
		"\"profiles\": {\"a\": {\"cpus\": 1.5}, \"b\": {\"setup\": \"x\"}},"
		"\"ceiling\": {\"cpuset\": \"0-3\"}}";
	struct cm_error err = CM_ERROR_INIT;
	long allowed = 0;
	int r;

	(void)state;
	do {
		CM_AUTO_FILE struct cm_file file = { 0 };

		cm_error_clear(&err);
		cm_alloc_fail_after(allowed++);
		r = cm_file_parse(text, strlen(text), "p.json", "/", BOTH, &file, &err);
		cm_alloc_fail_after(-1);
		if (r != CM_OK) {
			assert_int_equal(r, CM_E_NOMEM);
			assert_non_null(strstr(err.msg, "out of memory"));
		}
	} while (r != CM_OK);
	assert_true(allowed > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_files),    cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_malformed),     cmocka_unit_test(test_large_and_deep),
		cmocka_unit_test(test_many_settings), cmocka_unit_test(test_lines_are_origins),
		cmocka_unit_test(test_env_files),     cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
