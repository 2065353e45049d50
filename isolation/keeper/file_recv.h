/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree out of frames. Used on either side, on the host too, where neither the frames nor the
 * directory that the tree goes to can be believed: a name is one component, is made anew or is opened
 * as a directory, never through a link; every directory is held by its descriptor until it is left.
 * Whoever renames, removes or replaces what is made meanwhile gets it to wherever he could have put it
 * himself.
 *
 * Files have the modes and times that they had, without set-id and sticky bits; so do directories
 * that are made here, and not those that were there. A file is beside what it replaces until it is
 * whole. What could not be made is told, and the rest goes on; a full disk ends it.
 */
#ifndef CM_ISOLATION_KEEPER_FILE_RECV_H
#define CM_ISOLATION_KEEPER_FILE_RECV_H

#include <limits.h>

#include "isolation/keeper/file_stream.h"

#define CM_FILE_TEMP_SIZE 48

struct cm_file_directory {
	/* -1: it could not be made, and what is in it is passed over */
	int fd;
	bool is_new;
	mode_t mode;
	struct timespec mtime;
	size_t path_len;
};

struct cm_file_receiver {
	/* as struct cm_file_sender has it */
	int (*failed)(void *data, enum cm_file_step step, int error, const char *path);
	void *data;
	/* links that cm_file_link_stays refuses are not made */
	bool checks_links;
	bool has_failed;
	uint64_t n_entries;
	uint64_t n_bytes;
	/* of how many set-id or sticky bits were taken away */
	uint64_t n_stripped;

	/* where the top goes; borrowed */
	int top_fd;
	/* "": what is in it goes right into top_fd */
	char top_name[NAME_MAX + 1];
	bool wants_directory;
	bool has_top;
	/* where it is, when it is a directory */
	uint64_t device;
	uint64_t inode;

	unsigned int depth;
	struct cm_file_directory dirs[CM_FILE_DEPTH_MAX];

	/* a file is being received */
	bool is_in_file;
	/* -1: it is passed over */
	int fd;
	int file_dir;
	char name[NAME_MAX + 1];
	/* what it is called until it is whole; "": `name` */
	char temp[CM_FILE_TEMP_SIZE];
	/* where the next byte goes; where the last hole began to be one */
	uint64_t at;
	bool ends_with_hole;
	mode_t mode;
	struct timespec mtime;

	/* of `path`, when the file is over */
	size_t file_path_len;
	size_t path_len;
	char path[CM_FILE_PATH_MAX + 1];
};

/*
 * The top becomes dirfd/name; with name "" it has to be a directory, and what is in it goes into dirfd.
 * path is what that is called where something fails, or with adds_name what dirfd is.
 */
void cm_file_receiver_init(struct cm_file_receiver *r, int dirfd, const char *name,
			   const char *path, bool adds_name);
/* One frame of the tree. 0; -EBADMSG: it may not come now; else -errno: there is no going on. */
int cm_file_receiver_take(struct cm_file_receiver *r, const struct cm_file_msg *msg);
/* Is the tree whole? */
bool cm_file_receiver_is_done(const struct cm_file_receiver *r);
/* Removes what is not whole, closes all. */
void cm_file_receiver_close(struct cm_file_receiver *r);

/* A name of a new file in dirfd, opened for writing with mode 0600. 0 or -errno. */
int cm_file_open_temp(int dirfd, char name[CM_FILE_TEMP_SIZE], int *ret_fd);
/* All of it. 0 or -errno; *written is added to. */
int cm_file_write_all(int fd, const void *bytes, size_t len, uint64_t *written);

#endif
