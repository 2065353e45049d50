/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files and trees as frames. Used on either side; who changes the tree meanwhile gets other content
 * into the stream, and nothing of elsewhere: below its top only single names are opened, and no link
 * is followed.
 */
#ifndef CM_ISOLATION_KEEPER_FILE_SEND_H
#define CM_ISOLATION_KEEPER_FILE_SEND_H

#include "isolation/keeper/file_stream.h"

struct cm_file_sender {
	struct cm_file_writer *writer;
	/*
	 * Something cannot be sent, and the rest is. path is as the caller would name it. Where it can
	 * not be told, the result is that of a failed stream. error is 0 for what is left out on purpose.
	 */
	int (*failed)(void *data, enum cm_file_step step, int error, const char *path);
	void *data;
	bool has_failed;
	unsigned int depth;
	/* what is at work, for failed; longer ones are cut */
	size_t path_len;
	char path[CM_FILE_PATH_MAX + 1];
};

/* path: how the top is called where something fails. */
void cm_file_sender_init(struct cm_file_sender *s, struct cm_file_writer *writer, const char *path,
			 int (*failed)(void *, enum cm_file_step, int, const char *), void *data);
/*
 * What is in fd from its position on, at most length bytes; holes as holes where it is a file that has
 * some. 0, *ret_error being why it could not be read to the end; or -errno of the stream.
 */
int cm_file_send_content(struct cm_file_writer *writer, int fd, uint64_t length, int *ret_error);
/* dirfd/name and all below it; sent_name is what its entry says. 0 or -errno of the stream. */
int cm_file_send_tree(struct cm_file_sender *s, int dirfd, const char *name, const char *sent_name);

#endif
