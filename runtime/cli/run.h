/* SPDX-License-Identifier: Apache-2.0 */
/* What `casemate run` does once its command line and configuration have become a spec. */
#ifndef CM_RUNTIME_CLI_RUN_H
#define CM_RUNTIME_CLI_RUN_H

#include "runtime/cli/cli.h"
#include "runtime/spec/spec.h"

/*
 * Before the command line and the configuration are read, which takes as long as a keeper takes to
 * begin: start one, for a run of a session that is likely to need it. Once a process; then one of the
 * two below is called, which takes it or ends it.
 */
void cm_cli_run_begin(void);

/*
 * Runs spec->argv and returns the exit status: the command's own, 124 on timeout, cli->failure_exit
 * when Casemate failed. Prints its own errors. Without a command, which only a named session may be:
 * starts the session and sets it up; then the status is 0.
 *
 * The repository's .casemate.json is already applied where the tree is known beforehand: a
 * temporary session, and --workspace. For a checkout or a session that exists it is applied by
 * the callee, with cm_config_repository on a copy of the spec, once it knows the tree.
 */
int cm_cli_run(const struct cm_spec *spec, struct cm_cli *cli);

/*
 * The same in the session that spec->session_id names: it has to exist, and is started where it does
 * not run. With spec->is_detached the command is not waited for: its exec id is printed.
 */
int cm_cli_exec(const struct cm_spec *spec, struct cm_cli *cli);

/* Makes the session that spec names; its checkout, jail and setup come with its first command. */
int cm_cli_create(const struct cm_spec *spec, struct cm_cli *cli);

/* Finds or makes the session that spec names, starts it and sets it up; runs nothing else. What spec
 * has of an environment is the session's. */
int cm_cli_start(const struct cm_spec *spec, struct cm_cli *cli);

/*
 * Makes the session that spec names with its checkout, and starts nothing; or brings the one that it
 * has up to date, and to what spec asks for (is_unshallow: with the history that --depth left out).
 * Prints where it is; 0, or the exit status of a failure.
 */
int cm_cli_checkout(const struct cm_spec *spec, bool is_unshallow, struct cm_cli *cli);

/*
 * Runs the teardown commands of a session that runs, which spec names, and nothing else; what they
 * print goes to standard error. Whatever becomes of them, it is said. 0; or 128 and the number of the
 * signal that broke it off.
 */
int cm_cli_teardown(const struct cm_spec *spec, struct cm_cli *cli);

/*
 * A command line that names no run: prints err and gives it where spec's is_json and result say,
 * as cm_cli_run would. The exit status.
 */
int cm_cli_run_refused(const struct cm_spec *spec, struct cm_cli *cli, const struct cm_error *err);

#endif
