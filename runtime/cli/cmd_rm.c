/* SPDX-License-Identifier: Apache-2.0 */
/* casemate rm: end sessions and forget them; the user's files only when asked. */
#include <sys/stat.h>

#include "providers/local/local.h"
#include "providers/local/unsaved.h"
#include "runtime/base/fd.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/sessions.h"
#include "runtime/store/usage.h"

struct removal {
	const struct cm_cli *cli;
	bool with_files;
	/* also with work that is nowhere else */
	bool is_forced;
};

/* Of one that ran it is known only now: while its commands run they may still make some. */
static int check_work(const struct removal *removal, struct cm_store_session *s,
		      struct cm_error *err)
{
	int r = CM_OK;

	if (removal->with_files && !removal->is_forced && cm_store_session_has_dir(&s->record))
		r = cm_local_check_unsaved(s, &removal->cli->config, 0, err);
	if (r == CM_E_EXISTS)
		cm_error_hint(err,
			      "session '%s' %s; --force removes that too, and without --files the "
			      "directory stays",
			      s->record.id, s->is_revived ? "left it" : "is stopped, and stays");
	return r;
}

static void tell_kept(const struct cm_cli *cli, struct cm_store *store,
		      const struct cm_store_session *s)
{
	CM_AUTO_FREE char *command = NULL;
	struct stat st;

	if (lstat(s->session_dir, &st) < 0)
		return;
	if (cm_store_kept_command(store, s->record.root, s->record.id, &command, NULL))
		cm_cli_note(cli, "files kept in '%s'; %s removes them", s->session_dir, command);
	else
		cm_cli_note(cli, "files kept in '%s'", s->session_dir);
}

static int remove_one(struct cm_store *store, struct cm_store_session *s, const void *data,
		      struct cm_error *err)
{
	const struct removal *removal = data;
	int r = CM_OK;

	/* of a temporary session the lock that we have says that nothing runs */
	if (!s->record.is_temporary && cm_store_keeper_alive(s))
		r = cm_cli_stop_session(removal->cli, s, err);
	if (r == CM_OK)
		r = check_work(removal, s, err);
	if (r < 0) {
		if (s->is_revived)
			(void)cm_store_session_remove(store, s, false, NULL);
		return r;
	}
	/* on a full disk a session goes all the same, and what it says then is less */
	if (!removal->with_files)
		(void)cm_store_kept_note(store, s, NULL);
	r = cm_local_remove(store, s, removal->with_files, &removal->cli->config, err);
	if (r == CM_OK)
		tell_kept(removal->cli, store, s);
	else if (s->is_revived)
		(void)cm_store_session_remove(store, s, false, NULL);
	return r;
}

/* Who breaks one off wants to lose nothing: 128 and the signal's number, and nothing is removed. */
static int tear_down(struct cm_cli *cli, struct cm_store *store, int n, char *const *ids)
{
	int status = 0;

	for (int i = 0; i < n && status == 0; i++)
		status = cm_cli_teardown_each(cli, store, 1, ids + i);
	if (status != 0)
		cm_cli_note(cli,
			    "nothing was removed; --no-teardown does it without those commands");
	return status;
}

static int check_force(const struct removal *removal, struct cm_error *err)
{
	if (!removal->is_forced || removal->with_files)
		return CM_OK;
	(void)cm_error_set(err, CM_E_INVALID, 0, "--force needs --files");
	cm_error_hint(err, "a session that runs is ended without it; it is for directories with "
			   "work that is nowhere else");
	return CM_E_INVALID;
}

int cm_cmd_rm(struct cm_cli *cli, int argc, char **argv)
{
	const char *root = NULL;
	bool has_no_teardown = false;
	struct removal removal = { .cli = cli };
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &root },
		{ "no-teardown", '\0', CM_OPTION_SWITCH, &has_no_teardown },
		{ "files", '\0', CM_OPTION_SWITCH, &removal.with_files },
		{ "force", '\0', CM_OPTION_SWITCH, &removal.is_forced },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	unsigned int flags = CM_STORE_CHANGE | CM_STORE_ANY_ROOT | CM_STORE_DAMAGED;
	struct cm_error err = CM_ERROR_INIT;
	struct cm_store store;
	int status = 0;
	int n = 0;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) != CM_OK ||
	    check_force(&removal, &err) != CM_OK ||
	    cm_cli_store_open(cli, root, &store, &err) != CM_OK)
		return cm_cli_fail(cli, &err);
	if (removal.with_files)
		flags |= CM_STORE_KEPT;
	if (!has_no_teardown)
		status = tear_down(cli, &store, n, argv + 1);
	if (status == 0)
		status = cm_cli_each_session(cli, &store, n, argv + 1, flags, remove_one, &removal);
	cm_store_kept_collect(&store);
	(void)cm_store_collect_slots(&store, NULL);
	cm_store_close(&store);
	return status;
}
