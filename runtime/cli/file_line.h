/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `casemate file`, wherever the session is. */
#ifndef CM_RUNTIME_CLI_FILE_LINE_H
#define CM_RUNTIME_CLI_FILE_LINE_H

#include <stdint.h>

#include "runtime/cli/cli.h"

enum cm_file_verb {
	CM_FILE_VERB_READ = 0,
	CM_FILE_VERB_WRITE,
	CM_FILE_VERB_LS,
	CM_FILE_VERB_STAT,
	CM_FILE_VERB_MKDIR,
	CM_FILE_VERB_MV,
	CM_FILE_VERB_RM,
	CM_FILE_VERB_WATCH,
	CM_FILE_VERB_URL,
	CM_FILE_VERB_COUNT_,
};

/* Texts are argv's. */
struct cm_file_line {
	enum cm_file_verb verb;
	/* "read"; static */
	const char *name;
	const char *session;
	/* NULL-terminated; "." where none was given */
	char *const *paths;
	const char *root;
	const char *user;
	bool is_append;
	bool is_atomic;
	bool wants_parents;
	bool is_recursive;
	bool is_forced;
	bool is_no_clobber;
	bool follows;
	bool is_json;
	bool is_long;
	bool is_nul;
	bool is_itself;
	bool is_upload;
	uint64_t offset;
	/* UINT64_MAX: all there is */
	uint64_t length;
	/* 0: no end */
	uint64_t lifetime_ms;
	/* UINT32_MAX: as usual */
	uint32_t mode;
};

/*
 * argv[0] is "file". more: options beside those of the operation, ended by a NULL name; NULL: none. argv is
 * changed.
 */
int cm_file_line_read(struct cm_cli *cli, int argc, char **argv, const struct cm_cli_option *more,
		      struct cm_file_line *ret, struct cm_error *err);

#endif
