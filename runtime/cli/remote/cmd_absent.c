/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that sessions elsewhere do not have. */
#include "runtime/cli/commands.h"
#include "runtime/cli/remote/absent.h"
#include "runtime/cli/remote/away.h"

static int refuse(const char *what, const char *hint, struct cm_error *err)
{
	int r = cm_error_set(err, CM_E_UNSUPPORTED, 0, "provider '%s' has no '%s'",
			     cm_away_provider_name(), what);

	if (hint)
		cm_error_hint(err, "%s", hint);
	return r;
}

int cm_away_absent(struct cm_cli *cli, const char *what, const char *hint)
{
	struct cm_error err = CM_ERROR_INIT;

	(void)refuse(what, hint, &err);
	return cm_cli_fail(cli, &err);
}

int cm_away_absent_option(bool is_given, const char *option, const char *hint, struct cm_error *err)
{
	return is_given ? refuse(option, hint, err) : CM_OK;
}

int cm_away_absent_root(const char *root, struct cm_error *err)
{
	return cm_away_absent_option(
		root != NULL, "--root",
		"its sessions have no directory on this host: leave it out, or "
		"--provider local",
		err);
}

int cm_away_absent_user(const char *user, struct cm_error *err)
{
	return cm_away_absent_option(user != NULL, "--user",
				     "its files are read and written by one user: leave it out, or "
				     "'casemate exec -u user ID -- COMMAND'",
				     err);
}

int cm_cmd_prune(struct cm_cli *cli, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return cm_away_absent(
		cli, "prune",
		"sessions end by --idle-timeout and --lifetime; 'casemate rm --files ID' "
		"removes one");
}

int cm_cmd_df(struct cm_cli *cli, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return cm_away_absent(
		cli, "df",
		"nothing of its sessions is on this disk: 'casemate exec ID -- df -h' "
		"shows a sandbox's");
}

int cm_cmd_stats(struct cm_cli *cli, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return cm_away_absent(cli, "stats",
			      "'casemate exec ID -- top -b -n 1' shows what a sandbox uses, "
			      "'casemate inspect ID' what it has");
}

int cm_cmd_events(struct cm_cli *cli, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return cm_away_absent(cli, "events",
			      "'casemate ps ID' lists a session's commands, 'casemate wait ID "
			      "COMMAND' waits for one");
}

int cm_cmd_setup(struct cm_cli *cli, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return cm_away_absent(cli, "setup",
			      "--setup of 'casemate start' runs when a session is made; 'casemate "
			      "exec ID -- COMMAND' runs a command again");
}

int cm_cmd_checkout(struct cm_cli *cli, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return cm_away_absent(cli, "checkout",
			      "'casemate start ID --repo URL' makes a session with a repository; "
			      "'casemate exec ID -- git pull' brings it up to date");
}

int cm_cmd_doctor(struct cm_cli *cli, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return cm_away_absent(cli, "doctor",
			      "it is about this host; 'casemate provider ls' says which variables "
			      "are missing");
}
