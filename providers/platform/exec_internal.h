/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command that runs, and the ways there are to it.
 *
 * A command is started once. Where the way to it is lost before it can have been started, it is tried
 * again, or another way is; after that only what is_idempotent is, and only as long as nothing of its
 * output was given away.
 */
#ifndef CM_PROVIDERS_PLATFORM_EXEC_INTERNAL_H
#define CM_PROVIDERS_PLATFORM_EXEC_INTERNAL_H

#include "providers/platform/platform_internal.h"
#include "providers/websocket.h"

struct cm_platform_exec;

enum cm_platform_news_kind {
	CM_PLATFORM_NEWS_OUTPUT = 1,
	CM_PLATFORM_NEWS_EXIT,
	/* how it ended will not be known; why is in the command's `why` */
	CM_PLATFORM_NEWS_LOST,
	CM_PLATFORM_NEWS_WOKEN,
};

struct cm_platform_news {
	enum cm_platform_news_kind kind;
	/* OUTPUT: good until the next call */
	int stream;
	const char *bytes;
	size_t len;
	/* EXIT */
	int exit_code;
	bool is_timed_out;
};

struct cm_platform_way {
	/*
	 * What is to be done until it is known to have been started; NULL: nothing. Called until it is CM_OK,
	 * and then never again. A failure is the command's: it was not started, or was ended again. It looks at
	 * the call's cancel_fd, and at no wake descriptor: one request has nothing that could go on later.
	 */
	int (*begin)(struct cm_platform_exec *e, const struct cm_call *call, struct cm_error *err);
	int (*next)(struct cm_platform_exec *e, struct cm_wake *wake, const struct cm_call *call,
		    struct cm_platform_news *ret, struct cm_error *err);
	int (*signal)(struct cm_platform_exec *e, const char *name, const struct cm_call *call,
		      struct cm_error *err);
	/* Lets go of the connection. */
	void (*close)(struct cm_platform_exec *e);
};

/* What has been done to end it. */
enum cm_platform_stage {
	CM_PLATFORM_RUNS = 0,
	CM_PLATFORM_TERMINATED,
	CM_PLATFORM_KILLED,
};

struct cm_platform_exec {
	struct cm_exec base;
	/* NULL once the connection is closed */
	const struct cm_platform_way *way;
	bool is_idempotent;
	bool has_told_start;
	bool has_given_output;
	bool has_been_lost;
	bool has_ended;
	struct cm_exec_end end;
	char why[160];

	/* CLOCK_MONOTONIC, milliseconds */
	int64_t started_ms;
	uint64_t timeout_ms;
	uint64_t grace_ms;
	enum cm_platform_stage stage;
	/* of the stage: when the next one begins */
	int64_t until_ms;
	/* the last signal that was sent for cm_exec_signal; 0: none */
	int sent_signal;

	/* {"command", ...}: kept for a start that is made again */
	struct cm_buf request;
	/* the exec socket, and what stream its message under way is of; 0: of none */
	struct cm_ws *ws;
	int stream;
	/* a sidecar's answer, what has come of it and how much of that was read */
	struct cm_http_stream *answer;
	struct cm_buf lines;
	size_t lines_used;
	char *line_data;
	/* a command within one request */
	struct cm_platform_result result;
	bool is_result_lost;
	unsigned int n_given;
};

struct cm_platform_session *cm_platform_exec_session(const struct cm_platform_exec *e);
void cm_platform_exec_why(struct cm_platform_exec *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Each starts the command, or leaves it alone. CM_OK; CM_PLATFORM_OTHER_WAY: not by this one, and
 * nothing has happened; negative: it failed.
 */
#define CM_PLATFORM_OTHER_WAY 1
int cm_platform_sidecar_start(struct cm_platform_exec *e, const struct cm_call *call,
			      struct cm_error *err);
int cm_platform_socket_start(struct cm_platform_exec *e, const struct cm_call *call,
			     struct cm_error *err);
/* Always by this one, which is the last. */
void cm_platform_legacy_start(struct cm_platform_exec *e);

/* --- exec_wrap.c: signals for the ways that have none ------------------------------------------ */

/* Runs another command, whose request is `body`, and waits for its end. */
typedef int cm_platform_other_run(struct cm_platform_exec *e, const struct cm_buf *body,
				  const struct cm_call *call, int *ret_exit_code,
				  struct cm_error *err);
/* Appends the command's request, in which it can be sent a signal. */
int cm_platform_wrap_write(const struct cm_platform_exec *e, struct cm_buf *out,
			   struct cm_error *err);
/* CM_E_NOT_FOUND: it has ended. */
int cm_platform_wrap_signal(struct cm_platform_exec *e, cm_platform_other_run *run,
			    const char *name, const struct cm_call *call, struct cm_error *err);
/* Whatever it is at: asked to end, and after a short while killed. A note says where that failed. */
void cm_platform_wrap_end(struct cm_platform_exec *e, cm_platform_other_run *run);

#endif
