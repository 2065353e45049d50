/* SPDX-License-Identifier: Apache-2.0 */
/* casemate stop: end what runs in sessions; files, home and /tmp stay. */
#include "runtime/cli/commands.h"
#include "runtime/cli/sessions.h"

static int stop_one(struct cm_store *store, struct cm_store_session *s, const void *data,
		    struct cm_error *err)
{
	(void)store;
	/* what does not run is stopped */
	if (!cm_store_keeper_alive(s))
		return CM_OK;
	return cm_cli_stop_session(data, s, err);
}

int cm_cmd_stop(struct cm_cli *cli, int argc, char **argv)
{
	const char *root = NULL;
	bool has_no_teardown = false;
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &root },
		{ "no-teardown", '\0', CM_OPTION_SWITCH, &has_no_teardown },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	struct cm_store store;
	int status;
	int n = 0;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) != CM_OK ||
	    cm_cli_store_open(cli, root, &store, &err) != CM_OK)
		return cm_cli_fail(cli, &err);
	if (!has_no_teardown)
		/* a signal breaks a teardown off, and the stop goes on without it */
		(void)cm_cli_teardown_each(cli, &store, n, argv + 1);
	status = cm_cli_each_session(cli, &store, n, argv + 1,
				     CM_STORE_CHANGE | CM_STORE_ANY_ROOT | CM_STORE_DAMAGED,
				     stop_one, cli);
	cm_store_close(&store);
	return status;
}
