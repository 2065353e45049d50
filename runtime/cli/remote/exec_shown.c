/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/remote/exec_shown.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"
#include "runtime/cli/remote/session_shown.h"
#include "runtime/cli/signal_names.h"

#define MAX_TEXT (64UL * 1024 * 1024)
#define EXEC_WIDTH 8
#define STATE_WIDTH 14
#define TIME_WIDTH 7

/* --- how it ended -------------------------------------------------------------------------- */

static void signal_text(int sig, char buf[CM_AWAY_STATE_SIZE])
{
	const char *name = cm_signal_name(sig);

	if (name)
		(void)snprintf(buf, CM_AWAY_STATE_SIZE, "SIG%s", name);
	else
		(void)snprintf(buf, CM_AWAY_STATE_SIZE, "signal %d", sig);
}

static void end_text(const struct cm_exec_end *end, char buf[CM_AWAY_STATE_SIZE])
{
	const char *text = "unknown";

	switch (end->kind) {
	case CM_EXEC_EXITED:
		(void)snprintf(buf, CM_AWAY_STATE_SIZE, "exit %d", end->exit_code);
		return;
	case CM_EXEC_SIGNALLED:
		signal_text(end->signal, buf);
		return;
	case CM_EXEC_TIMED_OUT:
		text = "time limit";
		break;
	case CM_EXEC_OUT_OF_MEMORY:
		text = "memory limit";
		break;
	case CM_EXEC_KILLED:
		text = "killed";
		break;
	case CM_EXEC_NOT_EXECUTED:
		text = "not executed";
		break;
	case CM_EXEC_LOST:
		break;
	}
	(void)snprintf(buf, CM_AWAY_STATE_SIZE, "%s", text);
}

/* Of one that was lost nobody knows. */
static bool is_known(const struct cm_exec_info *info)
{
	return !info->is_running && info->has_end && info->end.kind != CM_EXEC_LOST;
}

void cm_away_exec_state(const struct cm_exec_info *info, char buf[CM_AWAY_STATE_SIZE])
{
	if (info->is_running)
		(void)snprintf(buf, CM_AWAY_STATE_SIZE, "running");
	else if (is_known(info))
		end_text(&info->end, buf);
	else
		(void)snprintf(buf, CM_AWAY_STATE_SIZE, "unknown");
}

/* How long it ran, or has run; 0: not known. */
static uint64_t wall_ms(const struct cm_exec_info *info)
{
	int64_t until_ms = info->is_running ? cm_clock_real_ms() : info->ended_ms;

	if (!info->is_running && info->has_end && info->end.wall_ms != 0)
		return info->end.wall_ms;
	return info->started_ms > 0 && until_ms > info->started_ms
		       ? (uint64_t)(until_ms - info->started_ms)
		       : 0;
}

/* --- for programs -------------------------------------------------------------------------- */

static const char *end_name(const struct cm_exec_info *info)
{
	if (!is_known(info))
		return NULL;
	switch (info->end.kind) {
	case CM_EXEC_EXITED:
		return "exit";
	case CM_EXEC_SIGNALLED:
		return "signal";
	case CM_EXEC_TIMED_OUT:
		return "timeout";
	case CM_EXEC_OUT_OF_MEMORY:
		return "memory-limit";
	case CM_EXEC_KILLED:
		return "killed";
	case CM_EXEC_NOT_EXECUTED:
		return "not-executed";
	case CM_EXEC_LOST:
		break;
	}
	return NULL;
}

static void write_nulls(struct cm_json_writer *w, const char *const *keys)
{
	for (; *keys; keys++) {
		cm_jw_key(w, *keys);
		cm_jw_null(w);
	}
}

static void write_end(struct cm_json_writer *w, const struct cm_exec_info *info)
{
	static const char *const unmeasured[] = { "cpuUserMs", "cpuSystemMs", "maxRssBytes", NULL };
	const struct cm_exec_end *end = &info->end;
	bool has_end = is_known(info);
	uint64_t wall = wall_ms(info);

	cm_jw_kstring(w, "end", end_name(info));
	cm_jw_known_int(w, "exitCode", has_end, end->exit_code);
	cm_jw_known_int(w, "signal", has_end && end->signal != 0, end->signal);
	cm_jw_known_bool(w, "timedOut", has_end, end->kind == CM_EXEC_TIMED_OUT);
	cm_jw_known_bool(w, "killed", has_end,
			 end->kind == CM_EXEC_KILLED || end->kind == CM_EXEC_TIMED_OUT);
	cm_jw_known_bool(w, "memoryLimit", has_end, end->kind == CM_EXEC_OUT_OF_MEMORY);
	cm_jw_known_bool(w, "childrenLeft", false, false);
	cm_jw_known_int(w, "wallMs", wall != 0, (int64_t)wall);
	write_nulls(w, unmeasured);
}

void cm_away_exec_write(struct cm_json_writer *w, const struct cm_exec_info *info)
{
	static const char *const unknown[] = { "tty", "stdin", "bytes", "lost", NULL };
	const char *ended = is_known(info) ? "ended" : "unknown";

	cm_jw_object(w);
	cm_jw_kstring(w, "exec", info->name);
	cm_jw_kstring(w, "state", info->is_running ? "running" : ended);
	cm_jw_known_int(w, "pid", info->is_running && info->pid != 0, info->pid);
	cm_cli_write_time(w, "startedAt", info->started_ms);
	cm_cli_write_time(w, "endedAt", info->ended_ms);
	write_end(w, info);
	cm_jw_kstring(w, "cwd", info->cwd);
	cm_jw_kstrings(w, "command", &info->argv);
	cm_jw_kbool(w, "commandCut", false);
	cm_jw_kbool(w, "detached", info->is_detached);
	write_nulls(w, unknown);
	cm_jw_end_object(w);
}

int cm_away_exec_print(const struct cm_away *away, const struct cm_exec_info *info)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_json_writer w;

	cm_buf_init(&out, MAX_TEXT);
	cm_jw_init(&w, &out, false);
	cm_away_exec_write(&w, info);
	cm_buf_putc(&out, '\n');
	if (cm_buf_status(&out) == CM_OK)
		return cm_cli_print(away->cli, out.data, out.len);
	(void)cm_error_set(&err, CM_E_NOMEM, 0, "no memory for the command");
	return cm_cli_fail(away->cli, &err);
}

/* --- for people ---------------------------------------------------------------------------- */

static void put_command(struct cm_buf *out, const struct cm_exec_info *info)
{
	for (size_t i = 0; i < info->argv.n; i++) {
		CM_AUTO_BUF struct cm_buf word = { 0 };

		cm_buf_init(&word, MAX_TEXT);
		cm_text_shell_quote(&word, info->argv.v[i]);
		if (i > 0)
			cm_buf_putc(out, ' ');
		if (cm_buf_status(&word) == CM_OK)
			cm_text_escape(out, word.data ? word.data : "", word.len, false);
		else
			out->has_failed = true;
	}
}

void cm_away_exec_header(struct cm_buf *out)
{
	cm_buf_printf(out, "%-*s  %-*s  %-*s  %-*s  COMMAND\n", EXEC_WIDTH, "EXEC", STATE_WIDTH,
		      "STATE", TIME_WIDTH, "AGE", TIME_WIDTH, "TIME");
}

void cm_away_exec_row(struct cm_buf *out, const struct cm_exec_info *info, size_t columns)
{
	const size_t before = EXEC_WIDTH + STATE_WIDTH + 2 * TIME_WIDTH + 8;
	CM_AUTO_BUF struct cm_buf command = { 0 };
	CM_AUTO_BUF struct cm_buf name = { 0 };
	char state[CM_AWAY_STATE_SIZE];
	char age[32];
	char took[32] = "-";
	uint64_t wall = wall_ms(info);

	cm_away_exec_state(info, state);
	cm_cli_format_age(info->started_ms, age, sizeof(age));
	if (wall != 0)
		cm_format_duration(wall, took, sizeof(took));
	cm_buf_init(&name, MAX_TEXT);
	cm_text_escape(&name, info->name, strlen(info->name), false);
	cm_buf_init(&command, MAX_TEXT);
	put_command(&command, info);
	cm_buf_printf(out, "%-*s  %-*s  %-*s  %-*s  ", EXEC_WIDTH, name.data ? name.data : "",
		      STATE_WIDTH, state, TIME_WIDTH, age, TIME_WIDTH, took);
	if (cm_buf_status(&command) < 0 || cm_buf_status(&name) < 0)
		out->has_failed = true;
	else if (columns == 0)
		cm_buf_append(out, command.data ? command.data : "", command.len);
	else if (columns > before && command.data)
		cm_buf_append(out, command.data,
			      cm_text_fitting(command.data, command.len, columns - before));
	cm_buf_putc(out, '\n');
}

/* --- finding one --------------------------------------------------------------------------- */

int cm_away_exec_copy(const struct cm_exec_info *from, struct cm_exec_info *ret)
{
	struct cm_exec_info to = *from;
	int r;

	to.cwd = cm_strdup(from->cwd);
	to.argv = (struct cm_strv){ 0 };
	r = from->cwd && !to.cwd ? CM_E_NOMEM : cm_strv_copy(&to.argv, &from->argv);
	if (r < 0) {
		cm_exec_info_clear(&to);
		return CM_E_NOMEM;
	}
	*ret = to;
	return CM_OK;
}

struct search {
	const char *name;
	bool is_found;
	struct cm_exec_info *ret;
};

static int look(void *data, const struct cm_exec_info *info)
{
	struct search *search = data;

	if (strcmp(info->name, search->name) != 0)
		return 0;
	cm_exec_info_clear(search->ret);
	search->is_found = true;
	return cm_away_exec_copy(info, search->ret);
}

int cm_away_exec_find(struct cm_away *away, const char *name, struct cm_exec_info *ret,
		      struct cm_error *err)
{
	struct search search = { .name = name, .ret = ret };
	int r;

	*ret = (struct cm_exec_info){ 0 };
	r = cm_exec_list(away->session, &away->call, look, &search, err);
	if (r == CM_E_NOMEM)
		(void)cm_error_set(err, r, 0, "no memory for the command");
	if (r < 0 || search.is_found)
		return r;
	(void)cm_error_set(err, CM_E_NOT_FOUND, 0, "session '%s' has no command '%.60s'",
			   away->session->id, name);
	cm_error_hint(err, "'casemate ps -a %s' lists those that are known", away->session->id);
	return CM_E_NOT_FOUND;
}

void cm_away_exec_set_end(struct cm_exec_info *info, const struct cm_exec_end *end)
{
	info->is_running = false;
	info->has_end = true;
	info->end = *end;
	if (info->ended_ms == 0)
		info->ended_ms = cm_clock_real_ms();
}

int cm_away_exec_check_words(const char *command, int n, struct cm_error *err)
{
	if (n == 2)
		return CM_OK;
	(void)cm_error_set(err, CM_E_INVALID, 0, "'%s' takes a session and a command of it",
			   command);
	cm_error_hint(err, "casemate %s ID COMMAND: 'casemate ps ID' lists its commands", command);
	return CM_E_INVALID;
}
