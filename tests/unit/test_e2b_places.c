/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses a configuration of E2B means, which are refused; and what is found there. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "providers/e2b/e2b_internal.h"
#include "runtime/base/fd.h"
#include "runtime/spec/keys.h"
#include "tests/unit/test_base.h"

#define ID "i7piecou5rpm8e43pyg66"

struct row {
	/* what the variables are; NULL: not set */
	const char *domain;
	const char *api_url;
	const char *sandbox_url;
	/* what the service says of the sandbox */
	const char *told;
	/* what comes of it */
	const char *api;
	const char *agent;
	const char *port;
	/* of a file's address; NULL: as the agent */
	const char *file;
};

static const struct row rows[] = {
	{ NULL, NULL, NULL, NULL, "https://api.e2b.app", "https://sandbox.e2b.app",
	  "https://3000-" ID ".e2b.app", "https://49983-" ID ".e2b.app" },
	{ "my.dev", NULL, NULL, NULL, "https://api.my.dev", "https://49983-" ID ".my.dev",
	  "https://3000-" ID ".my.dev", NULL },
	{ "e2b.dev", NULL, NULL, NULL, "https://api.e2b.dev", "https://sandbox.e2b.dev",
	  "https://3000-" ID ".e2b.dev", "https://49983-" ID ".e2b.dev" },
	{ NULL, NULL, NULL, "other.dev", "https://api.e2b.app", "https://49983-" ID ".other.dev",
	  "https://3000-" ID ".other.dev", NULL },
	{ NULL, "http://127.0.0.1:3939", "http://127.0.0.1:3939", "localhost:3939",
	  "http://127.0.0.1:3939", "http://127.0.0.1:3939", "https://3000-" ID ".localhost:3939",
	  NULL },
	{ NULL, "http://127.0.0.1:3939/", " http://127.0.0.1:4040/x/ ", NULL,
	  "http://127.0.0.1:3939", "http://127.0.0.1:4040/x", "https://3000-" ID ".e2b.app", NULL },
	/* the pair is not disturbed by a domain */
	{ "my.dev", "https://api.one", "https://box.one", NULL, "https://api.one",
	  "https://box.one", "https://3000-" ID ".my.dev", NULL },
	/* who names the domain says where the other side is */
	{ "my.dev", "https://api.one", NULL, NULL, "https://api.one", "https://49983-" ID ".my.dev",
	  "https://3000-" ID ".my.dev", NULL },
	/* blanks and nothing are nothing */
	{ "  ", "", NULL, NULL, "https://api.e2b.app", "https://sandbox.e2b.app",
	  "https://3000-" ID ".e2b.app", "https://49983-" ID ".e2b.app" },
};

static void set(struct cm_strv *env, const char *name, const char *value)
{
	if (value)
		assert_int_equal(cm_strv_env_set(env, name, value), CM_OK);
}

static void fill(struct cm_strv *env, const char *domain, const char *api, const char *sandbox)
{
	set(env, "E2B_DOMAIN", domain);
	set(env, "E2B_API_URL", api);
	set(env, "E2B_SANDBOX_URL", sandbox);
}

static void assert_text(char *text, const char *expected)
{
	assert_non_null(text);
	assert_string_equal(text, expected);
	free(text);
}

static void test_matrix(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];
		CM_AUTO_STRV struct cm_strv env = { 0 };
		struct cm_error err = CM_ERROR_INIT;
		struct cm_e2b_places places;

		fill(&env, row->domain, row->api_url, row->sandbox_url);
		if (cm_e2b_places_read(&env, &places, &err) != CM_OK)
			fail_msg("row %zu: %s", i, err.msg);
		assert_string_equal(places.api_url, row->api);
		assert_text(cm_e2b_agent_url(&places, row->told, ID), row->agent);
		assert_text(cm_e2b_port_url(&places, row->told, ID, 3000), row->port);
		assert_text(cm_e2b_file_base(&places, row->told, ID),
			    row->file ? row->file : row->agent);
		cm_e2b_places_clear(&places);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *domain;
		const char *api_url;
		const char *sandbox_url;
		const char *debug;
		/* of the message or the hint */
		const char *names;
	} bad[] = {
		/* half of a pair would have the other half go to the cloud */
		{ NULL, "http://127.0.0.1:3939", NULL, NULL, "E2B_SANDBOX_URL" },
		{ NULL, "https://api.mine.dev", " ", NULL, "E2B_SANDBOX_URL" },
		{ NULL, NULL, "http://127.0.0.1:3939", NULL, "E2B_API_URL" },
		{ NULL, "http://10.0.0.1:3939", "http://127.0.0.1:3939", NULL, "E2B_API_URL" },
		{ NULL, "http://127.0.0.1:3939", "ftp://127.0.0.1", NULL, "E2B_SANDBOX_URL" },
		{ NULL, "https://u:p@host", "https://host", NULL, "E2B_API_URL" },
		{ "https://e2b.app", NULL, NULL, NULL, "E2B_DOMAIN" },
		{ "e2b.app/x", NULL, NULL, NULL, "E2B_DOMAIN" },
		{ "u@e2b.app", NULL, NULL, NULL, "E2B_DOMAIN" },
		{ ".app", NULL, NULL, NULL, "E2B_DOMAIN" },
		{ NULL, NULL, NULL, "true", "E2B_DEBUG" },
		{ NULL, NULL, NULL, "TRUE", "E2B_DEBUG" },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		CM_AUTO_STRV struct cm_strv env = { 0 };
		struct cm_error err = CM_ERROR_INIT;
		struct cm_e2b_places places;
		int r;

		fill(&env, bad[i].domain, bad[i].api_url, bad[i].sandbox_url);
		set(&env, "E2B_DEBUG", bad[i].debug);
		r = cm_e2b_places_read(&env, &places, &err);
		if (r == CM_OK)
			fail_msg("row %zu is taken", i);
		assert_int_equal(r, err.code);
		if (!strstr(err.msg, bad[i].names) && !strstr(err.hint, bad[i].names))
			fail_msg("row %zu: '%s', '%s'", i, err.msg, err.hint);
		assert_true(err.hint[0] != '\0');
		cm_e2b_places_clear(&places);
	}
}

static void test_debug_off(void **state)
{
	CM_AUTO_STRV struct cm_strv env = { 0 };
	struct cm_e2b_places places;

	(void)state;
	set(&env, "E2B_DEBUG", "false");
	assert_int_equal(cm_e2b_places_read(&env, &places, NULL), CM_OK);
	cm_e2b_places_clear(&places);
}

static void test_names(void **state)
{
	(void)state;
	assert_true(cm_e2b_is_sandbox_id(ID));
	assert_false(cm_e2b_is_sandbox_id(""));
	assert_false(cm_e2b_is_sandbox_id("a-b"));
	assert_false(cm_e2b_is_sandbox_id("A"));
	assert_false(cm_e2b_is_sandbox_id("a/../b"));
	assert_true(cm_e2b_is_domain("localhost:3939"));
	assert_false(cm_e2b_is_domain("a b"));
	assert_false(cm_e2b_is_domain("a\r\nX: y"));
	assert_false(cm_e2b_is_domain("a?b"));
}

/* --- an address where no such service is -------------------------------------------------------- */

/* Answers n requests as a server that has nothing there. */
static int serve_nothing(int listen_fd, int n)
{
	static const char answer[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n"
				     "Connection: close\r\n\r\nnone";
	char bytes[4096];

	for (; n > 0; n--) {
		int fd = accept(listen_fd, NULL, NULL);

		if (fd < 0 || read(fd, bytes, sizeof(bytes)) <= 0 ||
		    write(fd, answer, sizeof(answer) - 1) != (ssize_t)sizeof(answer) - 1)
			return 1;
		(void)close(fd);
	}
	return 0;
}

static uint16_t begin_nothing(int n, pid_t *ret)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	*ret = fork_child();
	if (*ret == 0)
		_exit(serve_nothing(fd, n));
	(void)close(fd);
	return ntohs(at.sin_port);
}

/* It is the service that is missing, and no session; and the error says why. */
static void test_no_service(void **state)
{
	const struct cm_call call = { .deadline_ms = INT64_MAX, .cancel_fd = -1 };
	struct cm_config config = { .cwd = NULL };
	const struct cm_provider_config of = { .config = &config };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_provider *p = NULL;
	struct cm_session *s = NULL;
	CM_AUTO_FREE char *url = NULL;
	int status = -1;
	pid_t pid = -1;

	(void)state;
	url = cm_asprintf("http://127.0.0.1:%u", (unsigned int)begin_nothing(2, &pid));
	set(&config.env, "E2B_API_KEY", "e2b_0a");
	set(&config.env, "E2B_API_URL", url);
	set(&config.env, "E2B_SANDBOX_URL", url);
	assert_int_equal(cm_provider_open(&cm_e2b_ops, &of, &p, &err), CM_OK);
	assert_int_equal(cm_session_attach(p, "there", &call, &s, &err), CM_E_REMOTE);
	assert_int_equal(err.code, CM_E_REMOTE);
	assert_non_null(strstr(err.msg, "404"));
	cm_error_clear(&err);
	assert_int_equal(cm_e2b_probe(p, &call, &(uint32_t){ 0 }, &err), CM_E_NOT_FOUND);
	assert_int_equal(err.code, CM_E_NOT_FOUND);
	cm_provider_close(p);
	cm_strv_clear(&config.env);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* --- what a session was made with ----------------------------------------------------------------- */

static void read_row(const char *json, struct cm_e2b_found *ret)
{
	struct cm_json_doc *doc = NULL;

	assert_int_equal(cm_json_parse(json, strlen(json), "row", 0, &doc, NULL), CM_OK);
	assert_int_equal(cm_e2b_found_read(cm_json_root(doc), ret), CM_OK);
	cm_json_free(doc);
}

static void test_row(void **state)
{
	struct cm_e2b_found found;

	(void)state;
	read_row("{\"sandboxID\":\"" ID "\",\"templateID\":\"t1\",\"alias\":\"base\","
		 "\"state\":\"running\",\"startedAt\":\"1970-01-01T00:00:02Z\",\"metadata\":{"
		 "\"casemate-user\":\"root\",\"casemate-workdir\":\"/tmp\","
		 "\"casemate-template\":\"mine\",\"casemate-idle\":\"60\"}}",
		 &found);
	assert_string_equal(found.sandbox_id, ID);
	assert_string_equal(found.template_id, "t1");
	assert_string_equal(found.alias, "base");
	assert_string_equal(found.template_name, "mine");
	assert_string_equal(found.workdir, "/tmp");
	assert_true(found.is_root);
	assert_true(found.is_running);
	assert_int_equal(found.started_ms, 2000);
	assert_int_equal(found.idle_s, 60);
	cm_e2b_found_clear(&found);
	/* made by others */
	read_row("{\"sandboxID\":\"" ID "\",\"state\":\"paused\",\"metadata\":{"
		 "\"casemate-user\":\"admin\",\"casemate-workdir\":\"tmp\"}}",
		 &found);
	assert_null(found.workdir);
	assert_null(found.alias);
	assert_false(found.is_root);
	assert_false(found.is_running);
	cm_e2b_found_clear(&found);
}

static void test_adopt(void **state)
{
	static const struct {
		bool is_asked;
		enum cm_user user;
		bool is_root;
		int r;
	} cases[] = {
		{ false, CM_USER_ROOT, false, CM_OK },
		{ false, CM_USER_USER, true, CM_OK },
		{ true, CM_USER_ROOT, true, CM_OK },
		{ true, CM_USER_USER, false, CM_OK },
		{ true, CM_USER_ROOT, false, CM_E_EXISTS },
		{ true, CM_USER_USER, true, CM_E_EXISTS },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(cases); i++) {
		const struct cm_e2b_found found = { .is_root = cases[i].is_root };
		const struct cm_spec spec = { .user = cases[i].user,
					      .asked = cases[i].is_asked
							       ? UINT64_C(1) << CM_KEY_USER
							       : 0 };
		struct cm_error err = CM_ERROR_INIT;

		assert_int_equal(cm_e2b_adopt_check("s", &spec, &found, &err), cases[i].r);
		assert_int_equal(err.code, cases[i].r);
		if (cases[i].r < 0)
			assert_non_null(strstr(err.msg, "made with another --user"));
	}
}

/* No label of a user's own is one that a session is read by. */
static void test_keys(void **state)
{
	(void)state;
	assert_true(cm_e2b_is_our_key(CM_E2B_KEY_ID));
	assert_true(cm_e2b_is_our_key(CM_E2B_KEY_USER));
	assert_true(cm_e2b_is_our_key(CM_E2B_KEY_WORKDIR));
	assert_true(cm_e2b_is_our_key(CM_E2B_KEY_TEMPLATE));
	assert_false(cm_e2b_is_our_key("casemate-users"));
	assert_false(cm_e2b_is_our_key(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matrix),	   cmocka_unit_test(test_refused),
		cmocka_unit_test(test_debug_off),  cmocka_unit_test(test_names),
		cmocka_unit_test(test_no_service), cmocka_unit_test(test_row),
		cmocka_unit_test(test_adopt),	   cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
