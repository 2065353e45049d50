/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that files are read from and written to, and how such a command ends. */
#ifndef CM_RUNTIME_CLI_FILE_SESSION_H
#define CM_RUNTIME_CLI_FILE_SESSION_H

#include "providers/local/files.h"
#include "runtime/cli/cli.h"
#include "runtime/cli/file_access.h"

struct cm_file_session {
	struct cm_cli *cli;
	struct cm_jail jail;
	char *id;
	char *cwd;
	uint64_t generation;
	bool is_as_user;
	/* readable once a signal has come that ends this */
	int cancel_fd;
	/* 128 and the signal that broke it off; 0: none did */
	int signal_status;
	/* something could not be done, and was said */
	bool has_failed;
};

/*
 * The session runs afterwards: it is started where it does not, as by `casemate exec`. 0; else the
 * exit status of a failure that was printed. Closing is right in both cases.
 */
int cm_file_session_open(struct cm_file_session *s, struct cm_cli *cli, const char *root,
			 const char *id, bool is_as_user);
void cm_file_session_close(struct cm_file_session *s);
/* What cannot be done is printed. */
int cm_file_session_begin(struct cm_file_session *s, const struct cm_files_request *request,
			  struct cm_files **ret, struct cm_error *err);
/*
 * The exit status of what ended with r (a code, or more than that for success), err saying why; prints
 * that. f: the operation, NULL where there is none. Closes f.
 */
int cm_file_session_end(struct cm_file_session *s, struct cm_files *f, int r,
			const struct cm_error *err);
/* What could not be done on this side: told, and the rest goes on. data is the session. 0. */
int cm_file_session_failed_here(void *data, enum cm_file_step step, int error, const char *path);

#endif
