/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The short way to a session that runs: nothing is looked at on the host, no lock is taken. What
 * commands need of the start is in a file that it wrote beside the record.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "isolation/host/host.h"
#include "providers/local/local_internal.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
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

static bool asks_of_session(const struct cm_spec *spec)
{
	if (spec->min_level == CM_LEVEL_FULL)
		return true;
	for (unsigned int key = 0; key < CM_KEY_COUNT; key++) {
		if ((spec->asked & UINT64_C(1) << key) != 0 && cm_local_keeps((enum cm_key)key))
			return true;
	}
	return false;
}

static bool has_repository_ceiling(const struct cm_session_record *record)
{
	const char *tree = record->checkout ? record->checkout : record->workspace;
	CM_AUTO_FREE char *path = tree ? cm_path_join(tree, CM_CONFIG_REPOSITORY_FILE) : NULL;

	if (!tree)
		return false;
	return !path || faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	       (errno != ENOENT && errno != ENOTDIR);
}

/* Is there anything that the session could contradict, or have to be told of? Mostly there is not,
 * and its settings need not even be read. */
static bool is_settled(const struct cm_local *l)
{
	const struct cm_session_record *record = &l->session.record;

	return record->setup_state != CM_SETUP_FAILED && l->config->system.ceiling.n == 0 &&
	       !asks_of_session(&l->spec) && !has_repository_ceiling(record);
}

static int check_settings(struct cm_local *l, struct cm_error *err)
{
	int r = cm_local_adopt(l, err);

	return r < 0 ? r : cm_local_check_bounds(l, err);
}

static int64_t deadline(void)
{
	return cm_clock_mono_ms() + CONNECT_WAIT_MS;
}

/* It is ending: then it is started again, when it is gone. */
static int unless_gone(struct cm_local *l, int r, const struct cm_error *why, struct cm_error *err)
{
	l->is_running = r == CM_OK;
	if (r == CM_OK || r == CM_E_NOT_FOUND)
		return CM_OK;
	if (err)
		*err = *why;
	return r;
}

static int dial(struct cm_local *l, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;
	int r = cm_jail_dial(&l->jail, l->session.socket_path, l->session.record.id, deadline(),
			     &why);

	l->is_dialled = r == CM_OK;
	return unless_gone(l, r, &why, err);
}

int cm_local_greeted(struct cm_local *l, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;
	int r;

	if (!l->is_dialled)
		return CM_OK;
	l->is_dialled = false;
	r = cm_jail_greeted(&l->jail, l->session.record.id, deadline(), &why);
	return unless_gone(l, r, &why, err);
}

static bool is_ready(const struct cm_local *l)
{
	const struct cm_session_record *record = &l->session.record;

	/* whoever starts it or sets it up has its lock, and is waited for by the long way */
	return cm_store_keeper_alive(&l->session) && !cm_local_setup_is_due(record);
}

static int join(struct cm_local *l, struct cm_error *err)
{
	int r;

	l->has_session = true;
	if (!is_ready(l))
		return CM_OK;
	/* first: while the keeper looks at who that is, the rest is read */
	r = dial(l, err);
	if (r < 0 || !l->is_running)
		return r;
	r = is_settled(l) ? CM_OK : check_settings(l, err);
	if (r == CM_OK)
		r = cm_local_env_read(l, err);
	if (r <= 0) {
		l->is_running = false;
		return r;
	}
	return choose_cwd(l, err);
}

/* Is the environment of its command that of the session, and nothing more? */
static bool is_plain(const struct cm_spec *spec)
{
	return spec->env.n == 0 && spec->pass_env.n == 0;
}

/* 0: it is of another start. */
static int read_env_again(struct cm_local *l, struct cm_error *err)
{
	cm_strv_clear(&l->env);
	cm_ptr_free(&l->workspace.path);
	return cm_local_env_read(l, err);
}

int cm_local_rejoin(struct cm_local *l, const struct cm_spec *spec, struct cm_error *err)
{
	bool has_env = is_plain(&l->spec) && is_plain(spec);
	int r;

	cm_spec_clear(&l->spec);
	r = cm_spec_copy(&l->spec, spec);
	if (r < 0)
		return cm_error_set(err, r, 0, "no memory for the session");
	l->is_running = is_settled(l) && cm_store_session_is_current(&l->session);
	if (!l->is_running)
		return CM_OK;
	r = has_env ? 1 : read_env_again(l, err);
	l->is_running = r == 1;
	cm_ptr_free(&l->workspace.cwd);
	return r == 1 ? choose_cwd(l, err) : r;
}

int cm_local_join(struct cm_local *l, const struct cm_spec *spec, const struct cm_config *config,
		  const struct cm_local_events *events, struct cm_error *err)
{
	CM_AUTO_FREE char *home = cm_host_home(&config->env);
	int r = home ? cm_spec_copy(&l->spec, spec) : CM_E_NOMEM;

	if (r < 0)
		return cm_error_set(err, r, 0, "no memory for the session");
	l->config = config;
	l->events = *events;
	r = cm_store_open(&config->env, spec->root, home, geteuid() == 0, &l->store, err);
	if (r == CM_OK)
		r = cm_store_session_open(&l->store, spec->session_id, false, 0, &l->session, err);
	return r < 0 ? r : join(l, err);
}
