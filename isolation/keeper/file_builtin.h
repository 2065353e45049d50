/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared between the files of the built-in program: file_ops.c (request, end), file_list.c (ls,
 * stat), file_write.c (read, write), file_change.c (mkdir, rm, mv), file_tree.c (get, put),
 * file_watch.c.
 *
 * It runs in a copy of init's memory, as the agent and behind all that a command is behind, so that
 * it may do what the agent may and no more, whatever the tree becomes while it is at work.
 */
#ifndef CM_ISOLATION_KEEPER_FILE_BUILTIN_H
#define CM_ISOLATION_KEEPER_FILE_BUILTIN_H

#include "isolation/keeper/file_stream.h"

struct cm_file_request {
	uint32_t flags;
	mode_t mode;
	uint64_t offset;
	uint64_t length;
	char *const *paths;
	size_t n_paths;
	bool has_failed;
	struct cm_file_writer out;
	struct cm_file_reader in;
	struct cm_file_msg msg;
};

/* Each ends with what it has to say but DONE: 0, and *ret_value is DONE's; 1: no DONE. */
int cm_file_op_read(struct cm_file_request *q, uint64_t *ret_value);
int cm_file_op_write(struct cm_file_request *q, uint64_t *ret_value);
int cm_file_op_ls(struct cm_file_request *q, uint64_t *ret_value);
int cm_file_op_stat(struct cm_file_request *q, uint64_t *ret_value);
int cm_file_op_mkdir(struct cm_file_request *q, uint64_t *ret_value);
int cm_file_op_rm(struct cm_file_request *q, uint64_t *ret_value);
int cm_file_op_mv(struct cm_file_request *q, uint64_t *ret_value);
int cm_file_op_get(struct cm_file_request *q, uint64_t *ret_value);
int cm_file_op_put(struct cm_file_request *q, uint64_t *ret_value);
int cm_file_op_watch(struct cm_file_request *q, uint64_t *ret_value);

/* An ERROR after which nothing comes: 1. */
int cm_file_fail(struct cm_file_request *q, enum cm_file_step step, int error, const char *path,
		 uint64_t written);
/* One after which the rest comes; 0 or -errno of the stream. data is the request. */
int cm_file_failed(void *data, enum cm_file_step step, int error, const char *path);
/* Were we told to end? */
bool cm_file_is_stopped(void);
/* The next frame of stdin, in q->msg: 1; 0: it has ended; -errno. */
int cm_file_next(struct cm_file_request *q);
/* The directory that path's last component is in: a descriptor, or -errno; *ret_base in path. */
int cm_file_open_parent(const char *path, const char **ret_base);
/* mkdir -p, of what is before the last component, or of all. 0 or -errno. */
int cm_file_make_parents(const char *path, bool with_last);
/* umask-bits apart, as open(2) and mkdir(2) would set it. */
mode_t cm_file_default_mode(mode_t all);

#endif
