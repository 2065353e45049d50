/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of struct cm_provider_ops, for the table. */
#ifndef CM_PROVIDERS_PLATFORM_SESSIONS_H
#define CM_PROVIDERS_PLATFORM_SESSIONS_H

#include "providers/provider.h"

int cm_platform_open(const struct cm_provider_config *config, struct cm_provider **ret,
		     struct cm_error *err);
void cm_platform_close(struct cm_provider *base);
int cm_platform_probe(struct cm_provider *p, const struct cm_call *call, uint32_t *ret_caps,
		      struct cm_error *err);

int cm_platform_create(struct cm_provider *base, const struct cm_spec *spec,
		       const struct cm_call *call, struct cm_session **ret, struct cm_error *err);
int cm_platform_attach(struct cm_provider *base, const char *id, const struct cm_call *call,
		       struct cm_session **ret, struct cm_error *err);
int cm_platform_start(struct cm_session *base, const struct cm_call *call, struct cm_error *err);
int cm_platform_stop(struct cm_session *base, const struct cm_call *call, struct cm_error *err);
int cm_platform_destroy(struct cm_session *base, const struct cm_call *call, struct cm_error *err);
void cm_platform_release(struct cm_session *base);
int cm_platform_info(struct cm_session *base, const struct cm_call *call,
		     struct cm_session_info *ret, struct cm_error *err);
int cm_platform_list(struct cm_provider *base, const struct cm_call *call,
		     int (*each)(void *data, const struct cm_session_info *info), void *data,
		     struct cm_error *err);
int cm_platform_snapshot(struct cm_session *base, const char *name, const struct cm_call *call,
			 char **ret, struct cm_error *err);
int cm_platform_clone(struct cm_session *base, const char *id, const struct cm_call *call,
		      struct cm_session **ret, struct cm_error *err);

int cm_platform_template_build(struct cm_provider *base, const struct cm_template_request *request,
			       const struct cm_call *call, char **ret, struct cm_error *err);
int cm_platform_template_list(struct cm_provider *base, const struct cm_call *call,
			      int (*each)(void *data, const char *name, const char *state),
			      void *data, struct cm_error *err);
int cm_platform_template_remove(struct cm_provider *base, const char *name,
				const struct cm_call *call, struct cm_error *err);

#endif
