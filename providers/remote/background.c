/* SPDX-License-Identifier: Apache-2.0 */
/* Detached commands are started and found again. */
#include "providers/remote/background.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/remote/background_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"

/* how long the start itself may take */
#define START_MS 60000
#define PID_MAX_VALUE (UINT64_C(1) << 32)
/* the arguments before the command's own */
#define N_ARGS 10

static const struct {
	const char *word;
	int code;
	const char *text;
	const char *hint;
} verdicts[] = {
	{ "not-found", CM_E_NOT_FOUND, "the session has no such command", NULL },
	{ "ended", CM_E_NOT_FOUND, "the command has ended", NULL },
	{ "no-input", CM_E_INVALID, "the command has no input, or it was ended", NULL },
	{ "no-home", CM_E_UNSUPPORTED, "the session's user has no home directory",
	  "set HOME to an absolute path in the session's environment" },
	{ "no-setsid", CM_E_UNSUPPORTED, "the session has no 'setsid'",
	  "begin it with a template that has util-linux or busybox" },
	{ "no-mkfifo", CM_E_UNSUPPORTED, "the session has no 'mkfifo'",
	  "begin it with a template that has coreutils or busybox" },
	{ "no-tee", CM_E_UNSUPPORTED, "the session has no 'tee'",
	  "begin it with a template that has coreutils or busybox" },
	{ "no-base64", CM_E_UNSUPPORTED, "the session has no 'base64'",
	  "begin it with a template that has coreutils or busybox" },
	{ "no-fifo", CM_E_UNSUPPORTED, "the session's home cannot have fifos",
	  "set HOME to a directory of an ordinary file system" },
	{ "denied", CM_E_DENIED, "the session's '~/.casemate' cannot be written to", NULL },
};

int cm_background_error(const struct cm_shell_end *end, const char *what, struct cm_error *err)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(verdicts); i++) {
		if (!cm_shell_says(end, verdicts[i].word))
			continue;
		(void)cm_error_set(err, verdicts[i].code, 0, "cannot %s: %s", what,
				   verdicts[i].text);
		if (verdicts[i].hint)
			cm_error_hint(err, "%s", verdicts[i].hint);
		return verdicts[i].code;
	}
	return cm_shell_failed(end, CM_E_REMOTE, err, "cannot %s", what);
}

bool cm_background_name(const char *name, const char **ret_number, bool *ret_is_root)
{
	bool is_root = name[0] == 'r';
	const char *number = name + (is_root ? 1 : 0);
	uint64_t v;

	if (strlen(number) > 9 || number[0] == '0' || !cm_shell_number(number, UINT64_MAX, &v))
		return false;
	*ret_number = number;
	*ret_is_root = is_root;
	return true;
}

/* "1.500" and "2"; whole seconds need no fraction, which not every sleep takes. */
static void format_time(uint64_t ms, char exact[32], char whole[32])
{
	(void)snprintf(whole, 32, "%" PRIu64, ms / 1000 + (ms % 1000 != 0 ? 1 : 0));
	if (ms % 1000 == 0)
		(void)snprintf(exact, 32, "%" PRIu64, ms / 1000);
	else
		(void)snprintf(exact, 32, "%" PRIu64 ".%03u", ms / 1000, (unsigned int)(ms % 1000));
}

struct times {
	char timeout[32];
	char timeout_whole[32];
	char grace[32];
	char grace_whole[32];
	char blocks[32];
	char bytes[32];
};

static int run_start(struct cm_session *s, const struct cm_exec_request *request,
		     const char *const *args, const struct cm_call *call, struct cm_shell_end *end,
		     struct cm_error *err)
{
	const struct cm_shell shell = {
		.session = s,
		.script = cm_background_start_script,
		.args = args,
		.env = request->env,
		.cwd = request->cwd,
		.is_root = request->is_root,
		.timeout_ms = START_MS,
	};
	int r = cm_shell_run(&shell, call, end, err);

	if (r < 0)
		return cm_error_wrap(err, "cannot start a detached command");
	return end->exit_code == 0 ? CM_OK
				   : cm_background_error(end, "start a detached command", err);
}

/* "7\n1234\n" */
static int read_start(char *text, const char **ret_number, int64_t *ret_pid, struct cm_error *err)
{
	char *line = text ? strchr(text, '\n') : NULL;
	char *end = line ? strchr(line + 1, '\n') : NULL;
	uint64_t pid = 0;
	bool is_root;

	if (end) {
		*line = '\0';
		*end = '\0';
	}
	if (!end || text[0] == 'r' || !cm_background_name(text, ret_number, &is_root) ||
	    !cm_shell_number(line + 1, PID_MAX_VALUE, &pid))
		return cm_error_set(err, CM_E_PROTOCOL, 0,
				    "the session did not say which command it started");
	*ret_pid = (int64_t)pid;
	return CM_OK;
}

/* The vector alone is the caller's. */
static const char **make_args(const struct cm_exec_request *request, struct times *times)
{
	const char **args;
	size_t n = 0;

	while (request->argv[n])
		n++;
	args = cm_calloc(N_ARGS + n + 1, sizeof(*args));
	if (!args)
		return NULL;
	format_time(request->timeout_ms, times->timeout, times->timeout_whole);
	format_time(request->grace_ms, times->grace, times->grace_whole);
	(void)snprintf(times->blocks, sizeof(times->blocks), "%lu", CM_BACKGROUND_OUTPUT_MAX / 512);
	(void)snprintf(times->bytes, sizeof(times->bytes), "%lu", CM_BACKGROUND_OUTPUT_MAX);
	args[0] = cm_background_supervisor;
	args[1] = cm_background_runner;
	args[2] = cm_background_timer;
	args[3] = times->timeout;
	args[4] = times->timeout_whole;
	args[5] = times->grace;
	args[6] = times->grace_whole;
	args[7] = times->blocks;
	args[8] = times->bytes;
	args[9] = request->has_input ? "1" : "0";
	for (size_t i = 0; i < n; i++)
		args[N_ARGS + i] = request->argv[i];
	return args;
}

int cm_background_start(struct cm_session *s, const struct cm_exec_request *request,
			const struct cm_call *call, struct cm_exec **ret, struct cm_error *err)
{
	static const uint64_t from_the_beginning[2] = { 0, 0 };
	struct times times;
	CM_AUTO_FREE const char **args = NULL;
	struct cm_shell_end end = CM_SHELL_END_INIT;
	struct cm_background *b = NULL;
	const char *number = NULL;
	int64_t pid = 0;
	int r;

	if (request->wants_tty)
		return cm_error_set(err, CM_E_UNSUPPORTED, 0,
				    "a detached command of this session cannot have a terminal");
	/* for a shell's exec it would be an option */
	if (request->argv[0][0] == '-' || request->argv[0][0] == '\0')
		return cm_error_set(err, CM_E_INVALID, 0, "'%.100s' is no name of a command",
				    request->argv[0]);
	args = make_args(request, &times);
	if (!args)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a detached command");
	r = run_start(s, request, args, call, &end, err);
	if (r == CM_OK)
		r = read_start(end.out.data, &number, &pid, err);
	if (r == CM_OK)
		r = cm_background_new(s, number, request->is_root, pid, from_the_beginning, true,
				      &b, err);
	cm_shell_end_clear(&end);
	if (r == CM_OK)
		*ret = cm_background_exec(b);
	return r;
}

int cm_background_attach(struct cm_session *s, const char *name, const uint64_t offsets[2],
			 bool follows, const struct cm_call *call, struct cm_exec **ret,
			 struct cm_error *err)
{
	struct cm_background *b = NULL;
	const char *number = NULL;
	bool is_root = false;
	int r;

	if (!cm_background_name(name, &number, &is_root))
		return cm_error_set(err, CM_E_NOT_FOUND, 0, "the session has no command '%.64s'",
				    name);
	if (offsets[0] > INT64_MAX - 1 || offsets[1] > INT64_MAX - 1)
		return cm_error_set(err, CM_E_INVALID, 0, "no command prints that much");
	r = cm_background_new(s, number, is_root, 0, offsets, follows, &b, err);
	if (r < 0)
		return r;
	r = cm_background_look(b, call, err);
	if (r < 0) {
		cm_exec_release(cm_background_exec(b));
		return r;
	}
	*ret = cm_background_exec(b);
	return CM_OK;
}
