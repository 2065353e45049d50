/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/e2b/places.h"

#include <stdlib.h>
#include <string.h>

#include "providers/http.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

#define USUAL_DOMAIN "e2b.app"
#define DOMAIN_MAX 253
#define SANDBOX_ID_MAX 64

bool cm_e2b_is_domain(const char *text)
{
	size_t len = strlen(text);

	if (len == 0 || len > DOMAIN_MAX || text[0] == '.' || text[0] == '-' || text[0] == ':')
		return false;
	return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:") ==
	       len;
}

bool cm_e2b_is_sandbox_id(const char *text)
{
	size_t len = strlen(text);

	return len > 0 && len <= SANDBOX_ID_MAX &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789") == len;
}

/* What a variable has, without blanks around it; NULL where that is nothing. */
static int value_of(const struct cm_strv *env, const char *name, char **ret)
{
	size_t len;
	const char *value = cm_text_trimmed(cm_strv_env_get(env, name), &len);

	*ret = NULL;
	if (!value)
		return CM_OK;
	*ret = cm_asprintf("%.*s", (int)len, value);
	return *ret ? CM_OK : CM_E_NOMEM;
}

static int url_of(const struct cm_strv *env, const char *name, char **ret, struct cm_error *err)
{
	size_t len;
	int r = value_of(env, name, ret);

	if (r < 0)
		return cm_error_set(err, r, 0, "no memory for '%s'", name);
	if (!*ret)
		return CM_OK;
	r = cm_http_check_url(*ret, name, err);
	len = strlen(*ret);
	while (len > 0 && (*ret)[len - 1] == '/')
		(*ret)[--len] = '\0';
	return r;
}

static int domain_of(const struct cm_strv *env, char **ret, struct cm_error *err)
{
	int r = value_of(env, "E2B_DOMAIN", ret);

	if (r < 0)
		return cm_error_set(err, r, 0, "no memory for 'E2B_DOMAIN'");
	if (!*ret || cm_e2b_is_domain(*ret))
		return CM_OK;
	(void)cm_error_set(err, CM_E_INVALID, 0, "'E2B_DOMAIN' is not the name of a domain");
	cm_error_hint(err, "set it to a name such as 'e2b.app', without https:// and path");
	return CM_E_INVALID;
}

/* The debug mode of E2B's own clients has fixed ports of this machine, and makes no sandbox. */
static int check_debug(const struct cm_strv *env, struct cm_error *err)
{
	CM_AUTO_FREE char *value = NULL;

	if (value_of(env, "E2B_DEBUG", &value) < 0)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for 'E2B_DEBUG'");
	if (!value || strcasecmp(value, "true") != 0)
		return CM_OK;
	(void)cm_error_set(err, CM_E_UNSUPPORTED, 0,
			   "'E2B_DEBUG' is set, and there is no such mode");
	cm_error_hint(err, "unset it; a service of this machine is named by E2B_API_URL and "
			   "E2B_SANDBOX_URL");
	return CM_E_UNSUPPORTED;
}

static int half(const char *has, const char *lacks, const char *what, struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_INVALID, 0, "'%s' is set, and '%s' is not: %s would go to %s",
			   has, lacks, what, USUAL_DOMAIN);
	cm_error_hint(err, "set %s too; it may be the same address", lacks);
	return CM_E_INVALID;
}

int cm_e2b_places_read(const struct cm_strv *env, struct cm_e2b_places *ret, struct cm_error *err)
{
	int r;

	*ret = (struct cm_e2b_places){ 0 };
	r = check_debug(env, err);
	if (r == CM_OK)
		r = domain_of(env, &ret->domain, err);
	if (r == CM_OK)
		r = url_of(env, "E2B_API_URL", &ret->api_url, err);
	if (r == CM_OK)
		r = url_of(env, "E2B_SANDBOX_URL", &ret->sandbox_url, err);
	if (r < 0)
		return r;
	/* whoever names the domain has said where the other side is */
	if (!ret->domain && ret->api_url && !ret->sandbox_url)
		return half("E2B_API_URL", "E2B_SANDBOX_URL", "commands and files", err);
	if (!ret->domain && ret->sandbox_url && !ret->api_url)
		return half("E2B_SANDBOX_URL", "E2B_API_URL", "the key", err);
	if (!ret->domain)
		ret->domain = cm_strdup(USUAL_DOMAIN);
	if (ret->domain && !ret->api_url) {
		ret->api_url = cm_asprintf("https://api.%s", ret->domain);
		if (ret->api_url)
			return cm_http_check_url(ret->api_url, "E2B_DOMAIN", err);
	}
	return ret->domain && ret->api_url
		       ? CM_OK
		       : cm_error_set(err, CM_E_NOMEM, 0, "no memory for an address");
}

void cm_e2b_places_clear(struct cm_e2b_places *places)
{
	free(places->api_url);
	free(places->sandbox_url);
	free(places->domain);
	*places = (struct cm_e2b_places){ 0 };
}

/* There, one name serves all sandboxes, which headers tell apart. */
static bool has_shared_name(const char *domain)
{
	static const char *const names[] = { "e2b.app", "e2b.dev", "e2b.pro", "e2b-staging.dev" };

	for (size_t i = 0; i < CM_ARRAY_SIZE(names); i++) {
		if (strcmp(domain, names[i]) == 0)
			return true;
	}
	return false;
}

char *cm_e2b_agent_url(const struct cm_e2b_places *places, const char *domain, const char *id)
{
	if (places->sandbox_url)
		return cm_strdup(places->sandbox_url);
	if (!domain)
		domain = places->domain;
	if (has_shared_name(domain))
		return cm_asprintf("https://sandbox.%s", domain);
	return cm_asprintf("https://%d-%s.%s", CM_E2B_AGENT_PORT, id, domain);
}

char *cm_e2b_file_base(const struct cm_e2b_places *places, const char *domain, const char *id)
{
	if (places->sandbox_url)
		return cm_strdup(places->sandbox_url);
	return cm_e2b_port_url(places, domain, id, CM_E2B_AGENT_PORT);
}

char *cm_e2b_port_url(const struct cm_e2b_places *places, const char *domain, const char *id,
		      uint16_t port)
{
	return cm_asprintf("https://%u-%s.%s", (unsigned int)port, id,
			   domain ? domain : places->domain);
}
