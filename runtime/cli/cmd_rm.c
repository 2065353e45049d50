/* SPDX-License-Identifier: Apache-2.0 */
/* casemate rm: end sessions and forget them; the user's files only when asked. */
#include <sys/stat.h>

#include "providers/local/local.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/sessions.h"

struct removal {
	const struct cm_cli *cli;
	bool with_files;
};

static int remove_one(struct cm_store *store, struct cm_store_session *s, const void *data,
		      struct cm_error *err)
{
	const struct removal *removal = data;
	struct stat st;
	int r = CM_OK;

	/* of a temporary session the lock that we have says that nothing runs */
	if (!s->record.is_temporary && cm_store_keeper_alive(s))
		r = cm_cli_stop_session(removal->cli, store, s, err);
	if (r < 0)
		return r;
	r = cm_local_remove(store, s, removal->with_files, &removal->cli->config, err);
	if (r == CM_OK && lstat(s->session_dir, &st) == 0)
		cm_cli_note(removal->cli, "files kept in '%s'", s->session_dir);
	return r;
}

int cm_cmd_rm(struct cm_cli *cli, int argc, char **argv)
{
	const char *root = NULL;
	struct removal removal = { cli, false };
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &root },
		{ "files", '\0', CM_OPTION_SWITCH, &removal.with_files },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	struct cm_store store;
	int status;
	int n = 0;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) != CM_OK ||
	    cm_cli_store_open(cli, root, &store, &err) != CM_OK)
		return cm_cli_fail(cli, &err);
	status = cm_cli_each_session(cli, &store, n, argv + 1,
				     CM_STORE_CHANGE | CM_STORE_ANY_ROOT | CM_STORE_DAMAGED,
				     remove_one, &removal);
	(void)cm_store_collect_slots(&store, NULL);
	cm_store_close(&store);
	return status;
}
