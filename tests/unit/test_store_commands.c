/* SPDX-License-Identifier: Apache-2.0 */
/* ls, inspect, stop and rm: what they print and do, with stand-ins behind stop and rm. */
#include "providers/local/local.h"
#include "providers/local/measure.h"
#include "providers/local/unsaved.h"
#include "runtime/base/json.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/run.h"
#include "tests/unit/test_store_env.h"

#include <time.h>

struct bench {
	struct env *env;
	struct cm_cli cli;
	int status;
	char out[16384];
	char err[16384];
};

/* what the stand-in for a keeper holds; the process is the session's keeper */
static int keeper_fd = -1;
static int n_stops;

int cm_local_stop(struct cm_store_session *s, int64_t deadline_ms, struct cm_error *err)
{
	struct cm_end_record end = { .generation = s->record.generation,
				     .reason = CM_ENDED_STOPPED,
				     .real_ms = cm_clock_real_ms() };

	(void)err;
	assert_true(deadline_ms > cm_clock_mono_ms());
	assert_true(s->lock_fd >= 0);
	n_stops++;
	assert_int_equal(cm_store_write_end(s->dir_fd, &end), 0);
	cm_fd_close(&keeper_fd);
	return CM_OK;
}

/* What root inside leaves needs a jail to be removed; here nothing is. */
int cm_local_remove(struct cm_store *store, struct cm_store_session *s, bool with_files,
		    const struct cm_config *config, struct cm_error *err)
{
	assert_non_null(config);
	return cm_store_session_remove(store, s, with_files, err);
}

void cm_local_usage(const struct cm_store_session *s, struct cm_local_usage *ret)
{
	(void)s;
	*ret = (struct cm_local_usage){
		.has_memory = true, .has_tasks = true, .memory_bytes = 3 << 20, .is_active = true
	};
}

/* What a jail would say: of sessions whose name begins so. */
int cm_local_check_unsaved(struct cm_store_session *s, const struct cm_config *config,
			   unsigned int look_ms, struct cm_error *err)
{
	assert_int_equal(look_ms, 0);
	assert_non_null(config);
	assert_true(s->lock_fd >= 0);
	if (strncmp(s->record.id, "dirty", 5) != 0)
		return CM_OK;
	return cm_error_set(err, CM_E_EXISTS, 0, "'%s' has 1 stash", s->session_dir);
}

/* Of one that runs: half a gigabyte, and half a processor. */
int cm_local_measure(const struct cm_store_session *s, int64_t deadline_ms,
		     struct cm_local_measure *ret, struct cm_error *err)
{
	static uint64_t n_looks;

	(void)err;
	assert_true(deadline_ms > cm_clock_mono_ms());
	if (!cm_store_keeper_alive(s))
		return CM_E_NOT_FOUND;
	n_looks++;
	*ret = (struct cm_local_measure){ .generation = 1,
					  .memory_bytes = 512UL << 20,
					  .memory_max_bytes = CM_USAGE_UNKNOWN,
					  .cpu_max_milli = 1500,
					  .cpu_us = n_looks * 500,
					  .at_us = (int64_t)(n_looks * 1000) };
	return CM_OK;
}

double cm_local_measure_percent(const struct cm_local_measure *before,
				const struct cm_local_measure *after)
{
	if (before->generation == 0)
		return -1;
	return (double)(after->cpu_us - before->cpu_us) * 100 /
	       (double)(after->at_us - before->at_us);
}

void cm_local_measure_disk(const struct cm_store_session *s, struct cm_local_disk *ret)
{
	(void)s;
	ret->bytes = 7UL << 20;
}

/* The table of commands names those that need a jail, which this program does without. */
const struct cm_command cm_commands[] = { { .name = NULL } };

int cm_cli_run_command(struct cm_cli *cli, const struct cm_command *command,
		       const struct cm_selection *selection, int argc, char **argv)
{
	(void)selection;
	return command->run(cli, argc, argv);
}

const struct cm_command *cm_command_find(const char *name)
{
	(void)name;
	return NULL;
}

int cm_cli_teardown(const struct cm_spec *spec, struct cm_cli *cli)
{
	(void)spec;
	(void)cli;
	fail_msg("no session here has a teardown");
	return 0;
}

int cm_command_unknown(const char *name, struct cm_error *err)
{
	return cm_error_set(err, CM_E_INVALID, 0, "unknown command '%s'", name);
}

/* The configuration reads the process's own environment. */
static void set_environment(const struct env *e)
{
	char home[80];

	(void)snprintf(home, sizeof(home), "%s/home", e->dir);
	assert_int_equal(clearenv(), 0);
	assert_int_equal(setenv("PATH", "/usr/bin:/bin", 1), 0);
	assert_int_equal(setenv("HOME", home, 1), 0);
	for (size_t i = 0; i < e->vars.n; i++)
		assert_int_equal(putenv(e->vars.v[i]), 0);
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	void *env = NULL;

	assert_non_null(b);
	(void)env_setup(&env);
	b->env = env;
	b->cli.prog = "casemate";
	b->cli.failure_exit = CM_EXIT_FAILURE;
	set_environment(b->env);
	assert_int_equal(cm_config_init(&b->cli.config, NULL), CM_OK);
	n_stops = 0;
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;
	void *env = b->env;

	cm_fd_close(&keeper_fd);
	cm_config_clear(&b->cli.config);
	assert_int_equal(clearenv(), 0);
	(void)env_teardown(&env);
	free(b);
	return 0;
}

static int redirect(int fd, const char *dir, const char *name)
{
	char path[128];
	int saved = fcntl(fd, F_DUPFD_CLOEXEC, 10);
	int to;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	to = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(saved >= 0 && to >= 0);
	assert_int_equal(dup2(to, fd), fd);
	(void)close(to);
	return saved;
}

static void restore(int fd, int saved, const char *dir, const char *name, char *text, size_t size)
{
	char path[128];

	assert_int_equal(dup2(saved, fd), fd);
	(void)close(saved);
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_true(cm_read_file_at(AT_FDCWD, path, text, size) >= 0);
}

/* casemate WORDS, split at spaces; output and status are in b. */
static void run(struct bench *b, int (*command)(struct cm_cli *, int, char **), const char *words)
{
	char line[256];
	char *argv[16];
	int argc = 0;
	char *save = NULL;
	int out;
	int err;

	(void)snprintf(line, sizeof(line), "%s", words);
	for (char *w = strtok_r(line, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	argv[argc] = NULL;
	(void)fflush(stdout);
	out = redirect(STDOUT_FILENO, b->env->dir, "out");
	err = redirect(STDERR_FILENO, b->env->dir, "err");
	b->status = command(&b->cli, argc, argv);
	restore(STDOUT_FILENO, out, b->env->dir, "out", b->out, sizeof(b->out));
	restore(STDERR_FILENO, err, b->env->dir, "err", b->err, sizeof(b->err));
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no '%s' in: %s", part, text);
}

static void hasnt(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("'%s' in: %s", part, text);
}

/* The table has a line of this session, and it begins so. */
static void has_row(const char *table, const char *id, const char *state)
{
	size_t len = strlen(id);

	for (const char *line = table; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, id, len) != 0 || line[len] != ' ')
			continue;
		line += len + strspn(line + len, " ");
		if (strncmp(line, state, strlen(state)) == 0 && line[strlen(state)] == ' ')
			return;
	}
	fail_msg("no '%s' that is '%s' in: %s", id, state, table);
}

/* A session that tells much, started once, its keeper alive. */
static void make_running(struct bench *b, const char *id)
{
	struct cm_session_record r = env_record(id);
	struct cm_store_session s;

	r.generation = 1;
	r.level = (char *)(uintptr_t) "full-single-id";
	r.workspace_kind = CM_WORKSPACE_DIR;
	r.workspace = (char *)(uintptr_t) "/home/u/project\033[31m";
	r.is_workspace_read_only = true;
	r.settings_json = (char *)(uintptr_t) "{\"memory\":\"4G?\",\"pids\":100}";
	r.enforced_json = (char *)(uintptr_t) "{\"memory\":\"cgroup v1\",\"pids\":null}";
	r.setup_state = CM_SETUP_DONE;
	r.setup_ms = 1700000000000;
	r.setup_took_ms = 2500;
	assert_int_equal(cm_store_session_create(&b->env->store, &r, &s, NULL), CM_OK);
	assert_int_equal(cm_store_session_dir_make(&b->env->store, &s, NULL), CM_OK);
	cm_fd_close(&keeper_fd);
	assert_int_equal(cm_store_keeper_lock(s.dir_fd, &keeper_fd, NULL), CM_OK);
	cm_store_session_close(&s);
}

static void test_ls(void **state)
{
	struct bench *b = *state;
	struct cm_store_session temporary;

	run(b, cm_cmd_ls, "ls");
	assert_int_equal(b->status, 0);
	assert_string_equal(strstr(b->out, "WORKSPACE"), "WORKSPACE/REPO\n");
	run(b, cm_cmd_ls, "ls --json");
	assert_string_equal(b->out, "[]\n");
	run(b, cm_cmd_ls, "ls -q");
	assert_string_equal(b->out, "");

	make_running(b, "two");
	env_make(b->env, "one");
	assert_int_equal(env_create(b->env, "run-x", true, &temporary, NULL), CM_OK);
	run(b, cm_cmd_ls, "ls");
	has_row(b->out, "one", "created");
	has(b->out, "/.mastracode/web/sandboxes/one\n");
	has_row(b->out, "two", "running");
	has(b->out, "  full-single-id  ");
	has(b->out, "  active  3.0 MiB  ");
	/* what a repository's path can hold does not reach the terminal */
	has(b->out, "/home/u/project\\x1b[31m\n");
	hasnt(b->out, "run-x");
	run(b, cm_cmd_ls, "ls -q");
	assert_string_equal(b->out, "one\ntwo\n");
	run(b, cm_cmd_ls, "ls -aq");
	assert_string_equal(b->out, "one\nrun-x\ntwo\n");
	run(b, cm_cmd_ls, "ls --json");
	has(b->out, "\"id\": \"two\"");
	has(b->out, "\"status\": \"running\"");
	run(b, cm_cmd_ls, "ls --root /elsewhere -q");
	assert_string_equal(b->out, "");
	run(b, cm_cmd_ls, "ls one");
	assert_int_equal(b->status, CM_EXIT_FAILURE);
	has(b->err, "hint: ");
	cm_store_session_close(&temporary);
	/* its owner is gone, and so is what it left */
	run(b, cm_cmd_ls, "ls -aq");
	assert_string_equal(b->out, "one\ntwo\n");
	/* longer than its column, and still apart from the next */
	env_make(b->env, "a-name-of-more-than-twenty-four");
	run(b, cm_cmd_ls, "ls");
	has_row(b->out, "a-name-of-more-than-twenty-four", "created");
}

static void make_labelled(struct bench *b, const char *id, const char *label)
{
	struct cm_session_record r = env_record(id);
	struct cm_store_session s;

	assert_int_equal(cm_strv_add(&r.labels, label), CM_OK);
	r.repo = (char *)(uintptr_t) "https://example.org/app.git";
	assert_int_equal(cm_store_session_create(&b->env->store, &r, &s, NULL), CM_OK);
	cm_strv_clear(&r.labels);
	cm_store_session_close(&s);
}

static void test_ls_filters(void **state)
{
	static const struct {
		const char *options;
		const char *ids;
	} rows[] = {
		{ "-f state=created", "api\napp\nweb\n" },
		{ "-f state=running", "two\n" },
		{ "-f state=running -f state=created", "api\napp\ntwo\nweb\n" },
		{ "-f status=stopped", "" },
		{ "-f name=ap", "api\napp\n" },
		{ "-f name=*p", "app\n" },
		{ "-f name=ap -f name=t", "api\napp\ntwo\n" },
		{ "-f id=app", "app\n" },
		{ "-f label=team", "api\napp\nweb\n" },
		{ "-f label=team=a", "api\napp\n" },
		{ "-f label=team=", "" },
		{ "-f label=tea", "" },
		{ "-f label=team -f label=team=b", "web\n" },
		{ "-f label=team=a -f name=app", "app\n" },
		{ "-f level=full*", "two\n" },
		{ "-f level=full", "" },
		{ "-f repo=*/app.git", "api\napp\nweb\n" },
		{ "-f repo=app", "" },
		{ "-f root=/elsewhere", "" },
	};
	struct bench *b = *state;
	char line[128];

	make_running(b, "two");
	make_labelled(b, "app", "team=a");
	make_labelled(b, "api", "team=a");
	make_labelled(b, "web", "team=b");
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		(void)snprintf(line, sizeof(line), "ls -q %s", rows[i].options);
		run(b, cm_cmd_ls, line);
		assert_int_equal(b->status, 0);
		if (strcmp(b->out, rows[i].ids) != 0)
			fail_msg("%s: %s", rows[i].options, b->out);
	}
	run(b, cm_cmd_ls, "ls --json --filter name=web");
	has(b->out, "\"team\": \"b\"");
}

static void test_ls_bad_filters(void **state)
{
	static const struct {
		const char *options;
		const char *err;
	} rows[] = {
		{ "-f state", "filter 'state' is not KEY=VALUE" },
		{ "-f state=gone", "no session has the state 'gone'" },
		{ "-f age=3", "filter 'age=3' has an unknown key" },
		{ "-f label=a%b", "label 'a%b=': bad key" },
		{ "-f root=here", "a root must be an absolute path, not 'here'" },
		{ "--format {id} --json", "--format and --json contradict each other" },
		{ "--format x", "--format 'x' shows nothing of a session" },
		{ "--format json", "hint: use --json" },
		{ "--format {{.Names}}", "hint: for '{{.Names}}' write '{id}'" },
		{ "--format {{.Zyx}}", "hint: there are {id} {state}" },
		{ "--format {ids}", "--format: there is no '{ids}'" },
		{ "--format {id", "--format: '{id' has no '}'" },
		{ "--format {label.}", "--format: there is no '{label.}'" },
	};
	struct bench *b = *state;
	char line[128];

	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		(void)snprintf(line, sizeof(line), "ls %s", rows[i].options);
		run(b, cm_cmd_ls, line);
		assert_int_equal(b->status, CM_EXIT_FAILURE);
		assert_string_equal(b->out, "");
		has(b->err, rows[i].err);
		has(b->err, "hint: ");
	}
}

static void test_ls_format(void **state)
{
	struct bench *b = *state;

	make_running(b, "two");
	make_labelled(b, "web", "team=b");
	run(b, cm_cmd_ls, "ls --format {id}\\t{state}:{level}<{label.team}>{mem}\\\\n");
	assert_string_equal(b->out, "two\trunning:full-single-id<>3.0 MiB\\n\n"
				    "web\tcreated:-<b>-\\n\n");
	run(b, cm_cmd_ls, "ls --format {repo}|{workspace}");
	assert_string_equal(b->out, "-|/home/u/project\\x1b[31m\n"
				    "https://example.org/app.git|https://example.org/app.git\n");
	run(b, cm_cmd_ls, "ls --format {dir} -f name=web");
	has(b->out, "/web\n");
	/* only then are trees walked */
	run(b, cm_cmd_ls, "ls --format {disk} -f name=web");
	has(b->out, " KiB\n");
	run(b, cm_cmd_ls, "ls -f name=web");
	hasnt(b->out, "DISK");
	run(b, cm_cmd_ls, "ls -s -f name=web");
	has(b->out, "  DISK  ");
}

/* Stopped, and used last so many hours ago; its directory has a file. */
static void make_used(struct bench *b, const char *id, int hours, const char *label)
{
	struct timespec when[2] = { { .tv_nsec = UTIME_OMIT },
				    { .tv_sec = time(NULL) - hours * 3600 } };
	struct cm_session_record r = env_record(id);
	struct cm_store_session s;
	char path[200];

	r.created_ms = 1700000000000;
	r.generation = 1;
	if (label)
		assert_int_equal(cm_strv_add(&r.labels, label), CM_OK);
	assert_int_equal(cm_store_session_create(&b->env->store, &r, &s, NULL), CM_OK);
	cm_strv_clear(&r.labels);
	assert_int_equal(cm_store_session_dir_make(&b->env->store, &s, NULL), CM_OK);
	(void)snprintf(path, sizeof(path), "%s/file", s.session_dir);
	assert_int_equal(cm_replace_file_at(AT_FDCWD, path, "x", 1, 0600, false), 0);
	assert_int_equal(utimensat(s.dir_fd, "lock", when, 0), 0);
	cm_store_session_close(&s);
}

static bool has_files(struct bench *b, const char *id)
{
	char path[200];

	(void)snprintf(path, sizeof(path), "%s/%s/file", b->env->store.root, id);
	return access(path, F_OK) == 0;
}

static void test_prune_chooses(void **state)
{
	static const struct {
		const char *options;
		/* the longest unused first */
		const char *ids;
	} rows[] = {
		{ "--all", "d\nc\nb\na\nnew\n" },
		{ "--older-than 90m", "d\nc\nb\n" },
		{ "--older-than 20d", "" },
		{ "--keep-last 2", "d\nc\nb\n" },
		{ "--keep-last 9", "" },
		{ "--keep-last 4 --older-than 90m", "d\n" },
		{ "--label team", "c\na\n" },
		{ "--label team=x", "c\n" },
		{ "--label team --keep-last 1", "c\n" },
		{ "--state created", "new\n" },
		{ "--state stopped", "d\nc\nb\na\n" },
		{ "--state stopped --state created --older-than 150m", "d\nc\n" },
		{ "--filter name=c", "c\n" },
		{ "--root /elsewhere --all", "" },
	};
	struct bench *b = *state;
	char line[128];

	make_running(b, "running");
	env_make(b->env, "new");
	make_used(b, "a", 1, "team=y");
	make_used(b, "b", 2, NULL);
	make_used(b, "c", 3, "team=x");
	make_used(b, "d", 4, NULL);
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		(void)snprintf(line, sizeof(line), "prune -n %s", rows[i].options);
		run(b, cm_cmd_prune, line);
		if (b->status != 0 || strcmp(b->out, rows[i].ids) != 0)
			fail_msg("%s: %d, %s%s", rows[i].options, b->status, b->out, b->err);
	}
	/* nothing went, and nothing counts as used by it */
	run(b, cm_cmd_ls, "ls -q");
	assert_string_equal(b->out, "a\nb\nc\nd\nnew\nrunning\n");
	run(b, cm_cmd_prune, "prune --older-than 90m --keep-last 1");
	assert_string_equal(b->out, "d\nc\nb\n");
	has(b->err, "note: 3 sessions removed, ");
	run(b, cm_cmd_ls, "ls -q");
	assert_string_equal(b->out, "a\nnew\nrunning\n");
	/* as after rm, their directories stay and can be named */
	assert_true(has_files(b, "b"));
	run(b, cm_cmd_rm, "rm --files b");
	assert_int_equal(b->status, 0);
	assert_false(has_files(b, "b"));
}

static void test_prune_files(void **state)
{
	struct bench *b = *state;

	make_used(b, "dirty", 3, NULL);
	make_used(b, "clean", 3, NULL);
	run(b, cm_cmd_prune, "prune --all --files");
	assert_int_equal(b->status, 0);
	assert_string_equal(b->out, "clean\n");
	has(b->err, "note: session 'dirty' stays: '");
	has(b->err, "/dirty' has 1 stash\n");
	assert_false(has_files(b, "clean"));
	assert_true(has_files(b, "dirty"));
	run(b, cm_cmd_prune, "prune --all --files --json");
	assert_int_equal(b->status, 0);
	has(b->out, "\"removed\":[],\"kept\":[{\"id\":\"dirty\",\"code\":\"exists\"");
	/* without its files nothing is lost */
	run(b, cm_cmd_prune, "prune --all --json");
	has(b->out, "{\"dryRun\":false,\"removed\":[{\"id\":\"dirty\",\"bytes\":");
	has(b->out, "\"files\":false}],\"kept\":[],\"failed\":[],\"bytes\":");
	assert_true(has_files(b, "dirty"));
	make_used(b, "dirty2", 3, NULL);
	run(b, cm_cmd_prune, "prune --all --files --force -q");
	assert_string_equal(b->out, "dirty2\n");
	assert_string_equal(b->err, "");
	assert_false(has_files(b, "dirty2"));
}

/* Another command has it, or uses it just now. */
static void test_prune_in_use(void **state)
{
	struct bench *b = *state;
	struct cm_store_session s;

	make_used(b, "a", 3, NULL);
	assert_int_equal(cm_store_session_open(&b->env->store, "a", true, 0, &s, NULL), CM_OK);
	run(b, cm_cmd_prune, "prune --all");
	assert_string_equal(b->out, "");
	cm_store_session_touch(&s);
	cm_store_session_close(&s);
	run(b, cm_cmd_prune, "prune --older-than 2h");
	assert_string_equal(b->out, "");
	run(b, cm_cmd_prune, "prune --all");
	assert_string_equal(b->out, "a\n");
}

static void test_prune_refuses(void **state)
{
	static const struct {
		const char *options;
		const char *err;
	} rows[] = {
		{ "", "prune does not say which sessions are to go\nhint: give --older-than 7d" },
		{ "--files", "prune does not say which sessions are to go" },
		{ "--all --older-than 3d", "--all and a choice contradict each other" },
		{ "--all --force", "--force needs --files" },
		{ "--state running", "prune removes no session that runs" },
		{ "--state gone", "no session has the state 'gone'" },
		{ "--older-than soon", "--older-than must be a duration" },
		{ "--keep-last 0", "--keep-last must be 1 to" },
		{ "--filter x", "filter 'x' is not KEY=VALUE" },
		{ "a", "'a' is not an option of 'prune'\nhint: 'casemate rm a'" },
	};
	struct bench *b = *state;
	char line[128];

	make_used(b, "a", 3, NULL);
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		(void)snprintf(line, sizeof(line), "prune %s", rows[i].options);
		run(b, cm_cmd_prune, line);
		assert_int_equal(b->status, CM_EXIT_FAILURE);
		has(b->err, rows[i].err);
	}
	run(b, cm_cmd_ls, "ls -q");
	assert_string_equal(b->out, "a\n");
}

static void test_df(void **state)
{
	struct bench *b = *state;

	run(b, cm_cmd_df, "df");
	assert_int_equal(b->status, 0);
	has(b->out, "WHAT ");
	make_running(b, "running");
	make_used(b, "a", 3, NULL);
	make_used(b, "b", 3, NULL);
	run(b, cm_cmd_rm, "rm b");
	run(b, cm_cmd_df, "df --json");
	assert_int_equal(b->status, 0);
	has(b->out, "\"homes\": {\n    \"count\": 2,");
	has(b->out, "\"reclaimableCount\": 1,");
	has(b->out, "\"directories\": {\n    \"count\": 1,");
	has(b->out, "\"kept\": {\n    \"count\": 1,");
	run(b, cm_cmd_df, "df a");
	assert_int_equal(b->status, CM_EXIT_FAILURE);
}

static void damage(struct bench *b, const char *id)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "sessions/%s/state.json", id);
	assert_int_equal(cm_replace_file_at(b->env->store.state_fd, path, "{", 1, 0600, false), 0);
}

static void test_damaged(void **state)
{
	struct bench *b = *state;

	env_make(b->env, "a");
	env_make(b->env, "b");
	damage(b, "a");
	run(b, cm_cmd_ls, "ls");
	assert_int_equal(b->status, 0);
	has_row(b->out, "a", "error");
	has_row(b->out, "b", "created");
	has(b->err, "casemate rm a");
	run(b, cm_cmd_inspect, "inspect a");
	assert_int_equal(b->status, CM_EXIT_FAILURE);
	has(b->err, "is damaged");
	run(b, cm_cmd_stop, "stop a");
	assert_int_equal(b->status, 0);
	run(b, cm_cmd_rm, "rm a");
	assert_int_equal(b->status, 0);
	run(b, cm_cmd_ls, "ls -q");
	assert_string_equal(b->out, "b\n");
}

static void test_inspect(void **state)
{
	struct bench *b = *state;
	struct cm_json_doc *doc = NULL;
	const struct cm_json *root;

	make_running(b, "a");
	run(b, cm_cmd_inspect, "inspect a");
	assert_int_equal(b->status, 0);
	has(b->out, "status        running\n");
	has(b->out, "workspace     /home/u/project\\x1b[31m (read-only)\n");
	has(b->out, "setup         done (exit 0, 2.5 s)\n");
	has(b->out, "network       none\n");
	has(b->out, "enforced by\n  memory       cgroup v1\n  pids         null\n");
	run(b, cm_cmd_inspect, "inspect --json a");
	assert_int_equal(cm_json_parse(b->out, strlen(b->out), "out", 0, &doc, NULL), CM_OK);
	root = cm_json_root(doc);
	assert_string_equal(cm_json_str(root, "status", ""), "running");
	assert_string_equal(cm_json_str(cm_json_get(root, "enforced"), "memory", ""), "cgroup v1");
	assert_int_equal(cm_json_int(cm_json_get(root, "settings"), "pids", 0), 100);
	assert_string_equal(cm_json_str(cm_json_get(root, "workspace"), "kind", ""), "dir");
	assert_true(strlen(cm_json_str(cm_json_get(root, "directories"), "session", "")) > 0);
	assert_true(strlen(cm_json_str(root, "created", "")) > 0);
	assert_string_equal(cm_json_str(root, "createdAt", ""), cm_json_str(root, "created", ""));
	assert_string_equal(cm_json_str(root, "name", ""), "a");
	assert_string_equal(cm_json_str(root, "provider", ""), "local");
	/* as ls has it */
	assert_true(strlen(cm_json_str(root, "lastUsedAt", "")) > 0);
	assert_int_equal(cm_json_get(root, "timeoutAt")->type, CM_JSON_NULL);
	assert_string_equal(cm_json_str(cm_json_get(root, "metadata"), "platform", ""), "linux");
	assert_int_equal(cm_json_get(root, "lastEnd")->type, CM_JSON_NULL);
	cm_json_free(doc);

	run(b, cm_cmd_inspect, "inspect --plan a");
	assert_int_equal(b->status, CM_EXIT_FAILURE);
	has(b->err, "session 'a' has no plan");
	assert_int_equal(cm_replace_file_at(b->env->store.state_fd, "sessions/a/plan.txt",
					    "bind /usr\n", 10, 0600, false),
			 0);
	run(b, cm_cmd_inspect, "inspect --plan a");
	assert_string_equal(b->out, "bind /usr\n");
	run(b, cm_cmd_inspect, "inspect");
	assert_int_equal(b->status, CM_EXIT_FAILURE);
	has(b->err, "hint: ");
}

static void test_unknown_ids(void **state)
{
	struct bench *b = *state;
	int (*const commands[])(struct cm_cli *, int, char **) = { cm_cmd_inspect, cm_cmd_stop,
								   cm_cmd_rm };

	env_make(b->env, "a");
	env_make(b->env, "b");
	env_make(b->env, "c");
	for (size_t i = 0; i < CM_ARRAY_SIZE(commands); i++) {
		run(b, commands[i], "it x");
		assert_int_equal(b->status, CM_EXIT_FAILURE);
		assert_string_equal(
			b->err,
			"casemate: session 'x' not found\n"
			"hint: 'casemate ls' lists 3 sessions of yours (each user has their own); "
			"'casemate start x' makes one\n");
		run(b, commands[i], "it ../x");
		assert_int_equal(b->status, CM_EXIT_FAILURE);
		run(b, commands[i], "it");
		assert_int_equal(b->status, CM_EXIT_FAILURE);
		has(b->err, "hint: ");
	}
}

/* Member `key` of an object's member "resources" in the last output, as text. */
static void resource_is(const struct bench *b, const char *key, const char *want)
{
	char text[80];

	(void)snprintf(text, sizeof(text), "\"%s\": %s", key, want);
	has(strstr(b->out, "\"resources\""), text);
}

static void test_resources(void **state)
{
	struct bench *b = *state;

	env_make(b->env, "b");
	run(b, cm_cmd_inspect, "inspect --json b");
	resource_is(b, "memoryUsedMB", "null");
	resource_is(b, "cpuPercent", "null");
	resource_is(b, "diskUsedMB", "null");
	make_running(b, "a");
	run(b, cm_cmd_inspect, "inspect --json --size a");
	resource_is(b, "memoryMB", "null");
	resource_is(b, "memoryUsedMB", "512");
	resource_is(b, "cpuCores", "1.5");
	resource_is(b, "cpuPercent", "50");
	resource_is(b, "diskMB", "null");
	resource_is(b, "diskUsedMB", "7");
}

static void test_stop(void **state)
{
	struct bench *b = *state;

	make_running(b, "a");
	env_make(b->env, "b");
	run(b, cm_cmd_stop, "stop a b");
	assert_int_equal(b->status, 0);
	assert_int_equal(n_stops, 1);
	run(b, cm_cmd_ls, "ls");
	has_row(b->out, "a", "stopped");
	run(b, cm_cmd_inspect, "inspect a");
	has(b->out, "last end      stopped at ");
	/* again is no error */
	run(b, cm_cmd_stop, "stop a");
	assert_int_equal(b->status, 0);
	assert_int_equal(n_stops, 1);
}

static void test_rm(void **state)
{
	struct bench *b = *state;
	char dir[160];

	make_running(b, "a");
	env_make(b->env, "b");
	env_make(b->env, "c");
	(void)snprintf(dir, sizeof(dir), "%s/home/.mastracode/web/sandboxes/a", b->env->dir);
	/* one that is not there hinders none of the others */
	run(b, cm_cmd_rm, "rm x a b");
	assert_int_equal(b->status, CM_EXIT_FAILURE);
	has(b->err, "session 'x' not found");
	assert_int_equal(n_stops, 1);
	run(b, cm_cmd_ls, "ls -q");
	assert_string_equal(b->out, "c\n");
	assert_int_equal(access(dir, F_OK), 0);
	make_running(b, "a");
	run(b, cm_cmd_rm, "rm --files a");
	assert_int_equal(b->status, 0);
	assert_int_equal(n_stops, 2);
	assert_int_equal(access(dir, F_OK), -1);
}

/* A session with a file in its directory below root (NULL: the usual one), removed without it. */
static void make_kept(struct bench *b, const char *id, char *root)
{
	struct cm_session_record r = env_record(id);
	struct cm_store_session s;
	char line[160];
	int fd;

	r.root = root;
	assert_int_equal(cm_store_session_create(&b->env->store, &r, &s, NULL), CM_OK);
	assert_int_equal(cm_store_session_dir_make(&b->env->store, &s, NULL), CM_OK);
	fd = open(s.session_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(cm_replace_file_at(fd, "work", "x", 1, 0600, false), 0);
	(void)close(fd);
	cm_store_session_close(&s);
	(void)snprintf(line, sizeof(line), "rm %s", id);
	run(b, cm_cmd_rm, line);
	assert_int_equal(b->status, 0);
}

static void test_rm_kept(void **state)
{
	struct bench *b = *state;
	char root[128];
	char dir[160];
	char file[200];
	char note[512];

	(void)snprintf(root, sizeof(root), "%s/home/.mastracode/web/sandboxes", b->env->dir);
	(void)snprintf(dir, sizeof(dir), "%s/a", root);
	(void)snprintf(file, sizeof(file), "%s/work", dir);
	make_kept(b, "a", NULL);
	(void)snprintf(note, sizeof(note),
		       "note: files kept in '%s'; casemate rm --files a removes them\n", dir);
	assert_string_equal(b->err, note);
	run(b, cm_cmd_ls, "ls -aq");
	assert_string_equal(b->out, "");
	/* without --files there is nothing more to remove, and it says what there is */
	run(b, cm_cmd_rm, "rm a");
	assert_int_equal(b->status, CM_EXIT_FAILURE);
	(void)snprintf(note, sizeof(note),
		       "casemate: session 'a' not found\n"
		       "hint: its files are kept in '%s'; casemate rm --files a removes them\n",
		       dir);
	assert_string_equal(b->err, note);
	assert_int_equal(access(file, F_OK), 0);
	run(b, cm_cmd_rm, "rm --files a");
	assert_string_equal(b->err, "");
	assert_int_equal(b->status, 0);
	assert_int_equal(access(dir, F_OK), -1);
	assert_int_equal(access(root, F_OK), 0);
	assert_int_equal(env_entries(b->env, "state/casemate/kept"), 0);
	assert_int_equal(env_entries(b->env, "state/casemate/sessions"), 0);
	run(b, cm_cmd_rm, "rm --files a");
	assert_int_equal(b->status, CM_EXIT_FAILURE);
	has(b->err, "'casemate ls' lists 0 sessions");

	/* a session of the same name has them, and then they are gone with it */
	make_kept(b, "a", NULL);
	make_running(b, "a");
	run(b, cm_cmd_rm, "rm --files a");
	assert_int_equal(b->status, 0);
	assert_int_equal(access(dir, F_OK), -1);
	assert_int_equal(env_entries(b->env, "state/casemate/kept"), 0);
}

/* What never was a session's, or is not any more, stays, whatever its name. */
static void test_rm_not_kept(void **state)
{
	struct bench *b = *state;
	char root[128];
	char dir[160];
	char moved[160];
	char file[200];

	(void)snprintf(root, sizeof(root), "%s/home/.mastracode/web/sandboxes", b->env->dir);
	(void)snprintf(dir, sizeof(dir), "%s/a", root);
	(void)snprintf(moved, sizeof(moved), "%s/moved", b->env->dir);
	(void)snprintf(file, sizeof(file), "%s/work", moved);
	make_kept(b, "a", NULL);
	run(b, cm_cmd_rm, "rm --files ../sandboxes/a");
	assert_int_equal(b->status, CM_EXIT_FAILURE);
	has(b->err, "bad session id");
	assert_int_equal(rename(dir, moved), 0);
	/* another directory, made by hand */
	assert_int_equal(mkdir(dir, 0700), 0);
	run(b, cm_cmd_rm, "rm --files a");
	assert_int_equal(b->status, CM_EXIT_FAILURE);
	has(b->err, "session 'a' not found");
	assert_int_equal(access(dir, F_OK), 0);
	assert_int_equal(access(file, F_OK), 0);
	/* the note went with what it was about */
	assert_int_equal(env_entries(b->env, "state/casemate/kept"), 0);
	assert_int_equal(rmdir(dir), 0);

	/* a link to the very directory */
	make_kept(b, "a", NULL);
	assert_int_equal(cm_remove_tree_at(AT_FDCWD, moved), 0);
	assert_int_equal(rename(dir, moved), 0);
	assert_int_equal(symlink(moved, dir), 0);
	run(b, cm_cmd_rm, "rm --files a");
	assert_int_equal(b->status, CM_EXIT_FAILURE);
	assert_int_equal(access(file, F_OK), 0);
	assert_int_equal(unlink(dir), 0);

	/* a session that worked elsewhere has no files there */
	assert_int_equal(mkdir(dir, 0700), 0);
	make_running(b, "a");
	run(b, cm_cmd_rm, "rm a");
	assert_int_equal(b->status, 0);
	run(b, cm_cmd_rm, "rm --files a");
	assert_int_equal(b->status, CM_EXIT_FAILURE);
	assert_int_equal(access(dir, F_OK), 0);
}

static void test_rm_kept_elsewhere(void **state)
{
	struct bench *b = *state;
	char root[128];
	char line[256];
	char dir[160];

	(void)snprintf(root, sizeof(root), "%s/r", b->env->dir);
	(void)snprintf(dir, sizeof(dir), "%s/a", root);
	make_kept(b, "a", root);
	(void)snprintf(line, sizeof(line), "casemate rm --files --root %s a removes them\n", root);
	has(b->err, line);
	/* an id can have left files below each root */
	make_kept(b, "a", NULL);
	hasnt(b->err, "--root");
	run(b, cm_cmd_rm, "rm --files a");
	assert_int_equal(b->status, 0);
	assert_int_equal(access(dir, F_OK), 0);
	run(b, cm_cmd_rm, "rm --files a");
	assert_int_equal(b->status, CM_EXIT_FAILURE);
	has(b->err, line);
	assert_int_equal(access(dir, F_OK), 0);
	(void)snprintf(line, sizeof(line), "rm --files --root %s a", root);
	run(b, cm_cmd_rm, line);
	assert_int_equal(b->status, 0);
	assert_int_equal(access(dir, F_OK), -1);
}

/* What cannot be removed is kept as before: no session appears, and the next try can do it. */
static void test_rm_kept_fails(void **state)
{
	struct bench *b = *state;
	char root[128];
	char dir[160];

	(void)snprintf(root, sizeof(root), "%s/home/.mastracode/web/sandboxes", b->env->dir);
	(void)snprintf(dir, sizeof(dir), "%s/a", root);
	make_kept(b, "a", NULL);
	assert_int_equal(chmod(root, 0500), 0);
	run(b, cm_cmd_rm, "rm --files a");
	assert_int_equal(b->status, CM_EXIT_FAILURE);
	has(b->err, "cannot remove");
	run(b, cm_cmd_ls, "ls -aq");
	assert_string_equal(b->out, "");
	assert_int_equal(chmod(root, 0700), 0);
	run(b, cm_cmd_rm, "rm --files a");
	assert_int_equal(b->status, 0);
	assert_int_equal(access(dir, F_OK), -1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_ls),
		T(test_ls_filters),
		T(test_ls_bad_filters),
		T(test_ls_format),
		T(test_prune_chooses),
		T(test_prune_files),
		T(test_prune_in_use),
		T(test_prune_refuses),
		T(test_df),
		T(test_damaged),
		T(test_inspect),
		T(test_resources),
		T(test_unknown_ids),
		T(test_stop),
		T(test_rm),
		T(test_rm_kept),
		T(test_rm_not_kept),
		T(test_rm_kept_elsewhere),
		T(test_rm_kept_fails),
	};

	/* root's store is the machine's own: this one is an ordinary user's */
	if (geteuid() == 0 && (setgid(12345) != 0 || setuid(12345) != 0))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
