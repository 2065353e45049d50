/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of the agent about a process. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/e2b/exec.h"
#include "providers/e2b/texts.h"
#include "providers/remote/shell.h"
#include "runtime/base/base64.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define REQUEST_MAX (4UL * 1024 * 1024)
#define INPUT_PIECE (48UL * 1024)
#define SIGNAL_MS 10000
#define KILL_MS 5000

/*
 * $0 and what is behind $1 are the command; $1 is the mark. The agent's own error for a program that is
 * not there cannot be told from others, so this looks first. Then the command gets a process group of
 * its own, where the agent has given it none, so that a signal reaches all of it. setsid(1) may fork
 * when it leads a group already, and the exit status would be lost.
 */
static const char start_script[] =
	"m=$1; shift\n"
	"no() { printf %s \"$m\" >&2; exit \"$1\"; }\n"
	"case $0 in\n"
	"*/*) [ -e \"$0\" ] || no 127\n"
	"	[ -f \"$0\" ] && [ -x \"$0\" ] || no 126 ;;\n"
	"*) command -v \"$0\" >/dev/null 2>&1 || no 127 ;;\n"
	"esac\n"
	"g=$$\n"
	"{ read -r _ _ _ _ g _ </proc/$$/stat; } 2>/dev/null\n"
	"[ \"$g\" = $$ ] || ! command -v setsid >/dev/null 2>&1 || exec setsid \"$0\" \"$@\"\n"
	"exec \"$0\" \"$@\"\n";

/* --- Start ------------------------------------------------------------------------------------------ */

static int check_texts(const struct cm_exec_request *request, struct cm_error *err)
{
	bool is_good = !request->cwd || cm_e2b_is_text(request->cwd);

	for (size_t i = 0; request->argv[i]; i++)
		is_good = is_good && cm_e2b_is_text(request->argv[i]);
	for (size_t i = 0; request->env && request->env[i]; i++)
		is_good = is_good && cm_e2b_is_text(request->env[i]);
	if (is_good)
		return CM_OK;
	(void)cm_error_set(
		err, CM_E_INVALID, 0,
		"cannot start a command with arguments, variables or a directory that are "
		"no UTF-8 text");
	cm_error_hint(err, "write such bytes to a file of the session, and use that");
	return CM_E_INVALID;
}

static void write_size(struct cm_json_writer *w, uint16_t rows, uint16_t cols)
{
	cm_jw_key(w, "pty");
	cm_jw_object(w);
	cm_jw_key(w, "size");
	cm_jw_object(w);
	cm_jw_kuint(w, "cols", cols ? cols : 80);
	cm_jw_kuint(w, "rows", rows ? rows : 24);
	cm_jw_end_object(w);
	cm_jw_end_object(w);
}

static int write_envs(struct cm_json_writer *w, const struct cm_e2b_exec *e,
		      const struct cm_exec_request *request)
{
	CM_AUTO_STRV struct cm_strv env = { 0 };
	bool has_term = cm_strv_env_get(&cm_e2b_exec_session(e)->env, "TERM") != NULL;

	if (cm_strv_copy(&env, &cm_e2b_exec_session(e)->env) < 0)
		return CM_E_NOMEM;
	/* what the request has goes before it */
	if (request->wants_tty && !has_term && cm_strv_add(&env, "TERM=xterm-256color") < 0)
		return CM_E_NOMEM;
	cm_jw_key(w, "envs");
	cm_e2b_write_env(w, &env, request->env);
	return CM_OK;
}

static void write_process(struct cm_json_writer *w, const struct cm_e2b_exec *e,
			  const struct cm_exec_request *request)
{
	const char *cwd = request->cwd ? request->cwd : cm_e2b_exec_session(e)->workdir;

	cm_jw_kstring(w, "cmd", "/bin/sh");
	cm_jw_key(w, "args");
	cm_jw_array(w);
	cm_jw_string(w, "-c");
	cm_jw_string(w, start_script);
	cm_jw_string(w, request->argv[0]);
	cm_jw_string(w, e->mark);
	for (size_t i = 1; request->argv[i]; i++)
		cm_jw_string(w, request->argv[i]);
	cm_jw_end_array(w);
	if (cwd && cwd[0] != '\0')
		cm_jw_kstring(w, "cwd", cwd);
	if (write_envs(w, e, request) < 0)
		w->out->has_failed = true;
}

int cm_e2b_command_write(struct cm_e2b_exec *e, const struct cm_exec_request *request,
			 struct cm_error *err)
{
	struct cm_json_writer w;
	int r = check_texts(request, err);

	if (r < 0)
		return r;
	cm_buf_init(&e->request, REQUEST_MAX);
	cm_jw_init(&w, &e->request, false);
	cm_jw_object(&w);
	cm_jw_key(&w, "process");
	cm_jw_object(&w);
	write_process(&w, e, request);
	cm_jw_end_object(&w);
	cm_jw_kstring(&w, "tag", e->tag);
	/* a terminal is one's input, too */
	if (request->wants_tty)
		write_size(&w, request->rows, request->cols);
	else
		cm_jw_kbool(&w, "stdin", request->has_input);
	cm_jw_end_object(&w);
	r = cm_buf_status(&e->request);
	return r < 0 ? cm_error_set(err, r, 0, "cannot start a command: it is too long") : CM_OK;
}

/* By pid; before that is known, by tag. */
static void write_selector(struct cm_json_writer *w, const struct cm_e2b_exec *e)
{
	cm_jw_key(w, "process");
	cm_jw_object(w);
	if (e->base.pid > 0)
		cm_jw_kint(w, "pid", e->base.pid);
	else
		cm_jw_kstring(w, "tag", e->tag);
	cm_jw_end_object(w);
}

/* Events until it says that the command runs. */
static int await_start(struct cm_e2b_exec *e, const struct cm_call *call, struct cm_error *err)
{
	struct cm_e2b_event event = { 0 };
	int end = CM_OK;
	int r;

	while (event.kind != CM_E2B_EVENT_START) {
		r = cm_e2b_stream_next(e->stream, NULL, call, &end, err);
		if (r < 0)
			return r;
		if (r == CM_E2B_STREAM_CUT)
			return err && err->code ? err->code : CM_E_REMOTE;
		if (r == CM_E2B_STREAM_END)
			return end < 0 ? end
				       : cm_error_set(err, CM_E_PROTOCOL, 0,
						      "cannot start a command: the sandbox says "
						      "nothing of it");
		r = cm_e2b_event_read(
			e->stream->envelopes.body.data ? e->stream->envelopes.body.data : "",
			e->stream->envelopes.body.len, &e->out, &event, err);
		if (r < 0)
			return r;
		if (event.kind == CM_E2B_EVENT_DATA || event.kind == CM_E2B_EVENT_END)
			return cm_error_set(err, CM_E_PROTOCOL, 0,
					    "the sandbox tells of a command before it has started");
	}
	e->base.pid = event.pid;
	return CM_OK;
}

int cm_e2b_command_open(struct cm_e2b_exec *e, bool is_start, const struct cm_call *call,
			struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf body = { .max = 256 };
	struct cm_e2b_rpc rpc = {
		.method = is_start ? "process.Process/Start" : "process.Process/Connect",
		.body = is_start ? &e->request : &body,
		.is_root = e->is_root,
		.what = is_start ? "start a command" : "follow a command",
	};
	struct cm_json_writer w;
	int r;

	cm_jw_init(&w, &body, false);
	cm_jw_object(&w);
	write_selector(&w, e);
	cm_jw_end_object(&w);
	r = cm_e2b_stream_open(cm_e2b_exec_session(e), &rpc, call, &e->stream, err);
	if (r == CM_OK)
		r = await_start(e, call, err);
	if (r < 0) {
		cm_e2b_stream_close(e->stream);
		e->stream = NULL;
	}
	return r;
}

void cm_e2b_command_note(struct cm_e2b_exec *e)
{
	if (e->is_noted)
		return;
	e->is_noted = true;
	cm_provider_note(
		&cm_e2b_of(e->base.session)->base,
		"the connection to a command in session '%s' was lost; it is followed again, and "
		"what it printed in between may be missing",
		e->base.session->id);
}

/* --- input, size ------------------------------------------------------------------------------------- */

static int ended(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOT_FOUND, 0, "the command has ended");
}

static int send_piece(struct cm_e2b_exec *e, const void *bytes, size_t len,
		      const struct cm_call *call, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf body = { .max = 128UL * 1024 };
	CM_AUTO_BUF struct cm_buf text = { .max = 128UL * 1024 };
	/* the command reads when it likes, and the agent waits for that */
	const struct cm_e2b_rpc rpc = { .method = "process.Process/SendInput",
					.body = &body,
					.is_root = e->is_root,
					.may_wait = true,
					.what = "write to a command" };
	char name[CM_E2B_NAME_SIZE];
	struct cm_json_writer w;
	int r;

	cm_base64_encode(&text, bytes, len, true);
	if (cm_buf_status(&text) < 0)
		return cm_e2b_no_memory(err);
	cm_jw_init(&w, &body, false);
	cm_jw_object(&w);
	write_selector(&w, e);
	cm_jw_key(&w, "input");
	cm_jw_object(&w);
	cm_jw_kstring(&w, e->is_tty ? "pty" : "stdin", text.data);
	cm_jw_end_object(&w);
	cm_jw_end_object(&w);
	r = cm_e2b_unary(cm_e2b_exec_session(e), &rpc, call, NULL, name, err);
	/* it reads no more: the agent's pipe to it is closed at the other end */
	if (r < 0 && strcmp(name, "internal") == 0)
		return ended(err);
	return r;
}

static int close_input(struct cm_e2b_exec *e, const struct cm_call *call, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf body = { .max = 256 };
	const struct cm_e2b_rpc rpc = { .method = "process.Process/CloseStdin",
					.body = &body,
					.is_root = e->is_root,
					.is_idempotent = true,
					.what = "end a command's input" };
	struct cm_json_writer w;

	cm_jw_init(&w, &body, false);
	cm_jw_object(&w);
	write_selector(&w, e);
	cm_jw_end_object(&w);
	return cm_e2b_unary(cm_e2b_exec_session(e), &rpc, call, NULL, NULL, err);
}

int cm_e2b_command_input(struct cm_exec *exec, const void *bytes, size_t len,
			 const struct cm_call *call, struct cm_error *err)
{
	struct cm_e2b_exec *e = cm_e2b_exec_of(exec);
	const char *at = bytes;
	int r = CM_OK;

	if (e->has_ended)
		return ended(err);
	/* of a terminal: as the key for it */
	if (len == 0)
		return e->is_tty ? send_piece(e, "\4", 1, call, err) : close_input(e, call, err);
	while (len > 0 && r == CM_OK) {
		size_t n = len < INPUT_PIECE ? len : INPUT_PIECE;

		r = send_piece(e, at, n, call, err);
		at += n;
		len -= n;
	}
	return r;
}

int cm_e2b_command_resize(struct cm_exec *exec, uint16_t rows, uint16_t cols,
			  const struct cm_call *call, struct cm_error *err)
{
	struct cm_e2b_exec *e = cm_e2b_exec_of(exec);
	CM_AUTO_BUF struct cm_buf body = { .max = 256 };
	const struct cm_e2b_rpc rpc = { .method = "process.Process/Update",
					.body = &body,
					.is_root = e->is_root,
					.is_idempotent = true,
					.what = "tell a command the size of its terminal" };
	struct cm_json_writer w;

	if (e->has_ended)
		return ended(err);
	cm_jw_init(&w, &body, false);
	cm_jw_object(&w);
	write_selector(&w, e);
	write_size(&w, rows, cols);
	cm_jw_end_object(&w);
	return cm_e2b_unary(cm_e2b_exec_session(e), &rpc, call, NULL, NULL, err);
}

/* --- signals ------------------------------------------------------------------------------------------ */

/* SIGTERM and SIGKILL alone, and to the one process. may_repeat: an answer that is lost, or 502. */
static int send_signal(struct cm_e2b_exec *e, int sig, bool may_repeat, const struct cm_call *call,
		       struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf body = { .max = 256 };
	const struct cm_e2b_rpc rpc = { .method = "process.Process/SendSignal",
					.body = &body,
					.is_root = e->is_root,
					.is_idempotent = may_repeat,
					.what = "send a signal to a command" };
	struct cm_json_writer w;

	cm_jw_init(&w, &body, false);
	cm_jw_object(&w);
	write_selector(&w, e);
	cm_jw_kstring(&w, "signal", sig == SIGKILL ? "SIGNAL_SIGKILL" : "SIGNAL_SIGTERM");
	cm_jw_end_object(&w);
	return cm_e2b_unary(cm_e2b_exec_session(e), &rpc, call, NULL, NULL, err);
}

/*
 * To its group, from a shell in the sandbox: 0, or 1 where there is no such group and no such process.
 * Where processes cannot be started any more this fails, too.
 */
static int signal_group(struct cm_e2b_exec *e, int sig, const struct cm_call *call,
			struct cm_error *err)
{
	char number[16];
	char pid[24];
	const char *const args[] = { number, pid, NULL };
	const struct cm_shell shell = {
		.session = e->base.session,
		.script = "kill \"-$1\" \"-$2\" 2>/dev/null || kill \"-$1\" \"$2\" 2>/dev/null",
		.args = args,
		.cwd = "/",
		.is_root = e->is_root,
		.is_last_resort = true,
	};
	struct cm_shell_end end = CM_SHELL_END_INIT;
	int r;

	(void)snprintf(number, sizeof(number), "%d", sig);
	(void)snprintf(pid, sizeof(pid), "%" PRId64, e->base.pid);
	r = cm_shell_run(&shell, call, &end, err);
	if (r == CM_OK)
		r = end.exit_code == 0 ? 0 : 1;
	cm_shell_end_clear(&end);
	return r;
}

int cm_e2b_command_signal(struct cm_e2b_exec *e, int sig, const struct cm_call *call,
			  struct cm_error *err)
{
	struct cm_call own = *call;
	int64_t until = cm_clock_mono_ms() + SIGNAL_MS;
	int r;

	if (e->has_ended)
		return ended(err);
	if (own.deadline_ms > until)
		own.deadline_ms = until;
	/* the agent's own way to kill needs no process; what is left of the group is killed after it */
	if (sig == SIGKILL) {
		r = send_signal(e, sig, true, &own, err);
		(void)signal_group(e, sig, &own, NULL);
		return r;
	}
	r = signal_group(e, sig, &own, err);
	if (r == 0)
		return CM_OK;
	if (sig == SIGTERM) {
		cm_error_clear(err);
		return send_signal(e, sig, false, &own, err);
	}
	return r == 1 ? ended(err) : r;
}

void cm_e2b_command_kill(struct cm_e2b_exec *e)
{
	const struct cm_call call = { .deadline_ms = cm_clock_mono_ms() + KILL_MS,
				      .cancel_fd = -1 };

	(void)send_signal(e, SIGKILL, false, &call, NULL);
}
