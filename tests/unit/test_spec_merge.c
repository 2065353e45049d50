/* SPDX-License-Identifier: Apache-2.0 */
/* Precedence, contradictions, ceilings and origins. */
#include "tests/unit/test_spec_env.h"

#include "runtime/base/text.h"
#include "runtime/spec/cpuset.h"

struct world {
	struct cm_spec spec;
	struct cm_origins origins;
	struct cm_merge m;
	struct cm_error err;
};

static void open_world(struct world *w)
{
	*w = (struct world){ 0 };
	cm_spec_init(&w->spec);
	w->m.spec = &w->spec;
	w->m.origins = &w->origins;
	w->m.caller = &test_caller;
}

static void close_world(struct world *w)
{
	cm_spec_clear(&w->spec);
	cm_origins_clear(&w->origins);
	cm_merge_clear(&w->m);
}

static int lay_file(struct world *w, const char *name, const char *text)
{
	CM_AUTO_FILE struct cm_file file = { 0 };
	int r = cm_file_parse(text, strlen(text), name, "/etc", 0, &file, &w->err);

	return r == CM_OK ? cm_merge_layer(&w->m, &file.keys, &w->err) : r;
}

/* Words separated by blanks. */
static int lay_flags(struct world *w, const char *line)
{
	CM_AUTO_FREE char *copy = strdup(line);
	CM_AUTO_LAYER struct cm_layer layer = { 0 };
	char *words[32];
	int n = 0;
	int r;

	for (char *rest = copy; rest && *line != '\0';)
		words[n++] = strsep(&rest, " ");
	r = cm_flags_parse(n, words, &layer, &w->err);
	return r == CM_OK ? cm_merge_layer(&w->m, &layer, &w->err) : r;
}

static int lay_ceiling(struct world *w, const char *text, bool is_repository)
{
	CM_AUTO_FILE struct cm_file file = { 0 };
	int r = cm_file_parse(text, strlen(text), "c.json", "/etc", 0, &file, &w->err);

	return r == CM_OK ? cm_merge_ceiling(&w->m, &file.keys, is_repository, &w->err) : r;
}

static void assert_dump(struct world *w, const char *expected)
{
	CM_AUTO_FREE char *dump = test_dump(&w->spec, &w->origins);

	assert_string_equal(dump, expected);
}

static void assert_origin(const struct world *w, enum cm_key key, size_t i, const char *expected)
{
	assert_true(i < w->origins.of[key].n);
	assert_string_equal(w->origins.of[key].v[i], expected);
}

static void test_later_wins(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	assert_int_equal(lay_file(&w, "etc", "{\"memory\": \"1G\", \"cpus\": 1,\n\"git\": \"rw\"}"),
			 CM_OK);
	assert_int_equal(lay_file(&w, "user", "{\"memory\": \"2G?\", \"cpus\": 2}"), CM_OK);
	assert_int_equal(lay_flags(&w, "--memory 3G a"), CM_OK);
	assert_dump(&w, "memory=3G cpus=2 git=rw -- a");
	assert_false(w.spec.limits.memory.is_optional);
	assert_origin(&w, CM_KEY_MEMORY, 0, "--memory");
	assert_origin(&w, CM_KEY_CPUS, 0, "user:1");
	assert_origin(&w, CM_KEY_GIT, 0, "etc:2");
	assert_int_equal(w.origins.of[CM_KEY_NETWORK].n, 0);
	close_world(&w);
}

static void test_lists_grow(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	assert_int_equal(lay_file(&w, "etc",
				  "{\"env\": {\"A\": \"1\", \"B\": \"1\"},"
				  "\"pass-env\": \"X\", \"volume\": [\"/a\", \"/b:/x\"]}"),
			 CM_OK);
	assert_int_equal(lay_flags(&w, "-e B=2 -e C=2 --pass-env Y -v /c -v /d:/x:ro a"), CM_OK);
	assert_dump(&w, "volume=/a volume=/d:/x:ro volume=/c env=A=1 env=B=2 env=C=2 "
			"pass-env=X pass-env=Y -- a");
	/* each origin stays with its value, also where a value was replaced */
	assert_origin(&w, CM_KEY_ENV, 0, "etc:1");
	assert_origin(&w, CM_KEY_ENV, 1, "--env");
	assert_origin(&w, CM_KEY_ENV, 2, "--env");
	assert_origin(&w, CM_KEY_VOLUME, 0, "etc:1");
	assert_origin(&w, CM_KEY_VOLUME, 1, "--volume");
	assert_origin(&w, CM_KEY_VOLUME, 2, "--volume");
	assert_origin(&w, CM_KEY_PASS_ENV, 0, "etc:1");
	assert_origin(&w, CM_KEY_PASS_ENV, 1, "--pass-env");
	close_world(&w);
}

static void test_workspace_and_repo_replace_each_other(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	assert_int_equal(lay_file(&w, "etc", "{\"repo\": \"/r\", \"ref\": \"v1\"}"), CM_OK);
	assert_int_equal(lay_flags(&w, "--workspace /w:ro a"), CM_OK);
	assert_int_equal(cm_merge_check(&w.m, &w.err), CM_OK);
	assert_dump(&w, "workspace=/w:ro -- a");
	assert_int_equal(w.spec.workspace_kind, CM_WORKSPACE_DIR);
	assert_int_equal(lay_flags(&w, "--repo /r2 a"), CM_OK);
	assert_dump(&w, "repo=/r2 -- a");
	assert_int_equal(w.spec.workspace_kind, CM_WORKSPACE_REPO);
	assert_false(w.spec.is_workspace_read_only);
	assert_int_equal(lay_flags(&w, "--no-workspace a"), CM_OK);
	assert_int_equal(w.spec.workspace_kind, CM_WORKSPACE_NONE);
	assert_null(w.spec.repo);
	close_world(&w);
}

/* What says which commit is replaced as a whole; a depth in a file is a preference. */
static void test_what_is_checked_out(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	assert_int_equal(lay_file(&w, "etc", "{\"depth\": 1}"), CM_OK);
	assert_int_equal(lay_flags(&w, "a"), CM_OK);
	assert_int_equal(cm_merge_check(&w.m, &w.err), CM_OK);
	assert_int_equal(lay_file(&w, "p", "{\"repo\": \"/r\", \"ref\": \"v1\"}"), CM_OK);
	assert_int_equal(lay_flags(&w, "--pr 5 a"), CM_OK);
	assert_int_equal(cm_merge_check(&w.m, &w.err), CM_OK);
	assert_dump(&w, "repo=/r pr=5 depth=1 -- a");
	assert_int_equal(w.spec.pr, 5);
	assert_null(w.spec.ref);
	assert_int_equal(lay_flags(&w, "--ref v2 --branch b a"), CM_OK);
	assert_dump(&w, "repo=/r ref=v2 branch=b depth=1 -- a");
	assert_int_equal(w.spec.pr, 0);
	assert_int_equal(lay_file(&w, "q.json", "{\n\"from\": \"v3\"}"), CM_OK);
	assert_int_equal(cm_merge_check(&w.m, &w.err), CM_E_INVALID);
	assert_string_equal(w.err.msg, "'from' (q.json:2) and --ref contradict each other");
	assert_int_equal(lay_flags(&w, "--pr 5 --workspace /w a"), CM_OK);
	assert_dump(&w, "workspace=/w depth=1 -- a");
	assert_int_equal(cm_merge_check(&w.m, &w.err), CM_OK);
	assert_int_equal(w.spec.depth, 1);
	assert_true(!w.spec.branch && !w.spec.base && !w.spec.pr);
	close_world(&w);
}

/* A password is nowhere but in its own field; and it goes with its repository. */
static void test_a_password_of_a_repository(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	assert_int_equal(lay_flags(&w, "--repo https://al%40x:p%3aw@example.org/a a"), CM_OK);
	assert_dump(&w, "repo=https://example.org/a -- a");
	assert_string_equal(w.spec.repo_user, "al@x");
	assert_string_equal(w.spec.repo_secret, "p:w");
	assert_int_equal(w.m.notes.n, 0);
	assert_int_equal(cm_merge_check(&w.m, &w.err), CM_OK);
	assert_int_equal(w.m.notes.n, 1);
	assert_string_equal(w.m.notes.v[0],
			    "--repo has a password, and other users of this host can read command "
			    "lines; the variable CASEMATE_GIT_TOKEN is not shown");
	/* another repository has another password, or none */
	assert_int_equal(lay_flags(&w, "--repo ssh://git@example.com/a a"), CM_OK);
	assert_string_equal(w.spec.repo_user, "git");
	assert_null(w.spec.repo_secret);
	assert_int_equal(lay_flags(&w, "--repo https://alice:pw@example.org/a a"), CM_OK);
	assert_int_equal(lay_flags(&w, "--repo /srv/a a"), CM_OK);
	assert_null(w.spec.repo_user);
	assert_null(w.spec.repo_secret);
	assert_int_equal(lay_flags(&w, "--repo https://alice:pw@example.org/a a"), CM_OK);
	assert_int_equal(lay_flags(&w, "--workspace /w a"), CM_OK);
	assert_null(w.spec.repo_user);
	assert_null(w.spec.repo_secret);
	assert_int_equal(cm_merge_check(&w.m, &w.err), CM_OK);
	assert_int_equal(w.m.notes.n, 1);
	close_world(&w);
}

static void test_contradictions_name_the_file(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	assert_int_equal(lay_file(&w, "p.json", "{\n\"setup\": \"npm ci\"}"), CM_OK);
	assert_int_equal(lay_flags(&w, "a"), CM_OK);
	assert_int_equal(cm_merge_check(&w.m, &w.err), CM_E_INVALID);
	assert_string_equal(w.err.msg, "'setup' (p.json:2) needs --repo or --session");
	assert_int_equal(lay_flags(&w, "--session x a"), CM_OK);
	assert_int_equal(cm_merge_check(&w.m, &w.err), CM_OK);
	close_world(&w);
	open_world(&w);
	assert_int_equal(lay_file(&w, "p.json", "{\"ref\": \"v1\"}"), CM_OK);
	assert_int_equal(cm_merge_check(&w.m, &w.err), CM_E_INVALID);
	assert_string_equal(w.err.msg, "'ref' (p.json:1) needs --repo");
	close_world(&w);
}

static void test_what_follows(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	cm_merge_finish(&w.m);
	assert_true(w.spec.limits.swap.value == CM_UNLIMITED);
	assert_int_equal(lay_flags(&w, "--memory 1G -v /a -v /b:/c a"), CM_OK);
	cm_merge_finish(&w.m);
	assert_true(w.spec.limits.swap.value == 0 && w.spec.limits.swap.is_optional);
	assert_false(w.spec.limits.swap.is_set);
	assert_false(w.spec.is_workspace_read_only);
	assert_int_equal(lay_flags(&w, "--swap 1G --read-only a"), CM_OK);
	cm_merge_finish(&w.m);
	assert_true(w.spec.limits.swap.value == UINT64_C(1) << 30);
	assert_true(w.spec.is_workspace_read_only);
	assert_true(w.spec.volumes[0].is_read_only && w.spec.volumes[1].is_read_only);
	close_world(&w);
}

/* spec by flags, ceiling, what comes out, and the note of a repository's ceiling */
static const struct {
	const char *flags;
	const char *ceiling;
	const char *dump;
	const char *note;
	/* of a repository's own ceiling, where that is another */
	const char *advised;
} ceilings[] = {
	/* a limit: the smaller; nothing asked for: the ceiling */
	{ "--memory 8G", "{\"memory\": \"4G\"}", "memory=4G", NULL },
	{ "--memory 2G", "{\"memory\": \"4G\"}", "memory=2G",
	  "c.json:1: 'memory' cannot widen '2G' (--memory) to '4G'; ignored" },
	{ "--memory 4G", "{\"memory\": \"4G\"}", "memory=4G", NULL },
	{ "", "{\"memory\": \"4G\"}", "memory=4G", NULL, "memory=4G?" },
	{ "", "{\"memory\": \"4G?\"}", "memory=4G?", NULL },
	{ "--memory unlimited", "{\"memory\": \"4G\"}", "memory=4G", NULL, "memory=4G?" },
	{ "--memory 2G", "{\"memory\": \"unlimited\"}", "memory=2G",
	  "c.json:1: 'memory' cannot widen '2G' (--memory) to 'unlimited'; ignored" },
	/* required is tighter than optional */
	{ "--memory 2G?", "{\"memory\": \"2G\"}", "memory=2G", NULL, "memory=2G?" },
	{ "--memory 2G", "{\"memory\": \"2G?\"}", "memory=2G", NULL },
	{ "--memory 2G?", "{\"memory\": \"4G?\"}", "memory=2G?",
	  "c.json:1: 'memory' cannot widen '2G?' (--memory) to '4G?'; ignored" },
	{ "--memory 8G?", "{\"memory\": \"4G?\"}", "memory=4G?", NULL },
	{ "--memory 8G", "{\"memory\": \"4G?\"}", "memory=4G?", NULL, "memory=4G" },
	/* built-in values are tightened and never widened */
	{ "", "{\"pids-limit\": 100}", "pids-limit=100", NULL, "pids-limit=100?" },
	{ "", "{\"pids-limit\": \"8192?\"}", "",
	  "c.json:1: 'pids-limit' cannot widen '4096?' (built in) to '8192?'; ignored" },
	{ "", "{\"pids-limit\": 8192}", "pids-limit=4096",
	  "c.json:1: 'pids-limit' cannot widen '4096?' (built in) to '8192'; ignored", "" },
	{ "--swap 1G", "{\"swap\": 0}", "swap=0", NULL },
	{ "", "{\"swap\": \"1G\"}", "swap=1G", NULL, "swap=1G?" },
	{ "--memory 8G", "{\"swap\": \"1G\"}", "memory=8G swap=0", NULL, "memory=8G swap=0?" },
	{ "", "{\"memory\": \"4G\", \"swap\": \"1G\"}", "memory=4G swap=0", NULL,
	  "memory=4G? swap=0?" },
	{ "--memory 8G --swap 2G", "{\"swap\": \"1G\"}", "memory=8G swap=1G", NULL },
	{ "--cpus 4", "{\"cpus\": 1.5}", "cpus=1.5", NULL },
	{ "--timeout 1h", "{\"timeout\": \"15m\"}", "timeout=15m", NULL },
	{ "", "{\"timeout\": \"15m\"}", "timeout=15m", NULL },
	{ "--idle-timeout 1h", "{\"idle-timeout\": \"15m\"}", "idle-timeout=15m", NULL },
	{ "--idle-timeout none", "{\"idle-timeout\": \"15m\"}", "idle-timeout=15m", NULL },
	{ "", "{\"lifetime\": \"1d\"}", "lifetime=1d", NULL },
	{ "--lifetime 8h", "{\"lifetime\": \"none\"}", "lifetime=8h",
	  "c.json:1: 'lifetime' cannot widen '8h' (--lifetime) to 'none'; ignored" },
	{ "", "{\"max-sessions\": 5}", "max-sessions=5", NULL },
	{ "--max-sessions 9", "{\"max-sessions\": 5}", "max-sessions=5", NULL },
	{ "--open-files 100", "{\"open-files\": 50}", "open-files=50", NULL },
	{ "--output 1G", "{\"output\": \"1M\"}", "output=1M", NULL },
	/* processors: what is in both */
	{ "", "{\"cpuset\": \"0-3\"}", "cpuset=0-3", NULL, "cpuset=0-3?" },
	{ "--cpuset 2-5", "{\"cpuset\": \"0-3\"}", "cpuset=2-3", NULL },
	{ "--cpuset 2-5?", "{\"cpuset\": \"0-3\"}", "cpuset=2-3", NULL, "cpuset=2-3?" },
	{ "--cpuset 1", "{\"cpuset\": \"0-3\"}", "cpuset=1", NULL },
	/* words */
	{ "--network host", "{\"network\": \"none\"}", "network=none", NULL },
	{ "--network host", "{\"network\": \"host\"}", "network=host", NULL },
	{ "--network none", "{\"network\": \"host\"}", "network=none",
	  "c.json:1: 'network' cannot widen 'none' (--network) to 'host'; ignored" },
	{ "", "{\"network\": \"host\"}", "",
	  "c.json:1: 'network' cannot widen 'none' (built in) to 'host'; ignored" },
	/* of three words each is between the others, or at an end */
	{ "--network host", "{\"network\": \"internet\"}", "network=internet", NULL },
	{ "--network internet", "{\"network\": \"none\"}", "network=none", NULL },
	{ "--network internet", "{\"network\": \"internet\"}", "network=internet", NULL },
	{ "--network internet", "{\"network\": \"host\"}", "network=internet",
	  "c.json:1: 'network' cannot widen 'internet' (--network) to 'host'; ignored" },
	{ "--user root", "{\"user\": \"user\"}", "user=user", NULL },
	{ "", "{\"user\": \"root\"}", "",
	  "c.json:1: 'user' cannot widen 'user' (built in) to 'root'; ignored" },
	{ "--git rw", "{\"git\": \"pinned\"}", "git=pinned", NULL },
	{ "", "{\"git\": \"rw\"}", "",
	  "c.json:1: 'git' cannot widen 'pinned' (built in) to 'rw'; ignored" },
	{ "", "{\"min-level\": \"full\"}", "min-level=full", NULL },
	{ "--min-level full", "{\"min-level\": \"no-cgroup\"}", "min-level=full",
	  "c.json:1: 'min-level' cannot widen 'full' (--min-level) to 'no-cgroup'; ignored" },
	{ "", "{\"read-only\": true}", "read-only=true", NULL },
	{ "--read-only", "{\"read-only\": false}", "read-only=true",
	  "c.json:1: 'read-only' cannot widen 'true' (--read-only) to 'false'; ignored" },
	{ "", "{\"read-only\": false}", "", NULL },
	/* several at once */
	{ "--memory 8G --network host", "{\"memory\": \"4G\", \"network\": \"none\"}",
	  "memory=4G network=none", NULL },
};

static void test_ceilings(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * CM_ARRAY_SIZE(ceilings); i++) {
		const char *note = ceilings[i / 2].note;
		bool is_repository = i % 2 == 0;
		const char *want = is_repository && ceilings[i / 2].advised
					   ? ceilings[i / 2].advised
					   : ceilings[i / 2].dump;
		CM_AUTO_FREE char *dump = NULL;
		struct world w;

		open_world(&w);
		assert_int_equal(lay_flags(&w, ceilings[i / 2].flags), CM_OK);
		if (lay_ceiling(&w, ceilings[i / 2].ceiling, is_repository) != CM_OK)
			fail_msg("%s: %s", ceilings[i / 2].ceiling, w.err.msg);
		dump = test_dump(&w.spec, &w.origins);
		if (strcmp(dump, want) != 0)
			fail_msg("'%s' under %s: '%s', not '%s'", ceilings[i / 2].flags,
				 ceilings[i / 2].ceiling, dump, want);
		/* an administrator's ceiling that does not bind is nothing to tell */
		assert_int_equal(w.m.notes.n, is_repository && note ? 1 : 0);
		if (is_repository && note)
			assert_string_equal(w.m.notes.v[0], note);
		close_world(&w);
	}
}

static void test_ceiling_origins(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	assert_int_equal(lay_flags(&w, "--memory 8G --cpus 1 a"), CM_OK);
	assert_int_equal(lay_ceiling(&w, "{\"memory\": \"4G\", \"cpus\": 2}", false), CM_OK);
	assert_origin(&w, CM_KEY_MEMORY, 0, "c.json:1 (ceiling)");
	assert_origin(&w, CM_KEY_CPUS, 0, "--cpus");
	assert_true(w.spec.limits.memory.is_set);
	close_world(&w);
}

static void test_a_repository_sets_nothing_else(void **state)
{
	static const char text[] =
		"{\"memory\": \"4G\", \"env\": {\"A\": \"1\", \"B\": \"2\"},\n"
		"\"volume\": \"/etc:/etc\", \"root\": \"/x\", \"setup\": [\"a\", \"b\"]}";
	struct world w;

	(void)state;
	open_world(&w);
	assert_int_equal(lay_ceiling(&w, text, true), CM_OK);
	assert_dump(&w, "memory=4G?");
	assert_int_equal(w.spec.env.n, 0);
	assert_int_equal(w.spec.n_volumes, 0);
	assert_null(w.spec.root);
	assert_int_equal(w.m.notes.n, 4);
	assert_string_equal(w.m.notes.v[0], "c.json:1: a repository cannot set 'env'; ignored");
	assert_string_equal(w.m.notes.v[1], "c.json:2: a repository cannot set 'volume'; ignored");
	assert_string_equal(w.m.notes.v[2], "c.json:2: a repository cannot set 'root'; ignored");
	assert_string_equal(w.m.notes.v[3], "c.json:2: a repository cannot set 'setup'; ignored");
	close_world(&w);
}

/* No ceiling, and no key, can make any part of a spec wider: all pairs of values of all keys. */
static void test_a_ceiling_never_widens(void **state)
{
	static const char *const values[][3] = {
		{ "network", "none", "host" },
		{ "user", "user", "root" },
		{ "git", "pinned", "rw" },
		{ "min-level", "full", "no-cgroup" },
		{ "memory", "4M", "8M" },
		{ "memory", "8M", "8M?" },
		{ "memory", "8M", "unlimited" },
		{ "swap", "0", "1G" },
		{ "pids-limit", "5", "unlimited" },
		{ "timeout", "1ms", "1h" },
		{ "idle-timeout", "1s", "unlimited" },
		{ "lifetime", "1s", "2s" },
		{ "max-sessions", "1", "unlimited" },
		{ "cpus", "0.5", "64" },
		{ "open-files", "16", "17" },
		{ "output", "1", "1G" },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(values); i++) {
		CM_AUTO_FREE char *tight = cm_asprintf("--%s=%s", values[i][0], values[i][1]);
		CM_AUTO_FREE char *loose =
			cm_asprintf("{\"%s\": \"%s\"}", values[i][0], values[i][2]);
		CM_AUTO_FREE char *expected = cm_asprintf("%s=%s", values[i][0], values[i][1]);
		struct world w;

		open_world(&w);
		assert_int_equal(lay_flags(&w, tight), CM_OK);
		assert_int_equal(lay_ceiling(&w, loose, true), CM_OK);
		assert_dump(&w, expected);
		close_world(&w);
	}
}

/* What holds for the session's network holds for that of its setup. */
static void test_ceiling_of_setup(void **state)
{
	static const struct {
		const char *flags;
		const char *ceiling;
		enum cm_network setup;
	} rows[] = {
		{ "--setup-network host", "{\"network\": \"none\"}", CM_NETWORK_NONE },
		{ "--setup-network host", "{\"setup-network\": \"none\"}", CM_NETWORK_NONE },
		{ "--network host", "{\"setup-network\": \"none\"}", CM_NETWORK_NONE },
		{ "--setup-network host", "{\"network\": \"host\"}", CM_NETWORK_HOST },
		{ "--setup-network none", "{\"setup-network\": \"host\"}", CM_NETWORK_NONE },
		{ "--network host", "{\"network\": \"none\"}", 0 },
		{ "--network host", "{\"setup-network\": \"internet\"}", CM_NETWORK_INTERNET },
		{ "--setup-network host", "{\"network\": \"internet\"}", CM_NETWORK_INTERNET },
		{ "--setup-network internet", "{\"network\": \"none\"}", CM_NETWORK_NONE },
		{ "", "{\"setup-network\": \"none\"}", 0 },
	};

	(void)state;
	for (size_t i = 0; i < 2 * CM_ARRAY_SIZE(rows); i++) {
		struct world w;

		open_world(&w);
		assert_int_equal(lay_flags(&w, rows[i / 2].flags), CM_OK);
		assert_int_equal(lay_ceiling(&w, rows[i / 2].ceiling, i % 2 != 0), CM_OK);
		if (w.spec.setup_network != rows[i / 2].setup)
			fail_msg("%s under %s: %u", rows[i / 2].flags, rows[i / 2].ceiling,
				 (unsigned int)w.spec.setup_network);
		close_world(&w);
	}
}

static void test_ceiling_without_common_processors(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	assert_int_equal(lay_flags(&w, "--cpuset 4-5"), CM_OK);
	assert_int_equal(lay_ceiling(&w, "{\"cpuset\": \"0-3\"}", false), CM_E_DENIED);
	assert_string_equal(w.err.msg, "c.json:1: cpuset '4-5' has nothing of '0-3'");
	assert_string_equal(w.spec.limits.cpuset, "4-5");
	close_world(&w);
}

static void test_cpusets(void **state)
{
	static const struct {
		const char *list;
		const char *canonical;
	} lists[] = {
		{ "0", "0" },
		{ "8191", "8191" },
		{ "0-8191", "0-8191" },
		{ "1,1,1", "1" },
		{ "3,2,1", "1-3" },
		{ "63-64", "63-64" },
		{ "0,2,4-5", "0,2,4-5" },
	};
	static const char *const bad[] = { "",
					   ",",
					   "1,",
					   ",1",
					   "-",
					   "1-",
					   "-1",
					   "1-2-3",
					   "a",
					   "1 ",
					   " 1",
					   "0x1",
					   "99999999999999999999" };
	struct cm_cpuset set;

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(lists); i++) {
		struct cm_buf out;

		cm_buf_init(&out, 4096);
		assert_int_equal(cm_cpuset_parse(lists[i].list, "x", &set, NULL), CM_OK);
		cm_cpuset_format(&set, &out);
		assert_string_equal(out.data, lists[i].canonical);
		cm_buf_clear(&out);
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++)
		assert_int_equal(cm_cpuset_parse(bad[i], "x", &set, NULL), CM_E_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_later_wins),
		cmocka_unit_test(test_lists_grow),
		cmocka_unit_test(test_workspace_and_repo_replace_each_other),
		cmocka_unit_test(test_what_is_checked_out),
		cmocka_unit_test(test_a_password_of_a_repository),
		cmocka_unit_test(test_contradictions_name_the_file),
		cmocka_unit_test(test_what_follows),
		cmocka_unit_test(test_ceilings),
		cmocka_unit_test(test_ceiling_origins),
		cmocka_unit_test(test_a_repository_sets_nothing_else),
		cmocka_unit_test(test_a_ceiling_never_widens),
		cmocka_unit_test(test_ceiling_of_setup),
		cmocka_unit_test(test_ceiling_without_common_processors),
		cmocka_unit_test(test_cpusets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
