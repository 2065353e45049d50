/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/remote/shell.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define PIECE (64U * 1024)
/* for what is killed, past the deadline of who gave up */
#define KILL_MS 2000

struct run {
	const struct cm_shell *shell;
	struct cm_shell_end *end;
	struct cm_exec *exec;
	struct cm_call call;
	bool has_own_deadline;
	bool is_fed;
	bool has_ended;
	struct cm_exec_end how;
};

/* argv[0..3], the arguments, NULL; the vector alone is the caller's */
static char **make_argv(const struct cm_shell *shell)
{
	size_t n = 0;
	char **argv;

	while (shell->args && shell->args[n])
		n++;
	argv = cm_calloc(n + 5, sizeof(*argv));
	if (!argv)
		return NULL;
	/* of exec's own type, which promises not to write to them */
	argv[0] = (char *)"sh";
	argv[1] = (char *)"-c";
	argv[2] = (char *)shell->script;
	argv[3] = (char *)"casemate";
	for (size_t i = 0; i < n; i++)
		argv[4 + i] = (char *)shell->args[i];
	return argv;
}

int cm_shell_start(const struct cm_shell *shell, const struct cm_call *call, struct cm_exec **ret,
		   struct cm_error *err)
{
	CM_AUTO_FREE char **argv = make_argv(shell);
	const struct cm_exec_request request = {
		.argv = argv,
		.env = shell->env,
		.cwd = shell->cwd,
		.has_input = shell->fill != NULL,
		.is_idempotent = shell->is_idempotent,
		.is_root = shell->is_root,
	};

	if (!argv)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a command of the session");
	return cm_exec_start(shell->session, &request, call, ret, err);
}

static int gave_up(int error, const char *what, struct cm_error *err)
{
	return cm_error_set(err, error == ENOMEM ? CM_E_NOMEM : CM_E_SYS, error, "cannot %s", what);
}

static int take_output(struct run *run, const struct cm_exec_event *event, struct cm_error *err)
{
	const struct cm_shell *shell = run->shell;
	int e = 0;

	if (event->stream == 2) {
		cm_shell_tail_add(run->end, event->bytes, event->len);
		if (shell->take_error)
			e = shell->take_error(shell->take_data, event->bytes, event->len);
	} else if (shell->take) {
		e = shell->take(shell->take_data, event->bytes, event->len);
	} else {
		cm_buf_append(&run->end->out, event->bytes, event->len);
		if (cm_buf_status(&run->end->out) != CM_OK)
			return cm_error_set(err, cm_buf_status(&run->end->out), 0,
					    "a command of the session printed more than %zu bytes",
					    run->end->out.max);
	}
	return e < 0 ? gave_up(-e, "take what came out of the session", err) : CM_OK;
}

/* One event; *ret_is_woken: there was none. */
static int step(struct run *run, struct cm_wake *wake, bool *ret_is_woken, struct cm_error *err)
{
	struct cm_exec_event event = { .kind = 0 };
	int r = cm_exec_next(run->exec, wake, &run->call, &event, err);

	*ret_is_woken = false;
	if (r < 0)
		return r;
	switch (event.kind) {
	case CM_EXEC_HAS_STARTED:
		return CM_OK;
	case CM_EXEC_HAS_OUTPUT:
		return take_output(run, &event, err);
	case CM_EXEC_HAS_ENDED:
		run->has_ended = true;
		run->how = event.end;
		return CM_OK;
	case CM_EXEC_WOKEN:
		*ret_is_woken = true;
		return CM_OK;
	}
	return cm_error_set(err, CM_E_PROTOCOL, 0, "a command of the session told something else");
}

/*
 * What it printed meanwhile is taken in between: who does not read what the other one writes can have
 * both wait for ever. The descriptor always has an event, so that nothing is waited for.
 */
static int drain(struct run *run, int ready_fd, struct cm_error *err)
{
	struct pollfd fd = { .fd = ready_fd, .events = POLLIN };
	struct cm_wake wake = { .fds = &fd, .n = 1 };
	bool is_woken = false;
	int r = CM_OK;

	while (r == CM_OK && !is_woken && !run->has_ended) {
		fd.revents = 0;
		r = step(run, &wake, &is_woken, err);
	}
	return r;
}

static int feed(struct run *run, struct cm_error *err)
{
	CM_AUTO_FREE char *buf = cm_malloc(PIECE);
	CM_AUTO_FD int ready_fd = eventfd(1, EFD_CLOEXEC);
	int r = CM_OK;
	ssize_t n = 1;

	run->is_fed = true;
	if (!buf || ready_fd < 0)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a command of the session");
	while (r == CM_OK && n > 0 && !run->has_ended) {
		n = run->shell->fill(run->shell->fill_data, buf, PIECE);
		if (n < 0)
			return gave_up((int)-n, "read what goes into the session", err);
		r = cm_exec_input(run->exec, buf, (size_t)n, &run->call, err);
		if (r == CM_OK)
			r = drain(run, ready_fd, err);
	}
	if (r != CM_E_NOT_FOUND)
		return r;
	/* it ended without having read all: how is told next */
	cm_error_clear(err);
	return CM_OK;
}

static int follow(struct run *run, struct cm_error *err)
{
	bool is_woken;
	int r = CM_OK;

	while (r == CM_OK && !run->has_ended) {
		r = step(run, NULL, &is_woken, err);
		if (r == CM_OK && run->shell->fill && !run->is_fed && !run->has_ended)
			r = feed(run, err);
	}
	return r;
}

static int judge(struct run *run, struct cm_error *err)
{
	const struct cm_exec_end *how = &run->how;

	run->end->exit_code = how->exit_code;
	switch (how->kind) {
	case CM_EXEC_EXITED:
	case CM_EXEC_SIGNALLED:
	case CM_EXEC_KILLED:
		return CM_OK;
	case CM_EXEC_TIMED_OUT:
		return cm_error_set(err, CM_E_TIMEOUT, 0, "a command of the session took too long");
	case CM_EXEC_OUT_OF_MEMORY:
		return cm_error_set(err, CM_E_LIMIT, 0,
				    "a command of the session ran out of memory");
	case CM_EXEC_NOT_EXECUTED:
		(void)cm_error_set(err, CM_E_REMOTE, 0, "the session has no usable 'sh'");
		cm_error_hint(err, "begin it with a template that has a POSIX shell and coreutils");
		return CM_E_REMOTE;
	case CM_EXEC_LOST:
		break;
	}
	return cm_error_set(err, CM_E_REMOTE, 0, "a command of the session was lost");
}

static void kill_it(struct run *run)
{
	const struct cm_call call = { .deadline_ms = cm_clock_mono_ms() + KILL_MS,
				      .cancel_fd = -1 };

	if (run->exec && !run->has_ended && run->exec->ops->signal)
		(void)cm_exec_signal(run->exec, SIGKILL, &call, NULL);
}

static int explain_timeout(const struct run *run, struct cm_error *err)
{
	return cm_error_set(err, CM_E_TIMEOUT, 0, "it took longer than %llu s",
			    (unsigned long long)(run->shell->timeout_ms / 1000));
}

int cm_shell_run(const struct cm_shell *shell, const struct cm_call *call, struct cm_shell_end *ret,
		 struct cm_error *err)
{
	struct run run = { .shell = shell, .end = ret, .call = *call };
	int64_t now = cm_clock_mono_ms();
	int r;

	*ret = (struct cm_shell_end)CM_SHELL_END_INIT;
	cm_buf_init(&ret->out, shell->out_max ? shell->out_max : CM_SHELL_OUT_MAX);
	/* kept on this side: not every provider can */
	if (shell->timeout_ms != 0 &&
	    (call->deadline_ms <= now || (uint64_t)(call->deadline_ms - now) > shell->timeout_ms)) {
		run.call.deadline_ms = now + (int64_t)shell->timeout_ms;
		run.has_own_deadline = call->deadline_ms > now;
	}
	r = cm_shell_start(shell, &run.call, &run.exec, err);
	if (r < 0)
		return r;
	r = follow(&run, err);
	if (r < 0 && !shell->is_last_resort)
		kill_it(&run);
	cm_exec_release(run.exec);
	if (r == CM_E_TIMEOUT && run.has_own_deadline)
		return explain_timeout(&run, err);
	return r < 0 ? r : judge(&run, err);
}
