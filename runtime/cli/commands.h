/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands. argv[0] is the command's name, as it was typed; the value is the exit status.
 * `--help` was dealt with before.
 */
#ifndef CM_RUNTIME_CLI_COMMANDS_H
#define CM_RUNTIME_CLI_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/cli/cli.h"
#include "runtime/spec/keys.h"

/* What a key does in one command, where it is not what keys.def says. */
struct cm_key_help {
	enum cm_key key;
	const char *help;
};

struct cm_command {
	const char *name;
	/* other names, separated by a space */
	const char *aliases;
	int (*run)(struct cm_cli *cli, int argc, char **argv);
	/* after "casemate NAME" */
	const char *usage;
	/* one line, no full stop */
	const char *summary;
	/* the rest of `help NAME`: options, one a line; NULL where has_keys says it all */
	const char *details;
	/* about this host or this program, and not about sessions, which may be elsewhere */
	bool is_here;
	/* takes the options of keys.def; of these only `keys`, where that is not NULL */
	bool has_keys;
	/* with these: the first word that is no option is a session */
	bool takes_session;
	const enum cm_key *keys;
	/* ends with CM_KEY_COUNT; NULL: none */
	const struct cm_key_help *key_helps;
};

/*
 * A command about sessions, of the provider that was chosen. Each program has its own: casemate has the
 * sessions of this host, and casemate-remote, which it becomes for any other provider, the rest.
 */
struct cm_selection;
int cm_cli_run_command(struct cm_cli *cli, const struct cm_command *command,
		       const struct cm_selection *selection, int argc, char **argv);

/* Ends with a NULL name. */
extern const struct cm_command cm_commands[];
/* By name or alias; NULL when there is none. */
const struct cm_command *cm_command_find(const char *name);
/* Fills err: "unknown command 'x'", and the nearest name. */
int cm_command_unknown(const char *name, struct cm_error *err);

/* `help`, as text. */
void cm_help_overview(struct cm_buf *out);
void cm_help_command(const struct cm_command *command, struct cm_buf *out);

int cm_cmd_run(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_create(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_start(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_restart(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_exec(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_shell(struct cm_cli *cli, int argc, char **argv);
/* What exec and shell take; ends with CM_KEY_COUNT. */
extern const enum cm_key cm_exec_keys[];
extern const struct cm_key_help cm_exec_key_helps[];
int cm_cmd_checkout(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_cp(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_file(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_ls(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_ps(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_wait(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_kill(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_stdin(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_attach(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_stats(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_inspect(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_provider(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_setup(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_template(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_logs(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_events(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_stop(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_rm(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_prune(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_df(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_doctor(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_config(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_help(struct cm_cli *cli, int argc, char **argv);
int cm_cmd_version(struct cm_cli *cli, int argc, char **argv);

#endif
