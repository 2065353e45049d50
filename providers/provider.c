/* SPDX-License-Identifier: Apache-2.0 */
/* Providers and sessions, as their users call them. */
#include "providers/provider.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "providers/provider_internal.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return fd >= 0 && poll(&p, 1, 0) > 0;
}

int cm_provider_may(const struct cm_provider *p, bool has_slot, uint32_t cap, const char *what,
		    const struct cm_call *call, struct cm_error *err)
{
	if (!has_slot || (p->caps & cap) != cap) {
		cm_error_set(err, CM_E_UNSUPPORTED, 0, "provider '%s' cannot %s", p->ops->name,
			     what);
		cm_error_hint(err, "leave it out, or take another one: --provider NAME");
		return CM_E_UNSUPPORTED;
	}
	if (is_readable(call->cancel_fd))
		return cm_error_set(err, CM_E_CANCELLED, 0, "cannot %s: it was given up", what);
	if (cm_clock_mono_ms() >= call->deadline_ms) {
		cm_error_set(err, CM_E_TIMEOUT, 0, "cannot %s: the time for it is over", what);
		cm_error_hint(err, "give it more time");
		return CM_E_TIMEOUT;
	}
	return CM_OK;
}

int cm_provider_settle(const struct cm_provider *p, int r, const char *what, struct cm_error *err)
{
	if (r >= 0)
		return CM_OK;
	if (err && (err->code != r || err->msg[0] == '\0'))
		return cm_error_set(err, CM_E_BUG, 0, "provider '%s' failed to %s without a reason",
				    p->ops->name, what);
	return r;
}

int cm_provider_open(const struct cm_provider_ops *ops, const struct cm_provider_config *config,
		     struct cm_provider **ret, struct cm_error *err)
{
	struct cm_provider *p = NULL;
	int r;

	if (ops->abi != CM_PROVIDER_ABI)
		return cm_error_set(err, CM_E_BUG, 0, "provider '%s' is of another build",
				    ops->name);
	r = ops->open(config, &p, err);
	if (r < 0)
		return r;
	p->ops = ops;
	p->config = *config;
	p->caps = ops->caps;
	*ret = p;
	return CM_OK;
}

void cm_provider_close(struct cm_provider *p)
{
	if (p)
		p->ops->close(p);
}

int cm_provider_probe(struct cm_provider *p, const struct cm_call *call, uint32_t *ret_caps,
		      struct cm_error *err)
{
	static const char what[] = "say what it can do";
	uint32_t caps = 0;
	int r = cm_provider_may(p, p->ops->probe != NULL, 0, what, call, err);

	if (r == CM_OK)
		r = cm_provider_settle(p, p->ops->probe(p, call, &caps, err), what, err);
	if (r < 0)
		return r;
	/* never more than the table says */
	p->caps = caps & p->ops->caps;
	*ret_caps = p->caps;
	return CM_OK;
}

int cm_session_create(struct cm_provider *p, const struct cm_spec *spec, const struct cm_call *call,
		      struct cm_session **ret, struct cm_error *err)
{
	static const char what[] = "make a session";
	int r = cm_provider_check(p, spec, err);

	if (r == CM_OK && spec->session_id)
		r = cm_session_id_check(spec->session_id, err);
	if (r == CM_OK)
		r = cm_provider_may(p, p->ops->session_create != NULL, 0, what, call, err);
	if (r < 0 || !p->ops->session_create)
		return r;
	return cm_provider_settle(p, p->ops->session_create(p, spec, call, ret, err), what, err);
}

int cm_session_attach(struct cm_provider *p, const char *id, const struct cm_call *call,
		      struct cm_session **ret, struct cm_error *err)
{
	static const char what[] = "find a session";
	int r = cm_session_id_check(id, err);

	if (r == CM_OK)
		r = cm_provider_may(p, p->ops->session_attach != NULL, 0, what, call, err);
	if (r < 0 || !p->ops->session_attach)
		return r;
	return cm_provider_settle(p, p->ops->session_attach(p, id, call, ret, err), what, err);
}

int cm_session_start(struct cm_session *s, const struct cm_call *call, struct cm_error *err)
{
	static const char what[] = "start a session";
	struct cm_provider *p = s->provider;
	int r = cm_provider_may(p, p->ops->session_start != NULL, 0, what, call, err);

	if (r < 0 || !p->ops->session_start)
		return r;
	return cm_provider_settle(p, p->ops->session_start(s, call, err), what, err);
}

int cm_session_stop(struct cm_session *s, const struct cm_call *call, struct cm_error *err)
{
	static const char what[] = "stop a session";
	struct cm_provider *p = s->provider;
	int r = cm_provider_may(p, p->ops->session_stop != NULL, 0, what, call, err);

	if (r < 0 || !p->ops->session_stop)
		return r;
	return cm_provider_settle(p, p->ops->session_stop(s, call, err), what, err);
}

int cm_session_destroy(struct cm_session *s, const struct cm_call *call, struct cm_error *err)
{
	static const char what[] = "remove a session";
	struct cm_provider *p = s->provider;
	int r = cm_provider_may(p, p->ops->session_destroy != NULL, 0, what, call, err);

	if (r < 0 || !p->ops->session_destroy)
		return r;
	return cm_provider_settle(p, p->ops->session_destroy(s, call, err), what, err);
}

void cm_session_release(struct cm_session *s)
{
	if (s)
		s->provider->ops->session_release(s);
}

int cm_session_info(struct cm_session *s, const struct cm_call *call, struct cm_session_info *ret,
		    struct cm_error *err)
{
	static const char what[] = "look at a session";
	struct cm_provider *p = s->provider;
	int r = cm_provider_may(p, p->ops->session_info != NULL, 0, what, call, err);

	if (r < 0 || !p->ops->session_info)
		return r;
	return cm_provider_settle(p, p->ops->session_info(s, call, ret, err), what, err);
}

int cm_session_list(struct cm_provider *p, const struct cm_call *call,
		    int (*each)(void *data, const struct cm_session_info *info), void *data,
		    struct cm_error *err)
{
	static const char what[] = "list sessions";
	int r = cm_provider_may(p, p->ops->session_list != NULL, 0, what, call, err);

	/* what `each` gave up with is the caller's own, and has no message */
	if (r < 0 || !p->ops->session_list)
		return r;
	return p->ops->session_list(p, call, each, data, err);
}

int cm_session_network(struct cm_session *s, enum cm_network network, const struct cm_call *call,
		       struct cm_error *err)
{
	static const char what[] = "change the network of a session that runs";
	struct cm_provider *p = s->provider;
	int r = cm_provider_may(p, p->ops->session_network != NULL, 0, what, call, err);

	if (r < 0 || !p->ops->session_network)
		return r;
	return cm_provider_settle(p, p->ops->session_network(s, network, call, err), what, err);
}

int cm_session_snapshot(struct cm_session *s, const char *name, const struct cm_call *call,
			char **ret, struct cm_error *err)
{
	static const char what[] = "take a snapshot";
	struct cm_provider *p = s->provider;
	int r = cm_provider_may(p, p->ops->snapshot != NULL, CM_CAP_SNAPSHOT, what, call, err);

	if (r < 0 || !p->ops->snapshot)
		return r;
	return cm_provider_settle(p, p->ops->snapshot(s, name, call, ret, err), what, err);
}

int cm_session_clone(struct cm_session *s, const char *id, const struct cm_call *call,
		     struct cm_session **ret, struct cm_error *err)
{
	static const char what[] = "clone a session";
	struct cm_provider *p = s->provider;
	int r = cm_session_id_check(id, err);

	if (r == CM_OK)
		r = cm_provider_may(p, p->ops->clone != NULL, CM_CAP_CLONE, what, call, err);
	if (r < 0 || !p->ops->clone)
		return r;
	return cm_provider_settle(p, p->ops->clone(s, id, call, ret, err), what, err);
}

int cm_session_publish(struct cm_session *s, uint16_t port, const struct cm_call *call, char **ret,
		       struct cm_error *err)
{
	static const char what[] = "publish a port";
	struct cm_provider *p = s->provider;
	int r = cm_provider_may(p, p->ops->publish != NULL, CM_CAP_PUBLISH, what, call, err);

	if (r < 0 || !p->ops->publish)
		return r;
	return cm_provider_settle(p, p->ops->publish(s, port, call, ret, err), what, err);
}

int cm_template_build(struct cm_provider *p, const struct cm_template_request *request,
		      const struct cm_call *call, char **ret, struct cm_error *err)
{
	static const char what[] = "build a template";
	int r = cm_provider_may(p, p->ops->template_build != NULL, CM_CAP_TEMPLATE, what, call,
				err);

	if (r < 0 || !p->ops->template_build)
		return r;
	return cm_provider_settle(p, p->ops->template_build(p, request, call, ret, err), what, err);
}

int cm_template_list(struct cm_provider *p, const struct cm_call *call,
		     int (*each)(void *data, const char *name, const char *state), void *data,
		     struct cm_error *err)
{
	static const char what[] = "list templates";
	int r = cm_provider_may(p, p->ops->template_list != NULL, CM_CAP_TEMPLATE, what, call, err);

	if (r < 0 || !p->ops->template_list)
		return r;
	return p->ops->template_list(p, call, each, data, err);
}

int cm_template_remove(struct cm_provider *p, const char *name, const struct cm_call *call,
		       struct cm_error *err)
{
	static const char what[] = "remove a template";
	int r = cm_provider_may(p, p->ops->template_remove != NULL, CM_CAP_TEMPLATE, what, call,
				err);

	if (r < 0 || !p->ops->template_remove)
		return r;
	return cm_provider_settle(p, p->ops->template_remove(p, name, call, err), what, err);
}

void cm_session_info_clear(struct cm_session_info *info)
{
	free(info->id);
	free(info->provider_id);
	free(info->template_name);
	free(info->workdir);
	free(info->repo);
	cm_strv_clear(&info->labels);
	*info = (struct cm_session_info){ 0 };
}
