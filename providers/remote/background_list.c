/* SPDX-License-Identifier: Apache-2.0 */
/* Which detached commands a session has, and how they ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/remote/background_internal.h"
#include "runtime/base/fd.h"

#define LIST_MAX (16UL * 1024 * 1024)
#define TIME_MAX (INT64_MAX / 2)
#define N_FIELDS 8

/* as a shell has a command that a signal ended */
#define SIGNAL_BASE 128
#define SIGNAL_LAST 64

static const struct {
	const char *word;
	enum cm_exec_end_kind kind;
} kinds[] = {
	{ "running", 0 },
	{ "lost", CM_EXEC_LOST },
	{ "exit", CM_EXEC_EXITED },
	{ "timeout", CM_EXEC_TIMED_OUT },
	{ "killed", CM_EXEC_KILLED },
	{ "none", CM_EXEC_NOT_EXECUTED },
};

/* casemate's own exit status for what is not the command's */

static bool find_kind(const char *word, enum cm_exec_end_kind *ret)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(kinds); i++) {
		if (strcmp(kinds[i].word, word) == 0) {
			*ret = kinds[i].kind;
			return true;
		}
	}
	return false;
}

bool cm_background_end(const char *kind, const char *code, const char *ended, const char *started,
		       struct cm_exec_end *ret, int64_t *ret_ended_ms, int64_t *ret_started_ms)
{
	struct cm_exec_end end = { .kind = 0 };
	uint64_t status;
	uint64_t at;
	uint64_t from;

	if (!find_kind(kind, &end.kind) || !cm_shell_number(code, 255, &status) ||
	    !cm_shell_number(ended, TIME_MAX, &at) || !cm_shell_number(started, TIME_MAX, &from))
		return false;
	end.exit_code = end.kind == CM_EXEC_LOST ? 0 : (int)status;
	if ((end.kind == CM_EXEC_EXITED || end.kind == CM_EXEC_KILLED) &&
	    end.exit_code > SIGNAL_BASE && end.exit_code <= SIGNAL_BASE + SIGNAL_LAST)
		end.signal = end.exit_code - SIGNAL_BASE;
	if (end.kind == CM_EXEC_EXITED && end.signal != 0)
		end.kind = CM_EXEC_SIGNALLED;
	if (end.kind != 0 && from != 0 && at > from)
		end.wall_ms = at - from;
	*ret = end;
	*ret_ended_ms = (int64_t)at;
	*ret_started_ms = (int64_t)from;
	return true;
}

/* A NUL-terminated text at *at, which moves behind it; NULL: there is none before `to`. */
static const char *field(const char **at, const char *to)
{
	const char *text = *at;
	const char *end = memchr(text, '\0', (size_t)(to - text));

	if (!end)
		return NULL;
	*at = end + 1;
	return text;
}

static int copy_texts(struct cm_exec_info *info, const char *at, size_t cwd_len, size_t cmd_len)
{
	const char *to = at + cwd_len + cmd_len;

	info->cwd = cm_asprintf("%.*s", (int)cwd_len, at);
	if (!info->cwd)
		return CM_E_NOMEM;
	at += cwd_len;
	while (at < to) {
		const char *end = memchr(at, '\0', (size_t)(to - at));
		int len = (int)((end ? end : to) - at);

		if (cm_strv_addf(&info->argv, "%.*s", len, at) != CM_OK)
			return CM_E_NOMEM;
		at += len + 1;
	}
	return CM_OK;
}

static int malformed(struct cm_error *err)
{
	return cm_error_set(err, CM_E_PROTOCOL, 0,
			    "the session's list of detached commands makes no sense");
}

/* One of the list; *at moves behind it. *ret_is_one: what it says of itself makes sense. */
static int read_one(const char **at, const char *to, bool is_root, struct cm_exec_info *info,
		    bool *ret_is_one, struct cm_error *err)
{
	const char *f[N_FIELDS];
	const char *number;
	const char *texts;
	bool has_prefix;
	uint64_t pid;
	uint64_t cwd_len;
	uint64_t cmd_len;

	*ret_is_one = false;

	for (size_t i = 0; i < N_FIELDS; i++) {
		f[i] = field(at, to);
		if (!f[i])
			return malformed(err);
	}
	if (!cm_shell_number(f[6], (uint64_t)(to - *at), &cwd_len) ||
	    !cm_shell_number(f[7], (uint64_t)(to - *at) - cwd_len, &cmd_len))
		return malformed(err);
	texts = *at;
	*at += cwd_len + cmd_len;
	/* where the next one begins is known: one that is broken does not hide the others */
	if (f[0][0] == 'r' || !cm_background_name(f[0], &number, &has_prefix) ||
	    !cm_background_end(f[1], f[2], f[3], f[4], &info->end, &info->ended_ms,
			       &info->started_ms) ||
	    !cm_shell_number(f[5], UINT32_MAX, &pid))
		return CM_OK;
	(void)snprintf(info->name, sizeof(info->name), "%s%s", is_root ? "r" : "", number);
	info->pid = (int64_t)pid;
	info->is_detached = true;
	info->is_running = info->end.kind == 0;
	info->has_end = !info->is_running;
	if (copy_texts(info, texts, cwd_len, cmd_len) != CM_OK)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a list of commands");
	*ret_is_one = true;
	return CM_OK;
}

static int read_all(const struct cm_buf *text, bool is_root,
		    int (*each)(void *data, const struct cm_exec_info *info), void *data,
		    struct cm_error *err)
{
	const char *at = text->data;
	const char *to = at ? at + text->len : NULL;
	int r = CM_OK;

	while (r == CM_OK && at < to) {
		struct cm_exec_info info = { .pid = 0 };
		bool is_one;

		r = read_one(&at, to, is_root, &info, &is_one, err);
		if (r == CM_OK && is_one)
			r = each(data, &info);
		cm_exec_info_clear(&info);
	}
	return r;
}

static int list(struct cm_session *s, bool is_root, const struct cm_call *call,
		int (*each)(void *data, const struct cm_exec_info *info), void *data,
		struct cm_error *err)
{
	const struct cm_shell shell = {
		.session = s,
		.script = cm_background_list_script,
		.is_root = is_root,
		.is_idempotent = true,
		.out_max = LIST_MAX,
	};
	struct cm_shell_end end;
	int r = cm_shell_run(&shell, call, &end, err);

	if (r == CM_OK && end.exit_code != 0)
		r = cm_background_error(&end, "list detached commands", err);
	if (r == CM_OK)
		r = read_all(&end.out, is_root, each, data, err);
	cm_shell_end_clear(&end);
	return r;
}

int cm_background_list(struct cm_session *s, const struct cm_call *call,
		       int (*each)(void *data, const struct cm_exec_info *info), void *data,
		       struct cm_error *err)
{
	int r = list(s, false, call, each, data, err);

	if (r == CM_OK && (s->provider->caps & CM_CAP_ROOT_USER) != 0)
		r = list(s, true, call, each, data, err);
	return r;
}
