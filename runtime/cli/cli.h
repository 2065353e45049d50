/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every command has: the configuration, and the one way to print.
 *
 * Results go to stdout, everything else to stderr. Text that may come from outside is escaped
 * before it reaches a terminal.
 */
#ifndef CM_RUNTIME_CLI_CLI_H
#define CM_RUNTIME_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "casemate/error.h"
#include "runtime/base/buf.h"
#include "runtime/spec/config.h"

/* Casemate itself failed, and the command did not start. */
#define CM_EXIT_FAILURE 125
/* So long a command has after a signal that is to end it, before it is killed. */
#define CM_CLI_GRACE_MS 2000

struct cm_cli {
	/* "casemate" */
	const char *prog;
	/* environment and current directory are read; files when they are asked for */
	struct cm_config config;
	/* stderr is a terminal and NO_COLOR is not set */
	bool has_colour;
	/* 125, or what --failure-exit says */
	int failure_exit;
	bool is_quiet;
	bool is_verbose;
};

/* The whole program: dispatches argv[1]; the process's exit status. */
int cm_cli_main(int argc, char **argv);

/* "casemate: MSG[: strerror]" and "hint: HINT" on stderr. */
void cm_cli_print_error(const struct cm_cli *cli, const struct cm_error *err);
/* Prints the error; returns the exit status of a failure. */
int cm_cli_fail(const struct cm_cli *cli, const struct cm_error *err);
/* "note: ..." on stderr, unless quiet. */
void cm_cli_note(const struct cm_cli *cli, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* All of it to stdout: 0; a failure is printed and its exit status returned (a full disk). */
int cm_cli_print(const struct cm_cli *cli, const char *text, size_t len);

/*
 * Options of the commands that do not make a jail. (Those that do take the keys of keys.def.)
 */
enum cm_cli_option_kind {
	/* target is a bool */
	CM_OPTION_SWITCH = 1,
	/* target is a const char *, which points into argv */
	CM_OPTION_TEXT,
	/* may be repeated; target is a struct cm_strv, which the caller clears */
	CM_OPTION_LIST,
};

struct cm_cli_option {
	/* without the dashes */
	const char *name;
	/* '\0': none */
	char letter;
	enum cm_cli_option_kind kind;
	void *target;
};

/*
 * argv is what follows a command's name: argv[-1] is that, for hints.
 * Reads options anywhere before "--"; what is no option is moved to the front of argv. *ret_n is
 * how many of those there are. "--opt=value", "--opt value" and bundled letters as elsewhere.
 * options ends with a NULL name.
 */
int cm_cli_options(int argc, char **argv, const struct cm_cli_option *options, int *ret_n,
		   struct cm_error *err);

/*
 * The session root for commands that take no keys: `flag` (--root, may be NULL), else what files
 * and environment say. *ret stays NULL where nothing says; the caller frees it.
 */
int cm_cli_root(struct cm_cli *cli, const char *flag, char **ret, struct cm_error *err);

#endif
