/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the HTTP layer share: tests/helpers/http_server.py, and requests to it. */
#ifndef CM_TESTS_UNIT_HTTP_SERVER_H
#define CM_TESTS_UNIT_HTTP_SERVER_H

#include "providers/http.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "tests/unit/test_base.h"

/* one for all tests of a program */
static struct {
	pid_t pid;
	/* closed: it ends */
	int input_fd;
	char dir[64];
	int http;
	int tls;
	int self;
	int expired;
	int name;
	int proxy;
} server;

static inline void read_server_ports(int fd)
{
	char line[256] = "";
	size_t n = 0;

	while (n < sizeof(line) - 1 && !strchr(line, '\n')) {
		ssize_t got = read(fd, line + n, sizeof(line) - 1 - n);

		if (got <= 0)
			fail_msg("the server did not start: are python3 and openssl there?");
		n += (size_t)got;
	}
	assert_int_equal(sscanf(line, "http %d tls %d self %d expired %d name %d proxy %d",
				&server.http, &server.tls, &server.self, &server.expired,
				&server.name, &server.proxy),
			 6);
}

static inline int server_setup(void **state)
{
	int input[2];
	int output[2];

	(void)state;
	(void)snprintf(server.dir, sizeof(server.dir), "/tmp/cm-test-http-XXXXXX");
	assert_non_null(mkdtemp(server.dir));
	assert_int_equal(pipe2(input, O_CLOEXEC), 0);
	assert_int_equal(pipe2(output, O_CLOEXEC), 0);
	server.pid = fork_child();
	if (server.pid == 0) {
		if (dup2(input[0], 0) == 0 && dup2(output[1], 1) == 1)
			(void)execlp("python3", "python3", CM_TEST_HELPERS "/http_server.py",
				     server.dir, (char *)NULL);
		_exit(127);
	}
	(void)close(input[0]);
	(void)close(output[1]);
	server.input_fd = input[1];
	read_server_ports(output[0]);
	(void)close(output[0]);
	return 0;
}

static inline int server_teardown(void **state)
{
	(void)state;
	cm_fd_close(&server.input_fd);
	assert_int_equal(waitpid(server.pid, NULL, 0), server.pid);
	assert_int_equal(cm_remove_tree_at(AT_FDCWD, server.dir), 0);
	return 0;
}

/* In turn one of four buffers. */
static inline const char *address(const char *scheme, const char *host, int port, const char *path)
{
	static char buffers[4][512];
	static unsigned int next;
	char *buf = buffers[next++ % 4];

	(void)snprintf(buf, sizeof(buffers[0]), "%s://%s:%d%s", scheme, host, port, path);
	return buf;
}

static inline const char *at(const char *path)
{
	return address("http", "127.0.0.1", server.http, path);
}

static inline struct cm_call within(int64_t ms)
{
	return (struct cm_call){ .deadline_ms = cm_clock_mono_ms() + ms, .cancel_fd = -1 };
}

static inline struct cm_http *open_http(const struct cm_strv *env)
{
	struct cm_http_options options = { .env = env };
	struct cm_http *http = NULL;

	assert_int_equal(cm_http_open(&options, &http, NULL), CM_OK);
	return http;
}

/* 20 s are enough for all of it. */
static inline int ask(struct cm_http *http, const struct cm_http_request *request,
		      struct cm_http_answer *answer, struct cm_error *err)
{
	struct cm_call call = within(20000);

	cm_error_clear(err);
	return cm_http_send(http, request, &call, answer, err);
}

static inline int get(struct cm_http *http, const char *url, struct cm_http_answer *answer,
		      struct cm_error *err)
{
	struct cm_http_request request = { .method = "GET", .url = url, .is_idempotent = true };

	return ask(http, &request, answer, err);
}

/* How often the server was asked for a path. */
static inline int count_of(struct cm_http *http, const char *path)
{
	struct cm_http_answer answer;
	char url[256];
	int n;

	(void)snprintf(url, sizeof(url), "/count%s", path);
	assert_int_equal(get(http, at(url), &answer, NULL), CM_OK);
	assert_int_equal(answer.status, 200);
	n = (int)strtol(answer.body.data, NULL, 10);
	cm_http_answer_clear(&answer);
	return n;
}

#define assert_has(text, part)                                                                     \
	do {                                                                                       \
		if (!strstr(text, part))                                                           \
			fail_msg("'%s' is not in '%s'", part, text);                               \
	} while (0)
#define assert_has_not(text, part)                                                                 \
	do {                                                                                       \
		if (strstr(text, part))                                                            \
			fail_msg("'%s' is in '%s'", part, text);                                   \
	} while (0)

#endif
