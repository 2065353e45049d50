/* SPDX-License-Identifier: Apache-2.0 */
/* Which provider has the sessions. */
#include "providers/selection.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/text.h"

static const char *const names[] = {
	[CM_PROVIDER_LOCAL] = "local",
	[CM_PROVIDER_PLATFORM] = "platform",
	[CM_PROVIDER_E2B] = "e2b",
};
_Static_assert(CM_ARRAY_SIZE(names) == CM_PROVIDER_COUNT_, "a name each");

static const struct cm_provider_variable local_variables[] = {
	{ .name = "CASEMATE_ROOT", .what = "session root" },
	{ .name = "MASTRACODE_LOCAL_SANDBOX_ROOT", .what = "the same" },
	{ .name = NULL },
};

static const struct cm_provider_variable platform_variables[] = {
	{ .name = "MASTRA_PROJECT_ID", .is_needed = true, .what = "project" },
	{ .name = "MASTRA_ENVIRONMENT_ID", .is_needed = true, .what = "environment" },
	{ .name = "MASTRA_PLATFORM_ACCESS_TOKEN", .is_needed = true, .what = "token" },
	{ .name = "MASTRA_PLATFORM_SECRET_KEY",
	  .is_needed = true,
	  .is_alternative = true,
	  .what = "the same, where there is no access token" },
	{ .name = "MASTRA_WORKSPACE_PROXY_URL", .what = "address of the service" },
	{ .name = "SANDBOX_PROVIDER", .what = "railway or e2b: who runs its sandboxes" },
	{ .name = NULL },
};

static const struct cm_provider_variable e2b_variables[] = {
	{ .name = "E2B_API_KEY", .is_needed = true, .what = "key" },
	{ .name = "E2B_DOMAIN", .what = "domain of the service" },
	{ .name = "E2B_API_URL", .what = "address of its API, with E2B_SANDBOX_URL" },
	{ .name = "E2B_SANDBOX_URL", .what = "address of its sandboxes, with E2B_API_URL" },
	{ .name = NULL },
};

const char *cm_provider_kind_name(enum cm_provider_kind kind)
{
	return names[kind];
}

const struct cm_provider_variable *cm_provider_variables(enum cm_provider_kind kind)
{
	static const struct cm_provider_variable *const of[] = {
		[CM_PROVIDER_LOCAL] = local_variables,
		[CM_PROVIDER_PLATFORM] = platform_variables,
		[CM_PROVIDER_E2B] = e2b_variables,
	};

	return of[kind];
}

static const char *trimmed(const struct cm_strv *env, const char *name, size_t *ret_len)
{
	return cm_text_trimmed(cm_strv_env_get(env, name), ret_len);
}

bool cm_provider_has_variable(const struct cm_strv *env, const char *name)
{
	size_t len;

	return trimmed(env, name, &len) != NULL;
}

static int named(const char *name, size_t len, const char *by, struct cm_selection *ret,
		 struct cm_error *err)
{
	for (unsigned int kind = 0; kind < CM_PROVIDER_COUNT_; kind++) {
		if (strlen(names[kind]) != len || memcmp(names[kind], name, len) != 0)
			continue;
		ret->kind = (enum cm_provider_kind)kind;
		(void)snprintf(ret->reason, sizeof(ret->reason), "%s names it", by);
		return CM_OK;
	}
	cm_error_set(err, CM_E_INVALID, 0, "%s names no provider: '%.*s'", by,
		     len < 100 ? (int)len : 100, name);
	cm_error_hint(err, "there are local, platform and e2b");
	return CM_E_INVALID;
}

static bool has_platform(const struct cm_strv *env)
{
	return cm_provider_has_variable(env, "MASTRA_PROJECT_ID") &&
	       cm_provider_has_variable(env, "MASTRA_ENVIRONMENT_ID") &&
	       (cm_provider_has_variable(env, "MASTRA_PLATFORM_ACCESS_TOKEN") ||
		cm_provider_has_variable(env, "MASTRA_PLATFORM_SECRET_KEY"));
}

/* Nothing chooses another one: but something may have been meant to. */
static void explain_local(const struct cm_strv *env, struct cm_selection *ret)
{
	static const char *const platform[] = { "MASTRA_PROJECT_ID", "MASTRA_ENVIRONMENT_ID",
						"MASTRA_PLATFORM_ACCESS_TOKEN",
						"MASTRA_PLATFORM_SECRET_KEY" };
	const char *why = "nothing names another one";

	for (size_t i = 0; i < CM_ARRAY_SIZE(platform); i++) {
		if (cm_provider_has_variable(env, platform[i]))
			why = "nothing names another one; of platform's variables some are "
			      "missing: 'casemate provider ls'";
	}
	if (cm_provider_has_variable(env, "FACTORY_SANDBOX_PROVIDER"))
		why = "FACTORY_SANDBOX_PROVIDER chooses 'local' or nothing; CASEMATE_PROVIDER "
		      "names any";
	(void)snprintf(ret->reason, sizeof(ret->reason), "%s", why);
}

int cm_provider_select(const struct cm_strv *env, const char *flag, struct cm_selection *ret,
		       struct cm_error *err)
{
	const char *word;
	size_t len = 0;

	*ret = (struct cm_selection){ .kind = CM_PROVIDER_LOCAL };
	if (flag)
		return named(flag, strlen(flag), "--provider", ret, err);
	word = trimmed(env, "CASEMATE_PROVIDER", &len);
	if (word)
		return named(word, len, "CASEMATE_PROVIDER", ret, err);
	word = trimmed(env, "FACTORY_SANDBOX_PROVIDER", &len);
	if (word && len == strlen("local") && memcmp(word, "local", len) == 0)
		return named(word, len, "FACTORY_SANDBOX_PROVIDER", ret, err);
	if (has_platform(env)) {
		ret->kind = CM_PROVIDER_PLATFORM;
		(void)snprintf(ret->reason, sizeof(ret->reason),
			       "MASTRA_PROJECT_ID, MASTRA_ENVIRONMENT_ID and a token are set");
	} else if (cm_provider_has_variable(env, "E2B_API_KEY")) {
		ret->kind = CM_PROVIDER_E2B;
		(void)snprintf(ret->reason, sizeof(ret->reason), "E2B_API_KEY is set");
	} else {
		explain_local(env, ret);
	}
	return CM_OK;
}
