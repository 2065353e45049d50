/* SPDX-License-Identifier: Apache-2.0 */
/* What git in the sandbox is told by its environment, so that no argument and no file has it. */
#include <string.h>

#include "providers/remote/prepare_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/base64.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

#define SECRET_MAX (128UL * 1024)
#define HTTP_PORT 80
#define HTTPS_PORT 443

static const char *const fixed[] = {
	"GIT_TERMINAL_PROMPT=0",
	"GIT_ASKPASS=",
	"SSH_ASKPASS=",
	"GCM_INTERACTIVE=never",
	/* a repository names others, and what fetches them can be a command */
	"GIT_ALLOW_PROTOCOL=http:https:git",
	/* its messages are read */
	"LC_ALL=C",
	"LANGUAGE=C",
	"GIT_CONFIG_KEY_0=credential.helper",
	"GIT_CONFIG_VALUE_0=",
	/* a header goes wherever a redirect leads */
	"GIT_CONFIG_KEY_1=http.followRedirects",
	"GIT_CONFIG_VALUE_1=false",
};

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "no memory for git's environment");
}

/* "https://host:8443/": it is sent to that server alone. */
static char *make_scope(const struct cm_giturl *url)
{
	bool is_https = url->kind == CM_GITURL_HTTPS;
	bool is_ipv6 = strchr(url->host, ':') != NULL;
	CM_AUTO_FREE char *port = NULL;

	if (url->port != (is_https ? HTTPS_PORT : HTTP_PORT)) {
		port = cm_asprintf(":%u", url->port);
		if (!port)
			return NULL;
	}
	return cm_asprintf("%s://%s%s%s%s/", is_https ? "https" : "http", is_ipv6 ? "[" : "",
			   url->host, is_ipv6 ? "]" : "", port ? port : "");
}

static void wipe(struct cm_buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->len);
	cm_buf_clear(b);
}

static int add_header(const struct cm_giturl *url, const char *user, const char *secret,
		      struct cm_strv *env, struct cm_error *err)
{
	CM_AUTO_FREE char *scope = make_scope(url);
	/* of their full size at once, so that nothing is moved and left behind */
	CM_AUTO_BUF struct cm_buf plain = { 0 };
	CM_AUTO_BUF struct cm_buf value = { 0 };
	int r = CM_OK;

	cm_buf_init(&plain, SECRET_MAX);
	cm_buf_init(&value, SECRET_MAX);
	cm_buf_reserve(&plain, strlen(user) + strlen(secret) + 2);
	cm_buf_puts(&plain, user);
	cm_buf_putc(&plain, ':');
	cm_buf_puts(&plain, secret);
	cm_buf_reserve(&value, plain.len * 2 + 64);
	cm_buf_puts(&value, "GIT_CONFIG_VALUE_2=Authorization: Basic ");
	if (cm_buf_status(&plain) == CM_OK)
		cm_base64_encode(&value, plain.data, plain.len, true);
	if (!scope || cm_buf_status(&plain) != CM_OK || cm_buf_status(&value) != CM_OK ||
	    cm_strv_addf(env, "GIT_CONFIG_KEY_2=http.%s.extraHeader", scope) != CM_OK ||
	    cm_strv_add(env, value.data) != CM_OK)
		r = no_memory(err);
	wipe(&plain);
	wipe(&value);
	return r;
}

int cm_prep_env(const struct cm_prep *p, struct cm_strv *ret, struct cm_error *err)
{
	struct cm_strv env = { 0 };
	const char *user;
	const char *secret;
	bool has_secret = cm_config_git_credential(p->config, p->spec, &user, &secret);
	int r = CM_OK;

	for (size_t i = 0; i < CM_ARRAY_SIZE(fixed) && r == CM_OK; i++)
		r = cm_strv_add(&env, fixed[i]);
	if (r == CM_OK)
		r = cm_strv_addf(&env, "GIT_CONFIG_COUNT=%d", has_secret ? 3 : 2);
	if (r < 0)
		r = no_memory(err);
	if (r == CM_OK && has_secret)
		r = add_header(&p->url, user, secret, &env, err);
	if (r < 0)
		cm_prep_env_clear(&env);
	else
		*ret = env;
	return r;
}

void cm_prep_env_clear(struct cm_strv *env)
{
	for (size_t i = 0; i < env->n; i++)
		explicit_bzero(env->v[i], strlen(env->v[i]));
	cm_strv_clear(env);
}

/* Its length without what two ways of writing it differ by. */
static size_t bare_len(const char *path)
{
	size_t len = strlen(path);

	while (len > 0 && path[len - 1] == '/')
		len--;
	if (len > 4 && memcmp(path + len - 4, ".git", 4) == 0)
		len -= 4;
	return len;
}

bool cm_prep_same_repository(const struct cm_giturl *url, const char *other)
{
	struct cm_giturl that = { .kind = 0 };
	bool is_same = false;

	if (cm_giturl_parse(other, &that, NULL) != CM_OK)
		return false;
	if (that.host && that.path && cm_giturl_same_server(url, &that)) {
		size_t len = bare_len(url->path);

		is_same = len == bare_len(that.path) && memcmp(url->path, that.path, len) == 0;
	}
	cm_giturl_clear(&that);
	return is_same;
}
