/* SPDX-License-Identifier: Apache-2.0 */
/* What the HTTP layer sends again, and what it must not; the server counts. */
#include "tests/unit/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

static void is_sent_again_where_that_does_no_harm(void **state)
{
	static const struct {
		const char *path;
		bool is_idempotent;
		int code;
		int status;
		int count;
	} cases[] = {
		{ "/until/2/429", false, CM_OK, 200, 3 },
		{ "/until/9/429", false, CM_OK, 429, 4 },
		{ "/until/1/429/1", false, CM_OK, 200, 2 },
		{ "/until/1/503/+1", false, CM_OK, 200, 2 },
		{ "/until/1/503", false, CM_OK, 503, 1 },
		{ "/until/1/503/?", true, CM_OK, 200, 2 },
		{ "/until/1/502", false, CM_OK, 502, 1 },
		{ "/until/1/502/-", true, CM_OK, 200, 2 },
		{ "/until/1/504", true, CM_OK, 200, 2 },
		{ "/until/1/500", true, CM_OK, 500, 1 },
		{ "/until/1/400", true, CM_OK, 400, 1 },
		{ "/until/1/0", false, CM_E_REMOTE, 0, 1 },
		{ "/until/1/0/-", true, CM_OK, 200, 2 },
		{ "/until/9/0", true, CM_E_REMOTE, 0, 4 },
		{ "/cut", false, CM_E_REMOTE, 0, 1 },
		/* longer than anybody waits: the answer at once */
		{ "/status/429/100000", true, CM_OK, 429, 1 },
	};
	struct cm_http *http = open_http(NULL);

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(cases); i++) {
		struct cm_http_request request = { .method = "POST",
						   .url = at(cases[i].path),
						   .body = "x",
						   .body_len = 1,
						   .is_idempotent = cases[i].is_idempotent };
		struct cm_error err = CM_ERROR_INIT;
		struct cm_http_answer answer;
		int r = ask(http, &request, &answer, &err);

		if (r != cases[i].code || answer.status != cases[i].status)
			fail_msg("%s: %d, status %d, %s", cases[i].path, r, answer.status, err.msg);
		cm_http_answer_clear(&answer);
		if (count_of(http, cases[i].path) != cases[i].count)
			fail_msg("%s: asked %d times", cases[i].path,
				 count_of(http, cases[i].path));
	}
	cm_http_close(http);
}

static void retry_after_is_waited_for_within_the_deadline(void **state)
{
	struct cm_http *http = open_http(NULL);
	struct cm_http_request request = { .method = "GET", .url = at("/until/1/429/1/waited") };
	struct cm_http_answer answer;
	int64_t start = cm_clock_mono_ms();
	struct cm_call call;

	(void)state;
	assert_int_equal(ask(http, &request, &answer, NULL), CM_OK);
	assert_int_equal(answer.status, 200);
	assert_true(cm_clock_mono_ms() - start >= 1000);
	cm_http_answer_clear(&answer);

	request.url = at("/until/1/429/30");
	call = within(5000);
	start = cm_clock_mono_ms();
	assert_int_equal(cm_http_send(http, &request, &call, &answer, NULL), CM_OK);
	assert_int_equal(answer.status, 429);
	assert_true(cm_clock_mono_ms() - start < 2000);
	cm_http_answer_clear(&answer);
	cm_http_close(http);
}

static void nothing_is_sent_twice_by_itself(void **state)
{
	struct cm_http *http = open_http(NULL);
	struct cm_http_request request = { .method = "GET", .url = at("/stale/first") };
	struct cm_http_answer answer;
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	/* a connection that looks alive, and dies of the next request */
	assert_int_equal(ask(http, &request, &answer, NULL), CM_OK);
	cm_http_answer_clear(&answer);
	request = (struct cm_http_request){ .method = "POST", .url = at("/echo/stale-post") };
	assert_int_equal(ask(http, &request, &answer, &err), CM_E_REMOTE);
	assert_has(err.msg, "cut off");
	assert_true(answer.may_have_arrived);
	assert_int_equal(count_of(http, "/echo/stale-post"), 1);

	request = (struct cm_http_request){ .method = "GET", .url = at("/stale/second") };
	assert_int_equal(ask(http, &request, &answer, NULL), CM_OK);
	cm_http_answer_clear(&answer);
	assert_int_equal(get(http, at("/echo/stale-get"), &answer, &err), CM_OK);
	cm_http_answer_clear(&answer);
	assert_int_equal(count_of(http, "/echo/stale-get"), 2);
	cm_http_close(http);
}

/* A port of loopback on which nobody listens. */
static int closed_port(void)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(name);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &len), 0);
	(void)close(fd);
	return ntohs(name.sin_port);
}

static void no_connection_is_tried_again(void **state)
{
	struct cm_http *http = open_http(NULL);
	struct cm_http_request request = {
		.method = "POST", .url = address("http", "127.0.0.1", closed_port(), "/?secret=1")
	};
	struct cm_http_answer answer;
	struct cm_error err = CM_ERROR_INIT;
	int64_t start = cm_clock_mono_ms();
	struct cm_call call;

	(void)state;
	assert_int_equal(ask(http, &request, &answer, &err), CM_E_REMOTE);
	assert_has(err.msg, "no connection to '127.0.0.1:");
	assert_has_not(err.msg, "secret");
	assert_false(answer.may_have_arrived);
	/* 0.2 and 0.4 and 0.8 s at least */
	assert_true(cm_clock_mono_ms() - start >= 1400);
	/* not past the deadline */
	start = cm_clock_mono_ms();
	call = within(300);
	assert_int_equal(cm_http_send(http, &request, &call, &answer, &err), CM_E_REMOTE);
	assert_true(cm_clock_mono_ms() - start < 1000);
	cm_http_close(http);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_sent_again_where_that_does_no_harm),
		cmocka_unit_test(retry_after_is_waited_for_within_the_deadline),
		cmocka_unit_test(nothing_is_sent_twice_by_itself),
		cmocka_unit_test(no_connection_is_tried_again),
	};

	return cmocka_run_group_tests(tests, server_setup, server_teardown);
}
