/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands on sessions share. */
#include "runtime/cli/sessions.h"

#include <stdio.h>
#include <unistd.h>

#include "isolation/host/host.h"
#include "providers/local/local.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/cli/request.h"
#include "runtime/cli/run.h"

/* a keeper ends by itself within some seconds; one that does not is killed then */
#define STOP_MS 10000
/* shorter waits are not worth a word */
#define QUIET_LOCK_MS 1000

int cm_cli_store_open(struct cm_cli *cli, const char *root, struct cm_store *ret,
		      struct cm_error *err)
{
	CM_AUTO_FREE char *home = cm_host_home(&cli->config.env);
	CM_AUTO_FREE char *resolved = NULL;
	int r = cm_cli_root(cli, root, &resolved, err);

	if (r != CM_OK)
		return r;
	if (!home)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return cm_store_open(&cli->config.env, resolved, home, geteuid() == 0, ret, err);
}

enum cm_session_status cm_cli_session_status(const struct cm_store_session *s,
					     struct cm_end_record *end)
{
	struct cm_end_record last = { 0 };
	bool is_alive = cm_store_keeper_alive(s);
	bool has_end = !is_alive && cm_store_read_end(s, &last) == CM_OK;

	if (end)
		*end = last;
	return cm_session_status(&s->record, is_alive, has_end ? &last : NULL);
}

const char *cm_cli_session_subject(const struct cm_store_session *s)
{
	const struct cm_session_record *r = &s->record;

	if (r->repo)
		return r->repo;
	if (r->workspace)
		return r->workspace;
	/* a session by name that was told nothing works on its own directory */
	return r->workspace_kind == CM_WORKSPACE_DEFAULT && !r->is_temporary ? s->session_dir : "-";
}

static int no_ids(struct cm_cli *cli)
{
	struct cm_error err = CM_ERROR_INIT;

	(void)cm_error_set(&err, CM_E_INVALID, 0, "no session named");
	cm_error_hint(&err, "name one or more: 'casemate ls' lists them");
	return cm_cli_fail(cli, &err);
}

/* What holds a session may take minutes (a fetch), and who waits for it wants to know. */
static int open_session(const struct cm_cli *cli, struct cm_store *store, const char *id,
			unsigned int flags, struct cm_store_session *ret, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;
	int r = cm_store_session_open_as(store, id, flags, cm_clock_mono_ms() + QUIET_LOCK_MS, ret,
					 &why);

	if (r != CM_E_BUSY) {
		*err = why;
		return r;
	}
	cm_cli_note(cli, "%s: waiting for it up to %d s", why.msg, CM_CLI_LOCK_MS / 1000);
	return cm_store_session_open_as(
		store, id, flags, cm_clock_mono_ms() + CM_CLI_LOCK_MS - QUIET_LOCK_MS, ret, err);
}

int cm_cli_each_session(struct cm_cli *cli, struct cm_store *store, int n_ids, char *const *ids,
			unsigned int flags, cm_cli_session_fn fn, const void *data)
{
	int status = n_ids > 0 ? 0 : no_ids(cli);

	for (int i = 0; i < n_ids; i++) {
		struct cm_error err = CM_ERROR_INIT;
		struct cm_store_session s;
		int r = open_session(cli, store, ids[i], flags, &s, &err);

		if (r == CM_OK) {
			r = fn(store, &s, data, &err);
			cm_store_session_close(&s);
		}
		if (r != CM_OK)
			status = cm_cli_fail(cli, &err);
	}
	return status;
}

int cm_cli_stop_session(const struct cm_cli *cli, struct cm_store_session *s, struct cm_error *err)
{
	int r = cm_local_stop(s, cm_clock_mono_ms() + STOP_MS, err);

	if (r != CM_LOCAL_KILLED)
		return r;
	cm_cli_note(cli, "session '%s' did not stop when asked to; its keeper was killed",
		    s->record.id);
	return CM_OK;
}

/* false: it is not there, is used by somebody, does not run, or has nothing to do. */
static bool needs_teardown(struct cm_store *store, const char *id, char **ret_root)
{
	struct cm_store_session s;
	bool needs;

	if (cm_store_session_open_as(store, id, CM_STORE_CHANGE | CM_STORE_ANY_ROOT, 0, &s, NULL) <
	    0)
		return false;
	needs = s.record.teardown_json && !s.record.is_temporary && cm_store_keeper_alive(&s);
	if (needs)
		*ret_root = cm_strdup(s.record.root);
	cm_store_session_close(&s);
	return needs && *ret_root;
}

/* As a run of that session: its settings, its ceilings, its environment. The status of cm_cli_teardown. */
static int tear_down(struct cm_cli *cli, const char *id, const char *root)
{
	const char *const words[] = { "--session", id, "--root", root };
	CM_AUTO_STRV struct cm_strv argv = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_spec spec;
	int r = CM_OK;

	for (size_t i = 0; i < CM_ARRAY_SIZE(words) && r == CM_OK; i++)
		r = cm_strv_add(&argv, words[i]);
	if (r == CM_OK)
		r = cm_request_read(cli, (int)argv.n, argv.v, &spec, NULL, &err);
	if (r < 0) {
		cm_cli_note(cli, "teardown of session '%s' could not begin: %s", id, err.msg);
		return 0;
	}
	r = cm_cli_teardown(&spec, cli);
	cm_spec_clear(&spec);
	return r;
}

int cm_cli_teardown_each(struct cm_cli *cli, struct cm_store *store, int n_ids, char *const *ids)
{
	int status = 0;

	for (int i = 0; i < n_ids; i++) {
		CM_AUTO_FREE char *root = NULL;

		if (needs_teardown(store, ids[i], &root)) {
			int r = tear_down(cli, ids[i], root);

			status = status != 0 ? status : r;
		}
	}
	return status;
}
