/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which provider has the sessions, and why. Pure; no value of a variable is in what it says.
 *
 * The first of these decides:
 *
 *	--provider NAME, CASEMATE_PROVIDER      the one that is named; an unknown one is refused
 *	FACTORY_SANDBOX_PROVIDER                exactly "local": that; any other word is no choice
 *	MASTRA_PROJECT_ID, MASTRA_ENVIRONMENT_ID and one of MASTRA_PLATFORM_ACCESS_TOKEN,
 *	MASTRA_PLATFORM_SECRET_KEY              platform
 *	E2B_API_KEY                             e2b
 *	nothing                                 local
 *
 * A variable that is blank is not set. (Mastra's Factory decides by the same rule, from its third line
 * on.)
 */
#ifndef CM_PROVIDERS_SELECTION_H
#define CM_PROVIDERS_SELECTION_H

#include <stdbool.h>
#include <stddef.h>

#include "casemate/error.h"
#include "runtime/base/buf.h"

enum cm_provider_kind {
	CM_PROVIDER_LOCAL = 0,
	CM_PROVIDER_PLATFORM,
	CM_PROVIDER_E2B,
	CM_PROVIDER_COUNT_,
};

struct cm_selection {
	enum cm_provider_kind kind;
	/* "CASEMATE_PROVIDER names it" */
	char reason[200];
};

/* A variable that a provider needs or uses. */
struct cm_provider_variable {
	const char *name;
	/* this, or one of those that follow up to the next that is no alternative */
	bool is_needed;
	/* to the one before */
	bool is_alternative;
	const char *what;
};

/* flag: what --provider says; NULL: it does not. env: "NAME=value" each. */
int cm_provider_select(const struct cm_strv *env, const char *flag, struct cm_selection *ret,
		       struct cm_error *err);
/* "local", "platform", "e2b" */
const char *cm_provider_kind_name(enum cm_provider_kind kind);
/* Ends with a NULL name. */
const struct cm_provider_variable *cm_provider_variables(enum cm_provider_kind kind);
/* Is it there, and not blank? */
bool cm_provider_has_variable(const struct cm_strv *env, const char *name);

#endif
