/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's end of a file operation in a session (isolation/keeper/file_proto.h).
 *
 * What comes out of the jail is checked frame by frame, and memory is the same however much it is.
 * A struct cm_files belongs to one thread.
 */
#ifndef CM_PROVIDERS_LOCAL_FILES_H
#define CM_PROVIDERS_LOCAL_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "casemate/error.h"
#include "isolation/keeper/file_link.h"
#include "isolation/keeper/file_recv.h"
#include "isolation/keeper/file_send.h"
#include "isolation/keeper/file_stream.h"
#include "providers/local/jail.h"

struct cm_files_where {
	/* borrowed, as long as the operation lives */
	struct cm_jail *jail;
	/* for messages */
	const char *session;
	/* what relative paths are below */
	const char *cwd;
	uint64_t generation;
	/* as the agent's id, where the session's commands are root inside */
	bool is_as_user;
	/*
	 * Where what is asked for is not named as it was given: that, and its name in errors, which are of it
	 * or of what is below it, then. Both may be NULL.
	 */
	const char *asked;
	const char *shown;
	/* readable when it is to be given up; -1: never */
	int cancel_fd;
	/* What could not be done, where the rest goes on. May be NULL. */
	void (*failed)(void *data, const struct cm_error *why);
	void *data;
};

struct cm_files_request {
	const char *op;
	/* CM_FILEF_* */
	uint32_t flags;
	uint32_t mode;
	uint64_t offset;
	uint64_t length;
	/* NULL-terminated */
	const char *const *paths;
};

struct cm_files {
	struct cm_files_where where;
	uint64_t id;
	/* the operation's stdin and stdout; -1: closed */
	int in_fd;
	int out_fd;
	bool has_started;
	bool has_ended;
	struct cm_rec_end end;
	/* DONE came, and what it says */
	bool is_done;
	uint64_t value;
	/* something failed, and was told by where.failed */
	bool has_failed;
	/* an error is the operation's (no such file), and not the session's */
	bool is_refusal;
	bool is_cancelled;
	/* why it came to nothing, when that was found while sending; code 0: it did not */
	struct cm_error why;
	/* of the last cm_files_next */
	struct cm_file_msg msg;
	struct cm_file_reader reader;
	/* what goes in: cm_file_put and cm_file_flush wait as long as has to be, and hear what comes out */
	struct cm_file_writer writer;
};

/* Begin it. *ret is the caller's, to be closed; it is large. */
int cm_files_open(const struct cm_files_where *where, const struct cm_files_request *request,
		  struct cm_files **ret, struct cm_error *err);
/*
 * What comes next: 1, and f->msg is it (neither ERROR nor DONE); 0: DONE came, f->value is its. Else
 * a code: it failed, CM_E_CANCELLED as where.cancel_fd said.
 */
int cm_files_next(struct cm_files *f, struct cm_error *err);
/*
 * Wait until fd may be read from (for what goes in), or it is over: 1; 0: something came out, so that
 * sending has no use any more and cm_files_next tells why.
 */
int cm_files_wait_input(struct cm_files *f, int fd);
/* Nothing more goes in. 0 or -errno, as of the writer. */
int cm_files_end_input(struct cm_files *f);
/*
 * After the writer failed: why. A code; or CM_OK where that was told by where.failed already, and the
 * operation ended with it.
 */
int cm_files_why(struct cm_files *f, struct cm_error *err);
/* Until it has ended inside, or two seconds were not enough for it. NULL is allowed. */
void cm_files_close(struct cm_files *f);

/*
 * What could not be done with which file, and what to do about it. where: "session 's'", or NULL for
 * this side. written: bytes that are in the file nevertheless. Returns the code.
 */
int cm_files_error(struct cm_error *err, enum cm_file_step step, int error, const char *path,
		   uint64_t written, const char *session);

#endif
