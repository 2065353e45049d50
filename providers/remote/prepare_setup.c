/* SPDX-License-Identifier: Apache-2.0 */
/* Setup commands, run once. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/remote/prepare_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/sha256.h"

#define TEXT_MAX (16UL * 1024 * 1024)

/* $1 the directory, $2 the file, $3 what is in it, $4 the file that is not there then */
static const char mark_script[] =
	"umask 022; mkdir -p \"$1\" && printf '%s' \"$3\" >\"$1/.$2.new\" && "
	"mv -f \"$1/.$2.new\" \"$1/$2\" && rm -f \"$1/$4\"\n";

static bool is_blank(const char *text)
{
	return text[strspn(text, " \t\r\n")] == '\0';
}

static size_t count(const struct cm_strv *commands)
{
	size_t n = 0;

	for (size_t i = 0; i < commands->n; i++)
		n += is_blank(commands->v[i]) ? 0 : 1;
	return n;
}

char *cm_prep_setup_digest(const struct cm_strv *commands)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	char hex[CM_SHA256_HEX_SIZE];

	cm_buf_init(&text, TEXT_MAX);
	for (size_t i = 0; i < commands->n; i++) {
		if (is_blank(commands->v[i]))
			continue;
		if (text.len > 0)
			cm_buf_putc(&text, '\n');
		cm_buf_puts(&text, commands->v[i]);
	}
	if (cm_buf_status(&text) != CM_OK)
		return NULL;
	if (text.len == 0)
		return cm_strdup("");
	cm_sha256_hex(text.data, text.len, hex);
	return cm_asprintf("sha256:%s", hex);
}

/* --- one command ----------------------------------------------------------------------------- */

/* cd 'DIR' && { COMMAND and a newline, so that a comment at its end ends there } */
static void write_script(struct cm_buf *out, const char *dir, const char *command)
{
	cm_buf_puts(out, "cd '");
	for (const char *c = dir; *c != '\0'; c++) {
		if (*c == '\'')
			cm_buf_puts(out, "'\\''");
		else
			cm_buf_putc(out, *c);
	}
	cm_buf_puts(out, "' && { ");
	cm_buf_puts(out, command);
	cm_buf_puts(out, "\n}");
}

int cm_prep_run_command(struct cm_prep *p, const char *dir, const char *command, char *const *env,
			struct cm_shell_end *end, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf script = { 0 };
	struct cm_shell shell = {
		.session = p->session,
		.env = env,
		.is_root = p->spec->user == CM_USER_ROOT,
		.timeout_ms = CM_PREPARE_TIMEOUT_MS,
		.take = cm_prep_output,
		.take_error = cm_prep_output,
		.take_data = p,
	};

	*end = (struct cm_shell_end)CM_SHELL_END_INIT;
	cm_buf_init(&script, CM_SHELL_ARG_MAX);
	write_script(&script, dir, command);
	if (cm_buf_status(&script) == CM_E_LIMIT)
		return cm_error_set(err, CM_E_LIMIT, 0, "a command of setup is longer than %lu KiB",
				    CM_SHELL_ARG_MAX / 1024);
	if (cm_buf_status(&script) < 0)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a command of setup");
	shell.script = script.data;
	return cm_shell_run(&shell, p->call, end, err);
}

/* --- what is remembered ---------------------------------------------------------------------- */

static int write_marker(struct cm_prep *p, const char *digest, int exit_code, struct cm_error *err)
{
	CM_AUTO_FREE char *dir = cm_asprintf("%s/" CM_PREPARE_DIRECTORY, p->workdir);
	CM_AUTO_FREE char *text =
		exit_code == 0 ? cm_strdup(digest) : cm_asprintf("%s %d", digest, exit_code);
	const char *const args[] = { dir, exit_code == 0 ? "setup" : "setup-failed", text,
				     exit_code == 0 ? "setup-failed" : "setup", NULL };
	const struct cm_shell shell = {
		.session = p->session,
		.script = mark_script,
		.args = args,
		.is_root = p->spec->user == CM_USER_ROOT,
		.is_idempotent = true,
		.timeout_ms = CM_PREPARE_TIMEOUT_MS,
	};
	struct cm_shell_end end;
	int r;

	if (!dir || !text)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the setup's marker");
	r = cm_shell_run(&shell, p->call, &end, err);
	if (r == CM_OK && end.exit_code != 0)
		r = cm_shell_failed(&end, CM_E_SETUP, err, "cannot write down that setup was run");
	cm_shell_end_clear(&end);
	return r;
}

static int remember(struct cm_prep *p, const char *digest, int exit_code, struct cm_error *err)
{
	char number[16];
	int r;

	(void)snprintf(number, sizeof(number), "%d", exit_code);
	r = cm_record_set(&p->record, CM_RECORD_SETUP_DIGEST, digest, err);
	if (r == CM_OK)
		r = cm_record_set(&p->record, CM_RECORD_SETUP_STATE,
				  exit_code == 0 ? "done" : "failed", err);
	if (r == CM_OK)
		r = cm_record_set(&p->record, CM_RECORD_SETUP_EXIT, number, err);
	return r;
}

static void note_failed(const struct cm_prep *p)
{
	cm_provider_note(
		p->session->provider,
		"setup failed before and is not run again by itself: --setup-again does it");
}

/* By this host's record. */
static bool is_recorded(const struct cm_prep *p, const char *digest, bool *ret_has_failed)
{
	const char *known = cm_record_get(&p->record, CM_RECORD_SETUP_DIGEST);
	const char *state = cm_record_get(&p->record, CM_RECORD_SETUP_STATE);

	if (!known || !state || strcmp(known, digest) != 0)
		return false;
	*ret_has_failed = strcmp(state, "failed") == 0;
	return true;
}

/* By the sandbox's markers; a template has run it, or another host. */
static bool is_marked(const struct cm_prep *p, const char *digest, int *ret_exit)
{
	size_t len = strlen(digest);
	uint64_t status = 0;

	*ret_exit = 0;
	if (strcmp(p->marker, digest) == 0)
		return true;
	if (strncmp(p->failed_marker, digest, len) != 0 || p->failed_marker[len] != ' ' ||
	    !cm_shell_number(p->failed_marker + len + 1, 255, &status) || status == 0)
		return false;
	*ret_exit = (int)status;
	return true;
}

/* --- all of them ----------------------------------------------------------------------------- */

static int make_env(const struct cm_prep *p, struct cm_strv *ret, struct cm_error *err)
{
	const struct cm_spec *spec = p->spec;
	int r = cm_prep_check_secrets(p, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < spec->setup_env.n && r == CM_OK; i++)
		r = cm_strv_add(ret, spec->setup_env.v[i]);
	for (size_t i = 0; i < spec->setup_secrets.n && r == CM_OK; i++) {
		const char *name = spec->setup_secrets.v[i];

		r = cm_strv_env_set(ret, name, cm_strv_env_get(&p->config->setup_secrets, name));
	}
	return r < 0 ? cm_error_set(err, CM_E_NOMEM, 0, "no memory for the setup") : CM_OK;
}

static int failed(const struct cm_prep *p, size_t i, size_t n, const struct cm_shell_end *end,
		  struct cm_error *err)
{
	char what[64];

	(void)snprintf(what, sizeof(what), "setup command %zu of %zu failed (exit %d)", i, n,
		       end->exit_code);
	if (end->tail_len > 0)
		(void)cm_shell_failed(end, CM_E_SETUP, err, "%s", what);
	else
		(void)cm_error_set(err, CM_E_SETUP, 0, "%s", what);
	if (p->spec->session_id || p->spec->is_kept)
		cm_error_hint(err, "the session can be used as it is; --setup-again runs it again");
	else
		cm_error_hint(err,
			      "what it printed is above; --session NAME keeps what a setup has "
			      "made, to look at");
	return CM_E_SETUP;
}

/* *ret_exit: of the command that failed, and then CM_E_SETUP. */
static int run_all(struct cm_prep *p, const char *dir, char *const *env, int *ret_exit,
		   struct cm_error *err)
{
	const struct cm_strv *setup = &p->spec->setup;
	size_t n = count(setup);
	size_t done = 0;
	int r = CM_OK;

	for (size_t i = 0; i < setup->n && r == CM_OK; i++) {
		int64_t since = cm_clock_mono_us();
		struct cm_shell_end end;
		char phase[48];

		if (is_blank(setup->v[i]))
			continue;
		r = cm_prep_run_command(p, dir, setup->v[i], env, &end, err);
		done++;
		(void)snprintf(phase, sizeof(phase), "setup %zu/%zu", done, n);
		cm_provider_phase(p->session->provider, phase, since);
		if (r == CM_OK && end.exit_code != 0) {
			*ret_exit = end.exit_code;
			r = failed(p, done, n, &end, err);
		}
		cm_shell_end_clear(&end);
	}
	return r;
}

static int run_and_mark(struct cm_prep *p, const char *digest, struct cm_error *err)
{
	const char *dir = p->checkout ? p->checkout : p->workdir;
	struct cm_strv env = { 0 };
	int exit_code = 0;
	int r = make_env(p, &env, err);

	if (r == CM_OK)
		r = cm_prep_network(
			p, p->spec->setup_network ? p->spec->setup_network : p->own_network, err);
	if (r == CM_OK)
		r = run_all(p, dir[0] ? dir : "/", env.v, &exit_code, err);
	cm_prep_env_clear(&env);
	if (r == CM_OK) {
		r = write_marker(p, digest, 0, err);
		return r == CM_OK ? remember(p, digest, 0, err) : r;
	}
	/* the first failure is what is told */
	if (r == CM_E_SETUP && exit_code != 0) {
		(void)write_marker(p, digest, exit_code, NULL);
		(void)remember(p, digest, exit_code, NULL);
	}
	return r;
}

int cm_prep_setup(struct cm_prep *p, struct cm_error *err)
{
	CM_AUTO_FREE char *digest = cm_prep_setup_digest(&p->spec->setup);
	bool has_failed = false;
	int exit_code = 0;
	int r;

	if (!digest)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the setup");
	if (digest[0] == '\0')
		return CM_OK;
	if (!p->spec->is_setup_again && is_recorded(p, digest, &has_failed)) {
		if (has_failed)
			note_failed(p);
		return CM_OK;
	}
	r = cm_prep_look(p, err);
	if (r < 0)
		return r;
	if (!p->spec->is_setup_again && is_marked(p, digest, &exit_code)) {
		if (exit_code != 0)
			note_failed(p);
		return remember(p, digest, exit_code, err);
	}
	return run_and_mark(p, digest, err);
}
