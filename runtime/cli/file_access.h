/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a session over its provider, wherever it is: content by standard input and output, and how a
 * command about files ends. How a session is reached is each program's own: casemate starts it with what
 * belongs to that here (file_local.c), casemate-remote asks the provider to (remote/file_away.c).
 */
#ifndef CM_RUNTIME_CLI_FILE_ACCESS_H
#define CM_RUNTIME_CLI_FILE_ACCESS_H

#include "providers/provider.h"
#include "runtime/cli/cli.h"
#include "runtime/cli/file_line.h"
#include "runtime/cli/file_sink.h"

/* As cat, cp and rm have it: the session is there, and this could not be done in it. */
#define CM_EXIT_FILE 1

struct cm_file_access {
	struct cm_cli *cli;
	/* its opener's */
	struct cm_session *session;
	/* what every operation is given: no deadline, and cancelled by a signal */
	struct cm_call call;
	/* what relative paths are below; NULL: where the provider says. Its opener's */
	const char *directory;
	/* the provider has to know how much will be written, where that can be known */
	bool wants_length;
	/* Was a failure that came back one in the session, so that it is there for other paths? */
	bool (*is_refusal)(const struct cm_file_access *f, int code, const struct cm_error *err);
	/* something could not be done, and was said */
	bool has_failed;
	/* of a callback of ours, which a provider knows as an errno alone; code 0: none */
	struct cm_error why;
	/* standard output, once it is used */
	bool has_sink;
	struct cm_file_sink sink;
};

struct cm_file_target {
	const char *session;
	/* each may be NULL */
	const char *root;
	const char *user;
};

/* --- each program's own -------------------------------------------------------------------------- */

/* `file`, with the options that this program has. */
int cm_file_access_line(struct cm_cli *cli, int argc, char **argv, struct cm_file_line *ret,
			struct cm_error *err);
/* The session runs afterwards. 0, and *ret is to be closed; or the exit status of what was printed. */
int cm_file_access_open(struct cm_cli *cli, const struct cm_file_target *target,
			struct cm_file_access **ret);
void cm_file_access_close(struct cm_file_access *f);

/* --- what they share ----------------------------------------------------------------------------- */

void cm_file_access_init(struct cm_file_access *f, struct cm_cli *cli);
/* Lets go of standard output, and of nothing else. */
void cm_file_access_clear(struct cm_file_access *f);
/* What could not be done, where the rest goes on: printed. For struct cm_provider_config; data is one. */
void cm_file_access_told(void *data, const struct cm_error *why);

/* The error of what ended with r: ours, where a callback gave up. Returns its code, or r. */
int cm_file_access_settle(struct cm_file_access *f, int r, struct cm_error *err);
/*
 * The same, where others of several paths may yet be done: what was refused in the session is told, and
 * CM_OK comes of it.
 */
int cm_file_access_go_on(struct cm_file_access *f, int r, struct cm_error *err);
/* The exit status of what ended with r; what was not told yet is. */
int cm_file_access_end(struct cm_file_access *f, int r, const struct cm_error *err);

/* The path as the provider gets it, absolute where that is known; the caller frees. NULL: memory. */
char *cm_file_access_path(const struct cm_file_access *f, const char *path);
struct cm_file_sink *cm_file_access_sink(struct cm_file_access *f);
/* The content of a file to standard output. */
int cm_file_access_print(struct cm_file_access *f, const char *path, uint64_t offset,
			 uint64_t length, struct cm_error *err);
/* All of standard input into a file. flags, mode: as of struct cm_write_request. */
int cm_file_access_write(struct cm_file_access *f, const char *path, uint32_t flags, uint32_t mode,
			 struct cm_error *err);

#endif
