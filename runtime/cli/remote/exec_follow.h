/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command of a session that is elsewhere, followed by one that did not start it: what it prints, what
 * is read for it, and its end. A signal gives that up, and not the command.
 */
#ifndef CM_RUNTIME_CLI_REMOTE_EXEC_FOLLOW_H
#define CM_RUNTIME_CLI_REMOTE_EXEC_FOLLOW_H

#include "providers/provider.h"
#include "runtime/cli/outlet.h"
#include "runtime/cli/remote/away.h"
#include "runtime/cli/shown_text.h"

/* A stream on its way to standard output or error: as it is, but escaped where that is a terminal. */
struct cm_away_output {
	/* readable when it is to be given up */
	int cancel_fd;
	bool is_terminal;
	/* nobody reads any more: all is dropped */
	bool is_closed;
	/* how many bytes may still be shown */
	uint64_t left;
	struct cm_shown_text text;
	struct cm_outlet outlet;
};
void cm_away_output_init(struct cm_away_output *output, int fd, int cancel_fd);
void cm_away_output_close(struct cm_away_output *output);
int cm_away_output_put(struct cm_away_output *output, const char *bytes, size_t len,
		       struct cm_error *err);
/* It ends here, and all of it is written. */
int cm_away_output_end(struct cm_away_output *output, struct cm_error *err);

/* one request of a provider's carries it */
#define CM_AWAY_INPUT_MAX 32768

struct cm_away_follow {
	struct cm_away *away;
	struct cm_exec *exec;
	/* of stdout and stderr; NULL: dropped */
	struct cm_away_output *outputs[2];
	/* CLOCK_MONOTONIC */
	int64_t deadline_ms;
	/* standard input goes to it, as long as it takes some; and the end of it */
	bool has_input;
	bool has_input_ended;

	/* else it has not, or the outputs have taken all that they take */
	bool has_ended;
	struct cm_exec_end end;
	/* of each stream, from where it was attached to */
	uint64_t seen[2];
	/* beside its output; may be NULL */
	void (*look)(void *data, int stream, const char *bytes, size_t len);
	void *data;
};
/* Until one of these says so. CM_E_TIMEOUT at its deadline. */
int cm_away_follow(struct cm_away_follow *follow, struct cm_error *err);

/* As cm_away_fail; who breaks it off by a signal knows that, and nothing is said. */
int cm_away_follow_fail(const struct cm_away *away, const struct cm_error *err);

/* Where each stream's last n lines begin now; with n 0, where it ends. */
#define CM_AWAY_TAIL_MAX 1000000U
int cm_away_tail(struct cm_away *away, const char *name, uint64_t n, uint64_t ret[2],
		 struct cm_error *err);

#endif
