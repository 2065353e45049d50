/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/remote/ending.h"

#include <signal.h>
#include <unistd.h>

#include "providers/remote/prepare.h"
#include "runtime/base/fd.h"

static void on_output(void *data, const void *bytes, size_t len)
{
	const struct cm_cli *cli = data;

	if (!cli->is_quiet)
		(void)cm_write_all(STDERR_FILENO, bytes, len);
}

/* What cannot be told is taken for no. */
static bool is_running(const struct cm_away *away)
{
	struct cm_session_info info = { 0 };
	bool ret = cm_session_info(away->session, &away->call, &info, NULL) == CM_OK &&
		   info.state == CM_SESSION_RUNNING;

	cm_session_info_clear(&info);
	return ret;
}

void cm_away_tear_down(struct cm_away *away)
{
	struct cm_prepare prepare = {
		.config = &away->cli->config,
		.output = on_output,
		.data = away->cli,
	};
	struct cm_spec spec;

	cm_spec_init(&spec);
	spec.session_id = cm_strdup(away->session->id);
	prepare.spec = &spec;
	if (spec.session_id && is_running(away))
		cm_prepare_teardown(away->session, &prepare, &away->call);
	cm_spec_clear(&spec);
}

static int add_running(void *data, const struct cm_exec_info *info)
{
	struct cm_strv *names = data;

	return info->is_running && info->is_detached ? cm_strv_add(names, info->name) : 0;
}

static int kill_one(struct cm_away *away, const char *name, struct cm_error *err)
{
	/* nothing of what it printed is wanted */
	const uint64_t offsets[2] = { CM_AWAY_BEHIND_ALL, CM_AWAY_BEHIND_ALL };
	struct cm_exec *exec = NULL;
	int r = cm_exec_attach(away->session, name, offsets, true, &away->call, &exec, err);

	if (r == CM_OK)
		r = cm_exec_signal(exec, SIGKILL, &away->call, err);
	if (exec)
		cm_exec_release(exec);
	if (r != CM_E_NOT_FOUND)
		return r;
	cm_error_clear(err);
	return CM_OK;
}

int cm_away_kill_commands(struct cm_away *away, struct cm_error *err)
{
	CM_AUTO_STRV struct cm_strv names = { 0 };
	int r;

	if (!is_running(away))
		return CM_OK;
	r = cm_exec_list(away->session, &away->call, add_running, &names, err);
	for (size_t i = 0; r == CM_OK && i < names.n; i++)
		r = kill_one(away, names.v[i], err);
	/* without a list or signals there are none that could be left */
	if (r != CM_E_UNSUPPORTED)
		return r;
	cm_error_clear(err);
	return CM_OK;
}
