/* SPDX-License-Identifier: Apache-2.0 */
/* `casemate cp`, wherever the sessions are: its command line, and the ends that are on this side. */
#ifndef CM_RUNTIME_CLI_COPY_LINE_H
#define CM_RUNTIME_CLI_COPY_LINE_H

#include <limits.h>

#include "providers/local/files.h"
#include "runtime/cli/cli.h"
#include "runtime/cli/file_place.h"

struct cm_copy {
	struct cm_cli *cli;
	/* argv's; each may be NULL */
	const char *root;
	const char *user;
	/* links that lead out of what is copied, too */
	bool keeps_links;
	struct cm_file_place from;
	struct cm_file_place to;
	/* what the copy is called in a directory; "": its content goes there */
	char name[NAME_MAX + 1];
};

/* What each copy of a tree is, by its two ends; the exit status. */
struct cm_copy_ways {
	int (*get)(const struct cm_copy *c);
	int (*put)(const struct cm_copy *c);
	int (*between)(const struct cm_copy *c);
};

/* argv is what follows the program's name. more: options beside the usual ones, ended by a NULL name. */
int cm_copy_read(struct cm_cli *cli, int argc, char **argv, const struct cm_cli_option *more,
		 struct cm_copy *ret, struct cm_error *err);
int cm_copy_carry_out(const struct cm_copy *c, const struct cm_copy_ways *ways);
/* From standard input, to standard output: the content of one file. The exit status. */
int cm_copy_write_input(const struct cm_copy *c);
int cm_copy_print(const struct cm_copy *c);

/* Something failed on this side: printed; the exit status. */
int cm_copy_fail_here(const struct cm_copy *c, enum cm_file_step step, int error, const char *path);
/*
 * Where it goes on this side: the receiver of it, and the directory that it holds, which the caller closes.
 * 0, or the exit status.
 */
int cm_copy_open_target(const struct cm_copy *c, struct cm_file_receiver *receiver, int *ret_fd);
/*
 * What is copied from this side: a directory, which the caller closes, and a name in it. 0, or the exit
 * status.
 */
int cm_copy_open_source(const struct cm_copy *c, int *ret_fd, char name[NAME_MAX + 1],
			bool *ret_is_directory);

#endif
