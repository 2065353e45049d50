/* SPDX-License-Identifier: Apache-2.0 */
/* Shared between the files of the local vtable. */
#ifndef CM_PROVIDERS_LOCAL_VTABLE_INTERNAL_H
#define CM_PROVIDERS_LOCAL_VTABLE_INTERNAL_H

#include <signal.h>

#include "providers/local/local.h"
#include "providers/local/vtable.h"
#include "runtime/base/buf.h"
#include "runtime/store/journal.h"
#include "runtime/store/store.h"

/* of a handle's, without a command: more are only wanted by who runs as many at once, again and again */
#define CM_LV_KEPT_MAX 4

/*
 * Connections that are kept are no use of the session: one that runs no command ends by its idle time,
 * whoever has a handle.
 */
struct cm_lv_session {
	struct cm_session base;
	/* its session root; NULL: as the environment says */
	char *root;
	/* vtable_kept.c: greeted, and nothing under way. Owned. */
	struct cm_local *kept[CM_LV_KEPT_MAX];
	size_t n_kept;
	/* when "last used" was noted, CLOCK_MONOTONIC; 0: not by this handle */
	int64_t touched_ms;
	/* its caller has a connection to it, which file operations go over; NULL: each makes its own */
	const struct cm_local_reached *reached;
};

/* --- vtable_call.c: how long, and until when -------------------------------------------------- */

/* One descriptor for what cancels a call and for its deadline: what waits here takes only one. */
struct cm_lv_call {
	const struct cm_call *call;
	/* readable when the call is over; -1: it never is */
	int fd;
	int timer_fd;
};
int cm_lv_call_open(struct cm_lv_call *c, const struct cm_call *call, struct cm_error *err);
void cm_lv_call_close(struct cm_lv_call *c);
/* Is it over? Then why: CM_E_CANCELLED or CM_E_TIMEOUT. CM_OK: it is not. */
int cm_lv_call_check(const struct cm_call *call, struct cm_error *err);
/* r is what a wait by c->fd came to: where the call's deadline ended it, it says so. */
int cm_lv_call_result(const struct cm_lv_call *c, int r, struct cm_error *err);
/* For poll(2), until the call's deadline or due_ms (INT64_MAX: none). */
int cm_lv_poll_ms(const struct cm_call *call, int64_t due_ms);
/* min(call's deadline, in ms from now) */
int64_t cm_lv_deadline(const struct cm_call *call, int64_t ms);

/* A write to a pipe that nobody reads is an error here, and no signal. */
struct cm_lv_quiet {
	sigset_t before;
	bool was_pending;
};
void cm_lv_quiet_begin(struct cm_lv_quiet *q);
void cm_lv_quiet_end(const struct cm_lv_quiet *q);

/* --- vtable.c ------------------------------------------------------------------------------- */

int cm_lv_store_open(const struct cm_provider *p, const char *root, struct cm_store *ret,
		     struct cm_error *err);
/*
 * The session's record, with CM_STORE_* flags; waits for a lock as long as the call lasts. On success
 * both are the caller's to close.
 */
int cm_lv_open(const struct cm_lv_session *s, unsigned int flags, const struct cm_call *call,
	       struct cm_store *store, struct cm_store_session *ret, struct cm_error *err);

/* What a command or a file operation wants of its session. */
struct cm_lv_want {
	char *const *env;
	const char *cwd;
};
/*
 * The session runs (it is started where it does not), and (*ret)->jail is connected to it. *ret is the
 * caller's: cm_lv_leave.
 */
int cm_lv_reach(struct cm_lv_session *s, const struct cm_lv_want *want, const struct cm_call *call,
		struct cm_local **ret, struct cm_error *err);
/* NULL is allowed. */
void cm_lv_leave(struct cm_local *l);
/* The spec of what is wanted of a session that exists: the caller's to clear, also after a failure. */
int cm_lv_spec_for(const struct cm_lv_session *s, const struct cm_lv_want *want,
		   struct cm_spec *ret, struct cm_error *err);

/* --- vtable_kept.c -------------------------------------------------------------------------- */

/* As cm_lv_reach, over a connection that was kept; *ret is NULL where there is none that will do. */
int cm_lv_reach_kept(struct cm_lv_session *s, const struct cm_lv_want *want, struct cm_local **ret,
		     struct cm_error *err);
/* A command was asked for in l: the session is used, and l needs its store no more. */
void cm_lv_used(struct cm_lv_session *s, struct cm_local *l);
/* Takes l, of which nothing is under way, instead of cm_lv_leave. */
void cm_lv_keep(struct cm_lv_session *s, struct cm_local *l);
void cm_lv_forget_kept(struct cm_lv_session *s);

/* --- vtable_list.c -------------------------------------------------------------------------- */

int cm_lv_info(struct cm_session *s, const struct cm_call *call, struct cm_session_info *ret,
	       struct cm_error *err);
int cm_lv_list(struct cm_provider *p, const struct cm_call *call,
	       int (*each)(void *data, const struct cm_session_info *info), void *data,
	       struct cm_error *err);

/* --- vtable_start.c, vtable_attach.c, vtable_files.c -------------------------------------------- */

void cm_lv_end(const struct cm_rec_end *end, struct cm_exec_end *ret);
/* A step of a command could not be done before it was executed: a code. */
int cm_lv_not_executed(const struct cm_rec_end *end, const char *cwd, struct cm_error *err);

/* What the journal says of its end. False: nothing. ret_ended_ms may be NULL. */
bool cm_lv_journal_end(const struct cm_journal_reader *journal, struct cm_exec_end *ret,
		       int64_t *ret_ended_ms);

int cm_lv_exec_start(struct cm_session *s, const struct cm_exec_request *request,
		     const struct cm_call *call, struct cm_exec **ret, struct cm_error *err);
int cm_lv_exec_attach(struct cm_session *s, const char *name, const uint64_t offsets[2],
		      bool follows, const struct cm_call *call, struct cm_exec **ret,
		      struct cm_error *err);
int cm_lv_exec_list(struct cm_session *s, const struct cm_call *call,
		    int (*each)(void *data, const struct cm_exec_info *info), void *data,
		    struct cm_error *err);

int cm_lv_file_read(struct cm_session *s, const char *path, const struct cm_read_request *read,
		    const struct cm_call *call, struct cm_error *err);
int cm_lv_file_write(struct cm_session *s, const char *path, const struct cm_write_request *write,
		     const struct cm_call *call, struct cm_error *err);
int cm_lv_file_list(struct cm_session *s, const char *path, uint32_t flags,
		    int (*each)(void *data, const struct cm_path_info *info), void *data,
		    const struct cm_call *call, struct cm_error *err);
int cm_lv_file_stat(struct cm_session *s, const char *path, uint32_t flags,
		    int (*each)(void *data, const struct cm_path_info *info), void *data,
		    const struct cm_call *call, struct cm_error *err);
int cm_lv_file_mkdir(struct cm_session *s, const char *path, uint32_t flags, uint32_t mode,
		     const struct cm_call *call, struct cm_error *err);
int cm_lv_file_move(struct cm_session *s, const char *from, const char *to, uint32_t flags,
		    const struct cm_call *call, struct cm_error *err);
int cm_lv_file_remove(struct cm_session *s, const char *path, uint32_t flags,
		      const struct cm_call *call, struct cm_error *err);
int cm_lv_file_paths(struct cm_session *s, const struct cm_paths_request *several,
		     const struct cm_call *call, struct cm_error *err);
int cm_lv_file_watch(struct cm_session *s, const char *path,
		     int (*each)(void *data, const struct cm_watch_event *event), void *data,
		     const struct cm_call *call, struct cm_error *err);

#endif
