/* SPDX-License-Identifier: Apache-2.0 */
/* The platform's settings, commands and answers: texts in, texts out. */
#include <signal.h>

#include "providers/platform/answers.h"
#include "providers/platform/command.h"
#include "providers/platform/settings.h"
#include "tests/unit/test_base.h"

/* --- settings -------------------------------------------------------------------------------- */

#define VARIABLES_MAX 8
#define PROJECT "MASTRA_PROJECT_ID=proj/1 x"
#define ENVIRONMENT "MASTRA_ENVIRONMENT_ID=env1"
#define TOKEN "MASTRA_PLATFORM_ACCESS_TOKEN=access"
#define SECRET "MASTRA_PLATFORM_SECRET_KEY=secret"

static int read_settings(const char *const *variables, struct cm_platform_settings *ret,
			 struct cm_error *err)
{
	CM_AUTO_STRV struct cm_strv env = { 0 };

	for (size_t i = 0; i < VARIABLES_MAX && variables[i]; i++)
		assert_int_equal(cm_strv_add(&env, variables[i]), CM_OK);
	cm_error_clear(err);
	return cm_platform_settings_read(&env, ret, err);
}

static void test_settings(void **state)
{
	static const struct {
		const char *variables[VARIABLES_MAX];
		const char *token;
		const char *url;
		bool is_e2b;
	} rows[] = {
		{ { PROJECT, ENVIRONMENT, TOKEN }, "access", "https://workspaces.mastra.ai", false },
		{ { PROJECT, ENVIRONMENT, TOKEN, SECRET },
		  "access",
		  "https://workspaces.mastra.ai",
		  false },
		{ { PROJECT, ENVIRONMENT, "MASTRA_PLATFORM_ACCESS_TOKEN=  ", SECRET },
		  "secret",
		  "https://workspaces.mastra.ai",
		  false },
		{ { "MASTRA_PROJECT_ID=\t proj/1 x\n", "MASTRA_ENVIRONMENT_ID= env1 ",
		    "MASTRA_PLATFORM_SECRET_KEY= secret\r\n", "SANDBOX_PROVIDER= e2b ",
		    "MASTRA_WORKSPACE_PROXY_URL= https://p.example.org/ " },
		  "secret",
		  "https://p.example.org",
		  true },
		{ { PROJECT, ENVIRONMENT, TOKEN,
		    "SANDBOX_PROVIDER= ", "MASTRA_WORKSPACE_PROXY_URL=https://p.example.org//" },
		  "access",
		  "https://p.example.org/",
		  false },
		{ { PROJECT, ENVIRONMENT, TOKEN, "SANDBOX_PROVIDER=railway",
		    "MASTRA_WORKSPACE_PROXY_URL=http://127.0.0.1:8080" },
		  "access",
		  "http://127.0.0.1:8080",
		  false },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		struct cm_error err = CM_ERROR_INIT;
		struct cm_platform_settings s = { 0 };

		if (read_settings(rows[i].variables, &s, &err) != CM_OK)
			fail_msg("row %zu: %s", i, err.msg);
		assert_string_equal(s.project, "proj/1 x");
		assert_string_equal(s.environment, "env1");
		assert_string_equal(s.token, rows[i].token);
		assert_string_equal(s.url, rows[i].url);
		assert_int_equal(s.is_e2b, rows[i].is_e2b);
		cm_platform_settings_clear(&s);
	}
}

static void test_settings_refused(void **state)
{
	static const struct {
		const char *variables[VARIABLES_MAX];
		const char *msg;
	} rows[] = {
		{ { NULL }, "MASTRA_PROJECT_ID is required" },
		{ { "MASTRA_PROJECT_ID= ", ENVIRONMENT, TOKEN }, "MASTRA_PROJECT_ID is required" },
		{ { PROJECT, TOKEN }, "MASTRA_ENVIRONMENT_ID is required" },
		{ { PROJECT, ENVIRONMENT }, "MASTRA_PLATFORM_ACCESS_TOKEN is required" },
		{ { PROJECT, ENVIRONMENT, TOKEN, "SANDBOX_PROVIDER=E2B" },
		  "SANDBOX_PROVIDER must be either \"railway\" or \"e2b\"" },
		{ { PROJECT, ENVIRONMENT, TOKEN, "SANDBOX_PROVIDER=docker" },
		  "SANDBOX_PROVIDER must be either \"railway\" or \"e2b\"" },
		{ { PROJECT, ENVIRONMENT, "MASTRA_PLATFORM_ACCESS_TOKEN=a b" },
		  "MASTRA_PLATFORM_ACCESS_TOKEN has a character that no token has" },
		{ { PROJECT, ENVIRONMENT, "MASTRA_PLATFORM_SECRET_KEY=a\r\nX: y" },
		  "MASTRA_PLATFORM_SECRET_KEY has a character that no token has" },
	};
	static const char *const urls[] = {
		"p.example.org",  "http://p.example.org", "ftp://x/",
		"https://u:p@x/", "https://x/?a",	  "https://x/#a"
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		struct cm_platform_settings s = { 0 };
		struct cm_error err = CM_ERROR_INIT;

		assert_int_equal(read_settings(rows[i].variables, &s, &err), CM_E_INVALID);
		assert_string_equal(err.msg, rows[i].msg);
		assert_string_not_equal(err.hint, "");
		assert_null(s.project);
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(urls); i++) {
		char variable[128];
		const char *variables[VARIABLES_MAX] = { PROJECT, ENVIRONMENT, TOKEN, variable };
		struct cm_platform_settings s = { 0 };
		struct cm_error err = CM_ERROR_INIT;

		(void)snprintf(variable, sizeof(variable), "MASTRA_WORKSPACE_PROXY_URL=%s",
			       urls[i]);
		if (read_settings(variables, &s, &err) != CM_E_INVALID)
			fail_msg("'%s' was taken", urls[i]);
		assert_non_null(strstr(err.msg, "MASTRA_WORKSPACE_PROXY_URL"));
	}
}

static void test_routes(void **state)
{
	static const char *const variables[VARIABLES_MAX] = { PROJECT, ENVIRONMENT, TOKEN };
	struct cm_platform_settings s = { 0 };
	struct cm_buf out;

	(void)state;
	assert_int_equal(read_settings(variables, &s, NULL), CM_OK);
	cm_buf_init(&out, 4096);
	cm_platform_settings_url(&s, false, "/sandbox", &out);
	assert_string_equal(out.data,
			    "https://workspaces.mastra.ai/v1/projects/proj%2F1%20x/sandbox");
	cm_buf_reset(&out);
	cm_platform_settings_url(&s, true, "/sandbox", &out);
	assert_string_equal(
		out.data, "https://workspaces.mastra.ai/v1/railway/projects/proj%2F1%20x/sandbox");
	cm_buf_reset(&out);
	s.is_e2b = true;
	cm_platform_settings_url(&s, true, "/sandbox", &out);
	assert_string_equal(out.data,
			    "https://workspaces.mastra.ai/v1/e2b/projects/proj%2F1%20x/sandbox");
	cm_buf_clear(&out);
	cm_platform_settings_clear(&s);
}

/* --- commands -------------------------------------------------------------------------------- */

static void test_quoting(void **state)
{
	static const struct {
		const char *argv[6];
		const char *text;
	} rows[] = {
		{ { "echo", "hello" }, "exec echo hello" },
		{ { "echo", "" }, "exec echo ''" },
		{ { "echo", "a b", "it's", "x" }, "exec echo 'a b' 'it'\\''s' x" },
		{ { "echo", "a._-/=:@Z9" }, "exec echo a._-/=:@Z9" },
		{ { "echo", "$HOME", "*", "~", "%" }, "exec echo '$HOME' '*' '~' '%'" },
		{ { "echo", "a\nb", "\xc3\xa9" }, "exec echo 'a\nb' '\xc3\xa9'" },
		/* where a command stands these mean something else */
		{ { "A=b", "A=b" }, "exec 'A=b' A=b" },
		{ { "if", "if" }, "exec 'if' if" },
		{ { "{", "}" }, "exec '{' '}'" },
		{ { "!" }, "exec '!'" },
		{ { "" }, "exec ''" },
		/* exec would take it for an option */
		{ { "-x", "-x" }, "-x -x" },
		/* bytes that JSON does not have */
		{ { "cat", "a\xff\xc3" },
		  "exec cat 'a'\"$(printf '\\377')\"''\"$(printf '\\303')\"''" },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		struct cm_buf out;

		cm_buf_init(&out, 4096);
		cm_platform_command_text(&out, (char *const *)rows[i].argv);
		assert_string_equal(out.data, rows[i].text);
		cm_buf_clear(&out);
	}
}

static int write_command(const struct cm_exec_request *request, const struct cm_strv *env,
			 const char *cwd, struct cm_buf *out, struct cm_error *err)
{
	struct cm_json_writer w;
	int r;

	cm_buf_init(out, 65536);
	cm_jw_init(&w, out, false);
	cm_jw_object(&w);
	r = cm_platform_command_write(&w, request, env, cwd, err);
	cm_jw_end_object(&w);
	return r;
}

static void test_command(void **state)
{
	char *const argv[] = { (char *)"sh", (char *)"-c", (char *)"exit 3", NULL };
	char *const env[] = { (char *)"B=2", (char *)"C=x=y", NULL };
	char *const broken_env[] = { (char *)"A=\xff", NULL };
	struct cm_exec_request request = { .argv = argv, .env = env, .cwd = "/tmp" };
	CM_AUTO_STRV struct cm_strv session = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_buf out;

	(void)state;
	assert_int_equal(cm_strv_add(&session, "A=1"), CM_OK);
	assert_int_equal(cm_strv_add(&session, "B=1"), CM_OK);
	assert_int_equal(write_command(&request, &session, "/work", &out, &err), CM_OK);
	assert_string_equal(out.data, "{\"command\":\"exec sh -c 'exit 3'\",\"cwd\":\"/tmp\","
				      "\"env\":{\"A\":\"1\",\"B\":\"2\",\"C\":\"x=y\"}}");
	cm_buf_clear(&out);
	cm_strv_clear(&session);
	request = (struct cm_exec_request){ .argv = argv };
	assert_int_equal(write_command(&request, &session, "/work", &out, &err), CM_OK);
	assert_string_equal(out.data, "{\"command\":\"exec sh -c 'exit 3'\",\"cwd\":\"/work\"}");
	cm_buf_clear(&out);
	assert_int_equal(write_command(&request, &session, NULL, &out, &err), CM_OK);
	assert_string_equal(out.data, "{\"command\":\"exec sh -c 'exit 3'\"}");
	cm_buf_clear(&out);
	/* JSON has no such bytes, and something else is not what was asked for */
	request.env = broken_env;
	assert_int_equal(write_command(&request, &session, NULL, &out, &err), CM_E_UNSUPPORTED);
	cm_buf_clear(&out);
	request.env = NULL;
	request.cwd = "/\xc3";
	assert_int_equal(write_command(&request, &session, NULL, &out, &err), CM_E_UNSUPPORTED);
	cm_buf_clear(&out);
}

static void test_signals(void **state)
{
	(void)state;
	assert_string_equal(cm_platform_signal_name(SIGTERM), "TERM");
	assert_string_equal(cm_platform_signal_name(SIGKILL), "KILL");
	assert_string_equal(cm_platform_signal_name(SIGINT), "INT");
	assert_null(cm_platform_signal_name(0));
	assert_null(cm_platform_signal_name(SIGSEGV));
	assert_null(cm_platform_signal_name(64));
}

/* --- answers --------------------------------------------------------------------------------- */

static void test_sandboxes(void **state)
{
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"null",
		"{}",
		"{\"id\":7}",
		"{\"id\":\"\"}",
		"{\"id\":\"a b\"}",
		"{\"id\":\".\"}",
		"{\"id\":\"..\"}",
		"{\"id\":\"\xc3\xa9\"}",
		"{\"id\":\"a\\u0000b\"}",
		"{\"id\":\"a\",\"id\":\"b\"}",
		"{\"id\":\"a\"} x",
	};
	struct cm_platform_sandbox s = { 0 };
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
#define READ(text) cm_platform_sandbox_read(text, strlen(text), &s, &err)
	assert_int_equal(READ("{\"id\":\"sbx-1\"}"), CM_OK);
	assert_string_equal(s.id, "sbx-1");
	assert_null(s.resource_id);
	assert_null(s.instance_url);
	assert_false(s.is_destroyed);
	assert_false(s.is_template_pending);
	cm_platform_sandbox_clear(&s);
	assert_int_equal(
		READ("{\"id\":\"a/../b\",\"providerResourceId\":\"r\",\"status\":7,\"new\":{},"
		     "\"createdAt\":\"2026-11-29T20:52:26.123Z\",\"destroyedAt\":null,"
		     "\"instanceUrl\":\"http://[::1]:47000\","
		     "\"templatePending\":{\"templateId\":\"t\",\"retryAfterMs\":5}}"),
		CM_OK);
	assert_string_equal(s.resource_id, "r");
	assert_null(s.status);
	assert_string_equal(s.instance_url, "http://[::1]:47000");
	assert_int_equal(s.created_ms, INT64_C(1795985546123));
	assert_false(s.is_destroyed);
	assert_true(s.is_template_pending);
	cm_platform_sandbox_clear(&s);
	assert_int_equal(READ("{\"id\":\"a\",\"destroyedAt\":\"2026\",\"instanceUrl\":null}"),
			 CM_OK);
	assert_true(s.is_destroyed);
	assert_null(s.instance_url);
	cm_platform_sandbox_clear(&s);
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		if (READ(bad[i]) != CM_E_PROTOCOL)
			fail_msg("'%s' was taken", bad[i]);
		assert_null(s.id);
	}
#undef READ
}

#define LEASE                                                                                          \
	"\"provider\":\"railway\",\"sandboxId\":\"s\",\"providerResourceId\":\"r\",\"jwt\":\"a.b.c\"," \
	"\"wsEndpoint\":\"wss://h/x\",\"subprotocol\":\"exec.v1\""

static void test_leases(void **state)
{
	static const char *const no_expiry[] = {
		"{" LEASE "}",
		"{" LEASE ",\"expiresAt\":null}",
		"{" LEASE ",\"expiresAt\":\"tomorrow\"}",
		"{" LEASE ",\"expiresAt\":\"\"}",
		"{" LEASE ",\"expiresAt\":12345}",
	};
	static const char *const bad[] = { "{}", "{\"provider\":\"railway\",\"jwt\":\"x\"}",
					   "{" LEASE ",\"jwt\":\"x\"}" };
	struct cm_platform_lease lease = { 0 };
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
#define READ(text) cm_platform_lease_read(text, strlen(text), &lease, &err)
	assert_int_equal(READ("{" LEASE ",\"expiresAt\":\"2026-11-29T20:52:26Z\"}"), CM_OK);
	assert_string_equal(lease.provider, "railway");
	assert_string_equal(lease.jwt, "a.b.c");
	assert_string_equal(lease.endpoint, "wss://h/x");
	assert_string_equal(lease.subprotocol, "exec.v1");
	assert_int_equal(lease.expires_ms, INT64_C(1795985546000));
	cm_platform_lease_clear(&lease);
	for (size_t i = 0; i < CM_ARRAY_SIZE(no_expiry); i++) {
		assert_int_equal(READ(no_expiry[i]), CM_OK);
		assert_int_equal(lease.expires_ms, 0);
		cm_platform_lease_clear(&lease);
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++)
		assert_int_equal(READ(bad[i]), CM_E_PROTOCOL);
#undef READ
}

static void test_times(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} rows[] = {
		{ "1970-01-01T00:00:00Z", 0 },
		{ "1970-01-01T00:00:01Z", 1000 },
		{ "2000-02-29T12:00:00.5Z", INT64_C(951825600500) },
		{ "2026-11-29T20:52:26.123Z", INT64_C(1795985546123) },
		{ "2026-11-29T20:52:26.123456789Z", INT64_C(1795985546123) },
		{ "2026-11-29T21:52:26.123+01:00", INT64_C(1795985546123) },
		{ "2026-11-29t15:22:26.123-05:30", INT64_C(1795985546123) },
		{ "9999-12-31T23:59:59Z", INT64_C(253402300799000) },
		{ "", 0 },
		{ "2026-11-29", 0 },
		{ "2026-11-29T20:52:26", 0 },
		{ "2026-11-29T20:52:26.Z", 0 },
		{ "2026-11-29T20:52:26Zx", 0 },
		{ "2026-13-29T20:52:26Z", 0 },
		{ "2026-11-29T24:52:26Z", 0 },
		{ "2026-11-29T20:52:26+1:00", 0 },
		{ "1969-11-29T20:52:26Z", 0 },
		{ "26-11-29T20:52:26Z", 0 },
		{ "tomorrow at noon", 0 },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		if (cm_platform_time(rows[i].text) != rows[i].ms)
			fail_msg("'%s' is %lld", rows[i].text,
				 (long long)cm_platform_time(rows[i].text));
	}
}

static void test_words(void **state)
{
	struct cm_platform_checkpoint c = { 0 };
	struct cm_platform_build b = { 0 };
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
#define CHECKPOINT(text) cm_platform_checkpoint_read(text, strlen(text), &c, &err)
#define BUILD(text) cm_platform_build_read(text, strlen(text), &b, &err)
	assert_int_equal(CHECKPOINT("{\"checkpointName\":\"n\",\"status\":\"coalesced\"}"), CM_OK);
	assert_int_equal(c.status, CM_PLATFORM_COALESCED);
	assert_string_equal(c.name, "n");
	free(c.name);
	assert_int_equal(CHECKPOINT("{\"status\":\"skipped\"}"), CM_OK);
	assert_int_equal(c.status, CM_PLATFORM_SKIPPED);
	assert_null(c.name);
	assert_int_equal(CHECKPOINT("{\"status\":\"done\"}"), CM_E_PROTOCOL);
	assert_int_equal(CHECKPOINT("{\"checkpointName\":\"a b\",\"status\":\"captured\"}"),
			 CM_E_PROTOCOL);
	assert_int_equal(
		BUILD("{\"status\":\"pending\",\"templateId\":\"t\",\"retryAfterMs\":250}"), CM_OK);
	assert_int_equal(b.status, CM_PLATFORM_PENDING);
	assert_int_equal(b.retry_after_ms, 250);
	/* somebody who is to wait is not to wait for ever, nor not at all */
	assert_int_equal(BUILD("{\"status\":\"pending\",\"retryAfterMs\":99999999999}"), CM_OK);
	assert_int_equal(b.retry_after_ms, 60000);
	assert_int_equal(BUILD("{\"status\":\"pending\",\"retryAfterMs\":-5}"), CM_OK);
	assert_int_equal(b.retry_after_ms, 0);
	assert_int_equal(BUILD("{\"status\":\"failed\",\"error\":\"no\"}"), CM_OK);
	assert_int_equal(b.status, CM_PLATFORM_FAILED);
	assert_string_equal(b.error, "no");
	free(b.error);
	assert_int_equal(BUILD("{\"status\":\"queued\"}"), CM_E_PROTOCOL);
#undef CHECKPOINT
#undef BUILD
}

static void test_results(void **state)
{
	struct cm_platform_result result = { 0 };
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
#define READ(text) cm_platform_result_read(text, strlen(text), &result, &err)
	assert_int_equal(READ("{\"exitCode\":3,\"stdout\":\"a\\u0000b\",\"stderr\":\"\\\\u0000\"}"),
			 CM_OK);
	assert_int_equal(result.exit_code, 3);
	assert_string_equal(result.out, "a\xef\xbf\xbd"
					"b");
	assert_string_equal(result.err, "\\u0000");
	cm_platform_result_clear(&result);
	assert_int_equal(READ("{\"exitCode\":null,\"timedOut\":true,\"truncated\":true}"), CM_OK);
	assert_int_equal(result.exit_code, 124);
	assert_true(result.is_timed_out && result.is_truncated);
	assert_int_equal(READ("{\"exitCode\":null}"), CM_OK);
	assert_int_equal(result.exit_code, 1);
	assert_int_equal(READ("{\"stdout\":\"a\"}"), CM_E_PROTOCOL);
	assert_int_equal(READ("{\"exitCode\":256}"), CM_E_PROTOCOL);
	assert_int_equal(READ("{\"exitCode\":\"0\"}"), CM_E_PROTOCOL);
#undef READ
}

static void test_messages(void **state)
{
	static const struct {
		const char *text;
		enum cm_platform_line_kind kind;
		int exit_code;
	} rows[] = {
		{ "{\"type\":\"exit\",\"data\":{\"exit_code\":0}}", CM_PLATFORM_LINE_EXIT, 0 },
		{ "{\"type\":\"exit\",\"data\":{\"exit_code\":255,\"reason\":\"x\"}}",
		  CM_PLATFORM_LINE_EXIT, 255 },
		{ "{\"type\":\"exit\",\"data\":{\"exit_code\":-1}}", CM_PLATFORM_LINE_BAD_EXIT, 0 },
		{ "{\"type\":\"exit\",\"data\":{\"exit_code\":0.5}}", CM_PLATFORM_LINE_BAD_EXIT,
		  0 },
		{ "{\"type\":\"exit\",\"data\":{\"exit_code\":true}}", CM_PLATFORM_LINE_BAD_EXIT,
		  0 },
		{ "{\"type\":\"exit\",\"data\":[0]}", CM_PLATFORM_LINE_BAD_EXIT, 0 },
		{ "{\"type\":\"exit\"}", CM_PLATFORM_LINE_BAD_EXIT, 0 },
		{ "{\"type\":\"durable_session\",\"data\":{\"name\":\"n\"}}",
		  CM_PLATFORM_LINE_OTHER, 0 },
		{ "{\"type\":\"exited\",\"data\":{\"exit_code\":7}}", CM_PLATFORM_LINE_OTHER, 0 },
		{ "{\"data\":{\"exit_code\":7}}", CM_PLATFORM_LINE_OTHER, 0 },
		{ "[{\"type\":\"exit\"}]", CM_PLATFORM_LINE_OTHER, 0 },
		{ "", CM_PLATFORM_LINE_OTHER, 0 },
		{ "{\"type\":", CM_PLATFORM_LINE_OTHER, 0 },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		struct cm_platform_line line = { 0 };

		assert_int_equal(
			cm_platform_message_read(rows[i].text, strlen(rows[i].text), &line), CM_OK);
		if (line.kind != rows[i].kind || line.exit_code != rows[i].exit_code)
			fail_msg("'%s' is %d, %d", rows[i].text, line.kind, line.exit_code);
	}
}

static void test_lines(void **state)
{
	static const struct {
		const char *text;
		enum cm_platform_line_kind kind;
		int exit_code;
		const char *data;
	} rows[] = {
		{ "{\"type\":\"stdout\",\"data\":\"a\\n\"}", CM_PLATFORM_LINE_STDOUT, 0, "a\n" },
		{ "{\"type\":\"stderr\",\"data\":\"\"}\r", CM_PLATFORM_LINE_STDERR, 0, "" },
		{ "{\"type\":\"exit\",\"code\":7}", CM_PLATFORM_LINE_EXIT, 7, NULL },
		{ "{\"type\":\"exit\",\"code\":\"7\"}", CM_PLATFORM_LINE_BAD_EXIT, 0, NULL },
		{ "{\"type\":\"exit\",\"data\":{\"exit_code\":0}}", CM_PLATFORM_LINE_BAD_EXIT, 0,
		  NULL },
		{ "{\"type\":\"stdout\",\"data\":7}", CM_PLATFORM_LINE_OTHER, 0, NULL },
		{ "{\"type\":\"stdout\"}", CM_PLATFORM_LINE_OTHER, 0, NULL },
		{ "{\"type\":\"note\",\"data\":\"x\"}", CM_PLATFORM_LINE_OTHER, 0, NULL },
		{ "not json", CM_PLATFORM_LINE_OTHER, 0, NULL },
		{ "", CM_PLATFORM_LINE_OTHER, 0, NULL },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		struct cm_platform_line line = { 0 };

		assert_int_equal(cm_platform_line_read(rows[i].text, strlen(rows[i].text), &line),
				 CM_OK);
		if (line.kind != rows[i].kind || line.exit_code != rows[i].exit_code)
			fail_msg("'%s' is %d, %d", rows[i].text, line.kind, line.exit_code);
		if (rows[i].data)
			assert_string_equal(line.data, rows[i].data);
		else
			assert_null(line.data);
		free(line.data);
	}
}

static void test_errors(void **state)
{
	static const struct {
		const char *text;
		const char *message;
	} rows[] = {
		{ "{\"error\":{\"message\":\"no such sandbox\",\"type\":\"not_found\"}}",
		  "no such sandbox" },
		{ "{\"error\":{\"type\":\"not_found\"}}", NULL },
		{ "{\"error\":\"no\"}", NULL },
		{ "{\"error\":{\"message\":7}}", NULL },
		{ "<html>", NULL },
		{ "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		CM_AUTO_FREE char *message =
			cm_platform_error_text(rows[i].text, strlen(rows[i].text));

		if (rows[i].message)
			assert_string_equal(message, rows[i].message);
		else
			assert_null(message);
	}
}

static bool read_once(void *data)
{
	static const char text[] = "{" LEASE "}";
	struct cm_platform_lease lease = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_platform_lease_read(text, sizeof(text) - 1, &lease, &err);

	(void)data;
	if (r < 0)
		assert_int_equal(r, CM_E_NOMEM);
	cm_platform_lease_clear(&lease);
	return r == CM_OK;
}

static void test_no_memory(void **state)
{
	(void)state;
	assert_true(fail_each_allocation(read_once, NULL) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settings),  cmocka_unit_test(test_settings_refused),
		cmocka_unit_test(test_routes),	  cmocka_unit_test(test_quoting),
		cmocka_unit_test(test_command),	  cmocka_unit_test(test_signals),
		cmocka_unit_test(test_sandboxes), cmocka_unit_test(test_leases),
		cmocka_unit_test(test_times),	  cmocka_unit_test(test_words),
		cmocka_unit_test(test_results),	  cmocka_unit_test(test_messages),
		cmocka_unit_test(test_lines),	  cmocka_unit_test(test_errors),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
