/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The short way to a session that runs: nothing is looked at on the host, no lock is taken. What
 * commands need of the start is in a file that it wrote beside the record.
 */
#include <unistd.h>

#include "providers/local/local_internal.h"
#include "runtime/base/clock.h"
#include "runtime/base/path.h"

#define CONNECT_WAIT_MS 10000

/* Where the caller is, if that is in the workspace; else its top. A relative --workdir is below that. */
static int choose_cwd(struct cm_local *l, struct cm_error *err)
{
	const char *top = l->workspace.path ? l->workspace.path : "/";
	const char *asked = l->spec.workdir;
	const char *cwd = l->config->cwd;

	if (asked && asked[0] != '/')
		l->workspace.cwd = cm_path_join(top, asked);
	else if (asked)
		l->workspace.cwd = cm_strdup(asked);
	else
		l->workspace.cwd = cm_strdup(
			l->workspace.path && cwd && cm_path_is_below(cwd, top) ? cwd : top);
	return l->workspace.cwd ? CM_OK
				: cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
}

static int connect_to(struct cm_local *l, struct cm_error *err)
{
	return cm_jail_connect(&l->jail, l->session.socket_path, l->session.record.id,
			       cm_clock_mono_ms() + CONNECT_WAIT_MS, err);
}

static bool is_ready(const struct cm_local *l)
{
	const struct cm_session_record *record = &l->session.record;

	/* whoever starts it or sets it up has its lock, and is waited for by the long way */
	return cm_store_keeper_alive(&l->session) && !cm_local_setup_is_due(record);
}

static int join(struct cm_local *l, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;
	int r;

	l->has_session = true;
	if (!is_ready(l))
		return CM_OK;
	l->is_running = true;
	r = cm_local_adopt(l, err);
	if (r == CM_OK)
		r = cm_local_check_bounds(l, err);
	if (r == CM_OK)
		r = cm_local_env_read(l, err);
	if (r <= 0) {
		l->is_running = false;
		return r;
	}
	r = choose_cwd(l, err);
	if (r == CM_OK)
		r = connect_to(l, &why);
	/* it is ending: then it is started again, when it is gone */
	if (r == CM_E_NOT_FOUND) {
		l->is_running = false;
		return CM_OK;
	}
	if (r < 0 && why.code != 0 && err)
		*err = why;
	return r;
}

int cm_local_join(struct cm_local *l, const struct cm_spec *spec, const struct cm_config *config,
		  const struct cm_local_events *events, struct cm_error *err)
{
	int r = cm_spec_copy(&l->spec, spec);

	if (r < 0)
		return cm_error_set(err, r, 0, "no memory for the session");
	l->config = config;
	l->events = *events;
	r = cm_store_open(&config->env, spec->root, config->home, geteuid() == 0, &l->store, err);
	if (r == CM_OK)
		r = cm_store_session_open(&l->store, spec->session_id, false, 0, &l->session, err);
	return r < 0 ? r : join(l, err);
}
