/* SPDX-License-Identifier: Apache-2.0 */
/* casemate kill: the end of a command and of all that it started, or a signal to it. */
#include "runtime/base/clock.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/exec_view.h"
#include "runtime/cli/signal_names.h"

/* what the kernel has to bury may have much memory */
#define GONE_MS 30000
/* as kill(1) has it: there was nothing to kill */
#define EXIT_ENDED_ALREADY 1

struct kill_options {
	const char *root;
	const char *signal;
	bool is_json;
};

static int ended_already(struct cm_exec_target *t, bool is_json)
{
	struct cm_error err = CM_ERROR_INIT;
	char text[CM_EXEC_FATE_SIZE];
	struct cm_exec_fate fate;
	const struct cm_rec_item *item = cm_exec_target_item(t, t->exec_id, NULL);

	cm_exec_target_last_word(t, &fate);
	cm_exec_fate_format(&fate, text);
	if (fate.is_known)
		(void)cm_error_set(&err, CM_E_NOT_FOUND, 0, "command %s has ended already (%s)",
				   t->name, text);
	else
		(void)cm_error_set(&err, CM_E_NOT_FOUND, 0, "command %s has ended already",
				   t->name);
	if (item && item->state == CM_ITEM_CHILDREN_LEFT)
		cm_error_hint(&err,
			      "processes that it started live on: they end with the session, "
			      "'casemate stop %.100s'",
			      t->session.record.id);
	cm_cli_print_error(t->cli, &err);
	if (is_json)
		(void)cm_exec_view_print(t, &fate);
	return EXIT_ENDED_ALREADY;
}

static int end_tree(struct cm_exec_target *t, uint64_t id, bool is_json)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec_fate fate;
	int r;

	/* a keeper that is gone has taken the command with it */
	(void)cm_jail_kill(&t->jail, id, CM_CLI_GRACE_MS);
	r = cm_exec_target_wait(t, id, cm_clock_mono_ms() + CM_CLI_GRACE_MS + GONE_MS, &fate, &err);
	if (r == CM_E_TIMEOUT) {
		(void)cm_error_set(&err, CM_E_TIMEOUT, 0, "command %s does not end", t->name);
		cm_error_hint(&err, "'casemate stop %.100s' ends the session with all in it",
			      t->session.record.id);
	}
	if (r < 0)
		return cm_cli_fail(t->cli, &err);
	return is_json ? cm_exec_view_print(t, &fate) : 0;
}

/* Returns when the keeper has passed it on: whoever asks next asks after that. */
static int send_signal(struct cm_exec_target *t, uint64_t id, int sig, bool is_json)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_BUF struct cm_buf list = { 0 };
	int r;

	cm_buf_init(&list, t->list.max);
	(void)cm_jail_signal(&t->jail, id, sig);
	r = cm_jail_list(&t->jail, &list, cm_clock_mono_ms() + GONE_MS, &err);
	if (r < 0)
		return cm_cli_fail(t->cli, &err);
	return is_json ? cm_exec_view_print(t, NULL) : 0;
}

static int kill_command(struct cm_exec_target *t, int sig, bool is_json)
{
	struct cm_error err = CM_ERROR_INIT;
	uint64_t id = 0;
	int r = CM_E_NOT_FOUND;

	if (cm_exec_target_runs(t))
		r = cm_exec_target_attach(t, &id, NULL, &err);
	if (r == CM_E_NOT_FOUND || t->jail.has_ended)
		return ended_already(t, is_json);
	if (r < 0)
		return cm_cli_fail(t->cli, &err);
	return sig != 0 ? send_signal(t, id, sig, is_json) : end_tree(t, id, is_json);
}

int cm_cmd_kill(struct cm_cli *cli, int argc, char **argv)
{
	struct kill_options o = { NULL };
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &o.root },
		{ "signal", 's', CM_OPTION_TEXT, &o.signal },
		{ "json", '\0', CM_OPTION_SWITCH, &o.is_json },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec_target t;
	int status;
	int sig = 0;
	int n = 0;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) != CM_OK ||
	    cm_exec_target_check("kill", n, &err) != CM_OK ||
	    (o.signal && cm_signal_parse(o.signal, &sig, &err) != CM_OK))
		return cm_cli_fail(cli, &err);
	if (cm_exec_target_get(&t, cli, o.root, argv[1], argv[2], &err) < 0)
		status = cm_cli_fail(cli, &err);
	else
		status = kill_command(&t, sig, o.is_json);
	cm_exec_target_close(&t);
	return status;
}
