/* SPDX-License-Identifier: Apache-2.0 */
/* Commands: started once, whatever becomes of the connection. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/e2b/exec.h"
#include "providers/remote/background.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"

static int exec_signal(struct cm_exec *exec, int sig, const struct cm_call *call,
		       struct cm_error *err)
{
	struct cm_e2b_exec *e = cm_e2b_exec_of(exec);
	int r = cm_e2b_command_signal(e, sig, call, err);

	if (r == CM_OK)
		e->asked_signal = sig;
	return r;
}

/* The process goes on without its client. */
static void release(struct cm_exec *exec)
{
	struct cm_e2b_exec *e = cm_e2b_exec_of(exec);

	if (!e)
		return;
	cm_e2b_stream_close(e->stream);
	cm_buf_clear(&e->request);
	cm_buf_clear(&e->out);
	free(e);
}

static const struct cm_exec_ops exec_ops = {
	.next = cm_e2b_follow_next,
	.input = cm_e2b_command_input,
	.signal = exec_signal,
	.resize = cm_e2b_command_resize,
	.release = release,
};

static int new_exec(struct cm_e2b_session *s, const struct cm_exec_request *request,
		    struct cm_e2b_exec **ret, struct cm_error *err)
{
	char tag[CM_PROVIDER_HEX_SIZE];
	char mark[CM_PROVIDER_HEX_SIZE];
	struct cm_e2b_exec *e;
	int r = cm_provider_random_hex(tag, err);

	if (r == CM_OK)
		r = cm_provider_random_hex(mark, err);
	if (r < 0)
		return r;
	e = cm_calloc(1, sizeof(*e));
	if (!e)
		return cm_e2b_no_memory(err);
	e->base.ops = &exec_ops;
	e->base.session = &s->base;
	(void)snprintf(e->base.name, sizeof(e->base.name), "%s", tag);
	(void)snprintf(e->tag, sizeof(e->tag), "casemate-%s", tag);
	(void)snprintf(e->mark, sizeof(e->mark), "not-executed-%s", mark);
	cm_buf_init(&e->out, CM_E2B_ENVELOPE_MAX);
	e->is_root = request->is_root || s->is_root;
	e->is_tty = request->wants_tty;
	e->is_idempotent = request->is_idempotent;
	e->grace_ms = request->grace_ms;
	e->term_ms = e->kill_ms = e->give_up_ms = INT64_MAX;
	*ret = e;
	return CM_OK;
}

/* The connection, and not the sandbox's word, is why: it may run all the same. */
static bool is_lost(int r, const struct cm_call *call)
{
	return r == CM_E_REMOTE || (r == CM_E_TIMEOUT && cm_clock_mono_ms() < call->deadline_ms);
}

/*
 * The answer to Start was lost. By its tag it is seen whether it was started; only where that is no, and
 * it does no harm twice, it is started again.
 */
static int look_for_it(struct cm_e2b_exec *e, const struct cm_call *call, struct cm_error *err)
{
	struct cm_error first = CM_ERROR_INIT;
	enum cm_e2b_health health = CM_E2B_SILENT;
	int r;

	if (err)
		first = *err;
	r = cm_e2b_health(cm_e2b_exec_session(e), call, &health, err);
	if (r < 0)
		return r;
	if (health == CM_E2B_ALIVE)
		r = cm_e2b_command_open(e, false, call, err);
	if (health == CM_E2B_ALIVE && r == CM_OK) {
		cm_e2b_command_note(e);
		return CM_OK;
	}
	if (health == CM_E2B_ALIVE && r == CM_E_NOT_FOUND && e->is_idempotent) {
		cm_error_clear(err);
		return cm_e2b_command_open(e, true, call, err);
	}
	if (err)
		*err = first;
	return first.code < 0 ? first.code : CM_E_REMOTE;
}

int cm_e2b_exec_start(struct cm_session *session, const struct cm_exec_request *request,
		      const struct cm_call *call, struct cm_exec **ret, struct cm_error *err)
{
	struct cm_e2b_session *s = (struct cm_e2b_session *)(void *)session;
	struct cm_error local = CM_ERROR_INIT;
	struct cm_e2b_exec *e = NULL;
	int r;

	if (request->is_detached)
		return cm_background_start(session, request, call, ret, err);
	if (!err)
		err = &local;
	cm_e2b_session_keep(s, call);
	r = new_exec(s, request, &e, err);
	if (r < 0)
		return r;
	r = cm_e2b_command_write(e, request, err);
	e->started_ms = cm_clock_mono_ms();
	if (r == CM_OK) {
		r = cm_e2b_command_open(e, true, call, err);
		if (r < 0 && is_lost(r, call))
			r = look_for_it(e, call, err);
		/* nobody will hear of it, so it must not run */
		if (r < 0 && r != CM_E_INVALID && r != CM_E_DENIED)
			cm_e2b_command_kill(e);
	}
	if (r < 0) {
		release(&e->base);
		return r;
	}
	if (request->timeout_ms > 0 && request->timeout_ms < INT64_MAX / 2)
		e->term_ms = e->started_ms + (int64_t)request->timeout_ms;
	*ret = &e->base;
	return CM_OK;
}

int cm_e2b_exec_attach(struct cm_session *s, const char *name, const uint64_t offsets[2],
		       bool follows, const struct cm_call *call, struct cm_exec **ret,
		       struct cm_error *err)
{
	return cm_background_attach(s, name, offsets, follows, call, ret, err);
}

int cm_e2b_exec_list(struct cm_session *s, const struct cm_call *call,
		     int (*each)(void *data, const struct cm_exec_info *info), void *data,
		     struct cm_error *err)
{
	return cm_background_list(s, call, each, data, err);
}
