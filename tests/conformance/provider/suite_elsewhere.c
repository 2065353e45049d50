/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a provider talks to, and what with: nobody else gets a credential. */
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/base/fd.h"
#include "tests/conformance/provider/suite.h"

static int listen_here(int *ret_port)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 8) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		cm_fd_close(&fd);
	*ret_port = ntohs(at.sin_port);
	return fd;
}

/* Nobody goes where he is sent: what he has with him is a credential. */
static void redirected(struct suite *t)
{
	static const int codes[] = { 301, 302, 303, 307, 308 };
	int port = 0;
	CM_AUTO_FD int fd = listen_here(&port);
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (!CHECK(t, fd >= 0, "a place elsewhere"))
		return;
	for (size_t i = 0; i < CM_ARRAY_SIZE(codes); i++) {
		struct cm_error err = CM_ERROR_INIT;
		struct cm_session *s = NULL;
		struct cm_call call = suite_call(SUITE_PATIENCE * 12000);
		struct cm_spec spec;
		char params[128];
		char name[64];
		int r;
		const struct fault f = { ".", ".", "redirect", -1, 0, params };

		(void)snprintf(params, sizeof(params),
			       "\"code\": %d, \"location\": \"http://127.0.0.1:%d/x\"", codes[i],
			       port);
		suite_name(t, name);
		fault_set(t, &f);
		suite_spec(t, name, &spec);
		r = cm_session_create(t->p, &spec, &call, &s, &err);
		cm_spec_clear(&spec);
		fault_clear(t);
		CHECK(t, r < 0 && err.code == r && err.msg[0] && !suite_has_secret(t, err.msg),
		      "a redirect: %s (%s)", cm_error_name(r), err.msg);
		CHECK(t, !s, "there is a session");
		CHECK(t, poll(&p, 1, 200) == 0, "%d: somebody came", codes[i]);
	}
}

/* Another address or another key than the suite's own. */
static int open_other(struct suite *t, struct cm_config *config, const char *name,
		      const char *value, struct cm_provider **ret, struct cm_error *err)
{
	const struct cm_provider_config with = { .config = config };
	int r = cm_config_init(config, err);

	if (r == CM_OK)
		r = cm_strv_env_set(&config->env, name, value);
	return r < 0 ? r : cm_provider_open(t->p->ops, &with, ret, err);
}

static int no_session(void *data, const struct cm_session_info *info)
{
	(void)data;
	(void)info;
	return 0;
}

static void wrong_key(struct suite *t)
{
	const char *name = is_e2b(t) ? "E2B_API_KEY" : "MASTRA_PLATFORM_ACCESS_TOKEN";
	const char *value = is_e2b(t) ? "e2b_fedcba9876543210" : "another-token";
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	const char *const argv[] = { "true", NULL };
	struct cm_provider *p = NULL;
	struct cm_session *s = NULL;
	struct cm_config config;
	struct outcome o;
	int r = open_other(t, &config, name, value, &p, &err);

	if (CHECK_OK(t, r, err, "another key")) {
		r = cm_session_attach(p, t->s->id, &call, &s, &err);
		/* where that asks nobody the first command does */
		if (r == CM_OK) {
			suite_run(t, s, &(const struct cm_exec_request){ .argv = suite_v(argv) },
				  &o);
			r = o.r;
			err = o.err;
			outcome_clear(&o);
		}
		cm_session_release(s);
		CHECK_CODE(t, r, err, CM_E_DENIED, "a key that is not right");
		CHECK(t, !strstr(err.msg, value) && !strstr(err.hint, value), "it is told: %s",
		      err.msg);
		r = cm_session_list(p, &call, no_session, NULL, &err);
		CHECK(t, r == CM_E_DENIED || r == CM_E_UNSUPPORTED, "list: %s", cm_error_name(r));
	}
	cm_provider_close(p);
	cm_config_clear(&config);
}

/* A key that is none, an address that is none: said at once, and nobody is asked. */
static void bad_settings(struct suite *t)
{
	static const struct {
		const char *e2b;
		const char *platform;
		const char *value;
	} bad[] = {
		{ "E2B_API_KEY", "MASTRA_PLATFORM_ACCESS_TOKEN", "" },
		{ "E2B_API_KEY", "MASTRA_PLATFORM_ACCESS_TOKEN", "has a\nline" },
		{ "E2B_API_URL", "MASTRA_WORKSPACE_PROXY_URL", "http://example.com" },
		{ "E2B_API_URL", "MASTRA_WORKSPACE_PROXY_URL", "ftp://127.0.0.1" },
		{ "E2B_API_URL", "MASTRA_WORKSPACE_PROXY_URL", "https://user:pw@127.0.0.1" },
	};
	int before = n_requests(t);

	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		const char *name = is_e2b(t) ? bad[i].e2b : bad[i].platform;
		struct cm_error err = CM_ERROR_INIT;
		struct cm_provider *p = NULL;
		struct cm_config config;
		int r = open_other(t, &config, name, bad[i].value, &p, &err);

		CHECK(t, r < 0 && err.code == r && err.msg[0] && !p, "%s='%s': %s (%s; %s)", name,
		      bad[i].value, cm_error_name(r), err.msg, err.hint);
		cm_provider_close(p);
		cm_config_clear(&config);
	}
	CHECK(t, n_requests(t) == before, "somebody was asked");
}

/* Who it is cannot be known: nothing is told to him. */
static void not_trusted(struct suite *t)
{
	const char *url = getenv("CM_TEST_TLS_URL");
	const char *name = is_e2b(t) ? "E2B_API_URL" : "MASTRA_WORKSPACE_PROXY_URL";
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_provider *p = NULL;
	struct cm_session *s = NULL;
	struct cm_config config;
	struct cm_spec spec;
	int r;

	if (!CHECK(t, url, "there is no server with TLS"))
		return;
	r = open_other(t, &config, name, url, &p, &err);
	if (CHECK_OK(t, r, err, "an address with TLS")) {
		suite_spec(t, "suite-tls", &spec);
		r = cm_session_create(p, &spec, &call, &s, &err);
		cm_spec_clear(&spec);
		CHECK_CODE(t, r, err, CM_E_REMOTE, "a certificate of nobody's");
		CHECK(t, !s, "there is a session");
	}
	cm_provider_close(p);
	cm_config_clear(&config);
}

const struct test suite_elsewhere[] = {
	{ "sent elsewhere", 0, redirected },
	{ "a key that is not right", 0, wrong_key },
	{ "settings that are none", 0, bad_settings },
	{ "a certificate of nobody's", 0, not_trusted },
	{ NULL, 0, NULL },
};
