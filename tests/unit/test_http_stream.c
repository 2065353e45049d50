/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that are read as they come, and connections for other protocols, without TLS. */
#include "tests/unit/http_server.h"

static struct cm_http_stream *open_stream(struct cm_http *http, const char *path, uint32_t idle_ms)
{
	struct cm_http_request request = { .method = "GET", .url = at(path), .idle_ms = idle_ms };
	struct cm_http_stream *stream = NULL;
	struct cm_call call = within(10000);
	struct cm_error err = CM_ERROR_INIT;

	if (cm_http_stream_open(http, &request, &call, &stream, &err) != CM_OK)
		fail_msg("%s: %s", path, err.msg);
	return stream;
}

/* Until its end or an error; how much there was. */
static int read_all(struct cm_http_stream *stream, size_t *ret_len, struct cm_error *err)
{
	struct cm_call call = within(20000);
	char buf[10000];
	size_t n = 0;
	int r;

	*ret_len = 0;
	while ((r = cm_http_stream_read(stream, buf, sizeof(buf), NULL, &call, &n, err)) ==
	       CM_HTTP_DATA) {
		/* the server repeats the 256 bytes in turn */
		for (size_t i = 0; i < n; i += 97)
			assert_int_equal((unsigned char)buf[i], (*ret_len + i) % 256);
		*ret_len += n;
	}
	return r;
}

static void is_read_to_its_end(void **state)
{
	struct cm_http *http = open_http(NULL);
	struct cm_error err = CM_ERROR_INIT;
	size_t len = 0;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct cm_http_stream *stream = open_stream(http, "/big/3000001", 0);

		assert_int_equal(cm_http_stream_answer(stream)->status, 200);
		assert_int_equal(read_all(stream, &len, &err), CM_HTTP_END);
		assert_int_equal(len, 3000001);
		/* and stays there */
		assert_int_equal(read_all(stream, &len, &err), CM_HTTP_END);
		cm_http_stream_close(stream);
	}
	cm_http_close(http);
}

static void connections_are_kept_at_the_end_alone(void **state)
{
	struct cm_http *http = open_http(NULL);
	struct cm_http_stream *stream = open_stream(http, "/echo", 0);
	struct cm_call call = within(5000);
	struct cm_http_answer answer;
	char buf[4096];
	size_t n = 0;

	(void)state;
	while (cm_http_stream_read(stream, buf, sizeof(buf), NULL, &call, &n, NULL) == CM_HTTP_DATA)
		;
	cm_http_stream_close(stream);
	assert_int_equal(get(http, at("/echo"), &answer, NULL), CM_OK);
	assert_has(answer.body.data, "\"nth\": 2");
	cm_http_answer_clear(&answer);
	stream = open_stream(http, "/endless", 0);
	cm_http_stream_close(stream);
	assert_int_equal(get(http, at("/echo"), &answer, NULL), CM_OK);
	assert_has(answer.body.data, "\"nth\": 1");
	cm_http_answer_clear(&answer);
	cm_http_close(http);
}

/* A consumer that is away: the server waits, other requests do not, and that is no silence. */
static void requests_go_on_beside_a_stream(void **state)
{
	struct cm_http *http = open_http(NULL);
	struct cm_http_stream *stream = open_stream(http, "/big/30000000", 300);
	struct cm_http_stream *other = open_stream(http, "/endless", 300);
	struct cm_error err = CM_ERROR_INIT;
	size_t len = 0;

	(void)state;
	for (int i = 0; i < 10; i++) {
		struct cm_http_answer answer;

		assert_int_equal(get(http, at("/slow/20/3"), &answer, &err), CM_OK);
		assert_int_equal(answer.body.len, 3);
		cm_http_answer_clear(&answer);
	}
	usleep(400000);
	if (read_all(stream, &len, &err) != CM_HTTP_END)
		fail_msg("%s", err.msg);
	assert_int_equal(len, 30000000);
	cm_http_stream_close(stream);
	cm_http_stream_close(other);
	cm_http_close(http);
}

static void what_is_no_success_has_its_body(void **state)
{
	struct cm_http *http = open_http(NULL);
	struct cm_http_stream *stream = open_stream(http, "/status/503/1", 0);
	struct cm_error err = CM_ERROR_INIT;
	size_t len = 0;

	(void)state;
	assert_int_equal(cm_http_stream_answer(stream)->status, 503);
	assert_string_equal(cm_http_stream_answer(stream)->body.data,
			    "{\"message\": \"status 503\"}");
	assert_int_equal(read_all(stream, &len, &err), CM_HTTP_END);
	assert_int_equal(len, 0);
	cm_http_stream_close(stream);
	/* it is not for us to send it again */
	assert_int_equal(count_of(http, "/status/503/1"), 1);
	cm_http_close(http);
}

static void an_end_that_is_none_is_an_error(void **state)
{
	static const struct {
		const char *path;
		size_t len;
		int code;
	} cases[] = {
		{ "/short", 10, CM_E_REMOTE },
		{ "/chunk-cut", 5, CM_E_REMOTE },
		{ "/silent", 5, CM_E_TIMEOUT },
		{ "/cut", 4, CM_E_REMOTE },
	};
	struct cm_http *http = open_http(NULL);
	struct cm_call call = within(20000);

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(cases); i++) {
		struct cm_http_stream *stream = open_stream(http, cases[i].path, 200);
		struct cm_error err = CM_ERROR_INIT;
		char buf[256];
		size_t all = 0;
		size_t n = 0;
		int r;

		while ((r = cm_http_stream_read(stream, buf, sizeof(buf), NULL, &call, &n, &err)) ==
		       CM_HTTP_DATA)
			all += n;
		if (r != cases[i].code || all != cases[i].len)
			fail_msg("%s: %d after %zu: %s", cases[i].path, r, all, err.msg);
		/* and stays one */
		assert_int_equal(
			cm_http_stream_read(stream, buf, sizeof(buf), NULL, &call, &n, &err),
			cases[i].code);
		cm_http_stream_close(stream);
	}
	cm_http_close(http);
}

static void failures_to_open_leave_nothing(void **state)
{
	static const struct {
		const char *path;
		int code;
	} cases[] = {
		{ "/reset", CM_E_REMOTE }, { "/garbage", CM_E_PROTOCOL },
		{ "/mute", CM_E_TIMEOUT }, { "/redirect/302/https://a.test/", CM_E_PROTOCOL },
		{ "/raw", CM_E_PROTOCOL },
	};
	struct cm_http *http = open_http(NULL);

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(cases); i++) {
		struct cm_http_request request = { .method = "GET",
						   .url = at(cases[i].path),
						   .is_idempotent = true,
						   .first_byte_ms = 200 };
		struct cm_http_stream *stream = NULL;
		struct cm_call call = within(5000);
		struct cm_error err = CM_ERROR_INIT;

		assert_int_equal(cm_http_stream_open(http, &request, &call, &stream, &err),
				 cases[i].code);
		assert_int_equal(err.code, cases[i].code);
		assert_null(stream);
		assert_int_equal(count_of(http, cases[i].path), 1);
	}
	cm_http_close(http);
}

static void a_wait_ends_for_other_reasons(void **state)
{
	struct cm_http *http = open_http(NULL);
	struct cm_http_stream *stream = open_stream(http, "/silent", UINT32_MAX);
	struct pollfd fds[2];
	struct cm_wake wake = { .fds = fds, .n = 2 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_call call = within(10000);
	char buf[16];
	size_t n = 0;
	int pipes[2][2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pipe2(pipes[i], O_CLOEXEC), 0);
		fds[i] = (struct pollfd){ .fd = pipes[i][0], .events = POLLIN };
	}
	assert_int_equal(write(pipes[1][1], "x", 1), 1);
	/* data first, but with the events */
	assert_int_equal(cm_http_stream_read(stream, buf, sizeof(buf), &wake, &call, &n, &err),
			 CM_HTTP_DATA);
	assert_int_equal(n, 5);
	assert_int_equal(fds[1].revents, POLLIN);
	assert_int_equal(cm_http_stream_read(stream, buf, sizeof(buf), &wake, &call, &n, &err),
			 CM_HTTP_WOKEN);
	assert_int_equal(fds[0].revents, 0);
	assert_int_equal(fds[1].revents, POLLIN);
	assert_int_equal(read(pipes[1][0], buf, 1), 1);
	/* the other end is gone, which is no POLLIN */
	(void)close(pipes[0][1]);
	assert_int_equal(cm_http_stream_read(stream, buf, sizeof(buf), &wake, &call, &n, &err),
			 CM_HTTP_WOKEN);
	assert_int_equal(fds[0].revents, POLLHUP);
	/* a deadline of the read is not one of the stream */
	call = within(100);
	assert_int_equal(cm_http_stream_read(stream, buf, sizeof(buf), NULL, &call, &n, &err),
			 CM_E_TIMEOUT);
	call = within(100);
	assert_int_equal(cm_http_stream_read(stream, buf, sizeof(buf), NULL, &call, &n, &err),
			 CM_E_TIMEOUT);
	call.cancel_fd = pipes[0][0];
	assert_int_equal(cm_http_stream_read(stream, buf, sizeof(buf), NULL, &call, &n, &err),
			 CM_E_CANCELLED);
	cm_http_stream_close(stream);
	(void)close(pipes[0][0]);
	(void)close(pipes[1][0]);
	(void)close(pipes[1][1]);
	cm_http_close(http);
}

/* The request is the caller's again as soon as the headers are there. */
static void a_request_need_not_live_on(void **state)
{
	struct cm_http *http = open_http(NULL);
	size_t size = 8UL * 1024 * 1024;
	char *body = malloc(size);
	struct cm_http_request request = {
		.method = "POST", .url = at("/early/200"), .body = body, .body_len = size
	};
	struct cm_http_stream *stream = NULL;
	struct cm_call call = within(10000);
	char buf[64];
	size_t n = 0;

	(void)state;
	assert_non_null(body);
	memset(body, 'b', size);
	assert_int_equal(cm_http_stream_open(http, &request, &call, &stream, NULL), CM_OK);
	free(body);
	assert_int_equal(cm_http_stream_read(stream, buf, sizeof(buf), NULL, &call, &n, NULL),
			 CM_HTTP_DATA);
	assert_int_equal(cm_http_stream_read(stream, buf, sizeof(buf), NULL, &call, &n, NULL),
			 CM_HTTP_END);
	cm_http_stream_close(stream);
	cm_http_close(http);
}

static bool attempt_stream(void *data)
{
	struct cm_http_request request = { .method = "GET", .url = data };
	struct cm_http_stream *stream = NULL;
	struct cm_http *http = NULL;
	struct cm_error err = CM_ERROR_INIT;
	struct cm_call call = within(5000);
	char buf[65536];
	size_t all = 0;
	size_t n = 0;
	int r = cm_http_open(NULL, &http, &err);

	if (r == CM_OK)
		r = cm_http_stream_open(http, &request, &call, &stream, &err);
	if (r == CM_OK) {
		while ((r = cm_http_stream_read(stream, buf, sizeof(buf), NULL, &call, &n, &err)) ==
		       CM_HTTP_DATA)
			all += n;
	}
	cm_alloc_fail_after(-1);
	cm_http_stream_close(stream);
	cm_http_close(http);
	if (r == CM_HTTP_END)
		assert_int_equal(all, 1000000);
	return r == CM_HTTP_END;
}

static void each_allocation_may_fail(void **state)
{
	size_t fds = count_fds();

	(void)state;
	assert_true(fail_each_allocation(attempt_stream, (void *)at("/big/1000000")) > 20);
	assert_int_equal(count_fds(), fds);
}

/* --- connections ------------------------------------------------------------------------------ */

static struct cm_http_conn *open_conn(struct cm_http *http, const char *scheme)
{
	static const char hello[] = "GET /raw HTTP/1.1\r\nHost: x\r\n\r\n";
	struct cm_http_conn *conn = NULL;
	struct cm_call call = within(5000);
	struct cm_error err = CM_ERROR_INIT;
	char buf[256];
	size_t n = 0;

	if (cm_http_connect(http, address(scheme, "127.0.0.1", server.http, "/not-used"), &call,
			    &conn, &err) != CM_OK)
		fail_msg("%s", err.msg);
	assert_int_equal(cm_http_conn_write(conn, hello, sizeof(hello) - 1, &call, &err), CM_OK);
	assert_int_equal(cm_http_conn_read(conn, buf, sizeof(buf), NULL, &call, &n, &err),
			 CM_HTTP_DATA);
	assert_memory_equal(buf, "HTTP/1.1 101", 12);
	return conn;
}

static void a_connection_carries_anything(void **state)
{
	struct cm_http *http = open_http(NULL);
	struct cm_http_conn *conn = open_conn(http, "ws");
	struct cm_call call = within(10000);
	struct cm_http_answer answer;
	struct cm_error err = CM_ERROR_INIT;
	struct pollfd fd = { .events = POLLIN };
	struct cm_wake wake = { .fds = &fd, .n = 1 };
	char buf[256];
	size_t n = 0;
	int pipe_fds[2];

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(cm_http_conn_write(conn, "ping", 4, &call, &err), CM_OK);
		/* a request of the pool leaves it alone, though it has something to read */
		usleep(1100000);
		assert_int_equal(get(http, at("/echo"), &answer, &err), CM_OK);
		cm_http_answer_clear(&answer);
		assert_int_equal(cm_http_conn_read(conn, buf, sizeof(buf), NULL, &call, &n, &err),
				 CM_HTTP_DATA);
		assert_int_equal(n, 4);
		assert_memory_equal(buf, "ping", 4);
	}
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	assert_int_equal(write(pipe_fds[1], "x", 1), 1);
	fd.fd = pipe_fds[0];
	assert_int_equal(cm_http_conn_read(conn, buf, sizeof(buf), &wake, &call, &n, &err),
			 CM_HTTP_WOKEN);
	call = within(100);
	assert_int_equal(cm_http_conn_read(conn, buf, sizeof(buf), NULL, &call, &n, &err),
			 CM_E_TIMEOUT);
	/* nobody reads what comes back, so that at last nobody takes what we write */
	call = within(1000);
	n = 64UL * 1024 * 1024;
	{
		char *much = calloc(1, n);

		assert_non_null(much);
		assert_int_equal(cm_http_conn_write(conn, much, n, &call, &err), CM_E_TIMEOUT);
		free(much);
	}
	(void)close(pipe_fds[0]);
	(void)close(pipe_fds[1]);
	cm_http_conn_close(conn);
	cm_http_close(http);
}

static void a_connection_has_an_end(void **state)
{
	static const char hello[] = "GET /short HTTP/1.1\r\nHost: x\r\n\r\n";
	struct cm_http *http = open_http(NULL);
	struct cm_http_conn *conn = NULL;
	struct cm_call call = within(5000);
	struct cm_error err = CM_ERROR_INIT;
	char buf[4096];
	size_t n = 0;
	int r;

	(void)state;
	assert_int_equal(cm_http_connect(http, at("/"), &call, &conn, &err), CM_OK);
	assert_int_equal(cm_http_conn_write(conn, hello, sizeof(hello) - 1, &call, &err), CM_OK);
	while ((r = cm_http_conn_read(conn, buf, sizeof(buf), NULL, &call, &n, &err)) ==
	       CM_HTTP_DATA)
		;
	assert_int_equal(r, CM_HTTP_END);
	cm_http_conn_close(conn);
	conn = NULL;
	assert_int_equal(cm_http_connect(http, "ws://example.test/", &call, &conn, &err),
			 CM_E_INVALID);
	assert_int_equal(cm_http_connect(http, "ftp://127.0.0.1/", &call, &conn, &err),
			 CM_E_INVALID);
	assert_null(conn);
	cm_http_close(http);
}

static bool attempt_conn(void *data)
{
	struct cm_http_conn *conn = NULL;
	struct cm_http *http = NULL;
	struct cm_error err = CM_ERROR_INIT;
	struct cm_call call = within(5000);
	int r = cm_http_open(NULL, &http, &err);

	if (r == CM_OK)
		r = cm_http_connect(http, data, &call, &conn, &err);
	if (r == CM_OK)
		r = cm_http_conn_write(conn, "x", 1, &call, &err);
	cm_alloc_fail_after(-1);
	cm_http_conn_close(conn);
	cm_http_close(http);
	return r == CM_OK;
}

static void each_allocation_of_a_connection_may_fail(void **state)
{
	size_t fds = count_fds();

	(void)state;
	assert_true(fail_each_allocation(attempt_conn, (void *)at("/")) > 10);
	assert_int_equal(count_fds(), fds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_read_to_its_end),
		cmocka_unit_test(connections_are_kept_at_the_end_alone),
		cmocka_unit_test(requests_go_on_beside_a_stream),
		cmocka_unit_test(what_is_no_success_has_its_body),
		cmocka_unit_test(an_end_that_is_none_is_an_error),
		cmocka_unit_test(failures_to_open_leave_nothing),
		cmocka_unit_test(a_wait_ends_for_other_reasons),
		cmocka_unit_test(a_request_need_not_live_on),
		cmocka_unit_test(each_allocation_may_fail),
		cmocka_unit_test(a_connection_carries_anything),
		cmocka_unit_test(a_connection_has_an_end),
		cmocka_unit_test(each_allocation_of_a_connection_may_fail),
	};

	return cmocka_run_group_tests(tests, server_setup, server_teardown);
}
