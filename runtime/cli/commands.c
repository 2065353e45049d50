/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands. */
#include "runtime/cli/commands.h"

#include <string.h>

#include "runtime/base/text.h"

const struct cm_command cm_commands[] = {
	{
		.name = "run",
		.aliases = "",
		.run = cm_cmd_run,
		.usage = "[OPTION...] [--] COMMAND [ARG...]",
		.summary = "run a command in a jail",
		.details =
			"Standard input, output and error are the command's. The exit status is the\n"
			"command's own; 124: timeout; 125: casemate failed, and the command did not\n"
			"start or its output could not be written, as the message says; 126, 127: it\n"
			"cannot be executed, was not found; 128+N: signal N.\n"
			"\n"
			"INT, TERM, HUP and QUIT go to the command's process group, which is killed two\n"
			"seconds after the first or at the second; USR1, USR2, ALRM and the real-time\n"
			"signals go to the command alone; WINCH and CONT, where it has no terminal, to\n"
			"its group.\n"
			"\n"
			"With -t and input that is no terminal, the end of the input is passed on as the\n"
			"terminal's end-of-file character.\n"
			"\n"
			"A session that --session names works in a directory of its own below --root,\n"
			"not in the current one, unless --workspace or --repo say otherwise. All of a\n"
			"workspace's .git is read-only unless --git rw is given.\n"
			"\n"
			"DURATION is 500ms, 90s, 10m or 1h; SIZE is 64K, 512M or 2G.\n",
		.has_keys = true,
	},
	{
		.name = "create",
		.aliases = "",
		.run = cm_cmd_create,
		.usage = "ID [OPTION...]",
		.summary = "make a session, and start nothing yet",
		.details =
			"Its repository is checked out, its jail made and its setup run with its first\n"
			"command, once, however many come at the same time: 'casemate exec ID'.\n"
			"Elsewhere (--provider) it is made and stopped, and takes no --repo, --setup or\n"
			"--teardown: 'casemate start ID' does.\n",
		.has_keys = true,
		.takes_session = true,
	},
	{
		.name = "start",
		.aliases = "",
		.run = cm_cmd_start,
		.usage = "ID [OPTION...]",
		.summary = "make a session where there is none, start it and set it up",
		.details =
			"Its jail stays until 'casemate stop ID', and takes commands: 'casemate exec ID'.\n"
			"Options are those of the session; one that exists keeps what it was made with.\n"
			"What --env and --pass-env name is in the environment of all its commands.\n"
			"Without --git rw they read its git directory and cannot write to it.\n",
		.has_keys = true,
		.takes_session = true,
	},
	{
		.name = "exec",
		.aliases = "",
		.run = cm_cmd_exec,
		.usage = "ID [OPTION...] [--] COMMAND [ARG...]",
		.summary = "run a command in a session",
		.details =
			"As 'run' in a session that exists, which is started where it does not run. The\n"
			"command gets standard input with -i, and a terminal with -t; else it reads\n"
			"nothing. It starts where the caller is, if that is in the session's workspace.\n"
			"Whoever ends 'casemate exec' ends the wait; the command goes on where that was\n"
			"no signal that is passed on.\n"
			"\n"
			"'index.lock: Read-only file system': the session was made without --git rw.\n",
		.has_keys = true,
		.takes_session = true,
		.keys = cm_exec_keys,
		.key_helps = cm_exec_key_helps,
	},
	{
		.name = "shell",
		.aliases = "",
		.run = cm_cmd_shell,
		.usage = "ID [OPTION...]",
		.summary = "a shell in a session, with a terminal",
		.has_keys = true,
		.takes_session = true,
		.keys = cm_exec_keys,
		.key_helps = cm_exec_key_helps,
	},
	{
		.name = "file",
		.aliases = "",
		.run = cm_cmd_file,
		.usage = "read|write|ls|stat|mkdir|mv|rm|watch|url [OPTION...] ID PATH...",
		.summary = "read and change files of a session",
		.details =
			"  read   [--offset N] [--length SIZE] ID PATH      to standard output\n"
			"  write  [--append | --atomic] [-m MODE] [-p] ID PATH\n"
			"                             from standard input; -p: with the directories above;\n"
			"                             --atomic: a new file, synced, then in its place\n"
			"  ls     [-r] [-d] [-l | -0 | --json] ID [PATH...]\n"
			"                             -0: names as they are, each with a NUL behind\n"
			"  stat   [-L] [--json] ID PATH...   -L: of what a link leads to\n"
			"  mkdir  [-p] [-m MODE] ID PATH...\n"
			"  mv     [-n] ID FROM TO     -n, --no-clobber: refused where something is\n"
			"  rm     [-r] [-f] ID PATH...       never through a link\n"
			"  watch  [--json] ID [PATH]  what happens at PATH and below, until INT\n"
			"  url    [--upload] [--expires TIME] [--json] ID PATH\n"
			"                             an address by which whoever has it reads PATH, or\n"
			"                             writes it (--upload), while the session runs and\n"
			"                             until --expires (30s, 2h); E2B's sessions alone\n"
			"\n"
			"      --root DIR             session root\n"
			"  -u, --user user            not as root in a session of --user root\n"
			"      --json                 a JSON object a line; of names that are no UTF-8\n"
			"                             \"nameBase64\" has the bytes\n"
			"\n"
			"As commands of the session would, in its jail and with their rights; it is\n"
			"started where it does not run. A relative PATH is below where 'casemate exec'\n"
			"starts; '~' and '*' are the shell's. Set-id and sticky bits cannot be set. Other\n"
			"names are printed escaped. The exit status is 1 where something could not be\n"
			"done in the session, 125 where it could not be reached, 128+N after signal N.\n",
	},
	{
		.name = "cp",
		.aliases = "",
		.run = cm_cmd_cp,
		.usage = "SRC ID:DST | ID:SRC DST | ID:SRC ID:DST",
		.summary = "copy files and trees into a session, or out of it",
		.details =
			"      --root DIR             session root\n"
			"  -u, --user user            not as root in a session of --user root\n"
			"      --all-links            out of a session: symbolic links that lead out of\n"
			"                             what is copied, too; else they are left out\n"
			"  -q, --quiet                no notes\n"
			"\n"
			"As 'docker cp': into DST where that is a directory, else as DST; of SRC/. what is\n"
			"in it. '-' is standard input or output, for one file. Modes, times, symbolic links\n"
			"and holes are kept; set-id bits, owners and hard links are not; devices, FIFOs and\n"
			"sockets are left out. Whatever is left out is named, and the exit status is 1.\n"
			"A file of this side whose name looks like ID:PATH is ./ID:PATH.\n"
			"\n"
			"Of this side no symbolic link is followed on the way, but those in '/': a session\n"
			"that can write there could have made it. A link in SRC is copied as a link.\n",
	},
	{
		.name = "restart",
		.aliases = "",
		.run = cm_cmd_restart,
		.usage = "ID [OPTION...]",
		.summary = "end a session's processes, and start it again",
		.details = "Options are as for 'start': the session keeps what it was made with.\n",
		.has_keys = true,
		.takes_session = true,
	},
	{
		.name = "ls",
		.aliases = "list",
		.run = cm_cmd_ls,
		.usage = "[-a] [-s] [--filter KEY=VALUE]... [--json | -q | --format TEXT]",
		.summary = "list sessions",
		.details =
			"      --root DIR             those below this session root\n"
			"  -f, --filter KEY=VALUE     state=STATE, level=GLOB, label=KEY[=VALUE],\n"
			"                             name=PREFIX|GLOB, repo=GLOB or root=DIR; of several of\n"
			"                             one key one has to hold, of labels all\n"
			"      --json                 a JSON list\n"
			"      --format TEXT          a line a session, with {id}, {state}, {level}, {age},\n"
			"                             {idle}, {mem}, {disk}, {repo}, {workspace}, {created},\n"
			"                             {root}, {dir}, {label.KEY}; \\t and \\n\n"
			"  -a, --all                  temporary sessions too\n"
			"  -s, --size                 what each takes of the disk: walks its trees\n"
			"  -q, --quiet                ids only: 'casemate rm $(casemate ls -q)'\n"
			"\n"
			"IDLE is the time since a command began or ended in it, or since it stopped; 'active'\n"
			"is what has processes beside its init. It and MEM come from the session's control\n"
			"groups, and are '-' where it has none.\n",
	},
	{
		.name = "ps",
		.aliases = "",
		.run = cm_cmd_ps,
		.usage = "[ID] [-a] [--json | -q]",
		.summary = "list a session's commands; without ID the sessions, as 'ls'",
		.details =
			"      --root DIR             session root\n"
			"      --json                 a JSON list\n"
			"  -a, --all                  all that ended, not the last ten\n"
			"  -q, --quiet                ids only\n"
			"\n"
			"STATE is how a command ended; 'children left': it has, and processes that it\n"
			"started live on; 'unknown': it has, and its session's keeper was killed. TIME is\n"
			"how long it ran, or has run. Of a command that somebody waits for nothing is\n"
			"known when it has ended; of others the last 256 are.\n",
	},
	{
		.name = "wait",
		.aliases = "",
		.run = cm_cmd_wait,
		.usage = "[--timeout DURATION] [--json] ID COMMAND",
		.summary = "wait until a command has ended",
		.details =
			"      --root DIR             session root\n"
			"      --timeout DURATION     no longer than that\n"
			"      --json                 a JSON object: how it ended\n"
			"  -q, --quiet                do not say how it ended\n"
			"\n"
			"COMMAND is 3.17, or 17 where that says which one. The exit status is what that\n"
			"of 'casemate exec' would be: the command's own, 124 after its own time limit,\n"
			"128+N after signal N, 126, 127. It is 125 where nobody knows how it ended, and\n"
			"where it still runs when --timeout is over: the command goes on. INT ends the\n"
			"wait alone.\n",
	},
	{
		.name = "kill",
		.aliases = "",
		.run = cm_cmd_kill,
		.usage = "[-s SIGNAL] [--json] ID COMMAND",
		.summary = "end a command with all that it started, or send it a signal",
		.details =
			"      --root DIR             session root\n"
			"  -s, --signal SIGNAL        a name or a number, to the process group of the\n"
			"                             command's main process, and do not wait: also with\n"
			"                             KILL what it started elsewhere lives on\n"
			"      --json                 a JSON object: how it ended\n"
			"\n"
			"COMMAND is 3.17, or 17 where that says which one. Without -s all of its processes\n"
			"get TERM, two seconds later KILL, and when none is left the exit status is 0. It\n"
			"is 1 where the command had ended already.\n",
	},
	{
		.name = "stdin",
		.aliases = "",
		.run = cm_cmd_stdin,
		.usage = "[--close] ID COMMAND",
		.summary = "pass standard input to a command that nobody waits for",
		.details =
			"      --root DIR             session root\n"
			"      --close                its input ends with this one, or at once where this\n"
			"                             one is a terminal or /dev/null\n"
			"\n"
			"The command is one of 'exec -d -i', or of 'exec -d -t': for that it is typed. Any\n"
			"number may write at once; up to 4096 bytes that are read at once stay together.\n"
			"Returns when the command's input has taken it all, which is not yet read.\n",
	},
	{
		.name = "attach",
		.aliases = "",
		.run = cm_cmd_attach,
		.usage = "[--no-stdin] [--tail N] ID COMMAND",
		.summary = "follow a command that nobody waits for, and type for it",
		.details =
			"      --root DIR             session root\n"
			"      --no-stdin             look on\n"
			"  -n, --tail N               begin N lines before the end of what it has printed\n"
			"  -q, --quiet                no notes\n"
			"\n"
			"Standard input goes to a command that has one (exec -d -i), and its end is the end\n"
			"of the command's. Of a command with a terminal (exec -d -t) this terminal becomes\n"
			"that one; Ctrl-P Ctrl-Q leaves it. INT and QUIT are typed at a command's terminal;\n"
			"else they, TERM and HUP end this command alone. The exit status is that of 'wait'.\n"
			"What goes to a terminal that is not the command's is escaped.\n",
	},
	{
		.name = "stats",
		.aliases = "",
		.run = cm_cmd_stats,
		.usage = "[--json] [--once] [--size] [ID...]",
		.summary = "show what sessions that run use",
		.details =
			"      --root DIR             session root\n"
			"      --json                 a JSON list\n"
			"      --once, --no-stream    one table, also on a terminal\n"
			"      --size                 what home, /tmp and session directory take, too\n"
			"\n"
			"On a terminal it is shown anew each second, until INT. CPU is of one processor.\n"
			"MEMORY is without what the kernel only caches of files. '~': summed over the\n"
			"session's processes, where no control group counts; or, of DISK, what could be\n"
			"looked at.\n",
	},
	{
		.name = "inspect",
		.aliases = "",
		.run = cm_cmd_inspect,
		.usage = "[--json | --plan] ID",
		.summary = "show a session: settings, state, what enforces each limit",
		.details =
			"      --root DIR             session root\n"
			"      --json                 a JSON object, with the resources that it uses\n"
			"      --size                 with --json: what its files take, too\n"
			"      --plan                 the plan of the last start, as text\n",
	},
	{
		.name = "checkout",
		.aliases = "",
		.run = cm_cmd_checkout,
		.usage = "ID [--repo URL|PATH] [--unshallow] [OPTION...]",
		.summary = "make a session with its repository, or bring that up to date",
		.details =
			"Prints where the checkout is, and runs nothing in it. The session is made as\n"
			"'casemate run --session ID' makes it, with the same options, and runs go on with\n"
			"it.\n"
			"\n"
			"Of a session that has its checkout, running or not, the remote's branches and tags\n"
			"are fetched. With --ref, --pr or --branch it is then put on that: a branch that it\n"
			"has already is gone back to, and moved only where --ref and --pr (and --branch,\n"
			"where the remote has it) lead on from it. What is not committed is never\n"
			"overwritten: the checkout stays as it is then, which a note says, and \"moved\":\n"
			"false in the result; the exit status is 0, for what was fetched is there.\n"
			"\n"
			"      --unshallow            fetch the history that --depth left out\n",
		.has_keys = true,
		.takes_session = true,
	},
	{
		.name = "setup",
		.aliases = "",
		.run = cm_cmd_setup,
		.usage = "[--retry | --mark-done | --log] [--json] ID",
		.summary = "show how a session's setup went, or run it again",
		.details =
			"      --retry                run its setup commands again, in the session\n"
			"      --mark-done            take the session for set up, and run nothing\n"
			"      --log                  what setup printed: how it began and how it ended\n"
			"      --root DIR             session root\n"
			"      --json                 a JSON object; with --retry how it went, at the end\n"
			"  -q, --quiet                show what --retry prints only if it fails\n",
	},
	{
		.name = "logs",
		.aliases = "",
		.run = cm_cmd_logs,
		.usage = "[-f] [OPTION...] ID COMMAND",
		.summary = "show what a command printed that nobody waits for",
		.details =
			"      --root DIR             session root\n"
			"  -f, --follow               go on until the command has ended\n"
			"      --stream stdout|stderr that stream alone, on standard output\n"
			"  -n, --tail N               the last N lines\n"
			"      --offset N             from byte N of the stream on (stdout)\n"
			"      --bytes SIZE           no more than that of the stream (stdout)\n"
			"  -q, --quiet                do not say what is missing\n"
			"\n"
			"COMMAND is 3.17, or 17 where that says which one. What it wrote to standard\n"
			"output goes there, and to standard error likewise: as it is, and escaped on a\n"
			"terminal. It can be read when the session has stopped, and while it runs by any\n"
			"number of readers. Of each stream the beginning and the end are kept.\n"
			"The exit status is 0, however the command ended.\n",
	},
	{
		.name = "events",
		.aliases = "",
		.run = cm_cmd_events,
		.usage = "[-f] [OPTION...] ID",
		.summary = "show what happened in a session, one JSON object a line",
		.details =
			"      --root DIR             session root\n"
			"  -f, --follow               go on until the session is removed\n"
			"      --since SEQ            only those after the one of that number\n"
			"      --type PREFIX          only those whose type begins so: exec., phase.failed\n"
			"  -q, --quiet                no notes on standard error\n",
	},
	{
		.name = "stop",
		.aliases = "",
		.run = cm_cmd_stop,
		.usage = "ID...",
		.summary = "end a session's processes and keep its files",
		.details =
			"      --root DIR             session root\n"
			"      --no-teardown          do not run its --teardown commands before\n"
			"\n"
			"Elsewhere (--provider) its sandbox is paused, or its files are saved: what is\n"
			"kept is the provider's.\n",
	},
	{
		.name = "rm",
		.aliases = "destroy",
		.run = cm_cmd_rm,
		.usage = "[--files [--force]] ID...",
		.summary = "end a session and forget it",
		.details =
			"      --root DIR             session root\n"
			"      --no-teardown          do not run its --teardown commands before\n"
			"                             (a signal while they run: nothing is removed)\n"
			"      --files                remove its session directory too, or what an\n"
			"                             earlier rm kept of it\n"
			"      --force                also with work that is nowhere else\n"
			"\n"
			"What has uncommitted changes, untracked files, stashes, or commits that no remote\n"
			"has stays, as with 'casemate prune --files': the session is stopped, no more.\n"
			"Elsewhere (--provider) a session's files are in its sandbox alone: --files is\n"
			"needed, and --force removes one that runs. What is in them is not looked at.\n",
	},
	{
		.name = "prune",
		.aliases = "",
		.run = cm_cmd_prune,
		.usage = "[--older-than DURATION] [--keep-last N] [--files] [OPTION...]",
		.summary = "forget sessions that are not used any more",
		.details =
			"      --older-than DURATION  those that were not used for so long: 7d, 12h\n"
			"      --keep-last N          all but the N that were used last\n"
			"      --state STATE          stopped, error or created; may be repeated\n"
			"  -l, --label KEY[=VALUE]    those with this label; may be repeated\n"
			"  -f, --filter KEY=VALUE     as 'casemate ls' has it; may be repeated\n"
			"  -a, --all                  all that do not run\n"
			"      --files                their session directories, too\n"
			"      --force                also directories with work that is nowhere else\n"
			"  -n, --dry-run              remove nothing\n"
			"      --root DIR             those below this session root\n"
			"      --json                 a JSON object: removed, kept, failed, bytes\n"
			"  -q, --quiet                print the ids alone\n"
			"\n"
			"All that is said has to hold. A session that runs never goes. With --files one\n"
			"whose directory has a git repository with uncommitted changes, untracked files,\n"
			"stashes, or commits on no branch of a remote, stays and is named; so does one of\n"
			"which that cannot be told, as with linked worktrees. Looked at are the checkout,\n"
			"the session directory, and what is right in it.\n",
	},
	{
		.name = "df",
		.aliases = "",
		.run = cm_cmd_df,
		.usage = "[--json]",
		.summary = "show what sessions take of the disk, and what could go",
		.details =
			"      --json                 a JSON object\n"
			"\n"
			"RECLAIMABLE is what belongs to sessions that do not run ('casemate prune'; their\n"
			"directories with --files), directories that were kept ('casemate rm --files ID'),\n"
			"and mirrors and skeletons that nobody uses, which the next session would make anew.\n"
			"A '+' says that something could not be looked at.\n",
	},
	{
		.name = "doctor",
		.aliases = "",
		.run = cm_cmd_doctor,
		.is_here = true,
		.usage = "[--json | --summary]",
		.summary = "say what this host can isolate, and what to do about the rest",
		.details = "      --root DIR             session root\n"
			   "      --json                 a JSON object\n"
			   "      --summary              the last lines only\n"
			   "The exit status is 0 when a jail can be made here, else 1.\n",
	},
	{
		.name = "template",
		.aliases = "",
		.run = cm_cmd_template,
		.usage = "build|ls|rm [OPTION...] [NAME...]",
		.summary = "build and list what a provider's sandboxes are made from",
		.details =
			"  build  [--base NAME] [--cpus N] [--memory SIZE] [--run COMMAND]... [--json] [-q]\n"
			"         NAME [-- COMMAND [ARG...]]\n"
			"                             --run: shell text, in order; may be repeated. The log\n"
			"                             goes to standard error, the template's name to\n"
			"                             standard output\n"
			"  ls     [--json]            a JSON list: name, state\n"
			"  rm     NAME...\n"
			"\n"
			"'casemate start ID --template NAME' makes a session of one. Sessions of this host\n"
			"have none: --provider e2b.\n",
	},
	{
		.name = "provider",
		.aliases = "",
		.run = cm_cmd_provider,
		.is_here = true,
		.usage = "[show|ls] [--json]",
		.summary = "say where sessions are, and why",
		.details =
			"  show   the provider that is chosen, and the reason (default)\n"
			"  ls     all of them, and the variables that each needs\n"
			"\n"
			"  --json          an object: provider, reason, providers; no value of a variable is\n"
			"                  ever shown\n"
			"  --provider NAME as if this were said\n",
	},
	{
		.name = "config",
		.aliases = "",
		.run = cm_cmd_config,
		.is_here = true,
		.usage = "show [--origin] [--json] [OPTION...] | check FILE... | schema",
		.summary = "show the effective configuration, or check a file",
		.details =
			"show prints each key that has a value, as 'casemate run' with the same options\n"
			"would have it; --origin adds where the value comes from.\n"
			"check reads a configuration file, a policy or a .casemate.json.\n"
			"schema prints the JSON schema of such files.\n",
	},
	{
		.name = "help",
		.aliases = "",
		.run = cm_cmd_help,
		.is_here = true,
		.usage = "[COMMAND]",
		.summary = "print help",
	},
	{
		.name = "version",
		.aliases = "",
		.run = cm_cmd_version,
		.is_here = true,
		.usage = "[--json]",
		.summary = "print the version",
		.details = "      --json                 a JSON object\n",
	},
	{ .name = NULL },
};

static bool is_listed(const char *list, const char *name)
{
	size_t len = strlen(name);

	while (*list != '\0') {
		size_t word_len = strcspn(list, " ");

		if (word_len == len && memcmp(list, name, len) == 0)
			return true;
		list += word_len;
		list += strspn(list, " ");
	}
	return false;
}

const struct cm_command *cm_command_find(const char *name)
{
	for (const struct cm_command *command = cm_commands; command->name; command++) {
		if (strcmp(command->name, name) == 0 || is_listed(command->aliases, name))
			return command;
	}
	return NULL;
}

/* Words of docker, git and other tools that people will type. */
static const struct {
	const char *name;
	const char *hint;
} foreign_commands[] = {
	{ "top", "'casemate ps ID' lists a session's commands, 'casemate stats' what they use" },
	{ "status", "'casemate ls' lists sessions, 'casemate inspect ID' shows one" },
	{ "container", "'casemate ls' lists sessions; 'casemate help' lists the commands" },
	{ "session", "'casemate ls' lists sessions; 'casemate help' lists the commands" },
	{ "sessions", "'casemate ls' lists sessions; 'casemate help' lists the commands" },
	{ "volume", "--volume DIR:DIR of 'casemate run' and 'casemate start' is one" },
	{ "system", "'casemate df' says what sessions take, 'casemate doctor' what works here" },
	{ "new", "'casemate create ID' or 'casemate start ID' makes a session" },
	{ "delete", "'casemate rm ID' ends a session and forgets it" },
	{ "remove", "'casemate rm ID' ends a session and forgets it" },
	{ "clone", "'casemate checkout ID --repo URL' makes a session with a repository" },
	{ "fetch", "'casemate checkout ID' fetches what the remote of a session has" },
	{ "push", "git does it: with --git rw inside, or where the session's checkout is" },
	{ "commit", "git does it: with --git rw inside, or where the session's checkout is" },
	{ "diff",
	  "git does it, where the session's checkout is: 'casemate inspect ID' says where" },
	{ "rename", "a session keeps its name" },
	{ "pause",
	  "a session that runs nothing costs next to nothing; 'casemate stop ID' ends it" },
	{ "unpause", "nothing is paused; 'casemate start ID' starts what was stopped" },
	{ "login", "there is no registry; CASEMATE_GIT_TOKEN and --git-credential are for git" },
	{ "update", "'casemate checkout ID' updates a checkout; else a session keeps what it has" },
	{ "pull", "there are no images; --rootfs DIR takes another root file system" },
	{ "build", "there are no images; --rootfs DIR takes another root file system" },
	{ "images", "there are no images; --rootfs DIR takes another root file system" },
	{ "info", "'casemate doctor' says what this host can isolate" },
};

/* What is ended or removed on a hint's word is not there any more: such a word is nearly typed. */
static bool is_destructive(const char *name)
{
	return is_listed("rm stop prune kill restart", name);
}

static const char *nearest(const char *name)
{
	unsigned int best = strlen(name) < 4 ? 2 : 3;
	const char *near = NULL;

	for (const struct cm_command *command = cm_commands; command->name; command++) {
		unsigned int distance = cm_text_distance(name, command->name, best);

		if (distance < best && (distance <= 1 || !is_destructive(command->name))) {
			best = distance;
			near = command->name;
		}
	}
	return near;
}

int cm_command_unknown(const char *name, struct cm_error *err)
{
	const char *near = nearest(name);
	int r;

	if (name[0] == '-') {
		r = cm_error_set(err, CM_E_INVALID, 0, "option '%.100s' before the command", name);
		cm_error_hint(err,
			      "write casemate COMMAND [OPTION...], for example casemate run %.100s",
			      name);
		return r;
	}
	r = cm_error_set(err, CM_E_INVALID, 0, "unknown command '%.100s'", name);
	for (size_t i = 0; i < sizeof(foreign_commands) / sizeof(foreign_commands[0]); i++) {
		if (strcmp(foreign_commands[i].name, name) == 0) {
			cm_error_hint(err, "%s", foreign_commands[i].hint);
			return r;
		}
	}
	if (near)
		cm_error_hint(err, "did you mean '%s'?", near);
	else
		cm_error_hint(err,
			      "'casemate help' lists the commands; "
			      "'casemate run -- %.100s' runs it in a jail",
			      name);
	return r;
}
