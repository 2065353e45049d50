/* SPDX-License-Identifier: Apache-2.0 */
/* How a command ended: its exit status, and what people are told about it. */
#include "runtime/cli/outcome.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "runtime/base/num.h"
#include "runtime/base/text.h"
#include "runtime/cli/not_found.h"

#define EXIT_TIMEOUT 124
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127

/* Where the command was to start, if that is the same directory here. */
static const char *shown_cwd(const struct cm_outcome *o)
{
	const struct cm_workspace_facts *workspace = &o->local->workspace;
	const char *cwd = cm_local_cwd(o->local);
	bool is_shown = workspace->path && cm_text_has_prefix(cwd, workspace->path);

	return is_shown || (workspace->spelled && cm_text_has_prefix(cwd, workspace->spelled))
		       ? cwd
		       : NULL;
}

/* The command's program was not there: where it is on the host says more than an errno. */
static void explain_not_executed(const struct cm_outcome *o, const struct cm_rec_end *end,
				 struct cm_error *err)
{
	const char *name = o->spec->argv.v[0];

	if (end->detail != CM_EXEC_STEP_EXECVE) {
		(void)cm_error_set(err, CM_E_ISOLATION, end->status, "the command could not %s",
				   cm_exec_step_name((enum cm_exec_step)end->detail));
		if (end->detail == CM_EXEC_STEP_CWD) {
			(void)cm_error_set(err, CM_E_INVALID, end->status,
					   "cannot enter '%s' in the jail", cm_local_cwd(o->local));
			cm_error_hint(err, "--workdir names a directory inside the jail");
		}
		return;
	}
	if (end->status != ENOENT) {
		(void)cm_error_set(err, CM_E_DENIED, end->status,
				   "cannot execute '%s' in the jail (exit %d)", name,
				   EXIT_NOT_EXECUTABLE);
		return;
	}
	cm_cli_explain_not_found(name, cm_strv_env_get(&o->cli->config.env, "PATH"), shown_cwd(o),
				 err);
}

static int exit_of_not_executed(const struct cm_rec_end *end, int failure_exit)
{
	if (end->detail != CM_EXEC_STEP_EXECVE)
		return failure_exit;
	return end->status == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

int cm_end_exit(const struct cm_rec_end *end, int failure_exit)
{
	switch ((enum cm_end_kind)end->kind) {
	case CM_END_EXIT:
		return end->status;
	case CM_END_SIGNAL:
		return 128 + end->status;
	case CM_END_TIMEOUT:
		return EXIT_TIMEOUT;
	case CM_END_MEMORY:
	case CM_END_KILLED:
		return 128 + SIGKILL;
	case CM_END_NOT_EXECUTED:
		return exit_of_not_executed(end, failure_exit);
	}
	return failure_exit;
}

static void explain_memory(const struct cm_outcome *o)
{
	const struct cm_limit limit = cm_local_memory_limit(o->local);
	char has[32] = "?";
	struct cm_error err = CM_ERROR_INIT;

	if (limit.is_set)
		cm_format_size(limit.value, has, sizeof(has));
	(void)cm_error_set(&err, CM_E_LIMIT, 0, "command ended by the memory limit (%s)", has);
	cm_error_hint(&err, "give it more with --memory SIZE");
	o->result->error = err;
	cm_cli_print_error(o->cli, &err);
}

static void explain_timeout(const struct cm_outcome *o)
{
	struct cm_error err = CM_ERROR_INIT;
	char after[32];

	cm_format_duration(o->local->spec.limits.timeout.value, after, sizeof(after));
	(void)cm_error_set(&err, CM_E_TIMEOUT, 0, "command ended after its time limit (%s)", after);
	cm_error_hint(&err, "give it more with --timeout DURATION");
	o->result->error = err;
	cm_cli_print_error(o->cli, &err);
}

static void explain_output(const struct cm_outcome *o)
{
	struct cm_error err = CM_ERROR_INIT;
	char max[32];

	cm_format_size(o->relay->output_max, max, sizeof(max));
	(void)cm_error_set(&err, CM_E_LIMIT, 0, "command ended by the output limit (%s)", max);
	cm_error_hint(&err, "give it more with --output SIZE");
	o->result->error = err;
	cm_cli_print_error(o->cli, &err);
}

/* Not what the command did, and not that it never ran. */
static void explain_lost(const struct cm_outcome *o)
{
	o->result->error = o->relay->why;
	o->result->error.code = CM_E_SYS;
	if (o->result->error.hint[0] == '\0')
		cm_error_hint(&o->result->error, "the system's log may say who ended it");
	cm_cli_print_error(o->cli, &o->result->error);
}

/* How the command ended says nothing about what its reader got. */
static void explain_lost_output(const struct cm_outcome *o)
{
	struct cm_error err = CM_ERROR_INIT;

	(void)cm_error_set(&err, CM_E_SYS, o->relay->lost_errno, "cannot write to standard %s",
			   o->relay->lost_fd == STDERR_FILENO ? "error" : "output");
	cm_error_hint(&err, "the command has run; its exit status is not this one");
	o->result->error = err;
	cm_cli_print_error(o->cli, &err);
}

static void tell_no_network(const struct cm_outcome *o, const struct cm_rec_end *end)
{
	if (end->kind != CM_END_EXIT || end->status == 0 || end->detail == 0)
		return;
	cm_cli_note(o->cli, "this session has no network; %u attempt%s refused", end->detail,
		    end->detail == 1 ? "" : "s");
	if (!o->cli->is_quiet)
		(void)fprintf(stderr, "hint: --network host shares the host's network\n");
}

int cm_outcome_exit(const struct cm_outcome *o)
{
	const struct cm_rec_end *end = &o->relay->end;
	struct cm_error *err = &o->result->error;

	if (o->relay->is_over_output) {
		explain_output(o);
		return 128 + SIGKILL;
	}
	/* a terminal that is gone says so by SIGHUP, too */
	if (o->relay->lost_errno != 0 && o->relay->signal == 0 && !o->relay->is_lost &&
	    end->kind != CM_END_NOT_EXECUTED) {
		explain_lost_output(o);
		return o->cli->failure_exit;
	}
	switch ((enum cm_end_kind)end->kind) {
	case CM_END_EXIT:
		tell_no_network(o, end);
		break;
	case CM_END_SIGNAL:
		break;
	case CM_END_TIMEOUT:
		explain_timeout(o);
		break;
	case CM_END_MEMORY:
		explain_memory(o);
		break;
	case CM_END_KILLED:
		if (o->relay->is_lost)
			explain_lost(o);
		else if (o->relay->signal == 0)
			cm_cli_note(o->cli, "the command was ended by another: 'casemate kill' or "
					    "'stop', or the session's idle time or lifetime");
		if (o->relay->signal != 0)
			return 128 + o->relay->signal;
		break;
	case CM_END_NOT_EXECUTED:
		explain_not_executed(o, end, err);
		cm_cli_print_error(o->cli, err);
		break;
	}
	return cm_end_exit(end, o->cli->failure_exit);
}
