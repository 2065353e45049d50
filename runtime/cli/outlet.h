/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller's stdout or stderr, written to without waiting for who reads it.
 *
 * Its open file description is shared with whoever else has it, so it is never made non-blocking: a
 * terminal and a pipe are opened a second time, a socket is told so with each call. What cannot be
 * opened again, since it is another user's, is written to in small pieces after poll said that it takes
 * some; a terminal of that kind may then hold the writer up when it is stopped in that moment.
 */
#ifndef CM_RUNTIME_CLI_OUTLET_H
#define CM_RUNTIME_CLI_OUTLET_H

#include <stdbool.h>
#include <stddef.h>

/* The most that is taken at once. */
#define CM_OUTLET_MAX 65536

enum cm_outlet_kind {
	CM_OUTLET_UNKNOWN = 0,
	/* a write ends by itself: a file, /dev/null, or nothing at all */
	CM_OUTLET_FILE,
	CM_OUTLET_SOCKET,
	/* by a description of our own */
	CM_OUTLET_PIPE,
	CM_OUTLET_TERMINAL,
	/* by the caller's */
	CM_OUTLET_OTHERS,
};

struct cm_outlet {
	/* the caller's, for poll; never closed */
	int fd;
	/* for the caller: it was found to take more */
	bool is_ready;
	/* for outlet.c: of our own, or fd */
	enum cm_outlet_kind kind;
	int write_fd;
	/* taken, and not written yet */
	size_t at;
	size_t len;
	char bytes[CM_OUTLET_MAX];
};

/* Nothing is opened before something is written. */
void cm_outlet_init(struct cm_outlet *outlet, int fd);
void cm_outlet_close(struct cm_outlet *outlet);
/* What was taken before has to be written before there is more. */
bool cm_outlet_is_full(const struct cm_outlet *outlet);
/* Where splice can go, without waiting; -1: it cannot. */
int cm_outlet_splice_fd(struct cm_outlet *outlet);
/* Takes all of it (len <= CM_OUTLET_MAX), where it is not full. 0 or -errno; then nothing is kept. */
int cm_outlet_put(struct cm_outlet *outlet, const char *bytes, size_t len);
/* Writes what it can of what was taken. 0 or -errno; then nothing is kept. */
int cm_outlet_flush(struct cm_outlet *outlet);

#endif
