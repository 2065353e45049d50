/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which addresses a configuration means. Pure.
 *
 * The service has two sides: the API, which makes sandboxes, and the agent in each of them. What goes
 * to one side of somebody's own service must not go to the cloud on the other, so half a configuration
 * is an error.
 */
#ifndef CM_PROVIDERS_E2B_PLACES_H
#define CM_PROVIDERS_E2B_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "casemate/error.h"
#include "runtime/base/buf.h"

/* where the agent listens */
#define CM_E2B_AGENT_PORT 49983

struct cm_e2b_places {
	/* without a '/' at the end */
	char *api_url;
	/* of all sandboxes; NULL: by domain */
	char *sandbox_url;
	char *domain;
};

/* E2B_DOMAIN, E2B_API_URL and E2B_SANDBOX_URL. *ret is cleared by the caller, whatever is returned. */
int cm_e2b_places_read(const struct cm_strv *env, struct cm_e2b_places *ret, struct cm_error *err);
void cm_e2b_places_clear(struct cm_e2b_places *places);
/*
 * Where the agent of a sandbox is reached. domain: what the service said of this sandbox, may be NULL.
 * The caller frees; NULL: memory.
 */
char *cm_e2b_agent_url(const struct cm_e2b_places *places, const char *domain, const char *id);
/* The same for whoever has no header that says which sandbox is meant; as above. */
char *cm_e2b_file_base(const struct cm_e2b_places *places, const char *domain, const char *id);
/* Others reach a port of the sandbox by it; as above. */
char *cm_e2b_port_url(const struct cm_e2b_places *places, const char *domain, const char *id,
		      uint16_t port);
/* A name with a port, or without: what may stand between "https://" and a '/'. */
bool cm_e2b_is_domain(const char *text);
/* 1 to 64 of a-z 0-9 */
bool cm_e2b_is_sandbox_id(const char *text);

#endif
