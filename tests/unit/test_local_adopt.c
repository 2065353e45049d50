/* SPDX-License-Identifier: Apache-2.0 */
/* Every option of `run` on a session that exists: it agrees, is the run's own, or is refused. */
#include "tests/unit/test_spec_env.h"

#include "providers/local/local_internal.h"
#include "runtime/base/alloc.h"

#define MAX_WORDS 16

struct row {
	enum cm_key key;
	/* options by which the session was made, and of the later run; words separated by '|' */
	const char *made;
	const char *again;
	/* "" : nothing is refused; else the value that the session has */
	const char *has;
};

static const struct row rows[] = {
	{ CM_KEY_WORKSPACE, "--workspace|/w", "--workspace|/w", "" },
	{ CM_KEY_WORKSPACE, "--workspace|/w:ro", "--workspace|/w:ro", "" },
	{ CM_KEY_WORKSPACE, "--workspace|/w", "", "" },
	{ CM_KEY_WORKSPACE, "--no-workspace", "--no-workspace", "" },
	{ CM_KEY_WORKSPACE, "", "--workspace|/w", "the session directory" },
	{ CM_KEY_WORKSPACE, "", "--no-workspace", "the session directory" },
	{ CM_KEY_WORKSPACE, "--no-workspace", "--workspace|/w", "none" },
	{ CM_KEY_WORKSPACE, "--workspace|/w", "--workspace|/v", "/w" },
	{ CM_KEY_WORKSPACE, "--workspace|/w", "--workspace|/w:ro", "writable" },
	{ CM_KEY_WORKSPACE, "--workspace|/w:ro", "--workspace|/w", "read-only" },
	{ CM_KEY_WORKSPACE, "--repo|/r", "--workspace|/r", "/r" },
	{ CM_KEY_READ_ONLY, "--read-only", "--read-only", "" },
	{ CM_KEY_READ_ONLY, "--read-only", "", "" },
	{ CM_KEY_READ_ONLY, "--workspace|/w:ro", "--read-only", "" },
	{ CM_KEY_READ_ONLY, "--workspace|/w|--read-only", "--workspace|/w|--read-only", "" },
	{ CM_KEY_READ_ONLY, "", "--no-read-only", "" },
	{ CM_KEY_READ_ONLY, "--read-only|-v|/a", "--read-only|-v|/a", "" },
	{ CM_KEY_READ_ONLY, "--workspace|/w:ro|-v|/a", "--read-only", "false" },
	{ CM_KEY_READ_ONLY, "", "--read-only", "false" },
	{ CM_KEY_READ_ONLY, "--repo|/r", "--repo|/r|--read-only", "false" },
	{ CM_KEY_READ_ONLY, "--read-only", "--no-read-only", "true" },
	{ CM_KEY_VOLUME, "-v|/a", "-v|/a", "" },
	{ CM_KEY_VOLUME, "-v|/a:/x:ro|-v|/b", "-v|/a:/x:ro", "" },
	{ CM_KEY_VOLUME, "-v|/a:/x:ro|-v|/b", "", "" },
	{ CM_KEY_VOLUME, "--read-only|-v|/a", "-v|/a:ro", "" },
	{ CM_KEY_VOLUME, "", "-v|/a", "none" },
	{ CM_KEY_VOLUME, "-v|/a:/x:ro|-v|/b", "-v|/b|-v|/c", "/a:/x:ro, /b" },
	{ CM_KEY_VOLUME, "-v|/a:/x", "-v|/b:/x", "/a:/x" },
	{ CM_KEY_VOLUME, "-v|/a:/x", "-v|/a:/y", "/a:/x" },
	{ CM_KEY_VOLUME, "-v|/a", "-v|/a:ro", "/a" },
	{ CM_KEY_VOLUME, "-v|/a:ro", "-v|/a", "/a:ro" },
	{ CM_KEY_MOUNT, "-v|/a:/x:ro", "--mount|type=bind,src=/a,dst=/x,ro", "" },
	{ CM_KEY_MOUNT, "--mount|type=bind,src=/a:b,dst=/x", "--mount|type=bind,src=/a:b,dst=/x",
	  "" },
	{ CM_KEY_VOLUME, "-v|/a:/x", "--mount|type=bind,src=/a,dst=/x,ro", "/a:/x" },
	{ CM_KEY_WORKDIR, "--workdir|/a", "--workdir|/b", "" },
	{ CM_KEY_REPO, "--repo|/r", "--repo|/r", "" },
	{ CM_KEY_REPO, "--repo|/r", "", "" },
	{ CM_KEY_REPO, "--repo|/r", "--repo|/s", "/r" },
	{ CM_KEY_REPO, "", "--repo|/r", "the session directory" },
	{ CM_KEY_REPO, "--workspace|/r", "--repo|/r", "/r" },
	{ CM_KEY_REF, "--repo|/r|--ref|a", "--repo|/r|--ref|a", "" },
	{ CM_KEY_REF, "--repo|/r|--ref|a", "--repo|/r", "" },
	{ CM_KEY_REF, "--repo|/r|--ref|a", "--repo|/r|--ref|b", "a" },
	{ CM_KEY_REF, "--repo|/r", "--repo|/r|--ref|b", "none" },
	{ CM_KEY_REF, "--repo|/r|--pr|3", "--repo|/r|--ref|b", "none" },
	{ CM_KEY_PR, "--repo|/r|--pr|3", "--repo|/r|--pr|3", "" },
	{ CM_KEY_PR, "--repo|/r|--pr|3", "--repo|/r", "" },
	{ CM_KEY_PR, "--repo|/r|--pr|3", "--repo|/r|--pr|4", "3" },
	{ CM_KEY_PR, "--repo|/r", "--repo|/r|--pr|3", "none" },
	{ CM_KEY_PR, "--repo|/r|--ref|a", "--repo|/r|--pr|3", "none" },
	{ CM_KEY_BRANCH, "--repo|/r|--branch|b", "--repo|/r|--branch|b", "" },
	{ CM_KEY_BRANCH, "--repo|/r|--branch|b|--from|v1", "--repo|/r|--branch|b", "" },
	{ CM_KEY_BRANCH, "--repo|/r|--branch|b|--pr|3", "--repo|/r", "" },
	{ CM_KEY_BRANCH, "--repo|/r|--branch|b", "--repo|/r|--branch|c", "b" },
	{ CM_KEY_BRANCH, "--repo|/r", "--repo|/r|--branch|b", "none" },
	{ CM_KEY_FROM, "--repo|/r|--branch|b|--from|v1", "--repo|/r|--branch|b|--from|v1", "" },
	{ CM_KEY_FROM, "--repo|/r|--branch|b|--from|v1", "--repo|/r|--branch|b|--from|v2", "v1" },
	{ CM_KEY_FROM, "--repo|/r|--branch|b", "--repo|/r|--branch|b|--from|v1", "none" },
	/* how much of the history is there is no question of what is worked on */
	{ CM_KEY_DEPTH, "--repo|/r|--depth|1", "--repo|/r|--depth|2", "" },
	{ CM_KEY_DEPTH, "--repo|/r|--depth|1", "--repo|/r", "" },
	{ CM_KEY_DEPTH, "--repo|/r", "--repo|/r|--depth|1", "" },
	{ CM_KEY_FILTER, "--repo|/r|--filter|blob:none", "--repo|/r|--filter|none", "" },
	{ CM_KEY_FILTER, "--repo|/r", "--repo|/r|--filter|blob:none", "" },
	/* but which of its files are there is */
	{ CM_KEY_LFS, "--repo|/r|--lfs", "--repo|/r|--lfs", "" },
	{ CM_KEY_LFS, "--repo|/r|--lfs", "--repo|/r", "" },
	{ CM_KEY_LFS, "--repo|/r", "--repo|/r|--lfs", "false" },
	{ CM_KEY_LFS, "--repo|/r|--lfs", "--repo|/r|--no-lfs", "true" },
	{ CM_KEY_SPARSE, "--repo|/r|--sparse|a|--sparse|b", "--repo|/r|--sparse|b|--sparse|a", "" },
	{ CM_KEY_SPARSE, "--repo|/r|--sparse|a", "--repo|/r", "" },
	{ CM_KEY_SPARSE, "--repo|/r|--sparse|a", "--repo|/r|--sparse|b", "a" },
	{ CM_KEY_SPARSE, "--repo|/r", "--repo|/r|--sparse|a", "none" },
	{ CM_KEY_SETUP_NETWORK, "--setup|a|--setup-network|none", "--setup|a|--setup-network|host",
	  "" },
	{ CM_KEY_SETUP_ENV, "--setup|a|--setup-env|A=1", "--setup|a|--setup-env|A=2", "" },
	{ CM_KEY_SETUP_SECRET, "--setup|a", "--setup|a|--setup-secret|A", "" },
	{ CM_KEY_SETUP_AGAIN, "--setup|a", "--setup|a|--setup-again", "" },
	/* told about, and not run */
	{ CM_KEY_SETUP, "--setup|a", "--setup|b", "" },
	/* the last that was named counts */
	{ CM_KEY_TEARDOWN, "--teardown|a", "--teardown|b", "" },
	{ CM_KEY_SESSION, "", "", "" },
	{ CM_KEY_LABEL, "--label|a=1|--label|b=2", "--label|a=1", "" },
	{ CM_KEY_LABEL, "--label|a=1", "", "" },
	{ CM_KEY_LABEL, "--label|a=1|-l|b=2", "--label|a=2", "a=1, b=2" },
	{ CM_KEY_LABEL, "--label|a=1", "--label|a=", "a=1" },
	{ CM_KEY_LABEL, "", "--label|a=1", "none" },
	/* each start's own */
	{ CM_KEY_RETENTION, "--retention|keep-last=1", "--retention|keep-last=2", "" },
	{ CM_KEY_MAX_SESSIONS, "--max-sessions|1", "--max-sessions|2", "" },
	{ CM_KEY_KEEP, "", "--keep", "" },
	/* the store's to say */
	{ CM_KEY_ROOT, "", "--root|/x", "" },
	{ CM_KEY_ENV, "-e|A=1", "-e|A=2", "" },
	{ CM_KEY_ENV_FILE, "", "", "" },
	{ CM_KEY_GIT_CREDENTIAL, "", "", "" },
	{ CM_KEY_SSH_KEY, "", "", "" },
	{ CM_KEY_SSH_AGENT, "", "", "" },
	{ CM_KEY_PASS_ENV, "", "--pass-env|X*", "" },
	{ CM_KEY_TIMEOUT, "--timeout|1s", "--timeout|2s", "" },
	{ CM_KEY_IDLE_TIMEOUT, "--idle-timeout|1m", "--idle-timeout|60s", "" },
	{ CM_KEY_IDLE_TIMEOUT, "--idle-timeout|1m", "", "" },
	{ CM_KEY_IDLE_TIMEOUT, "", "--idle-timeout|none", "" },
	{ CM_KEY_IDLE_TIMEOUT, "--idle-timeout|1m", "--idle-timeout|none", "1m" },
	{ CM_KEY_IDLE_TIMEOUT, "--idle-timeout|1m", "--idle-timeout|2m", "1m" },
	{ CM_KEY_IDLE_TIMEOUT, "", "--idle-timeout|2m", "none" },
	{ CM_KEY_LIFETIME, "--lifetime|1h", "--lifetime|60m", "" },
	{ CM_KEY_LIFETIME, "--lifetime|1h", "--lifetime|2h", "1h" },
	{ CM_KEY_MEMORY, "--memory|1G", "--memory|1024M", "" },
	{ CM_KEY_MEMORY, "--memory|1G", "--memory|1G?", "" },
	{ CM_KEY_MEMORY, "--memory|1G", "", "" },
	{ CM_KEY_MEMORY, "--memory|unlimited", "--memory|unlimited", "" },
	{ CM_KEY_MEMORY, "--memory|1G?", "--memory|1G", "1G?" },
	{ CM_KEY_MEMORY, "--memory|1G", "--memory|2G", "1G" },
	{ CM_KEY_MEMORY, "--memory|unlimited", "--memory|2G", "unlimited" },
	{ CM_KEY_MEMORY, "", "--memory|2G", "none" },
	{ CM_KEY_SWAP, "--swap|0", "--swap|0", "" },
	{ CM_KEY_SWAP, "--swap|1G", "--swap|0", "1G" },
	{ CM_KEY_SWAP, "", "--swap|0", "none" },
	{ CM_KEY_CPUS, "--cpus|1.5", "--cpus|1.5", "" },
	{ CM_KEY_CPUS, "--cpus|1.5", "--cpus|1", "1.5" },
	{ CM_KEY_CPUSET, "--cpuset|0,1", "--cpuset|0-1", "" },
	{ CM_KEY_CPUSET, "--cpuset|0?", "--cpuset|0?", "" },
	{ CM_KEY_CPUSET, "--cpuset|0", "--cpuset|0?", "" },
	{ CM_KEY_CPUSET, "--cpuset|0?", "--cpuset|0", "0?" },
	{ CM_KEY_CPUSET, "--cpuset|0", "--cpuset|1", "0" },
	{ CM_KEY_CPUSET, "", "--cpuset|1", "none" },
	{ CM_KEY_PIDS_LIMIT, "--pids-limit|5", "--pids-limit|5", "" },
	{ CM_KEY_PIDS_LIMIT, "--pids-limit|5", "--pids-limit|4", "5" },
	{ CM_KEY_OPEN_FILES, "--open-files|50", "--ulimit|nofile=50", "" },
	{ CM_KEY_OPEN_FILES, "--open-files|50", "--open-files|51", "50" },
	{ CM_KEY_ULIMIT, "--open-files|50", "--ulimit|nofile=50", "" },
	{ CM_KEY_OPEN_FILES, "--open-files|50", "--ulimit|nofile=51", "50" },
	{ CM_KEY_OUTPUT, "--output|1M", "--output|2M", "" },
	{ CM_KEY_NETWORK, "--network|host", "--network|host", "" },
	{ CM_KEY_NETWORK, "--network|host", "", "" },
	{ CM_KEY_NETWORK, "", "--network|none", "" },
	{ CM_KEY_NETWORK, "--network|host", "--network|none", "host" },
	{ CM_KEY_NETWORK, "", "--network|host", "none" },
	{ CM_KEY_ROOTFS, "--rootfs|/a", "--rootfs|/a", "" },
	{ CM_KEY_ROOTFS, "--rootfs|/a", "--rootfs|/b", "/a" },
	{ CM_KEY_ROOTFS, "", "--rootfs|/b", "none" },
	{ CM_KEY_USER, "--user|root", "--user|root", "" },
	{ CM_KEY_USER, "--user|root", "--user|user", "root" },
	{ CM_KEY_USER, "", "--user|root", "user" },
	{ CM_KEY_GIT, "--git|rw", "--git|rw", "" },
	{ CM_KEY_GIT, "--git|rw", "--git|pinned", "rw" },
	{ CM_KEY_GIT, "", "--git|rw", "pinned" },
	{ CM_KEY_MIN_LEVEL, "", "--min-level|full", "" },
	{ CM_KEY_TTY, "", "--tty", "" },
	{ CM_KEY_INTERACTIVE, "", "--interactive", "" },
	{ CM_KEY_DETACH, "", "--detach", "" },
	{ CM_KEY_JSON, "", "--json", "" },
	{ CM_KEY_RESULT, "", "--result|fd:3", "" },
	{ CM_KEY_FAILURE_EXIT, "", "--failure-exit|3", "" },
	{ CM_KEY_QUIET, "", "--quiet", "" },
	{ CM_KEY_VERBOSE, "", "--verbose", "" },
	{ CM_KEY_POLICY, "", "", "" },
	{ CM_KEY_PROFILE, "", "", "" },
	/* which were followed, or refused, before */
	{ CM_KEY_PROVIDER, "", "--provider|local", "" },
	{ CM_KEY_TEMPLATE, "", "", "" },
	{ CM_KEY_COMMAND, "", "-c|true", "" },
	{ CM_KEY_HELP, "", "", "" },
};

/* The caller clears it. */
static void parse(const char *line, bool is_asked, struct cm_spec *ret)
{
	CM_AUTO_FREE char *copy = cm_strdup(line);
	CM_AUTO_LAYER struct cm_layer layer = { 0 };
	struct cm_merge m = { .spec = ret, .caller = &test_caller, .is_asked = is_asked };
	struct cm_error err = CM_ERROR_INIT;
	char *words[MAX_WORDS];
	int n = 0;
	int r;

	for (char *rest = copy; rest && *line != '\0';)
		words[n++] = strsep(&rest, "|");
	cm_spec_init(ret);
	ret->session_id = strdup("s");
	r = cm_flags_parse(n, words, &layer, &err);
	if (r == CM_OK)
		r = cm_merge_layer(&m, &layer, &err);
	if (r == CM_OK)
		r = cm_merge_check(&m, &err);
	if (r != CM_OK)
		fail_msg("'%s': %s", line, err.msg);
	cm_merge_finish(&m);
	cm_merge_clear(&m);
}

/* A session as it is after it was made by `made`, asked for again by `again`. */
static struct cm_config config;

static void open_session(struct cm_local *l, const char *made, const char *again, bool is_asked)
{
	struct cm_session_record *record = &l->session.record;
	struct cm_spec spec;

	cm_local_init(l);
	l->config = &config;
	cm_session_record_init(record);
	parse(made, true, &spec);
	assert_int_equal(cm_local_record(&spec, record, NULL), CM_OK);
	record->id = strdup("s");
	record->setup_digest = cm_local_setup_digest(&spec.setup);
	record->generation = 1;
	cm_spec_clear(&spec);
	parse(again, is_asked, &l->spec);
}

static void close_session(struct cm_local *l)
{
	cm_session_record_clear(&l->session.record);
	cm_spec_clear(&l->spec);
}

/* All that a session keeps, as text. */
static char *kept(const struct cm_spec *spec)
{
	CM_AUTO_ORIGINS struct cm_origins all = { 0 };
	struct cm_spec had;
	struct cm_spec copy;
	char *dump;

	cm_spec_init(&had);
	assert_int_equal(cm_spec_copy(&copy, spec), CM_OK);
	cm_local_take_over(&had, &copy);
	for (unsigned int key = 0; key < CM_KEY_COUNT; key++)
		assert_int_equal(cm_strv_add(&all.of[key], "-"), CM_OK);
	dump = test_dump(&had, &all);
	cm_spec_clear(&copy);
	cm_spec_clear(&had);
	return dump;
}

static void assert_has(const struct cm_local *l, const char *made, const char *again)
{
	struct cm_spec spec;
	CM_AUTO_FREE char *is = kept(&l->spec);
	CM_AUTO_FREE char *was = NULL;
	bool all;

	parse(made, true, &spec);
	/* what is all read-only is that whichever options said so */
	all = spec.is_workspace_read_only;
	for (size_t i = 0; i < spec.n_volumes; i++)
		all = all && spec.volumes[i].is_read_only;
	spec.is_read_only = all;
	was = kept(&spec);
	cm_spec_clear(&spec);
	if (strcmp(is, was) != 0)
		fail_msg("made '%s', again '%s': has '%s', not '%s'", made, again, is, was);
}

static void check_row(const struct row *row)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_local l;
	char msg[256];
	int r;

	open_session(&l, row->made, row->again, true);
	r = cm_local_adopt(&l, &err);
	if (row->has[0] == '\0') {
		if (r != CM_OK)
			fail_msg("made '%s', again '%s': %s", row->made, row->again, err.msg);
		assert_has(&l, row->made, row->again);
	} else {
		if (r != CM_E_EXISTS)
			fail_msg("made '%s', again '%s': not refused", row->made, row->again);
		(void)snprintf(msg, sizeof(msg), "session 's' was made with another --%s: '%s'",
			       cm_key_info(row->key)->name, row->has);
		assert_string_equal(err.msg, msg);
		assert_non_null(strstr(err.hint, "a session's is set when it is made"));
	}
	close_session(&l);
}

static void test_options(void **state)
{
	bool is_covered[CM_KEY_COUNT] = { false };

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		check_row(&rows[i]);
		is_covered[rows[i].key] = true;
	}
	for (unsigned int key = 0; key < CM_KEY_COUNT; key++) {
		if (!is_covered[key])
			fail_msg("nothing is said of --%s", cm_key_info((enum cm_key)key)->name);
	}
}

/* What configuration files say is for sessions yet to be made. */
static void test_configuration(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		struct cm_error err = CM_ERROR_INIT;
		struct cm_local l;

		open_session(&l, rows[i].made, rows[i].again, false);
		if (cm_local_adopt(&l, &err) != CM_OK)
			fail_msg("made '%s', configured '%s': %s", rows[i].made, rows[i].again,
				 err.msg);
		assert_has(&l, rows[i].made, rows[i].again);
		close_session(&l);
	}
}

/* An address is the same however it is written; what is in a record may be older than its reader. */
static void test_address(void **state)
{
	static const struct {
		const char *recorded;
		const char *again;
		bool is_same;
	} urls[] = {
		{ "https://example.org/r", "https://example.org/r", true },
		{ "HTTPS://Example.ORG:443/r", "https://example.org/r", true },
		{ "https://someone:secret@example.org/r", "https://example.org/r", true },
		{ "git@example.org:r", "ssh://git@example.org/r", false },
		{ "file:///r", "/r", true },
		{ "https://example.org/r", "https://example.org/s", false },
		{ "https://example.org/r", "http://example.org/r", false },
		{ "https://example.org/r", "https://example.org:444/r", false },
		/* what cannot be read is another, and the session can be used nonetheless */
		{ "https://", "https://example.org/r", false },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(urls); i++) {
		CM_AUTO_FREE char *again = cm_asprintf("--repo|%s", urls[i].again);
		struct cm_error err = CM_ERROR_INIT;
		struct cm_local l;
		int r;

		open_session(&l, "--repo|/r", again, true);
		free(l.session.record.repo);
		l.session.record.repo = strdup(urls[i].recorded);
		r = cm_local_adopt(&l, &err);
		if (r != (urls[i].is_same ? CM_OK : CM_E_EXISTS))
			fail_msg("%s is %s: %d, %s", urls[i].recorded, urls[i].again, r, err.msg);
		assert_null(strstr(err.msg, "secret"));
		close_session(&l);
		open_session(&l, "--repo|/r", "", true);
		free(l.session.record.repo);
		l.session.record.repo = strdup(urls[i].recorded);
		assert_int_equal(cm_local_adopt(&l, &err), CM_OK);
		close_session(&l);
	}
}

/* Is anything run, and what does the record say then that the session was set up with? */
static void assert_setup(const char *made, enum cm_setup_state was, const char *again,
			 enum cm_setup_state is, size_t n_left, bool is_new_digest)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *digest = NULL;
	struct cm_local l;

	open_session(&l, made, again, true);
	l.session.record.setup_state = was;
	digest = is_new_digest ? cm_local_setup_digest(&l.spec.setup)
			       : cm_strdup(l.session.record.setup_digest);
	assert_int_equal(cm_local_adopt(&l, &err), CM_OK);
	assert_int_equal(l.session.record.setup_state, is);
	assert_int_equal(l.spec.setup.n, n_left);
	assert_int_equal(cm_local_needs_setup(&l), n_left > 0 && is == CM_SETUP_NONE);
	assert_string_equal(l.session.record.setup_digest, digest);
	close_session(&l);
}

static void test_setup(void **state)
{
	(void)state;
	assert_setup("--setup|a", CM_SETUP_DONE, "--setup|a", CM_SETUP_DONE, 1, false);
	assert_setup("--setup|a", CM_SETUP_DONE, "--setup|b", CM_SETUP_DONE, 0, false);
	assert_setup("--setup|a", CM_SETUP_FAILED, "--setup|a", CM_SETUP_FAILED, 0, false);
	assert_setup("--setup|a", CM_SETUP_NONE, "--setup|b", CM_SETUP_NONE, 1, true);
	assert_setup("--setup|a", CM_SETUP_DONE, "--setup|a|--setup-again", CM_SETUP_NONE, 1, true);
	assert_setup("--setup|a", CM_SETUP_DONE, "--setup|b|--setup-again", CM_SETUP_NONE, 1, true);
	assert_setup("--setup|a", CM_SETUP_FAILED, "--setup|a|--setup|b|--setup-again",
		     CM_SETUP_NONE, 2, true);
	assert_setup("", CM_SETUP_NONE, "--setup|b|--setup-again", CM_SETUP_NONE, 1, true);
}

static void assert_level(bool is_running, const char *made, const char *level, const char *again,
			 const char *msg)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_local l;
	int r;

	open_session(&l, made, again, true);
	l.is_running = is_running;
	l.session.record.level = level ? strdup(level) : NULL;
	r = cm_local_adopt(&l, &err);
	assert_int_equal(r, msg ? CM_E_LEVEL : CM_OK);
	assert_string_equal(err.msg, msg ? msg : "");
	close_session(&l);
}

static void test_level(void **state)
{
	(void)state;
	assert_level(false, "", "no-cgroup", "--min-level|full", NULL);
	assert_level(true, "", "no-cgroup", "", NULL);
	assert_level(true, "", "full-single-id", "--min-level|full", NULL);
	assert_level(true, "", "no-cgroup-single-id", "--min-level|full",
		     "session 's' runs at level 'no-cgroup-single-id'");
	assert_level(true, "--network|host", "full+hostnet", "--min-level|full",
		     "session 's' runs at level 'full+hostnet'");
	assert_level(true, "", NULL, "--min-level|full", "session 's' runs at level 'unknown'");
}

struct ceiling {
	enum cm_key key;
	const char *made;
	const char *value;
	/* what it has before and below the ceiling, as text */
	const char *was;
	const char *is;
};

static const struct ceiling ceilings[] = {
	{ CM_KEY_READ_ONLY, "-v|/a", "true", "false", "true" },
	{ CM_KEY_IDLE_TIMEOUT, "--idle-timeout|1h", "30m", "1h", "30m" },
	{ CM_KEY_IDLE_TIMEOUT, "", "30m", "none", "30m" },
	{ CM_KEY_LIFETIME, "--lifetime|2d", "1d", "2d", "1d" },
	{ CM_KEY_MEMORY, "--memory|4G", "2G", "4G", "2G" },
	{ CM_KEY_MEMORY, "", "2G", "none", "2G" },
	{ CM_KEY_MEMORY, "--memory|1G?", "2G", "1G?", "1G" },
	{ CM_KEY_SWAP, "--swap|4G", "1G", "4G", "1G" },
	{ CM_KEY_CPUS, "--cpus|2", "1", "2", "1" },
	{ CM_KEY_CPUSET, "--cpuset|0-3", "0-1", "0-3", "0-1" },
	{ CM_KEY_PIDS_LIMIT, "--pids-limit|50", "40", "50", "40" },
	{ CM_KEY_OPEN_FILES, "--open-files|50", "40", "50", "40" },
	{ CM_KEY_NETWORK, "--network|host", "none", "host", "none" },
	{ CM_KEY_USER, "--user|root", "user", "root", "user" },
	{ CM_KEY_GIT, "--git|rw", "pinned", "rw", "pinned" },
};

static char last_note[512];

static void take_note(void *data, const char *text)
{
	(void)data;
	(void)snprintf(last_note, sizeof(last_note), "%s", text);
}

static void assert_value(const struct cm_local *l, const struct ceiling *c, const char *value)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };

	cm_buf_init(&text, 4096);
	cm_local_describe(cm_key_info(c->key), &l->spec, &text);
	if (strcmp(text.data, value) != 0)
		fail_msg("--%s is '%s' and not '%s'", cm_key_info(c->key)->name, text.data, value);
}

/* A session from before the ceiling: stopped, then running as it was, then started below it. */
static void check_ceiling(const struct ceiling *c)
{
	const char *name = cm_key_info(c->key)->name;
	struct cm_error err = CM_ERROR_INIT;
	struct cm_local l;
	char want[256];

	open_session(&l, c->made, c->made, true);
	assert_int_equal(cm_local_record_start(&l.spec, &l.session.record, NULL), CM_OK);
	l.is_running = true;
	assert_int_equal(cm_local_check_bounds(&l, &err), CM_OK);
	assert_int_equal(cm_layer_add(&config.system.ceiling, c->key, c->value, name, "/f:1", NULL),
			 CM_OK);
	assert_int_equal(cm_local_adopt(&l, &err), CM_OK);
	assert_int_equal(cm_local_check_bounds(&l, &err), CM_E_DENIED);
	(void)snprintf(want, sizeof(want),
		       "session 's' runs with more than /f:1 (ceiling) allows: --%s '%s'", name,
		       c->was);
	assert_string_equal(err.msg, want);
	close_session(&l);

	/* what was asked for when it was made is no contradiction now */
	open_session(&l, c->made, c->made, true);
	l.events.note = take_note;
	assert_int_equal(cm_local_adopt(&l, &err), CM_OK);
	assert_value(&l, c, c->was);
	assert_int_equal(cm_local_bound(&l, &err), CM_OK);
	assert_value(&l, c, c->is);
	(void)snprintf(want, sizeof(want),
		       "session 's' was made with --%s '%s'; /f:1 (ceiling): it starts with '%s'",
		       name, c->was, c->is);
	assert_string_equal(last_note, want);
	assert_int_equal(cm_local_record_start(&l.spec, &l.session.record, NULL), CM_OK);
	l.is_running = true;
	assert_int_equal(cm_local_adopt(&l, &err), CM_OK);
	assert_int_equal(cm_local_check_bounds(&l, &err), CM_OK);
	assert_value(&l, c, c->is);
	cm_layer_clear(&config.system.ceiling);
	close_session(&l);
}

static void test_ceilings(void **state)
{
	bool is_covered[CM_KEY_COUNT] = { false };

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(ceilings); i++) {
		check_ceiling(&ceilings[i]);
		is_covered[ceilings[i].key] = true;
	}
	for (unsigned int key = 0; key < CM_KEY_COUNT; key++) {
		const struct cm_key_info *info = cm_key_info((enum cm_key)key);

		if ((info->flags & CM_KEYF_CEILING) && cm_local_keeps(info->key) &&
		    !is_covered[key])
			fail_msg("no ceiling of --%s", info->name);
	}
}

static const char everything[] = "--repo|https://example.org/r|--branch|b|--from|v1|--rootfs|/r|"
				 "--cpuset|0|--memory|1G|-v|/a|-v|/b:/c:ro";

/* Of what has no memory nothing is forgotten silently: it fails. */
static void test_allocations(void **state)
{
	long n = 0;
	int r;

	(void)state;
	do {
		struct cm_error err = CM_ERROR_INIT;
		struct cm_session_record record;
		struct cm_spec spec;

		cm_session_record_init(&record);
		parse(everything, true, &spec);
		cm_alloc_fail_after(n);
		r = cm_local_record(&spec, &record, &err);
		cm_alloc_fail_after(-1);
		assert_true(r == CM_OK || r == CM_E_NOMEM);
		cm_session_record_clear(&record);
		cm_spec_clear(&spec);
		n++;
	} while (r != CM_OK);
	assert_true(n > 3);
	n = 0;
	do {
		struct cm_error err = CM_ERROR_INIT;
		struct cm_local l;

		open_session(&l, everything, "", true);
		cm_alloc_fail_after(n++);
		r = cm_local_adopt(&l, &err);
		cm_alloc_fail_after(-1);
		assert_true(r == CM_OK || r == CM_E_NOMEM);
		if (r == CM_OK)
			assert_has(&l, everything, "");
		close_session(&l);
	} while (r != CM_OK);
	assert_true(n > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options),	    cmocka_unit_test(test_configuration),
		cmocka_unit_test(test_address),	    cmocka_unit_test(test_setup),
		cmocka_unit_test(test_level),	    cmocka_unit_test(test_ceilings),
		cmocka_unit_test(test_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
