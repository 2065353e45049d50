/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of a local session as they are asked for: over a connection that was kept, or else over one
 * that is made for them.
 *
 * Theory of operation. That a keeper took a request is known by its first word about the command, which
 * for one that runs for long comes late, and is not waited for here. Where it comes to nothing because who
 * has the kept connection is ending, or gone, the request is asked for anew (cm_lv_exec_again), when the
 * caller waits for the command. Until then nothing has come of it that the caller could know.
 */
#include <stdlib.h>
#include <string.h>

#include "providers/local/vtable_exec.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

/* as long as a hello's answer is waited for */
#define ANSWER_MS 10000

/* --- asking -------------------------------------------------------------------------------- */

static int make_pipes(struct cm_lv_exec *e, const struct cm_exec_request *request, int far[3],
		      struct cm_error *err)
{
	int r = CM_OK;

	if (request->wants_tty || request->is_detached)
		return CM_OK;
	if (request->has_input)
		r = cm_jail_pipe(&e->in_fd, &far[0], true, err);
	for (int i = 0; i < 2 && r == CM_OK; i++)
		r = cm_jail_pipe(&e->out_fd[i], &far[1 + i], false, err);
	return r;
}

static uint32_t flags_of(const struct cm_exec_request *request)
{
	bool has_input = request->has_input && !request->wants_tty;

	return (request->wants_tty ? CM_EXECF_TTY : 0U) |
	       (request->is_detached ? CM_EXECF_DETACH : 0U) |
	       (request->is_detached && has_input ? CM_EXECF_INPUT : 0U);
}

static int ask_with(struct cm_lv_exec *e, const struct cm_exec_request *request, const int far[3],
		    struct cm_error *err)
{
	struct cm_local *l = e->l;
	struct cm_jail_command command = {
		.argv = request->argv,
		.env = l->env.v,
		.cwd = cm_local_cwd(l),
		.flags = flags_of(request),
		.stdio = { far[0], far[1], far[2] },
		.timeout_ms = request->timeout_ms,
		.grace_ms = request->grace_ms,
		.generation = l->session.record.generation,
		.rows = request->rows,
		.cols = request->cols,
	};

	if (request->is_root && l->session.record.user != CM_USER_ROOT) {
		(void)cm_error_set(err, CM_E_UNSUPPORTED, 0,
				   "session '%s' was made for commands that are not root",
				   l->session.record.id);
		cm_error_hint(err, "--user root, when it is made");
		return CM_E_UNSUPPORTED;
	}
	free(e->cwd);
	e->cwd = cm_strdup(command.cwd);
	if (!e->cwd)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the command");
	return cm_jail_exec(&l->jail, &command, &e->id, err);
}

/* In e->l. */
static int ask(struct cm_lv_exec *e, const struct cm_exec_request *request, struct cm_error *err)
{
	int far[3] = { -1, -1, -1 };
	int r = make_pipes(e, request, far, err);

	if (r == CM_OK)
		r = ask_with(e, request, far, err);
	for (int i = 0; i < 3; i++)
		cm_fd_close(&far[i]);
	if (r == CM_OK)
		cm_lv_used((struct cm_lv_session *)e->base.session, e->l);
	return r;
}

/* --- and anew ------------------------------------------------------------------------------ */

void cm_lv_request_free(struct cm_lv_request *request)
{
	if (!request)
		return;
	cm_strv_clear(&request->argv);
	cm_strv_clear(&request->env);
	free(request->cwd);
	free(request);
}

/* NULL: no memory */
static struct cm_lv_request *copy_request(const struct cm_exec_request *from)
{
	struct cm_lv_request *to = cm_calloc(1, sizeof(*to));
	int r = to ? cm_strv_add_all(&to->argv, from->argv) : CM_E_NOMEM;

	if (r == CM_OK)
		r = cm_strv_add_all(&to->env, from->env);
	if (r == CM_OK && from->cwd) {
		to->cwd = cm_strdup(from->cwd);
		r = to->cwd ? CM_OK : CM_E_NOMEM;
	}
	if (r < 0 || !to) {
		cm_lv_request_free(to);
		return NULL;
	}
	to->request = *from;
	to->request.argv = to->argv.v;
	to->request.env = to->env.v;
	to->request.cwd = to->cwd;
	return to;
}

int cm_lv_exec_again(struct cm_lv_exec *e, const struct cm_call *call, struct cm_error *err)
{
	struct cm_lv_request *again = e->again;
	const struct cm_lv_want want = { again->request.env, again->request.cwd };
	struct cm_error why = CM_ERROR_INIT;
	int r;

	cm_lv_exec_close_streams(e);
	cm_lv_leave(e->l);
	e->l = NULL;
	r = cm_lv_reach((struct cm_lv_session *)e->base.session, &want, call, &e->l, &why);
	/* that is this call's; the next one goes on from here */
	if (r == CM_E_TIMEOUT || r == CM_E_CANCELLED)
		return cm_error_set(err, r, 0, "%s", why.msg);
	e->again = NULL;
	e->is_not_taken = false;
	if (r == CM_OK)
		r = ask(e, &again->request, &why);
	cm_lv_request_free(again);
	return r == CM_OK ? CM_OK : cm_lv_exec_fail(e, &why, err);
}

/* --- starting ------------------------------------------------------------------------------ */

static struct cm_lv_exec *new_exec(struct cm_session *s, const struct cm_exec_request *request)
{
	struct cm_lv_exec *e = cm_malloc(sizeof(*e));

	if (!e)
		return NULL;
	memset(e, 0, offsetof(struct cm_lv_exec, chunk));
	e->base.ops = &cm_lv_exec_ops;
	e->base.session = s;
	e->is_tty = request->wants_tty && !request->is_detached;
	e->in_fd = e->out_fd[0] = e->out_fd[1] = e->lent = -1;
	for (int i = 0; i < 2; i++)
		cm_buf_init(&e->held[i], CM_LV_HELD_MAX);
	return e;
}

/* False: there is no kept one that will do. */
static bool is_kept_found(struct cm_lv_exec *e, const struct cm_exec_request *request)
{
	const struct cm_lv_want want = { request->env, request->cwd };

	/* what is wrong with it is said where it is reached anew */
	if (cm_lv_reach_kept((struct cm_lv_session *)e->base.session, &want, &e->l, NULL) < 0 ||
	    !e->l)
		return false;
	e->again = copy_request(request);
	e->answer_due_ms = cm_clock_mono_ms() + ANSWER_MS;
	if (e->again)
		return true;
	cm_lv_leave(e->l);
	e->l = NULL;
	return false;
}

static int start(struct cm_lv_exec *e, const struct cm_exec_request *request,
		 const struct cm_call *call, struct cm_error *err)
{
	const struct cm_lv_want want = { request->env, request->cwd };
	int r = CM_OK;

	if (!is_kept_found(e, request))
		r = cm_lv_reach((struct cm_lv_session *)e->base.session, &want, call, &e->l, err);
	if (r == CM_OK)
		r = ask(e, request, err);
	/* gone before that was sent */
	if (r == CM_OK && e->again && e->l->jail.has_ended)
		r = cm_lv_exec_again(e, call, err);
	return r;
}

int cm_lv_exec_start(struct cm_session *s, const struct cm_exec_request *request,
		     const struct cm_call *call, struct cm_exec **ret, struct cm_error *err)
{
	struct cm_lv_exec *e = new_exec(s, request);
	int r;

	if (!e)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the command");
	r = start(e, request, call, err);
	if (r == CM_OK)
		*ret = &e->base;
	else
		cm_lv_exec_ops.release(&e->base);
	return r;
}
