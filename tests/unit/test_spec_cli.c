/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line as a program: exit status, stdout and stderr. What needs a jail is played by
 * stand-ins, which say what they were asked.
 */
#include "tests/unit/test_spec_env.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/selection.h"
#include "runtime/base/path.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/run.h"

#define MAX_OUTPUT (1U << 20)

#define STAND_IN(name)                                                                             \
	int cm_cmd_##name(struct cm_cli *cli, int argc, char **argv)                               \
	{                                                                                          \
		(void)cli;                                                                         \
		printf(#name " %d %s\n", argc, argv[argc - 1]);                                    \
		fflush(stdout);                                                                    \
		return 42;                                                                         \
	}

STAND_IN(cp)
STAND_IN(file)
STAND_IN(ls)
STAND_IN(ps)
STAND_IN(wait)
STAND_IN(kill)
STAND_IN(stdin)
STAND_IN(attach)
STAND_IN(stats)
STAND_IN(inspect)
STAND_IN(setup)
STAND_IN(logs)
STAND_IN(events)
STAND_IN(stop)
STAND_IN(rm)
STAND_IN(prune)
STAND_IN(df)
STAND_IN(doctor)
STAND_IN(create)
STAND_IN(start)
STAND_IN(restart)
STAND_IN(template)

int cm_cli_run_command(struct cm_cli *cli, const struct cm_command *command,
		       const struct cm_selection *selection, int argc, char **argv)
{
	if (selection->kind == CM_PROVIDER_LOCAL)
		return command->run(cli, argc, argv);
	printf("%s of %s: %s", command->name, cm_provider_kind_name(selection->kind),
	       selection->reason);
	fflush(stdout);
	return 43;
}

void cm_cli_run_begin(void)
{
}

int cm_cli_run(const struct cm_spec *spec, struct cm_cli *cli)
{
	printf("run %s memory %llu ro %d q%d v%d x%d", spec->argv.v[spec->argv.n - 1],
	       (unsigned long long)spec->limits.memory.value, spec->is_workspace_read_only,
	       cli->is_quiet, cli->is_verbose, cli->failure_exit);
	fflush(stdout);
	return 7;
}

int cm_cli_checkout(const struct cm_spec *spec, bool is_unshallow, struct cm_cli *cli)
{
	(void)cli;
	printf("checkout %s of %s%s%s%s", spec->session_id, spec->repo ? spec->repo : "its own",
	       spec->ref ? " at " : "", spec->ref ? spec->ref : "", is_unshallow ? " whole" : "");
	fflush(stdout);
	return 8;
}

int cm_cli_exec(const struct cm_spec *spec, struct cm_cli *cli)
{
	(void)cli;
	printf("exec %s", spec->session_id);
	for (size_t i = 0; i < spec->argv.n; i++)
		printf(" %s", spec->argv.v[i]);
	printf(" d%d i%d t%d", spec->is_detached, spec->is_interactive, spec->tty);
	fflush(stdout);
	return 9;
}

int cm_cli_run_refused(const struct cm_spec *spec, struct cm_cli *cli, const struct cm_error *error)
{
	if (spec->result || spec->is_json) {
		printf("refused %s json %d", spec->result ? spec->result : "-", spec->is_json);
		fflush(stdout);
	}
	return cm_cli_fail(cli, error);
}

static char top[64];
static char out[MAX_OUTPUT];
static char err[MAX_OUTPUT];
/* what whoever lists processes sees after the line was read */
static char args[MAX_OUTPUT];

static int set_up(void **state)
{
	(void)state;
	memcpy(top, "/tmp/casemate-test-XXXXXX", sizeof("/tmp/casemate-test-XXXXXX"));
	return mkdtemp(top) && chdir(top) == 0 && clearenv() == 0 && setenv("HOME", top, 1) == 0 &&
			       setenv("TOKEN", "secret", 1) == 0
		       ? 0
		       : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return chdir("/") == 0 && cm_remove_tree_at(AT_FDCWD, top) == 0 ? 0 : -1;
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(name, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void read_back(const char *name, char *text)
{
	assert_true(cm_read_file_at(AT_FDCWD, name, text, MAX_OUTPUT) >= 0);
	assert_int_equal(unlink(name), 0);
}

static _Noreturn void child(int argc, char **argv)
{
	int out_fd = open("out", O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	int err_fd = open("err", O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	FILE *args_file = fopen("args", "we");
	int status;

	if (dup2(out_fd, 1) < 0 || dup2(err_fd, 2) < 0 || !args_file)
		_exit(99);
	status = cm_cli_main(argc, argv);
	for (int i = 0; i < argc; i++)
		(void)fprintf(args_file, "%s\n", argv[i]);
	(void)fclose(args_file);
	_exit(status);
}

/* Words are separated by '|'. The exit status; out and err are filled. */
static int run(const char *line)
{
	static char copy[1024];
	static char name[] = "casemate";
	char *argv[32] = { name };
	int argc = 1;
	int status;
	pid_t pid;

	(void)snprintf(copy, sizeof(copy), "%s", line);
	for (char *rest = copy; rest && *line != '\0';)
		argv[argc++] = strsep(&rest, "|");
	argv[argc] = NULL;
	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child(argc, argv);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	read_back("out", out);
	read_back("err", err);
	read_back("args", args);
	return WEXITSTATUS(status);
}

static const struct {
	const char *line;
	int status;
	const char *out;
	const char *err;
} lines[] = {
	{ "run|true", 7, "run true memory 18446744073709551615 ro 0 q0 v0 x125", "" },
	{ "run|-q|--failure-exit|3|-m|4M|--|a|b", 7, "run b memory 4194304 ro 0 q1 v0 x3", "" },
	{ "run|-c|ls", 7, "run ls memory 18446744073709551615 ro 0 q0 v0 x125", "" },
	{ "exec|s|ls|-l", 9, "exec s ls -l d0 i0 t0", "" },
	{ "exec|-i|s|-d|--|ls|-l", 9, "exec s ls -l d1 i1 t0", "" },
	{ "exec|-it|s|-e|A=1|ls", 9, "exec s ls d0 i1 t1", "" },
	{ "exec|--|s|ls|--|x", 9, "exec s ls -- x d0 i0 t0", "" },
	{ "exec|s|-c|ls", 9, "exec s /bin/sh -c ls d0 i0 t0", "" },
	{ "exec|-c|ls|s", 9, "exec s /bin/sh -c ls d0 i0 t0", "" },
	{ "exec", 125, "",
	  "casemate: no session given\nhint: name one: 'casemate ls' lists them\n" },
	{ "exec|s", 125, "",
	  "casemate: no command given\n"
	  "hint: write casemate exec ID [OPTION...] -- COMMAND [ARG...], or -c TEXT; "
	  "'casemate shell ID' for a shell\n" },
	{ "exec|s|--json|-m|1G|ls", 125, "refused - json 1",
	  "casemate: --memory is the session's, and not a command's\n"
	  "hint: a session gets it when it is made: casemate start ID --memory ...; "
	  "'casemate inspect ID' shows what it has\n" },
	{ "shell|s|ls", 125, "",
	  "casemate: a shell takes no command\nhint: casemate exec s -- COMMAND\n" },
	{ "run|-d|ls", 125, "",
	  "casemate: --detach needs a session that stays\n"
	  "hint: casemate run --session ID --detach -- COMMAND\n" },
	{ "checkout|s|--repo|/x", 8, "checkout s of /x", "" },
	{ "checkout", 125, "",
	  "casemate: no session given\nhint: name one: 'casemate ls' lists them\n" },
	{ "checkout|s", 8, "checkout s of its own", "" },
	{ "checkout|--root|/r|s|--repo|/x", 8, "checkout s of /x", "" },
	{ "checkout|--unshallow|--ref|v1|--|s", 8, "checkout s of its own at v1 whole", "" },
	{ "checkout|--root|s", 125, "",
	  "casemate: no session given\nhint: name one: 'casemate ls' lists them\n" },
	{ "checkout|s|--unshallow|--ref|v1", 8, "checkout s of its own at v1 whole", "" },
	{ "run|--session|s|--unshallow|ls", 125, "",
	  "casemate: unknown option '--unshallow'\n"
	  "hint: 'casemate help run' lists the options; '--' ends them\n" },
	{ "run|--session|s|--ref|v1|ls", 125, "",
	  "casemate: --ref needs --repo\nhint: name the repository with --repo URL\n" },
	{ "checkout|s|--repo|/x|--session|t", 125, "",
	  "casemate: two sessions are named\nhint: leave --session out: 's' is the session\n" },
	{ "checkout|s|--repo|/x|--setup|make", 125, "",
	  "casemate: a checkout runs no setup\n"
	  "hint: give --setup to the first 'casemate run --session ID'\n" },
	{ "checkout|s|--repo|/x|--|ls", 125, "",
	  "casemate: a checkout runs no command\n"
	  "hint: give it to 'casemate run --session ID'\n" },
	/* elsewhere; what the command has of its own is the command's */
	{ "run|--provider=platform|ls", 43, "run of platform: --provider names it", "" },
	{ "run|ls|--provider|e2b", 7, "run e2b memory 18446744073709551615 ro 0 q0 v0 x125", "" },
	{ "run|--provider|local|ls", 7, "run ls memory 18446744073709551615 ro 0 q0 v0 x125", "" },
	{ "run|--|ls|--provider|e2b", 7, "run e2b memory 18446744073709551615 ro 0 q0 v0 x125",
	  "" },
	{ "exec|s|--provider|e2b|--|ls|--provider|local", 43, "exec of e2b: --provider names it",
	  "" },
	{ "exec|--provider|e2b|s|ls", 43, "exec of e2b: --provider names it", "" },
	{ "exec|s|ls|--provider|e2b", 9, "exec s ls --provider e2b d0 i0 t0", "" },
	{ "start|s|--bad|--provider|e2b", 43, "start of e2b: --provider names it", "" },
	{ "ls|--provider|e2b", 43, "ls of e2b: --provider names it", "" },
	{ "kill|--provider=e2b|x|3", 43, "kill of e2b: --provider names it", "" },
	{ "run|--provider|docker|ls", 125, "",
	  "casemate: --provider names no provider: 'docker'\n"
	  "hint: there are local, platform and e2b\n" },
	{ "run|--failure-exit|77|--provider|docker|ls", 77, "",
	  "casemate: --provider names no provider: 'docker'\n"
	  "hint: there are local, platform and e2b\n" },
	{ "provider", 0, "local: nothing names another one\n", "" },
	{ "provider|show|--provider|e2b", 0, "e2b: --provider names it\n", "" },
	{ "provider|nope", 125, "",
	  "casemate: unknown word 'nope'\nhint: casemate provider [show|ls] [--json]\n" },
	{ "run", 125, "",
	  "casemate: no command given\n"
	  "hint: write casemate run [OPTION...] -- COMMAND [ARG...], or -c TEXT\n" },
	{ "run|--ro-bind|a|b", 125, "",
	  "casemate: unknown option '--ro-bind'\nhint: --volume SRC:DST:ro\n" },
	{ "run|--failure-exit|9|--bad", 9, "",
	  "casemate: unknown option '--bad'\n"
	  "hint: 'casemate help run' lists the options; '--' ends them\n" },
	{ "run|--policy|none|a", 125, "",
	  "casemate: cannot open 'none': No such file or directory\n"
	  "hint: check the path and its permissions\n" },
	/* nothing that was typed or read moves the cursor */
	{ "run|--\x1b[2J|a", 125, "",
	  "casemate: unknown option '--\\x1b[2J'\n"
	  "hint: 'casemate help run' lists the options; '--' ends them\n" },
	{ "rm|x", 42, "rm 2 x\n", "" },
	{ "destroy|x", 42, "rm 2 x\n", "" },
	{ "ps", 42, "ps 1 ps\n", "" },
	{ "kill|x|3", 42, "kill 3 3\n", "" },
	{ "inspect|x", 42, "inspect 2 x\n", "" },
	{ "stop|x", 42, "stop 2 x\n", "" },
	{ "doctor", 42, "doctor 1 doctor\n", "" },
	{ "version", 0, "casemate " CM_TEST_VERSION "\n", "" },
	{ "--version", 0, "casemate " CM_TEST_VERSION "\n", "" },
	{ "version|--json", 0, "{\"version\":\"" CM_TEST_VERSION "\",\"libc\":\"shared\"}\n", "" },
	{ "version|x", 125, "",
	  "casemate: version takes no arguments\nhint: write casemate version [--json]\n" },
	{ "version|--jsn", 125, "",
	  "casemate: unknown option '--jsn'\nhint: did you mean '--json'?\n" },
	{ "rnu", 125, "", "casemate: unknown command 'rnu'\nhint: did you mean 'run'?\n" },
	/* a word of docker's; and what ends something is hinted at where it is nearly typed alone */
	{ "top", 125, "",
	  "casemate: unknown command 'top'\nhint: 'casemate ps ID' lists a session's commands, "
	  "'casemate stats' what they use\n" },
	{ "stopp", 125, "", "casemate: unknown command 'stopp'\nhint: did you mean 'stop'?\n" },
	{ "kkyll", 125, "",
	  "casemate: unknown command 'kkyll'\nhint: 'casemate help' lists the commands; "
	  "'casemate run -- kkyll' runs it in a jail\n" },
	{ "npm", 125, "",
	  "casemate: unknown command 'npm'\nhint: 'casemate help' lists the commands; "
	  "'casemate run -- npm' runs it in a jail\n" },
	{ "--json|run", 125, "",
	  "casemate: option '--json' before the command\n"
	  "hint: write casemate COMMAND [OPTION...], for example casemate run --json\n" },
	{ "help|nope", 125, "",
	  "casemate: unknown command 'nope'\nhint: 'casemate help' lists the commands; "
	  "'casemate run -- nope' runs it in a jail\n" },
	{ "help|a|b", 125, "",
	  "casemate: help takes one command, not 2\nhint: for example casemate help run\n" },
	{ "config", 125, "",
	  "casemate: config show, check or schema?\nhint: write casemate config show, casemate "
	  "config check FILE, or casemate config schema\n" },
	{ "config|shwo", 125, "",
	  "casemate: unknown argument 'shwo' of config\nhint: write casemate config show, "
	  "casemate config check FILE, or casemate config schema\n" },
	{ "config|check", 125, "",
	  "casemate: no file to check\nhint: write casemate config check FILE...\n" },
	{ "config|show|a", 125, "",
	  "casemate: config show takes options only, not 'a'\n"
	  "hint: write casemate config show [--origin] [--json] [OPTION...]\n" },
	/* a variable that is only passed is named and not told */
	{ "config|show|-m|1G|-e|TOKEN|-e|A=b|--pass-env|X*", 0,
	  "env = TOKEN\nenv = A=b\npass-env = X*\ntimeout = unlimited\n"
	  "idle-timeout = unlimited\nlifetime = unlimited\nmax-sessions = unlimited\nmemory = 1G\n"
	  "pids-limit = 4096?\nopen-files = 65536?\noutput = unlimited\nnetwork = none\n"
	  "user = user\ngit = pinned\nmin-level = no-cgroup\n",
	  "" },
	{ "config|show|--origin|-m|1G|--no-workspace|-t", 0,
	  "workspace = false                               # --no-workspace\n"
	  "timeout = unlimited                             # built in\n"
	  "idle-timeout = unlimited                        # built in\n"
	  "lifetime = unlimited                            # built in\n"
	  "max-sessions = unlimited                        # built in\n"
	  "memory = 1G                                     # --memory\n"
	  "pids-limit = 4096?                              # built in\n"
	  "open-files = 65536?                             # built in\n"
	  "output = unlimited                              # built in\n"
	  "network = none                                  # built in\n"
	  "user = user                                     # built in\n"
	  "git = pinned                                    # built in\n"
	  "min-level = no-cgroup                           # built in\n"
	  "tty = true                                      # --tty\n",
	  "" },
};

static void test_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(lines); i++) {
		int status = run(lines[i].line);

		if (strcmp(err, lines[i].err) != 0)
			fail_msg("'%s':\n'%s', not\n'%s'", lines[i].line, err, lines[i].err);
		if (strcmp(out, lines[i].out) != 0)
			fail_msg("'%s':\n'%s', not\n'%s'", lines[i].line, out, lines[i].out);
		if (status != lines[i].status)
			fail_msg("'%s': exit status %d", lines[i].line, status);
	}
}

static void test_alone(void **state)
{
	(void)state;
	assert_int_equal(run(""), 125);
	assert_string_equal(out, "");
	assert_non_null(strstr(err, "Usage: casemate COMMAND"));
	for (const struct cm_command *command = cm_commands; command->name; command++)
		assert_non_null(strstr(err, command->summary));
	assert_int_equal(run("--help"), 0);
	assert_non_null(strstr(out, "Usage: casemate COMMAND"));
	assert_string_equal(err, "");
}

/* Each key is in the help, and no line is too long for a terminal. */
static void test_help(void **state)
{
	static const char *const asked[] = { "help|run", "run|--help", "run|-h", "run|-ih|x" };
	CM_AUTO_FREE char *first = NULL;

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(asked); i++) {
		assert_int_equal(run(asked[i]), 0);
		assert_string_equal(err, "");
		if (!first)
			first = strdup(out);
		assert_string_equal(out, first);
	}
	for (unsigned int key = 0; key < CM_KEY_COUNT; key++) {
		char option[64];

		(void)snprintf(option, sizeof(option), "--%s", cm_key_info((enum cm_key)key)->name);
		assert_non_null(strstr(out, option));
	}
	for (const struct cm_command *command = cm_commands; command->name; command++) {
		char line[64];

		(void)snprintf(line, sizeof(line), "help|%s", command->name);
		assert_int_equal(run(line), 0);
		for (char *rest = out; rest && *rest != '\0';)
			assert_true(strlen(strsep(&rest, "\n")) <= 90);
		(void)snprintf(line, sizeof(line), "%s|--help", command->name);
		assert_int_equal(run(line), 0);
		assert_true(strncmp(out, "Usage: casemate ", 16) == 0);
	}
}

static void test_a_repositorys_file(void **state)
{
	(void)state;
	write_file(".casemate.json",
		   "{\"memory\": \"4M\", \"network\": \"host\", \"read-only\": true}");
	assert_int_equal(run("run|-m|8M|a"), 7);
	assert_string_equal(out, "run a memory 4194304 ro 1 q0 v0 x125");
	assert_non_null(strstr(err, "note: "));
	assert_non_null(strstr(err, ".casemate.json:1: 'network' cannot widen 'none' (built in) to "
				    "'host'; ignored\n"));
	assert_int_equal(run("run|-q|a"), 7);
	assert_string_equal(err, "");
	assert_int_equal(run("run|--no-workspace|-m|8M|a"), 7);
	assert_string_equal(out, "run a memory 8388608 ro 0 q0 v0 x125");
	assert_int_equal(run("run|--workspace|.|-m|8M|a"), 7);
	assert_string_equal(out, "run a memory 4194304 ro 1 q0 v0 x125");
	write_file(".casemate.json", "{\"memroy\": 1}");
	assert_int_equal(run("run|a"), 125);
	assert_non_null(strstr(err, "unknown key 'memroy'\nhint: did you mean 'memory'?\n"));
	assert_int_equal(unlink(".casemate.json"), 0);
}

/* Whatever shows a spec, and whatever is wrong, the password of an address is not in it. */
static void test_a_password(void **state)
{
	static const char *const asked[] = {
		"config|show|--repo|https://alice:s3cr3t@example.org/a",
		"config|show|--origin|--json|--repo|https://alice:s3cr3t@example.org/a",
		"config|show|--repo|https://alice:s3cr3t@example.org/a|x",
		"run|--repo|https://alice:s3cr3t@example.org/a|true",
		"run|--repo|https://alice:s3cr3t@example.org/a|--verbose|--json|true",
		"run|--repo|https://alice:s3cr3t@example.org/a|--workspace|.|true",
		"run|--repo|https://alice:s3cr3t@/a|true",
		"run|--repo=https:/alice:s3cr3t@example.org/a|true",
		"run|--repo=alice:s3cr3t@example.org/a|true",
		"run|--policy|p.json|true",
		"config|check|p.json",
	};

	(void)state;
	write_file("p.json", "{\"repo\": \"https://alice:s3cr3t@example.org/a\"}");
	for (size_t i = 0; i < CM_ARRAY_SIZE(asked); i++) {
		(void)run(asked[i]);
		if (strstr(out, "s3cr3t") || strstr(err, "s3cr3t") || strstr(out, "alice"))
			fail_msg("'%s': '%s' '%s'", asked[i], out, err);
	}
	assert_int_equal(unlink("p.json"), 0);
	assert_int_equal(run(asked[0]), 0);
	assert_non_null(strstr(out, "repo = https://example.org/a\n"));
	assert_non_null(strstr(err, "note: --repo has a password"));
}

static void test_a_password_among_arguments(void **state)
{
	static const char *const asked[] = {
		"run|--repo|https://alice:s3cr3t@example.org/a|true",
		"exec|s|--repo|https://alice:s3cr3t@example.org/a|true",
		"exec|--|s|--repo|https://alice:s3cr3t@example.org/a|true",
		"checkout|s|--repo|https://alice:s3cr3t@example.org/a",
		"checkout|--|s|--repo|https://alice:s3cr3t@example.org/a",
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(asked); i++) {
		(void)run(asked[i]);
		if (!strstr(args, "https://alice:******@example.org/a\n"))
			fail_msg("'%s': '%s'", asked[i], args);
	}
	(void)run("exec|s|--|https://alice:s3cr3t@example.org/a");
	assert_non_null(strstr(args, "s3cr3t"));
}

/* Where the result goes of a command line that is wrong; only of what comes before the command. */
static void test_outputs_of_a_wrong_line(void **state)
{
	static const struct {
		const char *line;
		const char *out;
	} asked[] = {
		{ "run|--xyzzy|--result|fd:3|a", "refused fd:3 json 0" },
		{ "run|--result=fd:03|-m|x|a", "refused fd:3 json 0" },
		{ "run|--json|-z|a", "refused - json 1" },
		{ "run|--json|--no-json|--result|fd:3|-m|x|a", "refused fd:3 json 0" },
		{ "run|--result|/tmp/../r|--memory", "refused /tmp/../r json 0" },
		{ "run|--result|fd:3|--ref|x|a", "refused fd:3 json 0" },
		/* no command */
		{ "run|--result|fd:3", "refused fd:3 json 0" },
		{ "run|--result|fd:3|--", "refused fd:3 json 0" },
		{ "run|--json", "refused - json 1" },
		/* the result is what is wrong */
		{ "run|--result|fd:x|a", "" },
		{ "run|--result", "" },
		{ "run|--result=|a", "" },
		/* the command's own */
		{ "run|-m|x|a|--result|fd:3|--json", "" },
		{ "run|-m|x|--|--result|fd:3", "" },
		{ "run|-m|x|a", "" },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(asked); i++) {
		assert_int_equal(run(asked[i].line), 125);
		assert_string_equal(out, asked[i].out);
		assert_string_not_equal(err, "");
	}
	assert_int_equal(run("run|--failure-exit|9|--result|r|-m|x|a"), 9);
	assert_non_null(strstr(out, "/r json 0"));
	/* a file's mistake is one of the line's, too */
	write_file(".casemate.json", "{\"memroy\": 1}");
	assert_int_equal(run("run|--result|fd:3|a"), 125);
	assert_string_equal(out, "refused fd:3 json 0");
	assert_int_equal(unlink(".casemate.json"), 0);
}

static void test_show_as_json(void **state)
{
	(void)state;
	assert_int_equal(run("config|show|--json|--origin|-v|/a|-m|1G"), 0);
	assert_non_null(strstr(out, "\"memory\": {\n    \"value\": \"1G\",\n    \"origin\": "
				    "\"--memory\"\n  }"));
	assert_non_null(strstr(out, "\"volume\": [\n    {\n      \"value\": \"/a\",\n      "
				    "\"origin\": \"--volume\"\n    }\n  ]"));
	assert_int_equal(run("config|show|--json|-m|1G|-e|TOKEN"), 0);
	assert_non_null(strstr(out, "\"memory\": \"1G\""));
	assert_null(strstr(out, "secret"));
	/* what is shown can be a policy */
	write_file("shown.json", out);
	assert_int_equal(run("config|check|shown.json"), 0);
	assert_int_equal(run("run|--policy|shown.json|a"), 7);
	assert_string_equal(out, "run a memory 1073741824 ro 0 q0 v0 x125");
}

static void test_check(void **state)
{
	(void)state;
	write_file("good.json", "{\"memory\": \"1G\"}");
	write_file("bad.json", "{\n\"memory\": \"x\"}");
	assert_int_equal(run("config|check|good.json"), 0);
	assert_string_equal(err, "");
	/* every file is looked at */
	assert_int_equal(run("config|check|bad.json|good.json|none.json"), 125);
	assert_non_null(strstr(err, "bad.json:2: 'memory' must be a size"));
	assert_non_null(strstr(err, "cannot open 'none.json'"));
}

static void test_a_full_disk(void **state)
{
	static const char *const argv[] = { "casemate", "version", NULL };
	int status;
	pid_t pid;

	(void)state;
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
		int err_fd = open("err", O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

		if (dup2(full, 1) < 0 || dup2(err_fd, 2) < 0)
			_exit(99);
		_exit(cm_cli_main(2, (char **)(uintptr_t)argv));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 125);
	read_back("err", err);
	assert_string_equal(err,
			    "casemate: cannot write to standard output: No space left on device\n");
}

static void test_simple_options(void **state)
{
	struct cm_error e = CM_ERROR_INIT;
	bool is_json = false;
	bool is_quiet = false;
	const char *root = NULL;
	const struct cm_cli_option options[] = {
		{ "json", 'j', CM_OPTION_SWITCH, &is_json },
		{ "quiet", 'q', CM_OPTION_SWITCH, &is_quiet },
		{ "root", 'r', CM_OPTION_TEXT, &root },
		{ NULL },
	};
	char words[][8] = { "a", "-jq", "--root", "/r", "b", "--", "--c" };
	char *line[8] = { (char *)(uintptr_t) "ls" };
	char **argv = line + 1;
	int n = 0;

	(void)state;
	for (size_t i = 0; i < 7; i++)
		argv[i] = words[i];
	assert_int_equal(cm_cli_options(7, argv, options, &n, &e), CM_OK);
	assert_int_equal(n, 3);
	assert_string_equal(argv[0], "a");
	assert_string_equal(argv[1], "b");
	assert_string_equal(argv[2], "--c");
	assert_true(is_json && is_quiet);
	assert_string_equal(root, "/r");

	memcpy(words[0], "--root=", sizeof("--root="));
	argv[0] = words[0];
	assert_int_equal(cm_cli_options(1, argv, options, &n, &e), CM_E_INVALID);
	assert_string_equal(e.msg, "option '--root=' needs a value");
	memcpy(words[0], "-rx", sizeof("-rx"));
	assert_int_equal(cm_cli_options(1, argv, options, &n, &e), CM_OK);
	assert_string_equal(root, "x");
	memcpy(words[0], "-x", sizeof("-x"));
	cm_error_clear(&e);
	assert_int_equal(cm_cli_options(1, argv, options, &n, &e), CM_E_INVALID);
	assert_string_equal(e.msg, "unknown option '-x'");
	assert_string_equal(e.hint, "'casemate help ls' lists the options");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_lines),
		TEST(test_alone),
		TEST(test_help),
		TEST(test_a_repositorys_file),
		TEST(test_a_password),
		TEST(test_a_password_among_arguments),
		TEST(test_outputs_of_a_wrong_line),
		TEST(test_show_as_json),
		TEST(test_check),
		TEST(test_a_full_disk),
		TEST(test_simple_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
