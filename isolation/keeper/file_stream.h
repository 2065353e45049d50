/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of file operations, read and written on either side. libc and base alone: the keeper and
 * init link it.
 */
#ifndef CM_ISOLATION_KEEPER_FILE_STREAM_H
#define CM_ISOLATION_KEEPER_FILE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "isolation/keeper/file_proto.h"

/* --- reading ------------------------------------------------------------------------------- */

/* One frame, checked: lengths are those of its type, names have no NUL and are not too long. */
struct cm_file_msg {
	uint16_t type;
	uint16_t flags;
	uint64_t value;
	/* DATA; good until the reader is asked again */
	const unsigned char *data;
	size_t len;
	union {
		struct cm_file_entry entry;
		struct cm_file_error error;
		struct cm_file_event event;
	} body;
	/* of ENTRY; path of ERROR and EVENT */
	char name[CM_FILE_PATH_MAX + 1];
	size_t name_len;
	/* of a link; what an event's path was before */
	char target[CM_FILE_PATH_MAX + 1];
	size_t target_len;
};

#define CM_FILE_READER_SIZE (256U * 1024)

struct cm_file_reader {
	size_t at;
	size_t len;
	_Alignas(8) unsigned char bytes[CM_FILE_READER_SIZE];
};

void cm_file_reader_init(struct cm_file_reader *r);
/* 1: *ret is the next frame; 0: more has to be read; -EBADMSG, and from then on nothing else. */
int cm_file_reader_next(struct cm_file_reader *r, struct cm_file_msg *ret);
/* One read(2) into it, after cm_file_reader_next returned 0. Bytes, 0 at the end of file, -errno. */
ssize_t cm_file_reader_fill(struct cm_file_reader *r, int fd);
/* Nothing of a frame is in it. */
bool cm_file_reader_is_empty(const struct cm_file_reader *r);

/* --- writing ------------------------------------------------------------------------------- */

#define CM_FILE_WRITER_SIZE (256U * 1024)

struct cm_file_writer {
	int fd;
	/*
	 * Called where a write would wait (the descriptor is non-blocking) or was interrupted: 0 to go on,
	 * else the writer fails with that. NULL: goes on.
	 */
	int (*wait)(void *data);
	void *data;
	/* -errno of the first failure: nothing is written from then on */
	int error;
	size_t len;
	unsigned char bytes[CM_FILE_WRITER_SIZE];
};

void cm_file_writer_init(struct cm_file_writer *w, int fd, int (*wait)(void *data), void *data);
/* A frame of up to two pieces, buffered. 0 or -errno. */
int cm_file_put(struct cm_file_writer *w, const struct cm_file_frame *frame, const void *head,
		size_t head_len, const void *text, size_t text_len);
/* A frame without anything behind it. */
int cm_file_put_plain(struct cm_file_writer *w, enum cm_file_frame_type type, uint64_t value);
int cm_file_put_entry(struct cm_file_writer *w, const struct stat *st, const char *name,
		      const char *target);
int cm_file_put_error(struct cm_file_writer *w, enum cm_file_step step, int error, const char *path,
		      bool goes_on, uint64_t written);
int cm_file_put_event(struct cm_file_writer *w, enum cm_file_event_kind kind, bool is_directory,
		      const char *path, const char *from);
/* Passes on what was read, as it is. */
int cm_file_put_msg(struct cm_file_writer *w, const struct cm_file_msg *msg);
/*
 * Where the bytes of a DATA may be put, so that they are copied once: at least CM_FILE_DATA_MAX / 2;
 * then commit says how many there are. NULL: the writer has failed.
 */
void *cm_file_space(struct cm_file_writer *w, size_t *ret_size);
void cm_file_commit(struct cm_file_writer *w, size_t len);
int cm_file_flush(struct cm_file_writer *w);

#endif
