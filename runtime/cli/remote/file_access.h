/* SPDX-License-Identifier: Apache-2.0 */
/* What `file` and `cp` share: content by standard input and output, and how such a command ends. */
#ifndef CM_RUNTIME_CLI_REMOTE_FILE_ACCESS_H
#define CM_RUNTIME_CLI_REMOTE_FILE_ACCESS_H

#include "providers/provider.h"
#include "runtime/cli/file_session.h"
#include "runtime/cli/file_sink.h"
#include "runtime/cli/remote/away.h"

struct cm_away_files {
	struct cm_away away;
	/* what relative paths are below; NULL: where the provider says */
	char *directory;
	/* something could not be done, and was said */
	bool has_failed;
	/* of a callback of ours, which a provider knows as an errno alone; code 0: none */
	struct cm_error why;
	/* standard output, once it is used */
	bool has_sink;
	struct cm_file_sink sink;
};

/* The session runs afterwards. Closing is right in any case. */
int cm_away_files_open(struct cm_away_files *f, struct cm_cli *cli, const char *id,
		       struct cm_error *err);
void cm_away_files_close(struct cm_away_files *f);
/* The error of what ended with r: ours, where a callback gave up. Returns its code, or r. */
int cm_away_files_settle(struct cm_away_files *f, int r, struct cm_error *err);
/*
 * The same, where others of several paths may yet be done: what was refused in the session is told, and
 * CM_OK comes of it.
 */
int cm_away_files_go_on(struct cm_away_files *f, int r, struct cm_error *err);
/* The exit status of what ended with r; what was not told yet is. */
int cm_away_files_end(struct cm_away_files *f, int r, const struct cm_error *err);

/* The path as the provider gets it, absolute where that is known; the caller frees. NULL: memory. */
char *cm_away_files_path(const struct cm_away_files *f, const char *path);
struct cm_file_sink *cm_away_files_sink(struct cm_away_files *f);
/* The content of a file to standard output. */
int cm_away_files_print(struct cm_away_files *f, const char *path, uint64_t offset, uint64_t length,
			struct cm_error *err);
/* All of standard input into a file. flags, mode: as of struct cm_write_request. */
int cm_away_files_write(struct cm_away_files *f, const char *path, uint32_t flags, uint32_t mode,
			struct cm_error *err);

#endif
