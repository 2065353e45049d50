/* SPDX-License-Identifier: Apache-2.0 */
/* The provider as an object: opened, closed, and what its parts need of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/platform/platform_internal.h"
#include "providers/platform/sessions.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"

struct cm_platform *cm_platform_of(struct cm_provider *p)
{
	return (struct cm_platform *)(void *)p;
}

void cm_platform_close(struct cm_provider *base)
{
	struct cm_platform *p = cm_platform_of(base);

	cm_http_close(p->http);
	cm_free_secret(&p->authorization);
	cm_platform_settings_clear(&p->settings);
	free(p);
}

static int fill(struct cm_platform *p, const struct cm_provider_config *config,
		struct cm_error *err)
{
	const struct cm_http_options options = {
		.env = &config->config->env,
		.trace = config->trace,
		.data = config->data,
	};
	int r = cm_platform_settings_read(&config->config->env, &p->settings, err);

	if (r < 0)
		return r;
	p->base.ops = &cm_platform_ops;
	p->base.config = *config;
	p->base.caps = cm_platform_ops.caps;
	p->authorization = cm_asprintf("authorization: Bearer %s", p->settings.token);
	if (!p->authorization)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the platform");
	return cm_http_open(&options, &p->http, err);
}

int cm_platform_open(const struct cm_provider_config *config, struct cm_provider **ret,
		     struct cm_error *err)
{
	struct cm_platform *p = cm_calloc(1, sizeof(*p));
	int r;

	if (!p)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the platform");
	r = fill(p, config, err);
	if (r < 0) {
		cm_platform_close(&p->base);
		return r;
	}
	*ret = &p->base;
	return CM_OK;
}

/* What can be done is known: a request would have to make something, and name it. */
int cm_platform_probe(struct cm_provider *p, const struct cm_call *call, uint32_t *ret_caps,
		      struct cm_error *err)
{
	(void)call;
	(void)err;
	*ret_caps = p->ops->caps;
	return CM_OK;
}
