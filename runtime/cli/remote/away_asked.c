/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/remote/away_asked.h"

#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/base/text.h"
#include "runtime/cli/relay.h"
#include "runtime/cli/remote/absent.h"
#include "runtime/spec/keys.h"

static bool is_limit(const struct cm_limit *limit)
{
	return limit->is_set && limit->value != CM_UNLIMITED;
}

/* --- refused ------------------------------------------------------------------------------- */

int cm_away_asked_check(const struct cm_spec *spec, struct cm_error *err)
{
	const struct cm_limit *output = &spec->limits.output;
	int r = cm_away_absent_root(
		cm_key_is_asked(CM_KEY_ROOT, spec) ? (spec->root ? spec->root : "") : NULL, err);

	if (r < 0 || !spec->is_detached || !is_limit(output) || output->is_optional ||
	    !cm_key_is_asked(CM_KEY_OUTPUT, spec))
		return r;
	r = cm_error_set(err, CM_E_UNSUPPORTED, 0,
			 "what a detached command of provider '%s' keeps cannot be limited",
			 cm_away_provider_name());
	cm_error_hint(err, "leave --output out");
	return r;
}

int cm_away_asked_check_create(const struct cm_spec *spec, struct cm_error *err)
{
	const char *what = spec->repo		  ? "--repo"
			   : spec->setup.n > 0	  ? "--setup"
			   : spec->teardown.n > 0 ? "--teardown"
						  : NULL;
	int r;

	if (!what)
		return CM_OK;
	r = cm_error_set(err, CM_E_UNSUPPORTED, 0, "'create' prepares nothing, and there is %s",
			 what);
	cm_error_hint(err, "'casemate start %s ...' makes a session and prepares it",
		      spec->session_id ? spec->session_id : "ID");
	return r;
}

/* --- said ---------------------------------------------------------------------------------- */

static void note(const struct cm_away *away, const char *option)
{
	cm_cli_note(away->cli, "%s is not enforced by provider '%s'", option,
		    cm_away_provider_name());
}

void cm_away_asked_note_limits(const struct cm_away *away, const struct cm_spec *spec, bool is_exec)
{
	const struct cm_limits *l = &spec->limits;
	const struct {
		const struct cm_limit *limit;
		uint32_t cap;
		const char *option;
	} all[] = {
		{ &l->timeout, CM_CAP_EXEC_TIMEOUT, "--timeout" },
		/* those of a session */
		{ &l->memory, CM_CAP_LIMIT_MEMORY, "--memory" },
		{ &l->swap, CM_CAP_LIMIT_MEMORY, "--swap" },
		{ &l->cpus, CM_CAP_LIMIT_CPU, "--cpus" },
		{ &l->pids, CM_CAP_LIMIT_PIDS, "--pids-limit" },
		{ &l->open_files, CM_CAP_LIMIT_FILES, "--open-files" },
		{ &l->idle, CM_CAP_LIMIT_TIME, "--idle-timeout" },
		{ &l->lifetime, CM_CAP_LIMIT_TIME, "--lifetime" },
		{ &l->sessions, CM_CAP_LIMIT_SESSIONS, "--max-sessions" },
	};
	uint32_t caps = away->provider->caps;

	if (spec->is_detached && is_limit(&l->output))
		note(away, "--output");
	for (size_t i = 0; i < (is_exec ? 1 : CM_ARRAY_SIZE(all)); i++) {
		if (is_limit(all[i].limit) && all[i].limit->is_optional && (caps & all[i].cap) == 0)
			note(away, all[i].option);
	}
	if (!is_exec && l->cpuset && l->is_cpuset_optional && (caps & CM_CAP_LIMIT_CPU) == 0)
		note(away, "--cpuset");
}

/* --- made to fit --------------------------------------------------------------------------- */

static bool is_passed(const struct cm_spec *spec, const char *variable)
{
	size_t len = strcspn(variable, "=");

	for (size_t i = 0; i < spec->pass_env.n; i++) {
		if (cm_text_matches_len(spec->pass_env.v[i], variable, len))
			return true;
	}
	return false;
}

int cm_away_asked_env(const struct cm_spec *spec, const struct cm_strv *caller, struct cm_strv *ret,
		      struct cm_error *err)
{
	int r = CM_OK;

	for (size_t i = 0; r == CM_OK && i < caller->n; i++) {
		if (is_passed(spec, caller->v[i]))
			r = cm_strv_add(ret, caller->v[i]);
	}
	for (size_t i = 0; r == CM_OK && i < spec->env.n; i++)
		r = cm_strv_add(ret, spec->env.v[i]);
	return r < 0 ? cm_error_set(err, CM_E_NOMEM, 0, "out of memory") : CM_OK;
}

int cm_away_asked_copy(const struct cm_spec *spec, const struct cm_strv *caller,
		       struct cm_spec *ret, struct cm_error *err)
{
	struct cm_strv env = { 0 };
	int r = cm_away_asked_env(spec, caller, &env, err);

	if (r == CM_OK && cm_spec_copy(ret, spec) < 0)
		r = cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	if (r < 0) {
		cm_strv_clear(&env);
		return r;
	}
	cm_strv_clear(&ret->env);
	ret->env = env;
	return CM_OK;
}

/* What would be thrown away: there is input, and it is there already. */
static bool has_input_ready(void)
{
	off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);
	struct stat st;
	int n = 0;

	if (!cm_relay_has_stdin() || fstat(STDIN_FILENO, &st) < 0)
		return false;
	if (S_ISREG(st.st_mode))
		return at >= 0 && at < st.st_size;
	return S_ISFIFO(st.st_mode) && ioctl(STDIN_FILENO, FIONREAD, &n) == 0 && n > 0;
}

int cm_away_asked_check_no_input(struct cm_error *err)
{
	if (!has_input_ready())
		return CM_OK;
	(void)cm_error_set(err, CM_E_UNSUPPORTED, 0, "provider '%s' passes no standard input on",
			   cm_away_provider_name());
	cm_error_hint(err, "redirect it: </dev/null");
	return CM_E_UNSUPPORTED;
}
