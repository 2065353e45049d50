/* SPDX-License-Identifier: Apache-2.0 */
/* casemate wait: until a command has ended, and how. */
#include "runtime/base/clock.h"
#include "runtime/base/num.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/exec_view.h"

struct wait_options {
	const char *root;
	const char *timeout;
	bool is_json;
};

static int still_runs(const struct cm_exec_target *t, const char *timeout, struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_TIMEOUT, 0, "command %s still runs after %.40s", t->name,
			   timeout);
	cm_error_hint(err,
		      "it goes on: 'casemate wait %.100s %s' waits again, 'casemate kill' ends "
		      "it",
		      t->session.record.id, t->name);
	return CM_E_TIMEOUT;
}

static int wait_for(struct cm_exec_target *t, const char *timeout, int64_t deadline_ms,
		    struct cm_exec_fate *fate, struct cm_error *err)
{
	uint64_t id = 0;
	int r;

	if (!cm_exec_target_runs(t)) {
		cm_exec_target_fate(t, fate);
		return CM_OK;
	}
	r = cm_exec_target_attach(t, &id, NULL, err);
	/* it has ended since then, or the session has */
	if (r == CM_E_NOT_FOUND || t->jail.has_ended) {
		cm_exec_target_last_word(t, fate);
		return CM_OK;
	}
	if (r == CM_OK)
		r = cm_exec_target_wait(t, id, deadline_ms, fate, err);
	return r == CM_E_TIMEOUT && timeout ? still_runs(t, timeout, err) : r;
}

static int report(const struct cm_exec_target *t, const struct cm_exec_fate *fate, bool is_json)
{
	int status = cm_exec_target_exit(t, fate);

	if (is_json && cm_exec_view_print(t, fate) != 0)
		return t->cli->failure_exit;
	return status;
}

static int wait_command(struct cm_cli *cli, const struct wait_options *o, char *const *words,
			int64_t deadline_ms)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec_fate fate = { false };
	struct cm_exec_target t;
	int r = cm_exec_target_get(&t, cli, o->root, words[0], words[1], &err);

	if (r == CM_OK)
		r = wait_for(&t, o->timeout, deadline_ms, &fate, &err);
	if (r == CM_E_TIMEOUT && o->is_json && t.has_session)
		(void)cm_exec_view_print(&t, NULL);
	r = r < 0 ? cm_cli_fail(cli, &err) : report(&t, &fate, o->is_json);
	cm_exec_target_close(&t);
	return r;
}

int cm_cmd_wait(struct cm_cli *cli, int argc, char **argv)
{
	struct wait_options o = { NULL };
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &o.root },
		{ "timeout", '\0', CM_OPTION_TEXT, &o.timeout },
		{ "json", '\0', CM_OPTION_SWITCH, &o.is_json },
		{ "quiet", 'q', CM_OPTION_SWITCH, &cli->is_quiet },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	int64_t deadline_ms = INT64_MAX;
	uint64_t timeout_ms = 0;
	int n = 0;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) != CM_OK ||
	    cm_exec_target_check("wait", n, &err) != CM_OK ||
	    (o.timeout &&
	     cm_parse_duration(o.timeout, "--timeout", 0, INT32_MAX, &timeout_ms, &err) != CM_OK))
		return cm_cli_fail(cli, &err);
	if (o.timeout)
		deadline_ms = cm_clock_mono_ms() + (int64_t)timeout_ms;
	return wait_command(cli, &o, argv + 1, deadline_ms);
}
