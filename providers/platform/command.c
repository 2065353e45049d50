/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/platform/command.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/text.h"

/* far above what a kernel takes for one command */
#define TEXT_MAX (8UL * 1024 * 1024)

static const char plain_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				  "._-/=:@";

/* What a shell takes for more than a name where a command stands: in quotes it is one. */
static bool is_reserved(const char *word)
{
	static const char *const words[] = { "case",   "do",	  "done",  "elif",   "else",
					     "esac",   "fi",	  "for",   "if",     "in",
					     "then",   "until",	  "while", "select", "time",
					     "coproc", "function" };

	for (size_t i = 0; i < CM_ARRAY_SIZE(words); i++) {
		if (strcmp(words[i], word) == 0)
			return true;
	}
	return false;
}

static bool is_plain(const char *word, bool is_first)
{
	/* "A=b" in the first place would be an assignment */
	return *word != '\0' && word[strspn(word, plain_chars)] == '\0' &&
	       !(is_first && (strchr(word, '=') || is_reserved(word)));
}

/*
 * JSON has no bytes that are not UTF-8, and a shell can make them. No such byte is a newline, of which
 * "$(...)" would take the last ones away.
 */
static void quote_byte(struct cm_buf *out, unsigned char byte)
{
	cm_buf_printf(out, "'\"$(printf '\\%03o')\"'", byte);
}

static void quote(struct cm_buf *out, const char *word, bool is_first)
{
	size_t len = strlen(word);

	if (is_plain(word, is_first)) {
		cm_buf_puts(out, word);
		return;
	}
	cm_buf_putc(out, '\'');
	while (len > 0) {
		size_t n = cm_text_utf8_len(word, len);

		if (n == 0)
			quote_byte(out, (unsigned char)*word);
		else if (*word == '\'')
			cm_buf_puts(out, "'\\''");
		else
			cm_buf_append(out, word, n);
		n = n == 0 ? 1 : n;
		word += n;
		len -= n;
	}
	cm_buf_putc(out, '\'');
}

void cm_platform_command_text(struct cm_buf *out, char *const *argv)
{
	/* in the shell's place: signals reach the command itself, and its end is what is told */
	if (argv[0][0] != '-')
		cm_buf_puts(out, "exec ");
	for (size_t i = 0; argv[i]; i++) {
		if (i > 0)
			cm_buf_putc(out, ' ');
		quote(out, argv[i], i == 0);
	}
}

static bool is_utf8(const char *s)
{
	size_t len = strlen(s);

	while (len > 0) {
		size_t n = cm_text_utf8_len(s, len);

		if (n == 0)
			return false;
		s += n;
		len -= n;
	}
	return true;
}

/* Half a character is none of JSON's, and what it has in its place is not what was meant. */
static int check_utf8(const char *s, const char *what, struct cm_error *err)
{
	if (is_utf8(s))
		return CM_OK;
	cm_error_set(err, CM_E_UNSUPPORTED, 0, "the platform takes %s in UTF-8 alone", what);
	cm_error_hint(err, "put what is not text into a file, or write it in base64");
	return CM_E_UNSUPPORTED;
}

void cm_platform_env_write(struct cm_json_writer *w, const struct cm_strv *env)
{
	cm_jw_object(w);
	for (size_t i = 0; env && i < env->n; i++) {
		const char *value = strchr(env->v[i], '=');
		CM_AUTO_FREE char *name = NULL;

		if (!value)
			continue;
		name = cm_asprintf("%.*s", (int)(value - env->v[i]), env->v[i]);
		if (!name)
			w->out->has_failed = true;
		else
			cm_jw_kstring(w, name, value + 1);
	}
	cm_jw_end_object(w);
}

/* Each name once: JSON has no second. */
static int merge_env(struct cm_strv *to, const char *entry, struct cm_error *err)
{
	const char *value = strchr(entry, '=');
	CM_AUTO_FREE char *name = NULL;
	int r = check_utf8(entry, "variables", err);

	if (r < 0 || !value)
		return r;
	name = cm_asprintf("%.*s", (int)(value - entry), entry);
	r = name ? cm_strv_env_set(to, name, value + 1) : CM_E_NOMEM;
	return r < 0 ? cm_error_set(err, r, 0, "cannot pass on a variable of a command") : CM_OK;
}

static int write_env(struct cm_json_writer *w, const struct cm_exec_request *request,
		     const struct cm_strv *session_env, struct cm_error *err)
{
	CM_AUTO_STRV struct cm_strv env = { 0 };
	int r = CM_OK;

	for (size_t i = 0; i < session_env->n && r == CM_OK; i++)
		r = merge_env(&env, session_env->v[i], err);
	for (size_t i = 0; request->env && request->env[i] && r == CM_OK; i++)
		r = merge_env(&env, request->env[i], err);
	if (r < 0 || env.n == 0)
		return r;
	cm_jw_key(w, "env");
	cm_platform_env_write(w, &env);
	return CM_OK;
}

int cm_platform_command_write(struct cm_json_writer *w, const struct cm_exec_request *request,
			      const struct cm_strv *session_env, const char *cwd,
			      struct cm_error *err)
{
	struct cm_buf text;
	int r = CM_OK;

	if (request->cwd)
		cwd = request->cwd;
	if (cwd)
		r = check_utf8(cwd, "directories", err);
	if (r < 0)
		return r;
	cm_buf_init(&text, TEXT_MAX);
	cm_platform_command_text(&text, request->argv);
	r = cm_buf_status(&text);
	if (r == CM_OK) {
		cm_jw_kstring(w, "command", text.data);
		if (cwd)
			cm_jw_kstring(w, "cwd", cwd);
		r = write_env(w, request, session_env, err);
	} else {
		r = cm_error_set(err, r, 0, "a command is too long");
	}
	cm_buf_clear(&text);
	return r;
}

const char *cm_platform_signal_name(int sig)
{
	static const struct {
		int number;
		const char *name;
	} signals[] = {
		{ SIGHUP, "HUP" },     { SIGINT, "INT" },   { SIGQUIT, "QUIT" },
		{ SIGKILL, "KILL" },   { SIGUSR1, "USR1" }, { SIGUSR2, "USR2" },
		{ SIGPIPE, "PIPE" },   { SIGALRM, "ALRM" }, { SIGTERM, "TERM" },
		{ SIGCONT, "CONT" },   { SIGSTOP, "STOP" }, { SIGTSTP, "TSTP" },
		{ SIGWINCH, "WINCH" },
	};

	for (size_t i = 0; i < CM_ARRAY_SIZE(signals); i++) {
		if (signals[i].number == sig)
			return signals[i].name;
	}
	return NULL;
}
