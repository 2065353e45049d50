/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/platform/settings.h"

#include <stdlib.h>
#include <string.h>

#include "providers/http.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

#define DEFAULT_URL "https://workspaces.mastra.ai"
#define URL_VARIABLE "MASTRA_WORKSPACE_PROXY_URL"
#define PROVIDER_VARIABLE "SANDBOX_PROVIDER"

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the platform's settings");
}

/* *ret: NULL where the variable is not set, or blank. */
static int read_trimmed(const struct cm_strv *env, const char *name, char **ret,
			struct cm_error *err)
{
	size_t len;
	const char *s = cm_text_trimmed(cm_strv_env_get(env, name), &len);

	*ret = NULL;
	if (!s)
		return CM_OK;
	*ret = cm_asprintf("%.*s", (int)len, s);
	return *ret ? CM_OK : no_memory(err);
}

static int read_required(const struct cm_strv *env, const char *name, char **ret,
			 struct cm_error *err)
{
	int r = read_trimmed(env, name, ret, err);

	if (r < 0 || *ret)
		return r;
	cm_error_set(err, CM_E_INVALID, 0, "%s is required", name);
	cm_error_hint(err, "set %s: the platform shows it with the project", name);
	return CM_E_INVALID;
}

static int read_token(const struct cm_strv *env, char **ret, struct cm_error *err)
{
	static const char *const names[] = { "MASTRA_PLATFORM_ACCESS_TOKEN",
					     "MASTRA_PLATFORM_SECRET_KEY" };

	for (size_t i = 0; i < CM_ARRAY_SIZE(names); i++) {
		int r = read_trimmed(env, names[i], ret, err);

		if (r < 0)
			return r;
		if (!*ret)
			continue;
		/* it becomes part of a header */
		for (const char *s = *ret; *s; s++) {
			if (*s > ' ' && *s <= '~')
				continue;
			cm_error_set(err, CM_E_INVALID, 0, "%s has a character that no token has",
				     names[i]);
			cm_error_hint(err, "set %s to the token alone, in one line", names[i]);
			return CM_E_INVALID;
		}
		return CM_OK;
	}
	cm_error_set(err, CM_E_INVALID, 0, "%s is required", names[0]);
	cm_error_hint(err, "set %s, or %s", names[0], names[1]);
	return CM_E_INVALID;
}

static int read_url(const struct cm_strv *env, char **ret, struct cm_error *err)
{
	int r = read_trimmed(env, URL_VARIABLE, ret, err);
	size_t len;

	if (r < 0)
		return r;
	if (!*ret)
		*ret = cm_strdup(DEFAULT_URL);
	if (!*ret)
		return no_memory(err);
	r = cm_http_check_url(*ret, URL_VARIABLE, err);
	len = strlen(*ret);
	if (r == CM_OK && len > 0 && (*ret)[len - 1] == '/')
		(*ret)[len - 1] = '\0';
	return r;
}

static int read_provider(const struct cm_strv *env, bool *ret_is_e2b, struct cm_error *err)
{
	CM_AUTO_FREE char *name = NULL;
	int r = read_trimmed(env, PROVIDER_VARIABLE, &name, err);

	if (r < 0)
		return r;
	if (name && strcmp(name, "railway") != 0 && strcmp(name, "e2b") != 0) {
		cm_error_set(err, CM_E_INVALID, 0,
			     "SANDBOX_PROVIDER must be either \"railway\" or \"e2b\"");
		cm_error_hint(err, "unset SANDBOX_PROVIDER: then it is railway");
		return CM_E_INVALID;
	}
	*ret_is_e2b = name && strcmp(name, "e2b") == 0;
	return CM_OK;
}

int cm_platform_settings_read(const struct cm_strv *env, struct cm_platform_settings *ret,
			      struct cm_error *err)
{
	struct cm_platform_settings s = { 0 };
	int r = read_provider(env, &s.is_e2b, err);

	if (r == CM_OK)
		r = read_required(env, "MASTRA_PROJECT_ID", &s.project, err);
	if (r == CM_OK)
		r = read_required(env, "MASTRA_ENVIRONMENT_ID", &s.environment, err);
	if (r == CM_OK)
		r = read_token(env, &s.token, err);
	if (r == CM_OK)
		r = read_url(env, &s.url, err);
	if (r == CM_OK)
		*ret = s;
	else
		cm_platform_settings_clear(&s);
	return r;
}

bool cm_platform_settings_allow(const struct cm_platform_settings *settings, const char *url)
{
	return !cm_http_is_loopback(url) || cm_http_is_loopback(settings->url);
}

void cm_platform_settings_clear(struct cm_platform_settings *settings)
{
	free(settings->url);
	free(settings->project);
	free(settings->environment);
	cm_free_secret(&settings->token);
	*settings = (struct cm_platform_settings){ 0 };
}

void cm_platform_settings_url(const struct cm_platform_settings *settings, bool has_provider,
			      const char *path, struct cm_buf *out)
{
	cm_buf_printf(out, "%s/v1/", settings->url);
	if (has_provider)
		cm_buf_puts(out, settings->is_e2b ? "e2b/" : "railway/");
	cm_buf_puts(out, "projects/");
	cm_http_escape(out, settings->project);
	cm_buf_puts(out, path);
}
