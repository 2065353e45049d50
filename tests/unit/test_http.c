/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of the HTTP layer to a server on loopback that answers well and badly. */
#include "tests/unit/http_server.h"

#include "providers/http_internal.h"

/* A request as the server saw it. */
static const struct cm_json *echo(struct cm_http *http, const struct cm_http_request *request,
				  struct cm_json_doc **doc)
{
	struct cm_http_answer answer;
	struct cm_error err = CM_ERROR_INIT;

	if (ask(http, request, &answer, &err) != CM_OK)
		fail_msg("%s", err.msg);
	assert_int_equal(answer.status, 200);
	assert_string_equal(answer.content_type, "application/json");
	assert_memory_equal(answer.request_id, "req-", 4);
	assert_int_equal(cm_json_parse(answer.body.data, answer.body.len, "echo", 0, doc, &err),
			 CM_OK);
	cm_http_answer_clear(&answer);
	return cm_json_root(*doc);
}

/* The value of a header in what echo gave, or NULL. */
static const char *echoed(const struct cm_json *root, const char *name)
{
	const struct cm_json *all = cm_json_get(root, "headers");

	for (const struct cm_json *one = all ? all->first_child : NULL; one; one = one->next) {
		const struct cm_json *key = one->first_child;

		if (strcasecmp(key->u.string, name) == 0)
			return key->next->u.string;
	}
	return NULL;
}

static void sends_what_was_asked(void **state)
{
	static const char *const headers[] = { "X-API-Key: k 1", "Content-Type: application/json",
					       "X-Empty:", NULL };
	struct cm_http *http = open_http(NULL);
	struct cm_http_request request = { .method = "POST",
					   .url = at("/echo/a%20b/../c?x=1&y=%2F"),
					   .headers = headers,
					   .body = "{\"a\": 1}",
					   .body_len = 8 };
	struct cm_json_doc *doc = NULL;
	const struct cm_json *root = echo(http, &request, &doc);

	(void)state;
	assert_string_equal(cm_json_str(root, "method", ""), "POST");
	assert_string_equal(cm_json_str(root, "path", ""), "/echo/a%20b/../c?x=1&y=%2F");
	assert_string_equal(cm_json_str(root, "body", ""), "{\"a\": 1}");
	assert_string_equal(echoed(root, "X-API-Key"), "k 1");
	assert_string_equal(echoed(root, "X-Empty"), "");
	assert_string_equal(echoed(root, "Content-Type"), "application/json");
	assert_string_equal(echoed(root, "Content-Length"), "8");
	assert_memory_equal(echoed(root, "User-Agent"), "casemate/", 9);
	assert_null(echoed(root, "Expect"));
	assert_null(echoed(root, "Accept-Encoding"));
	assert_null(echoed(root, "Cookie"));
	cm_json_free(doc);
	cm_http_close(http);
}

static void methods_have_the_body_that_they_have(void **state)
{
	static const struct {
		const char *method;
		const char *length;
	} cases[] = {
		{ "GET", NULL }, { "DELETE", NULL }, { "POST", "0" },
		{ "PUT", "0" },	 { "PATCH", "0" },
	};
	struct cm_http *http = open_http(NULL);
	struct cm_http_request request = { .url = at("/echo") };
	struct cm_http_answer answer;
	int64_t connection = 0;

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(cases); i++) {
		struct cm_json_doc *doc = NULL;
		const struct cm_json *root;

		request.method = cases[i].method;
		root = echo(http, &request, &doc);
		assert_string_equal(cm_json_str(root, "method", ""), cases[i].method);
		if (cases[i].length)
			assert_string_equal(echoed(root, "Content-Length"), cases[i].length);
		else
			assert_null(echoed(root, "Content-Length"));
		assert_null(echoed(root, "Content-Type"));
		/* all on one connection */
		if (i == 0)
			connection = cm_json_int(root, "connection", -1);
		assert_int_equal(cm_json_int(root, "connection", -1), connection);
		assert_int_equal(cm_json_int(root, "nth", -1), i + 1);
		cm_json_free(doc);
	}
	request.method = "HEAD";
	assert_int_equal(ask(http, &request, &answer, NULL), CM_OK);
	assert_int_equal(answer.body.len, 0);
	cm_http_answer_clear(&answer);
	request.method = "get it";
	assert_int_equal(ask(http, &request, &answer, NULL), CM_E_INVALID);
	cm_http_close(http);
}

static void what_comes_before_an_answer_is_passed_over(void **state)
{
	struct cm_http *http = open_http(NULL);
	struct cm_http_answer answer;

	(void)state;
	assert_int_equal(get(http, at("/hints"), &answer, NULL), CM_OK);
	assert_int_equal(answer.status, 200);
	assert_null(cm_http_header(&answer, "link"));
	assert_string_equal(answer.body.data, "{}");
	cm_http_answer_clear(&answer);
	cm_http_close(http);
}

static void headers_cannot_be_injected(void **state)
{
	static const char *const bad[] = { "X-Key: a\r\nX-Other: b",
					   "X-Key: a\nb",
					   "X-Key: a\x01",
					   "X-Key",
					   "X Key: a",
					   ": a",
					   "Content-Length: 4",
					   "transfer-encoding: chunked" };
	struct cm_http *http = open_http(NULL);

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		const char *const headers[] = { bad[i], NULL };
		struct cm_http_request request = { .method = "GET",
						   .url = at("/echo/injected"),
						   .headers = headers };
		struct cm_http_answer answer;
		struct cm_error err = CM_ERROR_INIT;

		assert_int_equal(ask(http, &request, &answer, &err), CM_E_INVALID);
		assert_has_not(err.msg, "a\n");
		assert_null(answer.body.data);
	}
	assert_int_equal(count_of(http, "/echo/injected"), 0);
	cm_http_close(http);
}

/* --- fill and take ---------------------------------------------------------------------------- */

struct flow {
	size_t left;
	size_t seen;
	int fails_with;
};

static ssize_t fill_some(void *data, void *buf, size_t size)
{
	struct flow *flow = data;
	size_t n = flow->left < size ? flow->left : size;

	if (n == 0 && flow->fails_with)
		return -flow->fails_with;
	memset(buf, 'f', n);
	flow->left -= n;
	return (ssize_t)n;
}

static int take_some(void *data, const void *bytes, size_t len)
{
	struct flow *flow = data;

	(void)bytes;
	flow->seen += len;
	return flow->fails_with ? -flow->fails_with : 0;
}

static void fill_gives_the_body(void **state)
{
	struct cm_http *http = open_http(NULL);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_http_answer answer;

	(void)state;
	for (int is_known = 0; is_known < 2; is_known++) {
		struct flow flow = { .left = 300000 };
		struct cm_http_request request = { .method = "POST",
						   .url = at("/sink"),
						   .fill = fill_some,
						   .fill_data = &flow,
						   .fill_len = is_known ? 300000 : -1 };

		assert_int_equal(ask(http, &request, &answer, &err), CM_OK);
		assert_memory_equal(answer.body.data, "300000 ", 7);
		cm_http_answer_clear(&answer);
	}
	/* no more than was said, and no less */
	for (int is_long = 0; is_long < 2; is_long++) {
		struct flow flow = { .left = is_long ? 1000 : 10 };
		struct cm_http_request request = { .method = "PUT",
						   .url = at("/sink/length"),
						   .fill = fill_some,
						   .fill_data = &flow,
						   .fill_len = 100 };

		if (is_long) {
			assert_int_equal(ask(http, &request, &answer, &err), CM_OK);
			assert_memory_equal(answer.body.data, "100 ", 4);
		} else {
			assert_int_equal(ask(http, &request, &answer, &err), CM_E_SYS);
			assert_int_equal(err.sys_errno, ENODATA);
		}
		cm_http_answer_clear(&answer);
	}
	cm_http_close(http);
}

static void fill_and_take_may_give_up(void **state)
{
	struct cm_http *http = open_http(NULL);
	struct flow flow = { .left = 10, .fails_with = EIO };
	struct cm_http_request request = { .method = "PUT",
					   .url = at("/sink/given-up"),
					   .is_idempotent = true,
					   .fill = fill_some,
					   .fill_data = &flow,
					   .fill_len = -1 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_http_answer answer;

	(void)state;
	assert_int_equal(ask(http, &request, &answer, &err), CM_E_SYS);
	assert_int_equal(err.sys_errno, EIO);
	request = (struct cm_http_request){ .method = "GET",
					    .url = at("/big/100000"),
					    .is_idempotent = true,
					    .take = take_some,
					    .take_data = &flow };
	flow = (struct flow){ .fails_with = ENOSPC };
	assert_int_equal(ask(http, &request, &answer, &err), CM_E_SYS);
	assert_int_equal(err.sys_errno, ENOSPC);
	assert_true(count_of(http, "/sink/given-up") <= 1);
	assert_int_equal(count_of(http, "/big/100000"), 1);
	cm_http_close(http);
}

static void take_gets_what_is_a_success_alone(void **state)
{
	struct cm_http *http = open_http(NULL);
	struct flow flow = { 0 };
	struct cm_http_request request = {
		.method = "GET", .url = at("/big/10000000"), .take = take_some, .take_data = &flow
	};
	struct cm_http_answer answer;

	(void)state;
	assert_int_equal(ask(http, &request, &answer, NULL), CM_OK);
	assert_int_equal(flow.seen, 10000000);
	assert_int_equal(answer.body.len, 0);
	cm_http_answer_clear(&answer);
	request.url = at("/status/404");
	assert_int_equal(ask(http, &request, &answer, NULL), CM_OK);
	assert_int_equal(flow.seen, 10000000);
	assert_string_equal(answer.body.data, "{\"message\": \"status 404\"}");
	cm_http_answer_clear(&answer);
	cm_http_close(http);
}

/* --- what a bad answer is --------------------------------------------------------------------- */

static void bad_answers_are_errors(void **state)
{
	static const struct {
		const char *path;
		int code;
		const char *says;
	} cases[] = {
		{ "/reset?secret=1", CM_E_REMOTE, "/reset' was cut off before an answer" },
		{ "/cut", CM_E_REMOTE, "the answer of" },
		{ "/short", CM_E_REMOTE, "was cut off (" },
		{ "/short", CM_E_REMOTE, "request shortened" },
		{ "/chunk-cut", CM_E_REMOTE, "was cut off (" },
		{ "/bad-chunk", CM_E_PROTOCOL, "does not answer in HTTP" },
		{ "/garbage", CM_E_PROTOCOL, "does not answer in HTTP" },
		{ "/raw", CM_E_PROTOCOL, "101" },
		{ "/big/5000000", CM_E_LIMIT, "has more than 4.0 MiB" },
		{ "/endless", CM_E_LIMIT, "has more than 4.0 MiB" },
		{ "/headers/70/1000", CM_E_LIMIT, "64 KiB" },
		{ "/headers/400/1", CM_E_LIMIT, "256 lines" },
		{ "/headers/1/200000", CM_E_LIMIT, "64 KiB" },
		{ "/redirect/302/https://example.test/a?signature=secret", CM_E_PROTOCOL,
		  "on to 'example.test'" },
		{ "/redirect/307//elsewhere?secret=1", CM_E_PROTOCOL, "on to '127.0.0.1:" },
		{ "/redirect/301/javascript:x", CM_E_PROTOCOL, "cannot be read" },
	};
	struct cm_http *http = open_http(NULL);

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(cases); i++) {
		struct cm_http_request request = { .method = "GET", .url = at(cases[i].path) };
		struct cm_error err = CM_ERROR_INIT;
		struct cm_http_answer answer;
		int r = ask(http, &request, &answer, &err);

		if (r != cases[i].code)
			fail_msg("%s: %d, %s", cases[i].path, r, err.msg);
		assert_has(err.msg, cases[i].says);
		assert_has_not(err.msg, "secret");
		assert_null(answer.body.data);
		assert_null(answer.headers.v);
		assert_int_equal(answer.status, 0);
	}
	cm_http_close(http);
}

static void phases_have_bounds(void **state)
{
	static const struct {
		const char *path;
		const char *says;
	} cases[] = {
		{ "/mute", "did not answer for 300 ms" },
		{ "/silent", "sent no more for 200 ms" },
	};
	struct cm_http *http = open_http(NULL);

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(cases); i++) {
		struct cm_http_request request = { .method = "GET",
						   .url = at(cases[i].path),
						   .first_byte_ms = 300,
						   .idle_ms = 200 };
		struct cm_error err = CM_ERROR_INIT;
		struct cm_http_answer answer;

		assert_int_equal(ask(http, &request, &answer, &err), CM_E_TIMEOUT);
		assert_has(err.msg, cases[i].says);
		/* silence is a reason to ask again */
		request.is_idempotent = true;
		assert_int_equal(ask(http, &request, &answer, &err), CM_E_TIMEOUT);
		assert_int_equal(count_of(http, cases[i].path), 5);
	}
	cm_http_close(http);
}

static void slow_is_not_silent(void **state)
{
	struct cm_http *http = open_http(NULL);
	struct cm_http_request request = {
		.method = "GET", .url = at("/slow/100/10"), .first_byte_ms = 500, .idle_ms = 500
	};
	struct cm_http_answer answer;

	(void)state;
	assert_int_equal(ask(http, &request, &answer, NULL), CM_OK);
	assert_int_equal(answer.body.len, 10);
	cm_http_answer_clear(&answer);
	cm_http_close(http);
}

static void deadline_and_cancellation_end_it(void **state)
{
	struct cm_http *http = open_http(NULL);
	struct cm_http_request request = { .method = "GET",
					   .url = at("/mute/waits"),
					   .is_idempotent = true };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_http_answer answer;
	struct cm_call call = within(200);
	int pipe_fds[2];
	pid_t pid;

	(void)state;
	assert_int_equal(cm_http_send(http, &request, &call, &answer, &err), CM_E_TIMEOUT);
	assert_has(err.msg, "took too long");
	/* late already: nothing is sent */
	assert_int_equal(cm_http_send(http, &request, &call, &answer, &err), CM_E_TIMEOUT);
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	pid = fork_child();
	if (pid == 0) {
		usleep(200000);
		_exit(write(pipe_fds[1], "x", 1) != 1);
	}
	call = (struct cm_call){ .deadline_ms = INT64_MAX, .cancel_fd = pipe_fds[0] };
	assert_int_equal(cm_http_send(http, &request, &call, &answer, &err), CM_E_CANCELLED);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* given up already, and it may be that who does so has gone away */
	assert_int_equal(cm_http_send(http, &request, &call, &answer, &err), CM_E_CANCELLED);
	assert_int_equal(read(pipe_fds[0], &(char){ 0 }, 1), 1);
	(void)close(pipe_fds[1]);
	assert_int_equal(cm_http_send(http, &request, &call, &answer, &err), CM_E_CANCELLED);
	(void)close(pipe_fds[0]);
	assert_int_equal(count_of(http, "/mute/waits"), 2);
	/* and in the wait before the next attempt */
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	pid = fork_child();
	if (pid == 0) {
		usleep(200000);
		_exit(write(pipe_fds[1], "x", 1) != 1);
	}
	call.cancel_fd = pipe_fds[0];
	request.url = at("/status/429/5/cancelled");
	assert_int_equal(cm_http_send(http, &request, &call, &answer, &err), CM_E_CANCELLED);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_null(answer.body.data);
	assert_int_equal(count_of(http, "/status/429/5/cancelled"), 1);
	(void)close(pipe_fds[0]);
	(void)close(pipe_fds[1]);
	cm_http_close(http);
}

static void an_early_answer_is_one(void **state)
{
	struct cm_http *http = open_http(NULL);
	struct flow flow = { .left = 3000000 };
	struct cm_http_request request = { .method = "POST",
					   .url = at("/early/413"),
					   .fill = fill_some,
					   .fill_data = &flow,
					   .fill_len = 3000000 };
	struct cm_http_answer answer;

	(void)state;
	assert_int_equal(ask(http, &request, &answer, NULL), CM_OK);
	assert_int_equal(answer.status, 413);
	cm_http_answer_clear(&answer);
	cm_http_close(http);
}

/* A name of loopback that leads elsewhere, and a server that would get what is sent. */
static void http_goes_to_loopback_alone(void **state)
{
	struct cm_http *http = open_http(NULL);
	struct cm_http_request request = { .method = "GET", .url = "http://localhost:1/" };
	struct curl_slist *names = curl_slist_append(NULL, "localhost:1:192.0.2.1");
	struct cm_http_transfer t;
	struct cm_call call = within(2000);
	struct cm_http_answer answer;
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	assert_non_null(names);
	assert_int_equal(cm_http_transfer_init(&t, http, &request, NULL, &err), CM_OK);
	assert_int_equal(curl_easy_setopt(t.easy, CURLOPT_RESOLVE, names), CURLE_OK);
	assert_int_equal(cm_http_transfer_run(&t, http->multi, false, &call, &err), CM_E_INVALID);
	assert_has(err.msg, "leads to another machine");
	assert_false(cm_http_transfer_may_repeat(&t));
	cm_http_transfer_clear(&t);
	curl_slist_free_all(names);

	request.url = "http://192.0.2.1/";
	assert_int_equal(ask(http, &request, &answer, &err), CM_E_INVALID);
	assert_int_equal(
		get(http, address("http", "localhost", server.http, "/echo"), &answer, &err),
		CM_OK);
	cm_http_answer_clear(&answer);
	cm_http_close(http);
}

/* --- what is shown ---------------------------------------------------------------------------- */

static void gather(void *data, const char *line)
{
	cm_buf_puts(data, line);
	cm_buf_putc(data, '\n');
}

static void trace_has_no_secret(void **state)
{
	static const char *const headers[] = { "Authorization: Bearer secret", "X-API-Key: secret",
					       "X-Access-Token: secret", NULL };
	CM_AUTO_BUF struct cm_buf lines = { .max = 65536 };
	struct cm_http_options options = { .trace = gather, .data = &lines };
	struct cm_http *http = NULL;
	struct cm_http_request request = { .method = "POST",
					   .url = at("/named/Set-Cookie/secret?signature=secret"),
					   .headers = headers,
					   .body = "secret",
					   .body_len = 6 };
	struct cm_http_answer answer;

	(void)state;
	assert_int_equal(cm_http_open(&options, &http, NULL), CM_OK);
	assert_int_equal(ask(http, &request, &answer, NULL), CM_OK);
	assert_string_equal(cm_http_header(&answer, "set-cookie"), "secret");
	cm_http_answer_clear(&answer);
	request.url = at("/until/1/429?secret");
	assert_int_equal(ask(http, &request, &answer, NULL), CM_OK);
	cm_http_answer_clear(&answer);
	request.url = at("/reset/?secret");
	assert_int_equal(ask(http, &request, &answer, NULL), CM_E_REMOTE);
	cm_http_close(http);
	/* the path of the first has it, which is no secret there */
	assert_has_not(strchr(strchr(lines.data, '\n') + 1, '\n'), "secret");
	assert_has(lines.data, "/until/1/429: 429, 25 bytes, ");
	assert_has(lines.data, "/until/1/429: again in ");
	assert_has(lines.data, ", request req-");
	assert_has(lines.data, "/reset/: failed after ");
	assert_has_not(lines.data, "signature");
}

static void errors_name_status_and_request(void **state)
{
	struct cm_http *http = open_http(NULL);
	struct cm_http_request request = { .method = "GET", .url = at("/status/403?secret") };
	struct cm_http_answer answer;
	struct cm_error err = CM_ERROR_INIT;
	char wanted[128];

	(void)state;
	assert_int_equal(ask(http, &request, &answer, &err), CM_OK);
	assert_int_equal(cm_http_error(&request, &answer, "make a sandbox", "not\x1byours", &err),
			 CM_E_DENIED);
	(void)snprintf(
		wanted, sizeof(wanted),
		"cannot make a sandbox: 127.0.0.1:%d says 403 (not\\x1byours), request req-1",
		server.http);
	assert_string_equal(err.msg, wanted);
	cm_http_answer_clear(&answer);
	cm_http_close(http);
}

/* --- no memory -------------------------------------------------------------------------------- */

static bool attempt_request(void *data)
{
	static const char *const headers[] = { "X-Key: value", NULL };
	struct cm_http_request request = {
		.method = "POST", .url = data, .headers = headers, .body = "body", .body_len = 4
	};
	struct cm_call call = within(5000);
	struct cm_http_answer answer = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_http *http = NULL;
	int r = cm_http_open(NULL, &http, &err);

	if (r == CM_OK)
		r = cm_http_send(http, &request, &call, &answer, &err);
	cm_alloc_fail_after(-1);
	if (r != CM_OK) {
		assert_int_not_equal(err.code, CM_OK);
		assert_null(answer.body.data);
	}
	cm_http_answer_clear(&answer);
	cm_http_close(http);
	return r == CM_OK;
}

static void each_allocation_may_fail(void **state)
{
	size_t fds = count_fds();

	(void)state;
	assert_true(fail_each_allocation(attempt_request, (void *)at("/echo")) > 20);
	assert_int_equal(count_fds(), fds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends_what_was_asked),
		cmocka_unit_test(methods_have_the_body_that_they_have),
		cmocka_unit_test(what_comes_before_an_answer_is_passed_over),
		cmocka_unit_test(headers_cannot_be_injected),
		cmocka_unit_test(fill_gives_the_body),
		cmocka_unit_test(fill_and_take_may_give_up),
		cmocka_unit_test(take_gets_what_is_a_success_alone),
		cmocka_unit_test(bad_answers_are_errors),
		cmocka_unit_test(phases_have_bounds),
		cmocka_unit_test(slow_is_not_silent),
		cmocka_unit_test(deadline_and_cancellation_end_it),
		cmocka_unit_test(an_early_answer_is_one),
		cmocka_unit_test(http_goes_to_loopback_alone),
		cmocka_unit_test(trace_has_no_secret),
		cmocka_unit_test(errors_name_status_and_request),
		cmocka_unit_test(each_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, server_setup, server_teardown);
}
