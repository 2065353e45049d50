/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines, good and bad, with the exact spec or message. */
#include "tests/unit/test_spec_env.h"

#include "runtime/base/alloc.h"

#define MAX_WORDS 24

/* Words separated by '|', since blanks occur in them. */
static int split(char *line, char **words)
{
	int n = 0;

	for (char *rest = line; rest && *line != '\0';) {
		assert_true(n < MAX_WORDS);
		words[n++] = strsep(&rest, "|");
	}
	return n;
}

/* Parses, merges and checks a line; *ret_dump is the caller's on success. */
static int run_line(const char *line, char **ret_dump, struct cm_error *err)
{
	CM_AUTO_FREE char *copy = strdup(line);
	char *words[MAX_WORDS];
	struct cm_layer layer = { 0 };
	struct cm_origins origins = { 0 };
	struct cm_spec spec;
	struct cm_merge m = { .spec = &spec, .origins = &origins, .caller = &test_caller };
	int r;

	cm_spec_init(&spec);
	r = cm_flags_parse(split(copy, words), words, &layer, err);
	if (r == CM_OK)
		r = cm_merge_layer(&m, &layer, err);
	if (r == CM_OK)
		r = cm_merge_check(&m, err);
	if (r == CM_OK)
		*ret_dump = test_dump(&spec, &origins);
	cm_layer_clear(&layer);
	cm_origins_clear(&origins);
	cm_merge_clear(&m);
	cm_spec_clear(&spec);
	return r;
}

static const struct {
	const char *line;
	const char *dump;
} good[] = {
	{ "", "" },
	{ "true", "-- true" },
	{ "--|true", "-- true" },
	{ "--|-x", "-- -x" },
	{ "-", "-- -" },
	{ "ls|-l|--memory|4G", "-- ls -l --memory 4G" },
	{ "--json|--|a|--|b", "json=true -- a -- b" },
	{ "--memory|4G|a", "memory=4G -- a" },
	{ "--memory=4G|a", "memory=4G -- a" },
	{ "-m|4g|a", "memory=4G -- a" },
	{ "-m4g|a", "memory=4G -- a" },
	{ "-m=4g|a", "memory=4G -- a" },
	{ "--memory|4096M|a", "memory=4G -- a" },
	{ "--memory|4G?|a", "memory=4G? -- a" },
	{ "--memory|unlimited|a", "memory=unlimited -- a" },
	{ "--memory|1G|--memory|2G|a", "memory=2G -- a" },
	{ "--swap|0|a", "swap=0 -- a" },
	{ "--cpus|1.5|--cpus=0.25?|a", "cpus=0.25? -- a" },
	{ "--cpus|2|a", "cpus=2 -- a" },
	{ "--cpuset|3,0-1,1|a", "cpuset=0-1,3 -- a" },
	{ "--cpuset-cpus|0-1?|a", "cpuset=0-1? -- a" },
	{ "--pids-limit|512|a", "pids-limit=512 -- a" },
	{ "--open-files|1024|a", "open-files=1024 -- a" },
	{ "--ulimit|nofile=1024|a", "open-files=1024 -- a" },
	{ "--ulimit|nofile=1024:1024|a", "open-files=1024 -- a" },
	{ "--timeout|90s|a", "timeout=90s -- a" },
	{ "--timeout|2m30s|a", "timeout=150s -- a" },
	{ "--timeout|15|a", "timeout=15s -- a" },
	{ "--timeout|none|a", "timeout=unlimited -- a" },
	{ "--session|x|--idle-timeout|30m|a", "session=x idle-timeout=30m -- a" },
	{ "--session|x|--lifetime|8h|a", "session=x lifetime=8h -- a" },
	{ "--session|x|--idle-timeout|1|--lifetime|90m|a",
	  "session=x idle-timeout=1s lifetime=90m -- a" },
	/* nothing is asked for */
	{ "--idle-timeout|none|--lifetime|unlimited|a",
	  "idle-timeout=unlimited lifetime=unlimited -- a" },
	{ "--label|a.b/c-d_e=x y|-l|b=|-lb=2|--label|z=\xc3\xa4=|a",
	  "label=a.b/c-d_e=x y label=b=2 label=z=\xc3\xa4= -- a" },
	{ "--max-sessions|5|a", "max-sessions=5 -- a" },
	{ "--retention|older-than=7d,keep-last=3,files|a",
	  "retention=older-than=7d,keep-last=3,files -- a" },
	{ "--retention|keep-last=3|--retention|none|a", "-- a" },
	{ "--output|64M|a", "output=64M -- a" },
	{ "-it|bash", "tty=true interactive=true -- bash" },
	{ "-itm4G|bash", "memory=4G tty=true interactive=true -- bash" },
	{ "-itm|4G|bash", "memory=4G tty=true interactive=true -- bash" },
	{ "-q|a", "quiet=true -- a" },
	{ "--quiet|--verbose|a", "quiet=false verbose=true -- a" },
	{ "--verbose|-q|a", "quiet=true verbose=false -- a" },
	{ "--no-tty|a", "tty=false -- a" },
	{ "--tty=false|a", "tty=false -- a" },
	{ "--tty|--no-tty|a", "tty=false -- a" },
	{ "--no-tty|--json|a", "tty=false json=true -- a" },
	{ "--network|host|a", "network=host -- a" },
	{ "--network=none|a", "network=none -- a" },
	{ "--network|internet|a", "network=internet -- a" },
	{ "--template|base|a", "template=base -- a" },
	{ "-u|root|a", "user=root -- a" },
	{ "--git|rw|a", "git=rw -- a" },
	{ "--min-level|full|a", "min-level=full -- a" },
	{ "--minimum-level|no-cgroup|a", "min-level=no-cgroup -- a" },
	{ "-e|A=b|a", "env=A=b -- a" },
	{ "-e|A=|a", "env=A= -- a" },
	{ "-eA=b|a", "env=A=b -- a" },
	{ "-e|A=b=c|a", "env=A=b=c -- a" },
	{ "-e|FOO|a", "env=FOO=bar -- a" },
	{ "-e|EMPTY|a", "env=EMPTY= -- a" },
	{ "-e|ABSENT|a", "-- a" },
	{ "-e|A=1|-e|B=2|-e|A=3|a", "env=A=3 env=B=2 -- a" },
	{ "-e|AB=1|-e|A=2|a", "env=AB=1 env=A=2 -- a" },
	{ "--pass-env|CI_*|--pass-env|TZ|a", "pass-env=CI_* pass-env=TZ -- a" },
	{ "-v|/a|a", "volume=/a -- a" },
	{ "-v|/a:ro|a", "volume=/a:ro -- a" },
	{ "-v|/a:/b|a", "volume=/a:/b -- a" },
	{ "-v|/a:/b:ro|a", "volume=/a:/b:ro -- a" },
	{ "-v|/a:/b:rw|a", "volume=/a:/b -- a" },
	{ "-v|./a:/b|a", "volume=/srv/app/a:/b -- a" },
	{ "-v|.:/b|a", "volume=/srv/app:/b -- a" },
	{ "-v|../a:/b|a", "volume=/srv/app/../a:/b -- a" },
	{ "-v|a|a", "volume=/srv/app/a -- a" },
	{ "-v|~/a|a", "volume=/home/alice/a -- a" },
	{ "-v|~|a", "volume=/home/alice -- a" },
	{ "-v|/a//b/./c/:/d//e/../f|a", "volume=/a/b/c:/d/f -- a" },
	{ "-v|/a:/b|-v|/c:/d|a", "volume=/a:/b volume=/c:/d -- a" },
	{ "--mount|type=bind,src=/a,dst=/b,ro|a", "volume=/a:/b:ro -- a" },
	{ "--mount|type=bind,source=/a:x,target=/b|a", "volume=/a:x:/b -- a" },
	{ "--mount|src=a,destination=/b,readonly=false|a", "volume=/srv/app/a:/b -- a" },
	{ "-w|/x|a", "workdir=/x -- a" },
	{ "--cwd|x/y|a", "workdir=x/y -- a" },
	{ "--workspace|.|a", "workspace=/srv/app -- a" },
	{ "--workspace|sub:ro|a", "workspace=/srv/app/sub:ro -- a" },
	{ "--workspace|/a/b/:rw|a", "workspace=/a/b -- a" },
	{ "--no-workspace|a", "workspace= -- a" },
	{ "--read-only|a", "read-only=true -- a" },
	{ "--repo|https://example.org/a.git|a", "repo=https://example.org/a.git -- a" },
	{ "--repo|https://alice@example.org/a|a", "repo=https://example.org/a -- a" },
	{ "--repo|https://alice:secret@example.org/a|a", "repo=https://example.org/a -- a" },
	{ "--repo|ssh://git:secret@example.org/a|a", "repo=ssh://git@example.org/a -- a" },
	{ "--repo|file:///srv/a%20b/|a", "repo=/srv/a b -- a" },
	{ "--repo|HTTPS://Example.org:443/a|a", "repo=https://example.org/a -- a" },
	{ "--repo|git@example.org:a/b|a", "repo=git@example.org:a/b -- a" },
	{ "--repo|.|a", "repo=/srv/app -- a" },
	{ "--repo|a/b:c|a", "repo=/srv/app/a/b:c -- a" },
	{ "--repo|/r|--ref|v1|--setup|npm ci|--setup|b|a",
	  "repo=/r ref=v1 setup=npm ci setup=b -- a" },
	{ "--session|x|--setup|npm ci|a", "setup=npm ci session=x -- a" },
	{ "--root|/r/|a", "root=/r -- a" },
	{ "--root|~/r|a", "root=/home/alice/r -- a" },
	{ "--rootfs|img|a", "rootfs=/srv/app/img -- a" },
	{ "--keep|a", "keep=true -- a" },
	{ "--result|r.json|a", "result=/srv/app/r.json -- a" },
	{ "--result|fd:3|a", "result=fd:3 -- a" },
	{ "--failure-exit|7|a", "failure-exit=7 -- a" },
	{ "-c|npm ci && npm test", "-- /bin/sh -c npm ci && npm test" },
	{ "-cls", "-- /bin/sh -c ls" },
	{ "--command=ls", "-- /bin/sh -c ls" },
	{ "-c|ls|--|", "-- /bin/sh -c ls" },
};

static void test_good_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(good); i++) {
		struct cm_error err = CM_ERROR_INIT;
		CM_AUTO_FREE char *dump = NULL;
		char *line = strdup(good[i].line);

		/* "--|" at the end is "--" and nothing: splitting gives an empty word */
		if (strlen(line) > 3 && strcmp(line + strlen(line) - 3, "--|") == 0)
			line[strlen(line) - 1] = '\0';
		if (run_line(line, &dump, &err) != CM_OK)
			fail_msg("'%s': %s", good[i].line, err.msg);
		if (!dump || strcmp(dump, good[i].dump) != 0)
			fail_msg("'%s': '%s', not '%s'", good[i].line, dump, good[i].dump);
		assert_int_equal(err.code, 0);
		free(line);
	}
}

#define RETENTION_HINT "for example older-than=7d,keep-last=20; 'files' adds their directories"
#define TEN "0123456789"
#define LABEL_HINT "the key of a label is 1 to 63 of A-Z a-z 0-9 . _ / -"
#define LIMIT_HINT(example)                                                                        \
	"for example " example ", '" example "?' to go on where it cannot be enforced, or "        \
	"unlimited"
#define MOUNT_HINT "write type=bind,src=SRC,dst=DST[,ro], or --volume SRC:DST:ro"
#define ENV_HINT "write NAME=VALUE, or NAME to pass the caller's"
#define ID_HINT "use 1 to 128 of A-Z a-z 0-9 . _ - and begin with none of . -"
#define DASH_HINT "an option that came without its value takes the next word for it"
#define NETWORK_HINT "there are --network none and --network host"
#define LEVEL_HINT "use --min-level full or --min-level no-cgroup"
#define QUALIFIER "is a qualifier: it describes a session and cannot be asked for"
#define NO_DEVICE "leave it out: no device of the host can be shown in a jail"

static const struct {
	const char *line;
	int code;
	const char *msg;
	const char *hint;
} bad[] = {
	/* values */
	{ "--memory", CM_E_INVALID, "option '--memory' needs a value",
	  "write --memory SIZE, for example --memory 4G" },
	{ "--memory=|a", CM_E_INVALID, "option '--memory' needs a value",
	  "write --memory SIZE, for example --memory 4G" },
	{ "-m", CM_E_INVALID, "option '-m' needs a value",
	  "write -m SIZE, for example --memory 4G" },
	{ "-itm", CM_E_INVALID, "option '-m' needs a value",
	  "write -m SIZE, for example --memory 4G" },
	{ "--quiet=yes|a", CM_E_INVALID, "option '--quiet' takes no value, but has 'yes'",
	  "write --quiet alone" },
	{ "--no-tty=true|a", CM_E_INVALID, "option '--no-tty' takes no value, but has 'true'",
	  "write --no-tty alone" },
	{ "--memory|3M|a", CM_E_INVALID, "--memory must be 4.0 MiB to 1.0 PiB, not '3M'",
	  LIMIT_HINT("4G") },
	{ "--memory|-1|a", CM_E_INVALID, "--memory must be a size such as 512M or 1.5G, not '-1'",
	  LIMIT_HINT("4G") },
	{ "--memory|99999999999999999999|a", CM_E_INVALID,
	  "--memory must be a size such as 512M or 1.5G, not '99999999999999999999'",
	  LIMIT_HINT("4G") },
	{ "--pids-limit|0|a", CM_E_INVALID, "--pids-limit must be 1 to 4194304, not '0'",
	  LIMIT_HINT("512") },
	{ "--pids-limit|-1|a", CM_E_INVALID, "--pids-limit must be 1 to 4194304, not '-1'",
	  LIMIT_HINT("512") },
	{ "--timeout|soon|a", CM_E_INVALID,
	  "--timeout must be a duration such as 90s, 1.5h or 2m30s, not 'soon'",
	  LIMIT_HINT("15m") },
	{ "--session|x|--idle-timeout|999ms|a", CM_E_INVALID,
	  "--idle-timeout must be 1 s to 3650 d, not '999ms'", LIMIT_HINT("30m") },
	{ "--session|x|--lifetime|0|a", CM_E_INVALID, "--lifetime must be 1 s to 3650 d, not '0'",
	  LIMIT_HINT("8h") },
	{ "--memory|none|a", CM_E_INVALID,
	  "--memory must be a size such as 512M or 1.5G, not 'none'", LIMIT_HINT("4G") },
	{ "--label|a|a", CM_E_INVALID, "--label 'a' has no '='",
	  "write KEY=VALUE, for example team=web" },
	{ "--label|=x|a", CM_E_INVALID, "--label '=x': bad key", LABEL_HINT },
	{ "--label|a b=x|a", CM_E_INVALID, "--label 'a b=x': bad key", LABEL_HINT },
	{ "--label|" TEN TEN TEN TEN TEN TEN "1234=x|a", CM_E_INVALID,
	  "--label '" TEN TEN TEN TEN TEN TEN "1234=x': bad key", LABEL_HINT },
	{ "--label|a=x\n|a", CM_E_INVALID, "--label 'a': bad value",
	  "the value of a label is at most 256 bytes of UTF-8, without control characters" },
	{ "--label|a=\xff|a", CM_E_INVALID, "--label 'a': bad value",
	  "the value of a label is at most 256 bytes of UTF-8, without control characters" },
	{ "--max-sessions|0|a", CM_E_INVALID, "--max-sessions must be 1 to 1000000, not '0'",
	  LIMIT_HINT("50") },
	{ "--retention|files|a", CM_E_INVALID, "--retention does not say which sessions may go",
	  RETENTION_HINT },
	{ "--retention|keep-last=0|a", CM_E_INVALID, "--retention must be 1 to 1000000, not '0'",
	  RETENTION_HINT },
	{ "--retention|older-than=7d;x|a", CM_E_INVALID,
	  "--retention must be a duration such as 90s, 1.5h or 2m30s, not '7d;x'", RETENTION_HINT },
	{ "--retention|keep-last=1,all|a", CM_E_INVALID, "--retention does not know 'all'",
	  RETENTION_HINT },
	{ "--idle-timeout|30m|a", CM_E_INVALID, "--idle-timeout needs --session",
	  "a temporary session ends with its command; --timeout DURATION ends that" },
	{ "--keep|--lifetime|8h|a", CM_E_INVALID, "--lifetime needs --session",
	  "a temporary session ends with its command; --timeout DURATION ends that" },
	{ "--cpus|0|a", CM_E_INVALID, "--cpus must be 0.01 to 8192, not '0'", LIMIT_HINT("1.5") },
	{ "--cpuset|1-|a", CM_E_INVALID,
	  "--cpuset must be a list of processors (0 to 8191), not '1-'", "for example 0-1,3" },
	{ "--cpuset|3-1|a", CM_E_INVALID,
	  "--cpuset must be a list of processors (0 to 8191), not '3-1'", "for example 0-1,3" },
	{ "--cpuset|8192|a", CM_E_INVALID,
	  "--cpuset must be a list of processors (0 to 8191), not '8192'", "for example 0-1,3" },
	{ "--failure-exit|0|a", CM_E_INVALID, "--failure-exit must be 1 to 255, not '0'",
	  "give --failure-exit a value from 1 to 255" },
	{ "--result|fd:0|a", CM_E_INVALID, "--result must be 1 to 65535, not '0'",
	  "for example --result fd:3, with '3>result.json' in the shell" },
	{ "--root|r|a", CM_E_INVALID, "--root must be an absolute path, not 'r'",
	  "write it in full, or from '~/'" },
	{ "--root|~bob/r|a", CM_E_INVALID, "--root must be an absolute path, not '~bob/r'",
	  "write it in full, or from '~/'" },
	{ "--session|a/b|a", CM_E_INVALID, "bad session id 'a/b'", ID_HINT },
	{ "--ref|-x|a", CM_E_INVALID, "--ref must not begin with a dash, as '-x' does", DASH_HINT },
	{ "--workspace|a\nb|a", CM_E_INVALID, "--workspace must not have control characters", "" },
	/* words */
	{ "--network|allow|a", CM_E_UNSUPPORTED, "--network 'allow' is not supported yet",
	  NETWORK_HINT },
	{ "--network|bridge|a", CM_E_UNSUPPORTED, "--network 'bridge' is not supported",
	  NETWORK_HINT },
	{ "--network|Host|a", CM_E_INVALID,
	  "--network must be none or host or internet, not 'Host'", "for example --network none" },
	{ "--user|0|a", CM_E_INVALID, "--user '0' is not a word for a user", "use --user root" },
	{ "--user|1000:1000|a", CM_E_INVALID, "--user '1000:1000' is not a word for a user",
	  "use --user user, which is uid 1000 in the jail" },
	{ "--user|bob|a", CM_E_INVALID, "--user must be user or root, not 'bob'",
	  "for example --user user" },
	{ "--git|ro|a", CM_E_INVALID, "--git must be pinned or rw, not 'ro'",
	  "for example --git pinned" },
	{ "--min-level|landlock|a", CM_E_UNSUPPORTED,
	  "--min-level 'landlock' is not supported: without namespaces there is no jail",
	  LEVEL_HINT "; 'casemate doctor' says what this host has" },
	{ "--min-level|none|a", CM_E_INVALID,
	  "--min-level 'none' is not a level that can be asked for",
	  "use --min-level no-cgroup, the lowest there is" },
	{ "--min-level|full-single-id|a", CM_E_INVALID, "--min-level 'full-single-id' " QUALIFIER,
	  LEVEL_HINT },
	{ "--min-level|hostnet|a", CM_E_INVALID, "--min-level 'hostnet' " QUALIFIER,
	  "use --network none to keep the host's network out" },
	{ "--min-level|nested|a", CM_E_INVALID, "--min-level 'nested' " QUALIFIER, LEVEL_HINT },
	{ "--min-level|high|a", CM_E_INVALID, "--min-level must be full or no-cgroup, not 'high'",
	  "for example --min-level full" },
	/* environment: no value in a message */
	{ "-e|=secret|a", CM_E_INVALID, "--env: a variable without a name", ENV_HINT },
	{ "-e|A B=secret|a", CM_E_INVALID,
	  "--env: a variable's name must not have blanks or control characters",
	  "write NAME=VALUE, with no blank before the '='" },
	{ "--pass-env|A=b|a", CM_E_INVALID, "--pass-env takes patterns of names, not 'A=b'",
	  "--env NAME=VALUE sets a variable" },
	/* volumes */
	{ "-v|/a:b|a", CM_E_INVALID,
	  "--volume: 'b' is neither an absolute path in the jail nor ro or rw",
	  "write SRC[:DST][:ro], for example /srv/cache:/cache:ro" },
	{ "-v|/a:/b:z|a", CM_E_INVALID,
	  "--volume: 'z' is neither an absolute path in the jail nor ro or rw",
	  "write SRC[:DST][:ro], for example /srv/cache:/cache:ro" },
	{ "-v|data:/b|a", CM_E_UNSUPPORTED, "--volume: there are no named volumes such as 'data'",
	  "write './data:/b' for a directory" },
	{ "-v|/a:/|a", CM_E_INVALID, "--volume cannot be put at '/'",
	  "--rootfs DIR takes another root file system" },
	{ "-v|/a:/x/..|a", CM_E_INVALID, "--volume cannot be put at '/'",
	  "--rootfs DIR takes another root file system" },
	{ "-v|:/b|a", CM_E_UNSUPPORTED, "--volume: there are no named volumes such as ''",
	  "write './:/b' for a directory" },
	{ "-v|/a:/x|-v|/b:/x/|a", CM_E_INVALID, "--volume: two volumes at '/x'", "" },
	{ "--mount|type=tmpfs,dst=/b|a", CM_E_UNSUPPORTED, "--mount: 'type=tmpfs' is not supported",
	  MOUNT_HINT },
	{ "--mount|type=bind,dst=/b|a", CM_E_INVALID, "--mount: src= is missing", MOUNT_HINT },
	{ "--mount|type=bind,src=/a,dst=b|a", CM_E_INVALID,
	  "--mount: 'b' must be an absolute path in the jail",
	  "for example --volume /srv/cache:/cache:ro" },
	{ "--ulimit|core=0|a", CM_E_UNSUPPORTED, "--ulimit 'core=0' is not supported",
	  "--ulimit takes nofile=N; --pids-limit N limits processes, --memory SIZE memory, and no "
	  "core is ever written" },
	{ "--ulimit|nofile=1024:2048|a", CM_E_UNSUPPORTED,
	  "--ulimit: soft and hard limit must be the same", "" },
	{ "--ulimit|nofile=x|a", CM_E_INVALID, "--ulimit must be 16 to 1073741824, not 'x'",
	  LIMIT_HINT("1024") },
	/* repositories */
	{ "--repo|ftp://example.org/a|a", CM_E_INVALID,
	  "--repo: the repository's address is of an unknown kind",
	  "there are https://, http://, ssh://, git:// and file://, HOST:PATH for ssh, and the "
	  "path of a repository" },
	{ "--repo|u:secret@example.org/a|a", CM_E_INVALID,
	  "--repo: the repository's address has a password, but no scheme",
	  "write https://HOST/PATH, or the path of a repository" },
	{ "--repo|file://example.org/a|a", CM_E_INVALID,
	  "--repo: the repository's address names a host, where file:// has none",
	  "write https://HOST/PATH, or the path of a repository" },
	{ "--repo|-x|a", CM_E_INVALID, "--repo must not begin with a dash, as '-x' does",
	  DASH_HINT },
	/* contradictions */
	{ "--workspace|.|--repo|.|a", CM_E_INVALID, "--workspace and --repo contradict each other",
	  "--workspace works on a tree as it is, --repo on a new checkout" },
	{ "--repo|.|--no-workspace|a", CM_E_INVALID,
	  "--no-workspace and --repo contradict each other",
	  "--workspace works on a tree as it is, --repo on a new checkout" },
	{ "--ref|v1|a", CM_E_INVALID, "--ref needs --repo", "name the repository with --repo URL" },
	{ "--session|x|--ref|v1|a", CM_E_INVALID, "--ref needs --repo",
	  "name the repository with --repo URL" },
	{ "--repo|/r|--setup-secret|TOKEN|a", CM_E_INVALID, "--setup-secret needs --setup",
	  "name the commands with --setup CMD: they alone get it" },
	{ "--setup|npm ci|a", CM_E_INVALID, "--setup needs --repo or --session",
	  "without them put the setup into the command: -c 'npm ci && npm test'" },
	{ "--json|-t|a", CM_E_INVALID, "--json and a terminal (--tty) contradict each other",
	  "--result FILE gives the same object beside live output" },
	{ "-c|ls|a", CM_E_INVALID, "-c and the command 'a' contradict each other",
	  "put all of it into -c's text, in quotes" },
	/* options that are not ours */
	{ "--memroy|4G|a", CM_E_INVALID, "unknown option '--memroy'", "did you mean '--memory'?" },
	{ "--memroy=secret|a", CM_E_INVALID, "unknown option '--memroy'",
	  "did you mean '--memory'?" },
	{ "--xyzzy|a", CM_E_INVALID, "unknown option '--xyzzy'",
	  "'casemate help run' lists the options; '--' ends them" },
	{ "-z|a", CM_E_INVALID, "unknown option '-z'",
	  "'casemate help run' lists the options; '--' ends them" },
	{ "-iz|a", CM_E_INVALID, "unknown option '-z'",
	  "'casemate help run' lists the options; '--' ends them" },
	{ "--no-memory|a", CM_E_INVALID, "unknown option '--no-memory'",
	  "did you mean '--memory'?" },
	{ "--no-|a", CM_E_INVALID, "unknown option '--no-'",
	  "'casemate help run' lists the options; '--' ends them" },
	{ "--=x|a", CM_E_INVALID, "unknown option '--'",
	  "'casemate help run' lists the options; '--' ends them" },
	{ "--memory-swap|8G|a", CM_E_INVALID, "unknown option '--memory-swap'",
	  "--swap SIZE is swap alone, on top of --memory" },
	{ "--ro-bind|/|/|a", CM_E_INVALID, "unknown option '--ro-bind'", "--volume SRC:DST:ro" },
	{ "--bind|/|/|a", CM_E_INVALID, "unknown option '--bind'", "--volume SRC:DST" },
	{ "--chdir|/x|a", CM_E_INVALID, "unknown option '--chdir'", "--workdir DIR" },
	{ "--setenv|A|b|a", CM_E_INVALID, "unknown option '--setenv'", "--env NAME=VALUE" },
	{ "--share-net|a", CM_E_INVALID, "unknown option '--share-net'", "--network host" },
	{ "--unshare-all|a", CM_E_INVALID, "unknown option '--unshare-all'",
	  "not needed: every jail has all namespaces" },
	{ "--rm|a", CM_E_INVALID, "unknown option '--rm'",
	  "not needed: without --session nothing is left behind" },
	{ "--net=host|a", CM_E_INVALID, "unknown option '--net'", "--network none|host" },
	{ "--settings|f|a", CM_E_INVALID, "unknown option '--settings'",
	  "--policy FILE, or ~/.config/casemate/config.json" },
	{ "--debug|a", CM_E_INVALID, "unknown option '--debug'", "--verbose" },
	{ "--device|/dev/kvm|a", CM_E_UNSUPPORTED, "option '--device' is not supported yet",
	  NO_DEVICE },
	{ "--gpus=all|a", CM_E_UNSUPPORTED, "option '--gpus' is not supported yet", NO_DEVICE },
	{ "-p|80:80|a", CM_E_UNSUPPORTED, "option '-p' is not supported yet",
	  "with --network host the host's ports are the command's" },
	{ "--allow|@npm|a", CM_E_UNSUPPORTED, "option '--allow' is not supported yet",
	  NETWORK_HINT },
};

static void test_bad_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		struct cm_error err = CM_ERROR_INIT;
		CM_AUTO_FREE char *dump = NULL;
		int r = run_line(bad[i].line, &dump, &err);

		if (r == CM_OK)
			fail_msg("'%s' was taken: %s", bad[i].line, dump);
		if (strcmp(err.msg, bad[i].msg) != 0)
			fail_msg("'%s':\n'%s', not\n'%s'", bad[i].line, err.msg, bad[i].msg);
		if (strcmp(err.hint, bad[i].hint) != 0)
			fail_msg("'%s':\n'%s', not\n'%s'", bad[i].line, err.hint, bad[i].hint);
		if (r != bad[i].code || err.code != r)
			fail_msg("'%s': code %d", bad[i].line, r);
	}
}

/* Each word of the table of other tools' options is none of ours, which would hide it. */
static void test_foreign_words(void **state)
{
	static const char *const options[] = {
#define CM_FOREIGN(option, hint) option,
#define CM_LATER(option, hint) option,
#include "runtime/spec/foreign.def"
#undef CM_FOREIGN
#undef CM_LATER
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(options); i++) {
		struct cm_error err = CM_ERROR_INIT;
		CM_AUTO_FREE char *dump = NULL;

		assert_int_not_equal(run_line(options[i], &dump, &err), CM_OK);
		assert_non_null(strstr(err.msg, options[i]));
		assert_string_not_equal(err.hint, "");
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(options[i], options[j]);
	}
}

static void test_failure_exit_of_a_wrong_line(void **state)
{
	static const struct {
		const char *line;
		int status;
	} lines[] = {
		{ "--xyzzy|--failure-exit|7|a", 7 },
		{ "--failure-exit=8|-z|--memory|x|a", 8 },
		{ "--memory|x|a|--failure-exit|7", -1 },
		{ "--|--failure-exit|7", -1 },
		{ "--failure-exit|0|a", -1 },
		{ "--failure-exit|x|a", -1 },
		{ "--failure-exit", -1 },
		{ "--failure-exit|7|--failure-exit|9|a", 9 },
		{ "a", -1 },
		{ "", -1 },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(lines); i++) {
		CM_AUTO_FREE char *copy = strdup(lines[i].line);
		char *words[MAX_WORDS];
		int n = split(copy, words);

		assert_int_equal(cm_flags_failure_exit(n, words), lines[i].status);
	}
}

static void test_wants_help(void **state)
{
	static const struct {
		const char *line;
		bool is_wanted;
	} lines[] = {
		{ "--help", true },	     { "-h", true },	    { "-ith", true },
		{ "--json|--help|a", true }, { "a|--help", false }, { "--|--help", false },
		{ "-e|--help|a", false },    { "", false },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(lines); i++) {
		CM_AUTO_FREE char *copy = strdup(lines[i].line);
		char *words[MAX_WORDS];
		int n = split(copy, words);

		assert_true(cm_flags_wants_help(n, words) == lines[i].is_wanted);
	}
}

static void test_no_home(void **state)
{
	static const struct cm_caller homeless = { .cwd = "/", .env = &test_env };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_layer layer = { 0 };
	struct cm_spec spec;
	struct cm_merge m = { .spec = &spec, .caller = &homeless };

	(void)state;
	cm_spec_init(&spec);
	assert_int_equal(cm_layer_add(&layer, CM_KEY_ROOT, "~/x", "--root", NULL, &err), CM_OK);
	assert_int_equal(cm_merge_layer(&m, &layer, &err), CM_E_INVALID);
	assert_string_equal(err.msg, "--root: no home directory for '~/x'");
	assert_string_equal(err.hint, "set HOME to an absolute path, or write the path in full");
	cm_layer_clear(&layer);
	cm_spec_clear(&spec);
}

static void test_too_many(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_layer layer = { 0 };
	struct cm_spec spec;
	struct cm_merge m = { .spec = &spec, .caller = &test_caller };
	int r = CM_OK;

	(void)state;
	for (int i = 0; i < 129; i++) {
		char text[32];

		(void)snprintf(text, sizeof(text), "/v%d", i);
		assert_int_equal(cm_layer_add(&layer, CM_KEY_VOLUME, text, "--volume", NULL, &err),
				 CM_OK);
	}
	cm_spec_init(&spec);
	assert_int_equal(cm_merge_layer(&m, &layer, &err), CM_E_LIMIT);
	assert_string_equal(err.msg, "--volume: more than 128 of them");
	assert_int_equal(spec.n_volumes, 128);
	cm_spec_clear(&spec);
	while (r == CM_OK)
		r = cm_layer_add(&layer, CM_KEY_ENV, "A=b", "--env", NULL, &err);
	assert_int_equal(r, CM_E_LIMIT);
	assert_int_equal(layer.n, CM_LAYER_MAX);
	cm_layer_clear(&layer);
}

/* Each allocation fails once, for a line that uses every kind. */
static void test_without_memory(void **state)
{
	static const char line[] =
		"--memory|4G|--cpuset|0-3|-e|A=b|-e|A=c|-e|FOO|-v|~/a:/b:ro|--mount|src=/c,dst=/d|"
		"--repo|.|--ref|v1|--setup|x|--session|s|--root|/r|--result|fd:3|--network|host|"
		"--ulimit|nofile=99|-c|ls";
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *dump = NULL;
	long allowed = 0;

	(void)state;
	for (;; allowed++) {
		CM_AUTO_FREE char *copy = strdup(line);
		char *words[MAX_WORDS * 2];
		struct cm_layer layer = { 0 };
		struct cm_origins origins = { 0 };
		struct cm_spec spec;
		struct cm_merge m = { .spec = &spec, .origins = &origins, .caller = &test_caller };
		int n = 0;
		int r;

		for (char *rest = copy; rest;)
			words[n++] = strsep(&rest, "|");
		cm_spec_init(&spec);
		cm_error_clear(&err);
		cm_alloc_fail_after(allowed);
		r = cm_flags_parse(n, words, &layer, &err);
		if (r == CM_OK)
			r = cm_merge_layer(&m, &layer, &err);
		cm_alloc_fail_after(-1);
		if (r != CM_OK)
			assert_string_equal(err.msg, "out of memory");
		else
			dump = test_dump(&spec, &origins);
		cm_layer_clear(&layer);
		cm_origins_clear(&origins);
		cm_spec_clear(&spec);
		if (r == CM_OK)
			break;
		assert_int_equal(r, CM_E_NOMEM);
	}
	assert_true(allowed > 50);
	assert_string_equal(dump,
			    "volume=/home/alice/a:/b:ro volume=/c:/d repo=/srv/app ref=v1 "
			    "setup=x session=s root=/r env=A=c env=FOO=bar memory=4G "
			    "cpuset=0-3 open-files=99 network=host result=fd:3 -- /bin/sh -c ls");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_lines),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_foreign_words),
		cmocka_unit_test(test_failure_exit_of_a_wrong_line),
		cmocka_unit_test(test_wants_help),
		cmocka_unit_test(test_no_home),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
