/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/reason.h"

#include <stdbool.h>
#include <string.h>

#include "runtime/base/fd.h"

#define CHECKOUT "checkout"
#define CLONE "clone-failed"
#define EGRESS "egress-blocked"

const struct cm_reason cm_reasons[] = {
	/* in any phase: who asked for the end has it */
	{ NULL, CM_E_CANCELLED, NULL, "cancelled", NULL },
	{ NULL, CM_E_NOMEM, NULL, "no-memory", NULL },

	/* the helper of a checkout */
	{ CHECKOUT, 0, "name-unknown", EGRESS, "name" },
	{ CHECKOUT, 0, "no-connection", EGRESS, "connection" },
	{ CHECKOUT, 0, "auth-required", CLONE, "auth" },
	{ CHECKOUT, 0, "auth-refused", CLONE, "auth" },
	{ CHECKOUT, 0, "auth-in-clear", CLONE, "auth" },
	{ CHECKOUT, 0, "auth-unsupported", CLONE, "auth" },
	{ CHECKOUT, 0, "forbidden", CLONE, "auth" },
	{ CHECKOUT, 0, "key-required", CLONE, "auth" },
	{ CHECKOUT, 0, "key-refused", CLONE, "auth" },
	{ CHECKOUT, 0, "key-unusable", CLONE, "auth" },
	{ CHECKOUT, 0, "password-refused", CLONE, "auth" },
	{ CHECKOUT, 0, "agent", CLONE, "auth" },
	{ CHECKOUT, 0, "certificate", CLONE, "server-identity" },
	{ CHECKOUT, 0, "host-key", CLONE, "server-identity" },
	{ CHECKOUT, 0, "host-key-changed", CLONE, "server-identity" },
	{ CHECKOUT, 0, "host-key-revoked", CLONE, "server-identity" },
	{ CHECKOUT, 0, "host-key-kind", CLONE, "server-identity" },
	{ CHECKOUT, 0, "not-found", CLONE, "missing-repository" },
	{ CHECKOUT, 0, "redirect", CLONE, "redirect" },
	{ CHECKOUT, 0, "no-tls", CLONE, "connection" },
	{ CHECKOUT, 0, "broken-off", CLONE, "connection" },
	{ CHECKOUT, 0, "refused", CLONE, "server" },
	{ CHECKOUT, 0, "server-error", CLONE, "server" },
	{ CHECKOUT, 0, "command-refused", CLONE, "server" },
	{ CHECKOUT, 0, "not-git", CLONE, "not-a-repository" },
	{ CHECKOUT, 0, "bad-pack", CLONE, "damaged" },
	{ CHECKOUT, 0, "mirror", CLONE, "mirror" },
	/* its codes, where it has no reason: the repository is there */
	{ CHECKOUT, CM_E_CHECKOUT, "code:not-found", CLONE, "missing-branch" },
	{ CHECKOUT, CM_E_CHECKOUT, "code:unsupported", CLONE, "unsupported" },
	{ CHECKOUT, CM_E_CHECKOUT, "code:denied", CLONE, "denied" },
	{ CHECKOUT, CM_E_CHECKOUT, "code:limit", CLONE, "limit" },

	/* before it, or about it */
	{ CHECKOUT, CM_E_TIMEOUT, NULL, "hang-guard", NULL },
	{ CHECKOUT, CM_E_NOT_FOUND, NULL, CLONE, "missing-repository" },
	{ CHECKOUT, CM_E_INVALID, NULL, CLONE, "bad-address" },
	{ CHECKOUT, CM_E_DENIED, NULL, CLONE, "denied" },
	{ CHECKOUT, CM_E_UNSUPPORTED, NULL, CLONE, "unsupported" },
	{ CHECKOUT, CM_E_CHECKOUT, NULL, CLONE, NULL },

	{ "setup", CM_E_SETUP, NULL, "setup-failed", NULL },
	{ "setup", CM_E_NOT_FOUND, NULL, "setup-failed", "missing-secret" },
	{ "setup", CM_E_BUSY, NULL, "setup-failed", "session-runs" },

	{ "run", CM_E_TIMEOUT, NULL, "command-timeout", NULL },
	{ "run", CM_E_LIMIT, NULL, "command-limit", NULL },
	{ "run", CM_E_NOT_FOUND, NULL, "command-not-found", NULL },

	/* of a jail: the session's, its checkout's or its setup's */
	{ NULL, CM_E_ISOLATION, NULL, "isolation-unavailable", NULL },
	{ NULL, CM_E_LEVEL, NULL, "isolation-unavailable", "level" },
	{ "start", CM_E_UNSUPPORTED, NULL, "isolation-unavailable", "unsupported" },
	{ "start", CM_E_EXISTS, NULL, "session-differs", NULL },
	{ "start", CM_E_DENIED, NULL, "path-refused", NULL },
};

const size_t cm_n_reasons = CM_ARRAY_SIZE(cm_reasons);

static bool is_said(const char *helper, const char *reason, const char *code)
{
	if (!helper)
		return true;
	if (strncmp(helper, "code:", 5) == 0)
		return reason[0] == '\0' && strcmp(helper + 5, code) == 0;
	return strcmp(helper, reason) == 0;
}

const struct cm_reason *cm_reason_find(const char *phase, int code, const char *helper_reason,
				       const char *helper_code)
{
	static struct cm_reason other;

	for (size_t i = 0; i < cm_n_reasons; i++) {
		const struct cm_reason *row = &cm_reasons[i];

		if ((!row->phase || strcmp(row->phase, phase) == 0) &&
		    (row->code == 0 || row->code == code) &&
		    is_said(row->helper, helper_reason, helper_code))
			return row;
	}
	other = (struct cm_reason){ .name = cm_error_name(code) };
	return &other;
}
