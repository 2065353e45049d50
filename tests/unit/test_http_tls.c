/* SPDX-License-Identifier: Apache-2.0 */
/* TLS and proxies of the HTTP layer: whom it believes, and where it goes. */
#include "tests/unit/http_server.h"

/* An environment that believes the server's authority. */
static void believe(struct cm_strv *env)
{
	assert_int_equal(cm_strv_addf(env, "SSL_CERT_FILE=%s/ca.pem", server.dir), CM_OK);
}

static void add_proxy(struct cm_strv *env, const char *name, const char *user)
{
	assert_int_equal(cm_strv_addf(env, "%s=http://%s127.0.0.1:%d", name, user, server.proxy),
			 CM_OK);
}

static void certificates_are_verified(void **state)
{
	CM_AUTO_STRV struct cm_strv env = { 0 };
	const struct {
		int port;
		const char *says;
		const char *hint;
	} cases[] = {
		{ server.self, "self-signed certificate", "SSL_CERT_FILE" },
		{ server.expired, "certificate has expired", "clock" },
		{ server.name, "subject name", "address" },
		/* no TLS at all */
		{ server.http, "wrong version number", "https" },
	};
	struct cm_http_answer answer;
	struct cm_error err = CM_ERROR_INIT;
	struct cm_http *http;

	(void)state;
	believe(&env);
	http = open_http(&env);
	assert_int_equal(
		get(http, address("https", "127.0.0.1", server.tls, "/echo"), &answer, &err),
		CM_OK);
	cm_http_answer_clear(&answer);
	assert_int_equal(
		get(http, address("https", "localhost", server.tls, "/echo"), &answer, &err),
		CM_OK);
	cm_http_answer_clear(&answer);
	for (size_t i = 0; i < CM_ARRAY_SIZE(cases); i++) {
		assert_int_equal(get(http,
				     address("https", "127.0.0.1", cases[i].port, "/echo/tls"),
				     &answer, &err),
				 CM_E_REMOTE);
		assert_has(err.msg, "no trusted connection to '127.0.0.1:");
		if (!strstr(err.msg, cases[i].says))
			fail_msg("%s", err.msg);
		assert_has(err.hint, cases[i].hint);
	}
	assert_int_equal(count_of(http, "/echo/tls"), 0);
	cm_http_close(http);
}

static void only_who_is_told_to_believes(void **state)
{
	CM_AUTO_STRV struct cm_strv env = { 0 };
	struct cm_http_answer answer;
	struct cm_error err = CM_ERROR_INIT;
	struct cm_http *http = open_http(NULL);

	(void)state;
	assert_int_equal(
		get(http, address("https", "127.0.0.1", server.tls, "/echo"), &answer, &err),
		CM_E_REMOTE);
	assert_has(err.msg, "certificate");
	cm_http_close(http);
	http = NULL;
	assert_int_equal(cm_strv_add(&env, "SSL_CERT_FILE=/nonexistent/ca.pem"), CM_OK);
	assert_int_equal(cm_http_open(&(struct cm_http_options){ .env = &env }, &http, &err),
			 CM_E_INVALID);
	assert_int_equal(err.sys_errno, ENOENT);
	assert_int_equal(cm_strv_env_set(&env, "SSL_CERT_FILE", "ca.pem"), CM_OK);
	assert_int_equal(cm_http_open(&(struct cm_http_options){ .env = &env }, &http, &err),
			 CM_E_INVALID);
	assert_null(http);
	/* a file that is no certificate */
	assert_int_equal(cm_strv_env_set(&env, "SSL_CERT_FILE", "/dev/null"), CM_OK);
	http = open_http(&env);
	assert_int_equal(
		get(http, address("https", "127.0.0.1", server.tls, "/echo"), &answer, &err),
		CM_E_REMOTE);
	assert_has(err.hint, "SSL_CERT_FILE");
	cm_http_close(http);
}

static void bad_answers_under_tls_are_errors(void **state)
{
	static const char *const paths[] = { "/reset", "/cut", "/short", "/chunk-cut" };
	CM_AUTO_STRV struct cm_strv env = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_http *http;
	size_t size = 4UL * 1024 * 1024;
	char *body = calloc(1, size);

	(void)state;
	assert_non_null(body);
	believe(&env);
	http = open_http(&env);
	for (size_t i = 0; i < CM_ARRAY_SIZE(paths); i++) {
		struct cm_http_request request = {
			.method = "POST",
			.url = address("https", "127.0.0.1", server.tls, paths[i]),
			/* long enough that we still write when the server is gone: no SIGPIPE */
			.body = body,
			.body_len = i == 0 ? size : 0
		};
		struct cm_http_answer answer;

		assert_int_equal(ask(http, &request, &answer, &err), CM_E_REMOTE);
		assert_has(err.msg, "cut off");
	}
	cm_http_close(http);
	free(body);
}

static void a_stream_under_tls(void **state)
{
	CM_AUTO_STRV struct cm_strv env = { 0 };
	struct cm_http_request request = {
		.method = "GET", .url = address("https", "127.0.0.1", server.tls, "/big/20000000")
	};
	struct cm_http_stream *stream = NULL;
	struct cm_call call = within(20000);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_http_answer answer;
	struct cm_http *http;
	char buf[70000];
	size_t all = 0;
	size_t n = 0;
	int r;

	(void)state;
	believe(&env);
	http = open_http(&env);
	assert_int_equal(cm_http_stream_open(http, &request, &call, &stream, &err), CM_OK);
	/* it is paused in the middle of what TLS has decrypted */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(get(http, address("https", "127.0.0.1", server.tls, "/slow/20/3"),
				     &answer, &err),
				 CM_OK);
		cm_http_answer_clear(&answer);
	}
	while ((r = cm_http_stream_read(stream, buf, sizeof(buf), NULL, &call, &n, &err)) ==
	       CM_HTTP_DATA)
		all += n;
	assert_int_equal(r, CM_HTTP_END);
	assert_int_equal(all, 20000000);
	cm_http_stream_close(stream);
	cm_http_close(http);
}

static void talk_over(struct cm_http *http, const char *url)
{
	static const char hello[] = "GET /raw HTTP/1.1\r\nHost: x\r\n\r\n";
	struct cm_http_conn *conn = NULL;
	struct cm_call call = within(10000);
	struct cm_error err = CM_ERROR_INIT;
	char buf[100];
	char sent[16000];
	size_t all = 0;
	size_t n = 0;

	if (cm_http_connect(http, url, &call, &conn, &err) != CM_OK)
		fail_msg("%s", err.msg);
	assert_int_equal(cm_http_conn_write(conn, hello, sizeof(hello) - 1, &call, &err), CM_OK);
	assert_int_equal(cm_http_conn_read(conn, buf, sizeof(buf), NULL, &call, &n, &err),
			 CM_HTTP_DATA);
	assert_memory_equal(buf, "HTTP/1.1 101", 12);
	memset(sent, 's', sizeof(sent));
	assert_int_equal(cm_http_conn_write(conn, sent, sizeof(sent), &call, &err), CM_OK);
	/* by small pieces of what is one record of TLS */
	while (all < sizeof(sent)) {
		assert_int_equal(cm_http_conn_read(conn, buf, sizeof(buf), NULL, &call, &n, &err),
				 CM_HTTP_DATA);
		all += n;
	}
	assert_int_equal(all, sizeof(sent));
	cm_http_conn_close(conn);
}

static void a_connection_under_tls(void **state)
{
	CM_AUTO_STRV struct cm_strv env = { 0 };
	struct cm_http_conn *conn = NULL;
	struct cm_call call = within(5000);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_http *http;

	(void)state;
	believe(&env);
	http = open_http(&env);
	talk_over(http, address("wss", "127.0.0.1", server.tls, "/x"));
	assert_int_equal(cm_http_connect(http, address("wss", "127.0.0.1", server.self, "/"), &call,
					 &conn, &err),
			 CM_E_REMOTE);
	assert_has(err.msg, "self-signed");
	assert_null(conn);
	cm_http_close(http);
}

/* What the proxy was asked for, as JSON; to be freed. */
static char *proxied(void)
{
	struct cm_http *http = open_http(NULL);
	struct cm_http_answer answer;
	char *text;

	assert_int_equal(get(http, at("/proxied"), &answer, NULL), CM_OK);
	text = cm_strdup(answer.body.data);
	assert_non_null(text);
	cm_http_answer_clear(&answer);
	cm_http_close(http);
	return text;
}

static void the_given_environment_decides_on_proxies(void **state)
{
	static const char *const headers[] = { "X-API-Key: secret", NULL };
	CM_AUTO_STRV struct cm_strv env = { 0 };
	CM_AUTO_FREE char *seen = NULL;
	struct cm_http_request request = { .method = "GET",
					   .url = "https://example.test/echo",
					   .headers = headers };
	struct cm_http_answer answer;
	struct cm_error err = CM_ERROR_INIT;
	struct cm_http *http;

	(void)state;
	believe(&env);
	add_proxy(&env, "https_proxy", "user:pass@");
	add_proxy(&env, "http_proxy", "");
	http = open_http(&env);
	if (ask(http, &request, &answer, &err) != CM_OK)
		fail_msg("%s", err.msg);
	assert_has(answer.body.data, "secret");
	assert_null(cm_http_header(&answer, "x-of-the-proxy"));
	cm_http_answer_clear(&answer);
	talk_over(http, "wss://example.test/");
	/* loopback is on this side of it */
	assert_int_equal(
		get(http, address("https", "localhost", server.tls, "/echo"), &answer, &err),
		CM_OK);
	cm_http_answer_clear(&answer);
	assert_int_equal(get(http, at("/echo"), &answer, &err), CM_OK);
	cm_http_answer_clear(&answer);
	seen = proxied();
	assert_has(seen, "CONNECT example.test:443 HTTP/1.1");
	assert_has(seen, "Proxy-Authorization: Basic dXNlcjpwYXNz");
	assert_has_not(seen, "secret");
	assert_has_not(seen, "localhost");
	assert_has_not(seen, "127.0.0.1");

	/* a proxy that refuses is asked once, and its password is not shown */
	request.url = "https://denied.test/";
	assert_int_equal(ask(http, &request, &answer, &err), CM_E_REMOTE);
	assert_has(err.msg, "403");
	assert_has_not(err.msg, "pass");
	cm_http_close(http);
	free(seen);
	seen = proxied();
	assert_has(seen, "CONNECT denied.test:443");
	assert_has_not(strstr(seen, "CONNECT denied.test:443") + 1, "CONNECT denied.test:443");
}

static void no_proxy_and_other_environments_go_past_it(void **state)
{
	CM_AUTO_STRV struct cm_strv env = { 0 };
	CM_AUTO_FREE char *seen = NULL;
	/* this machine, but not by a name of loopback: the server is there, and has another name */
	struct cm_http_request request = { .method = "GET",
					   .url = address("https", "0.0.0.0", server.tls, "/") };
	struct cm_http_answer answer;
	struct cm_error err = CM_ERROR_INIT;
	struct cm_call call = within(3000);
	struct cm_http *http;
	char url[64];

	(void)state;
	believe(&env);
	/* that of this process is another */
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d", server.proxy);
	assert_int_equal(setenv("https_proxy", url, 1), 0);
	assert_int_equal(setenv("ALL_PROXY", url, 1), 0);
	http = open_http(&env);
	assert_int_equal(cm_http_send(http, &request, &call, &answer, &err), CM_E_REMOTE);
	assert_has(err.msg, "subject name");
	cm_http_close(http);
	assert_int_equal(unsetenv("https_proxy"), 0);
	assert_int_equal(unsetenv("ALL_PROXY"), 0);

	add_proxy(&env, "https_proxy", "");
	assert_int_equal(cm_strv_add(&env, "no_proxy=0.0.0.0"), CM_OK);
	http = open_http(&env);
	call = within(3000);
	assert_int_equal(cm_http_send(http, &request, &call, &answer, &err), CM_E_REMOTE);
	assert_has(err.msg, "subject name");
	cm_http_close(http);
	seen = proxied();
	assert_has_not(seen, "0.0.0.0");

	/* what no proxy's address can be is not shown, since it may have a password */
	cm_strv_clear(&env);
	assert_int_equal(cm_strv_add(&env, "https_proxy=nonsense://user:pass@127.0.0.1"), CM_OK);
	http = open_http(&env);
	call = within(3000);
	assert_int_equal(cm_http_send(http, &request, &call, &answer, &err), CM_E_REMOTE);
	assert_has_not(err.msg, "pass");
	assert_has(err.hint, "https_proxy");
	cm_http_close(http);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(certificates_are_verified),
		cmocka_unit_test(only_who_is_told_to_believes),
		cmocka_unit_test(bad_answers_under_tls_are_errors),
		cmocka_unit_test(a_stream_under_tls),
		cmocka_unit_test(a_connection_under_tls),
		cmocka_unit_test(the_given_environment_decides_on_proxies),
		cmocka_unit_test(no_proxy_and_other_environments_go_past_it),
	};

	return cmocka_run_group_tests(tests, server_setup, server_teardown);
}
