/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's end of a keeper: start one with a plan, connect to one, start commands through it.
 *
 * A struct cm_jail belongs to one thread. Blocking calls take a deadline on CLOCK_MONOTONIC in
 * milliseconds (INT64_MAX: none).
 */
#ifndef CM_PROVIDERS_LOCAL_JAIL_H
#define CM_PROVIDERS_LOCAL_JAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "casemate/error.h"
#include "isolation/keeper/proto.h"
#include "providers/local/launch.h"
#include "runtime/base/buf.h"
#include "runtime/store/store.h"

struct cm_jail {
	/* to the keeper; -1: not connected */
	int sock;
	/* the process that was spawned, until it is waited for; 0: none */
	pid_t spawned;
	/* of it, until it is known whether its program runs. Owned. */
	struct cm_launch *launch;
	/* how it ended, as wait(2) has it, once it was waited for */
	int wait_status;
	bool is_temporary;
	/* the keeper makes namespaces before it has a plan */
	bool is_ahead;
	/* this process waits for init where the keeper leaves it that; the caller's to set, and for a
	 * program of ours alone: it becomes the parent of every orphan below it */
	bool reaps;
	/* the keeper closed the connection, or died */
	bool has_ended;
	/* what the jail really has; valid once cm_jail_wait_up has returned CM_OK */
	struct cm_rec_up up;
	uint64_t last_id;
	/* the skeleton that the plan's root is of; its dir is NULL without one. Owned. */
	struct cm_store_skeleton skeleton;
};

void cm_jail_init(struct cm_jail *jail);

struct cm_jail_start {
	/* ends with its client */
	bool is_temporary;
	/* session id, when systemd must be asked for a control group (casemate-scope starts the
	 * keeper then), else NULL */
	const char *scope_id;
	/* make nothing: remove the control groups of this plan's session, whose keeper is dead */
	bool is_collect;
};
/*
 * Spawn a keeper, which waits for its plan. Returns at once: that its program could not be executed
 * is said when it is given (a part of) the plan. One that was spawned already and has got nothing
 * yet is taken where it will do.
 */
int cm_jail_spawn(struct cm_jail *jail, const struct cm_jail_start *start, struct cm_error *err);
/*
 * The namespaces may be made while the plan is: only for a temporary session, and not where init is
 * born into a v2 group; has_own_network must be what the plan will say.
 */
int cm_jail_ahead(struct cm_jail *jail, bool has_own_network, struct cm_error *err);
/* After cm_jail_ahead, once: the plan as far as it is known (flat form, checked). */
int cm_jail_prepare(struct cm_jail *jail, const void *plan, size_t plan_len, struct cm_error *err);
/*
 * Send the plan (flat form, checked), and the lock of its skeleton. Commands may be sent at once,
 * before the jail is up.
 */
int cm_jail_plan(struct cm_jail *jail, const void *plan, size_t plan_len, struct cm_error *err);
/*
 * Connect to a running keeper and say hello, without waiting for the answer: requests may follow at
 * once, and none of them is looked at before the hello. CM_E_NOT_FOUND when nobody listens.
 */
int cm_jail_dial(struct cm_jail *jail, const char *socket_path, const char *session_id,
		 int64_t deadline_ms, struct cm_error *err);
/* And the answer. CM_E_NOT_FOUND when who listened ended before it said anything: then nothing was
 * done of what was asked. */
int cm_jail_greeted(struct cm_jail *jail, const char *session_id, int64_t deadline_ms,
		    struct cm_error *err);
/* Both. */
int cm_jail_connect(struct cm_jail *jail, const char *socket_path, const char *session_id,
		    int64_t deadline_ms, struct cm_error *err);
/* CM_OK when the jail stands; else the keeper's own error. */
int cm_jail_wait_up(struct cm_jail *jail, int64_t deadline_ms, struct cm_error *err);

/*
 * A pipe for a command: `far` for its input or for a stream of its output, `near` the caller's end, which
 * does not block. Both are the caller's to close.
 */
int cm_jail_pipe(int *near, int *far, bool is_input, struct cm_error *err);

struct cm_jail_command {
	/* NULL-terminated */
	char *const *argv;
	char *const *env;
	const char *cwd;
	/* CM_EXECF_*, without the descriptor bits */
	uint32_t flags;
	/* far ends that the jail gets, -1: its own /dev/null. Borrowed. */
	int stdio[3];
	uint64_t timeout_ms;
	uint64_t grace_ms;
	/* the start that it is meant for; 0: any */
	uint64_t generation;
	uint16_t rows;
	uint16_t cols;
	/* CM_EXECF_DETACH: what is kept of each stream; 0: the usual */
	uint64_t journal_bytes;
};
/* Ask for a command; *ret_id names it in the answers. */
int cm_jail_exec(struct cm_jail *jail, const struct cm_jail_command *command, uint64_t *ret_id,
		 struct cm_error *err);
/*
 * Follow a command that runs, by its exec id: *ret_id names it in the answers, END among them, and
 * in cm_jail_signal and cm_jail_kill. ret_input, if it is not NULL, gets what the command reads
 * from, which the caller closes. CM_E_NOT_FOUND when it does not run (any more): its journal may
 * have a result.
 */
int cm_jail_attach(struct cm_jail *jail, uint64_t exec_id, uint64_t *ret_id, int *ret_input,
		   int64_t deadline_ms, struct cm_error *err);
/* Close what a detached command reads from, but for what others got of it by cm_jail_attach. */
int cm_jail_close_input(struct cm_jail *jail, uint64_t exec_id, int64_t deadline_ms,
			struct cm_error *err);
/* The commands of the session: a list of struct cm_rec_item with their texts, into out. */
int cm_jail_list(struct cm_jail *jail, struct cm_buf *out, int64_t deadline_ms,
		 struct cm_error *err);
/* What the session's groups tell of it; all CM_USAGE_UNKNOWN from a keeper that was not taught to say. */
int cm_jail_usage(struct cm_jail *jail, struct cm_rec_usage *ret, int64_t deadline_ms,
		  struct cm_error *err);
/* One after the other from such a list, from *at = 0 on; NULL at its end or where it is malformed. */
const struct cm_rec_item *cm_jail_item(const struct cm_buf *list, size_t *at,
				       const char **ret_text);
/*
 * The next answer about the command ret_id: CM_REC_STARTED, END or REFUSED; others are passed over.
 * CM_OK with *msg filled, which the caller clears.
 */
int cm_jail_next(struct cm_jail *jail, uint64_t id, struct cm_msg *msg, int64_t deadline_ms,
		 struct cm_error *err);
int cm_jail_signal(struct cm_jail *jail, uint64_t id, int sig);
int cm_jail_kill(struct cm_jail *jail, uint64_t id, uint64_t grace_ms);
/* Orderly stop; waits until the keeper has ended. */
int cm_jail_stop(struct cm_jail *jail, int64_t deadline_ms, struct cm_error *err);
/*
 * Let go of it. A temporary jail ends with this; waits for its keeper, so that on return nothing
 * of it is left. False when that was killed and could not clear up after itself.
 */
bool cm_jail_close(struct cm_jail *jail);

#endif
