/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals for the ways that have none: the command runs in a session of its own, whose leader's number is in a
 * file of the sandbox, and another command sends the signal there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "providers/platform/command.h"
#include "providers/platform/exec_internal.h"
#include "runtime/base/clock.h"
#include "runtime/base/json_write.h"

#define BODY_MAX (16UL * 1024 * 1024)
/* of a command that nobody waits for any more */
#define END_GRACE_MAX_MS 1000
#define END_MS 3000
#define PATH_SIZE 96

/* Arguments: the file, the command's words. No variable: the command would have it, too. */
#define INNER                                                                                      \
	"'echo $$ >\"$1\" || exit 126\n"                                                           \
	"shift\n"                                                                                  \
	"case $1 in -*) \"$@\" ;; *) exec \"$@\" ;; esac' sh \"$@\" 2>&3 3>&-\n"
/* The shell tells its standard error when a signal has ended what it waited for; it is not the command's. */
static const char wrapper[] =
	"exec 3>&2 2>/dev/null\n"
	"if command -v setsid >&2; then setsid sh -c " INNER "else sh -c " INNER "fi\n"
	"set -- \"$?\" \"$1\"\n"
	"rm -f \"$2\"\n"
	"exit \"$1\"\n";

/*
 * Arguments: the file, the signal, for how many seconds the command is waited for before it is killed ("":
 * it is not). 3: there is no such command (any more). It may be about to begin.
 */
static const char killer[] = "exec 2>/dev/null\n"
			     "[ -s \"$1\" ] || sleep 1\n"
			     "read -r p <\"$1\" || exit 3\n"
			     "case $p in ''|0*|*[!0-9]*) exit 3 ;; esac\n"
			     "g=-$p; kill -0 \"$g\" || g=$p\n"
			     "kill \"-$2\" \"$g\" || exit 3\n"
			     "[ \"$3\" ] || exit 0\n"
			     "n=$3\n"
			     "while [ \"$n\" -gt 0 ]; do\n"
			     "kill -0 \"$g\" || exit 0\n"
			     "sleep 1; n=$((n - 1))\n"
			     "done\n"
			     "kill -KILL \"$g\"\n"
			     "rm -f \"$1\"\n"
			     "exit 0\n";

static void write_path(const struct cm_platform_exec *e, char buf[PATH_SIZE])
{
	(void)snprintf(buf, PATH_SIZE, "/tmp/.casemate-%s", e->base.name);
}

/* {"command":TEXT, without what ends it. */
static void open_body(struct cm_buf *out, const char *text)
{
	struct cm_json_writer w;

	cm_jw_init(&w, out, false);
	cm_jw_object(&w);
	cm_jw_kstring(&w, "command", text);
}

static int check(const struct cm_buf *out, struct cm_error *err)
{
	return cm_buf_status(out) < 0
		       ? cm_error_set(err, cm_buf_status(out), 0, "a command is too long")
		       : CM_OK;
}

/* The wrapper's text goes before the command's words, in the same string. */
int cm_platform_wrap_write(const struct cm_platform_exec *e, struct cm_buf *out,
			   struct cm_error *err)
{
	static const char begin[] = "{\"command\":\"";
	static const char exec[] = "exec ";
	char sh[] = "sh";
	char c[] = "-c";
	char script[sizeof(wrapper)];
	char path[PATH_SIZE];
	char *argv[] = { sh, c, script, sh, path, NULL };
	const char *words = e->request.data + sizeof(begin) - 1;
	struct cm_buf text;

	if (e->request.len < sizeof(begin) ||
	    memcmp(e->request.data, begin, sizeof(begin) - 1) != 0)
		return cm_error_set(err, CM_E_BUG, 0, "a command's text is not where it should be");
	if (strncmp(words, exec, sizeof(exec) - 1) == 0)
		words += sizeof(exec) - 1;
	memcpy(script, wrapper, sizeof(wrapper));
	write_path(e, path);
	cm_buf_init(&text, BODY_MAX);
	cm_platform_command_text(&text, argv);
	cm_buf_putc(&text, ' ');
	if (cm_buf_status(&text) == CM_OK) {
		open_body(out, text.data);
		/* the quote that ends it */
		if (out->len > 0)
			out->len--;
		cm_buf_append(out, words, e->request.len - (size_t)(words - e->request.data));
	} else {
		out->has_failed = true;
	}
	cm_buf_clear(&text);
	return check(out, err);
}

static int write_killer(const struct cm_platform_exec *e, const char *name, const char *seconds,
			struct cm_buf *out, struct cm_error *err)
{
	char sh[] = "sh";
	char c[] = "-c";
	char script[sizeof(killer)];
	char path[PATH_SIZE];
	char sig[16];
	char wait[16];
	char *argv[] = { sh, c, script, sh, path, sig, wait, NULL };
	struct cm_buf text;

	memcpy(script, killer, sizeof(killer));
	write_path(e, path);
	(void)snprintf(sig, sizeof(sig), "%s", name);
	(void)snprintf(wait, sizeof(wait), "%s", seconds);
	cm_buf_init(&text, BODY_MAX);
	cm_platform_command_text(&text, argv);
	if (cm_buf_status(&text) == CM_OK)
		open_body(out, text.data);
	else
		out->has_failed = true;
	cm_buf_putc(out, '}');
	cm_buf_clear(&text);
	return check(out, err);
}

static int run_killer(struct cm_platform_exec *e, cm_platform_other_run *run, const char *name,
		      const char *seconds, const struct cm_call *call, struct cm_error *err)
{
	struct cm_buf body;
	int exit_code = 0;
	int r;

	cm_buf_init(&body, BODY_MAX);
	r = write_killer(e, name, seconds, &body, err);
	if (r == CM_OK)
		r = run(e, &body, call, &exit_code, err);
	cm_buf_clear(&body);
	if (r < 0)
		return r;
	return exit_code == 0 ? CM_OK
			      : cm_error_set(err, CM_E_NOT_FOUND, 0, "the command has ended");
}

int cm_platform_wrap_signal(struct cm_platform_exec *e, cm_platform_other_run *run,
			    const char *name, const struct cm_call *call, struct cm_error *err)
{
	return run_killer(e, run, name, "", call, err);
}

void cm_platform_wrap_end(struct cm_platform_exec *e, cm_platform_other_run *run)
{
	uint64_t grace_ms = e->grace_ms < END_GRACE_MAX_MS ? e->grace_ms : END_GRACE_MAX_MS;
	struct cm_call own = { cm_clock_mono_ms() + END_MS, -1 };
	struct cm_error why = CM_ERROR_INIT;
	char seconds[24];
	int r;

	(void)snprintf(seconds, sizeof(seconds), "%" PRIu64, (grace_ms + 999) / 1000);
	r = run_killer(e, run, "TERM", seconds, &own, &why);
	if (r < 0 && r != CM_E_NOT_FOUND)
		cm_provider_note(e->base.session->provider,
				 "a command of session '%s' may still run: %s", e->base.session->id,
				 why.msg);
}
