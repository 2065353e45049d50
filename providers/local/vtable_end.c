/* SPDX-License-Identifier: Apache-2.0 */
/* How a command of the local provider ended, as all providers say it. */
#include <errno.h>
#include <signal.h>

#include "providers/local/vtable_internal.h"

#define EXIT_TIMEOUT 124
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127

static void not_executed(const struct cm_rec_end *end, struct cm_exec_end *ret)
{
	ret->kind = CM_EXEC_NOT_EXECUTED;
	ret->exit_code = end->status == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

static void by_signal(enum cm_exec_end_kind kind, int sig, struct cm_exec_end *ret)
{
	ret->kind = kind;
	ret->signal = sig;
	ret->exit_code = 128 + sig;
}

void cm_lv_end(const struct cm_rec_end *end, struct cm_exec_end *ret)
{
	*ret = (struct cm_exec_end){ .kind = CM_EXEC_LOST, .wall_ms = end->wall_us / 1000 };
	switch ((enum cm_end_kind)end->kind) {
	case CM_END_EXIT:
		ret->kind = CM_EXEC_EXITED;
		ret->exit_code = end->status;
		return;
	case CM_END_SIGNAL:
		by_signal(CM_EXEC_SIGNALLED, end->status, ret);
		return;
	case CM_END_TIMEOUT:
		ret->kind = CM_EXEC_TIMED_OUT;
		ret->exit_code = EXIT_TIMEOUT;
		return;
	case CM_END_MEMORY:
		by_signal(CM_EXEC_OUT_OF_MEMORY, SIGKILL, ret);
		return;
	case CM_END_KILLED:
		by_signal(CM_EXEC_KILLED, SIGKILL, ret);
		return;
	case CM_END_NOT_EXECUTED:
		not_executed(end, ret);
		return;
	}
}

int cm_lv_not_executed(const struct cm_rec_end *end, const char *cwd, struct cm_error *err)
{
	if (end->kind != CM_END_NOT_EXECUTED || end->detail == CM_EXEC_STEP_EXECVE)
		return CM_OK;
	if (end->detail != CM_EXEC_STEP_CWD)
		return cm_error_set(err, CM_E_ISOLATION, end->status, "the command could not %s",
				    cm_exec_step_name((enum cm_exec_step)end->detail));
	(void)cm_error_set(err, CM_E_INVALID, end->status, "cannot enter '%s' in the session", cwd);
	cm_error_hint(err, "a command starts in a directory of the session: --workdir names one");
	return CM_E_INVALID;
}
