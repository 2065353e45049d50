/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller's stdin, stdout and stderr, relayed to and from a command in a jail. No descriptor of
 * the caller's enters the jail: pipes of our own do, or a terminal of the jail's.
 */
#ifndef CM_RUNTIME_CLI_RELAY_H
#define CM_RUNTIME_CLI_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "casemate/error.h"
#include "providers/local/jail.h"
#include "runtime/base/buf.h"

/* What one stream keeps when output is captured (--json). */
#define CM_RELAY_CAPTURE_MAX (256UL * 1024 * 1024)

struct cm_relay {
	struct cm_jail *jail;
	uint64_t id;
	/* our ends; -1: none, or closed */
	int in_fd;
	int out_fd;
	int err_fd;
	/* the jail's terminal; then the three are not used */
	int pty_fd;
	/* far ends, until the request has been sent */
	int far[3];
	bool wants_tty;
	bool is_captured;
	struct cm_buf out;
	struct cm_buf err;
	/* stdout and stderr together; UINT64_MAX: not limited */
	uint64_t output_max;
	uint64_t output_seen;
	bool is_over_output;
	/* the caller's descriptor that could not be written to, and why; EPIPE is no failure */
	int lost_fd;
	int lost_errno;
	/* what comes before the command and is not its output: goes to stderr, both streams of it */
	bool is_to_stderr;
	/* goes nowhere */
	bool is_muted;
	/* gets all that came, whoever else does; may be NULL */
	void (*seen)(void *data, int from, const char *bytes, size_t len);
	void *seen_data;
	/* the session is over with this command: its pipes end when everything in it has */
	bool is_last;
	/* the first of INT, TERM, HUP, QUIT that came; 0: none */
	int signal;
	/* the keeper's, once it has started */
	uint64_t exec_id;
	bool has_started;
	bool has_ended;
	/* the jail was lost while the command ran: `end` says killed, `why` how it came */
	bool is_lost;
	struct cm_error why;
	struct cm_rec_end end;
};

/* Blocks the signals that are relayed, in this process. Once, before anything is started. */
int cm_relay_block_signals(struct cm_error *err);
/* Afterwards, where this process goes on: as they were. One that came since and was not taken ends it. */
void cm_relay_restore_signals(const sigset_t *before);
/*
 * Before there is a command: a descriptor that is readable from the moment that INT, TERM, HUP or
 * QUIT has come, until cm_relay_take_end takes it. The caller closes it.
 */
int cm_relay_watch_end(int *ret_fd, struct cm_error *err);
/* The same for all that are relayed. Non-blocking; each read is a struct signalfd_siginfo. */
int cm_relay_watch_all(int *ret_fd, struct cm_error *err);
/* The signal; 0: none has come. */
int cm_relay_take_end(int fd);
/* The caller has a stdin, and it is not /dev/null. */
bool cm_relay_has_stdin(void);
/*
 * Pipes (or none, for a terminal). with_stdin: the caller's stdin goes to the command. What would end
 * in the caller's /dev/null goes to the jail's own, unless it is to be seen or counted.
 */
int cm_relay_open(struct cm_relay *relay, bool wants_tty, bool with_stdin, bool counts_output,
		  struct cm_error *err);
/*
 * After the command was asked for: until its end, and what it still had to say. CM_OK when `end`
 * tells how it ended, else the keeper's error: the command did not start.
 */
int cm_relay_run(struct cm_relay *relay, struct cm_error *err);
void cm_relay_close(struct cm_relay *relay);

#endif
