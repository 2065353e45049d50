/* SPDX-License-Identifier: Apache-2.0 */
/* What the caller's environment says of the platform, trimmed and checked. No system calls. */
#ifndef CM_PROVIDERS_PLATFORM_SETTINGS_H
#define CM_PROVIDERS_PLATFORM_SETTINGS_H

#include <stdbool.h>

#include "casemate/error.h"
#include "runtime/base/buf.h"

struct cm_platform_settings {
	/* of the workspace proxy, without a '/' at its end */
	char *url;
	char *project;
	char *environment;
	/* a secret */
	char *token;
	/* SANDBOX_PROVIDER; else railway */
	bool is_e2b;
};
int cm_platform_settings_read(const struct cm_strv *env, struct cm_platform_settings *ret,
			      struct cm_error *err);
/* May an address that the platform answers with be followed? None of this machine, unless it is here. */
bool cm_platform_settings_allow(const struct cm_platform_settings *settings, const char *url);
void cm_platform_settings_clear(struct cm_platform_settings *settings);
/*
 * Appends the address of a path below the project. has_provider: by the routes that name the
 * provider, which templates and e2b have; else by those from before there was more than one.
 */
void cm_platform_settings_url(const struct cm_platform_settings *settings, bool has_provider,
			      const char *path, struct cm_buf *out);

#endif
