/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of a session, as their users call them. */
#include <stdlib.h>

#include "providers/provider_internal.h"

static uint32_t needs_of(const struct cm_exec_request *request)
{
	return (request->wants_tty ? CM_CAP_TTY : 0U) | (request->has_input ? CM_CAP_STDIN : 0U) |
	       (request->is_detached ? CM_CAP_DETACH : 0U) |
	       (request->is_root ? CM_CAP_ROOT_USER : 0U) |
	       (request->timeout_ms != 0 ? CM_CAP_EXEC_TIMEOUT : 0U);
}

int cm_exec_start(struct cm_session *s, const struct cm_exec_request *request,
		  const struct cm_call *call, struct cm_exec **ret, struct cm_error *err)
{
	static const char what[] = "start a command";
	struct cm_provider *p = s->provider;
	uint32_t missing = needs_of(request) & ~p->caps;
	int r;

	if (!request->argv || !request->argv[0])
		return cm_error_set(err, CM_E_INVALID, 0, "no command given");
	r = cm_provider_may(p, missing == 0, 0, missing != 0 ? cm_cap_text(missing) : what, call,
			    err);
	if (r == CM_OK)
		r = cm_provider_may(p, p->ops->exec_start != NULL, 0, what, call, err);
	if (r < 0 || !p->ops->exec_start)
		return r;
	return cm_provider_settle(p, p->ops->exec_start(s, request, call, ret, err), what, err);
}

int cm_exec_attach(struct cm_session *s, const char *name, const uint64_t offsets[2], bool follows,
		   const struct cm_call *call, struct cm_exec **ret, struct cm_error *err)
{
	static const char what[] = "follow a command";
	struct cm_provider *p = s->provider;
	int r = cm_provider_may(p, p->ops->exec_attach != NULL, CM_CAP_DETACH, what, call, err);

	if (r < 0 || !p->ops->exec_attach)
		return r;
	return cm_provider_settle(p, p->ops->exec_attach(s, name, offsets, follows, call, ret, err),
				  what, err);
}

int cm_exec_list(struct cm_session *s, const struct cm_call *call,
		 int (*each)(void *data, const struct cm_exec_info *info), void *data,
		 struct cm_error *err)
{
	struct cm_provider *p = s->provider;
	int r = cm_provider_may(p, p->ops->exec_list != NULL, 0, "list commands", call, err);

	if (r < 0 || !p->ops->exec_list)
		return r;
	return p->ops->exec_list(s, call, each, data, err);
}

int cm_exec_next(struct cm_exec *e, struct cm_wake *wake, const struct cm_call *call,
		 struct cm_exec_event *ret, struct cm_error *err)
{
	static const char what[] = "follow a command";
	struct cm_provider *p = e->session->provider;
	int r = cm_provider_may(p, e->ops->next != NULL, 0, what, call, err);

	if (r < 0 || !e->ops->next)
		return r;
	return cm_provider_settle(p, e->ops->next(e, wake, call, ret, err), what, err);
}

int cm_exec_input(struct cm_exec *e, const void *bytes, size_t len, const struct cm_call *call,
		  struct cm_error *err)
{
	static const char what[] = "write to a command";
	struct cm_provider *p = e->session->provider;
	int r = cm_provider_may(p, e->ops->input != NULL, CM_CAP_STDIN, what, call, err);

	if (r < 0 || !e->ops->input)
		return r;
	return cm_provider_settle(p, e->ops->input(e, bytes, len, call, err), what, err);
}

int cm_exec_signal(struct cm_exec *e, int sig, const struct cm_call *call, struct cm_error *err)
{
	static const char what[] = "send a signal to a command";
	struct cm_provider *p = e->session->provider;
	int r = cm_provider_may(p, e->ops->signal != NULL, CM_CAP_SIGNAL, what, call, err);

	if (r < 0 || !e->ops->signal)
		return r;
	return cm_provider_settle(p, e->ops->signal(e, sig, call, err), what, err);
}

int cm_exec_resize(struct cm_exec *e, uint16_t rows, uint16_t cols, const struct cm_call *call,
		   struct cm_error *err)
{
	static const char what[] = "tell a command the size of its terminal";
	struct cm_provider *p = e->session->provider;
	int r = cm_provider_may(p, e->ops->resize != NULL, CM_CAP_TTY, what, call, err);

	if (r < 0 || !e->ops->resize)
		return r;
	return cm_provider_settle(p, e->ops->resize(e, rows, cols, call, err), what, err);
}

void cm_exec_release(struct cm_exec *e)
{
	if (e)
		e->ops->release(e);
}

void cm_exec_info_clear(struct cm_exec_info *info)
{
	free(info->cwd);
	cm_strv_clear(&info->argv);
	*info = (struct cm_exec_info){ 0 };
}
