/* SPDX-License-Identifier: Apache-2.0 */
/* casemate's half of the choice between providers: sessions of this host, or another program. */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "providers/local/helper.h"
#include "providers/selection.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/cli/commands.h"

/* What was taken out of our environment, so that no jail gets it, is the other program's to take. */
static int give_back(struct cm_cli *cli, struct cm_error *err)
{
	const struct cm_config *config = &cli->config;
	int r = CM_OK;

	if (config->git_token)
		r = cm_strv_env_set(&cli->config.env, "CASEMATE_GIT_TOKEN", config->git_token);
	if (r == CM_OK && config->ssh_passphrase)
		r = cm_strv_env_set(&cli->config.env, "CASEMATE_SSH_PASSPHRASE",
				    config->ssh_passphrase);
	return r < 0 ? cm_error_set(err, CM_E_NOMEM, 0, "out of memory") : CM_OK;
}

/* argv[0] is the command: the program's name comes before it. Returns on failure only. */
static int become_remote(struct cm_cli *cli, int argc, char **argv, struct cm_error *err)
{
	char path[PATH_MAX];
	CM_AUTO_FREE char **line = cm_calloc((size_t)argc + 2, sizeof(*line));
	int r;

	if (!line)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	r = cm_helper_path("casemate-remote", path, sizeof(path), err);
	if (r == CM_OK)
		r = give_back(cli, err);
	if (r == CM_OK) {
		line[0] = path;
		for (int i = 0; i < argc; i++)
			line[i + 1] = argv[i];
		(void)execve(path, line, cli->config.env.v);
		r = cm_error_set(err, CM_E_SYS, errno, "cannot execute '%s'", path);
	}
	return r;
}

int cm_cli_run_command(struct cm_cli *cli, const struct cm_command *command,
		       const struct cm_selection *selection, int argc, char **argv)
{
	struct cm_error err = CM_ERROR_INIT;

	if (selection->kind == CM_PROVIDER_LOCAL)
		return command->run(cli, argc, argv);
	(void)become_remote(cli, argc, argv, &err);
	return cm_cli_fail(cli, &err);
}
