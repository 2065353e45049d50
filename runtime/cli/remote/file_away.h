/* SPDX-License-Identifier: Apache-2.0 */
/* Files of sessions that are elsewhere: how they are reached. */
#ifndef CM_RUNTIME_CLI_REMOTE_FILE_AWAY_H
#define CM_RUNTIME_CLI_REMOTE_FILE_AWAY_H

#include "runtime/cli/file_access.h"
#include "runtime/cli/remote/away.h"

struct cm_away_files {
	/* the first member */
	struct cm_file_access base;
	struct cm_away away;
	/* base.directory */
	char *directory;
};

/* The session runs afterwards. Closing, by cm_file_access_close(&f->base), is right in any case. */
int cm_away_files_open(struct cm_away_files *f, struct cm_cli *cli, const char *id,
		       struct cm_error *err);

#endif
