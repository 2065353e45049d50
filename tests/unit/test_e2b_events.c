/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent tells of commands and of files that change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>

#include "providers/e2b/events.h"
#include "runtime/base/fd.h"

static int read_event(const char *json, struct cm_buf *out, struct cm_e2b_event *ret)
{
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_e2b_event_read(json, strlen(json), out, ret, &err);

	assert_int_equal(r, err.code);
	return r;
}

static void test_start(void **state)
{
	static const char *const same[] = {
		"{\"event\":{\"start\":{\"pid\":15029}}}",
		"{\"event\":{\"start\":{\"pid\":\"15029\"}}}",
		" {\n\"event\" : { \"start\" : { \"pid\" : 15029, \"later\": [1, null] } } , \"x\":{} }",
	};
	static const char *const bad[] = {
		"{\"event\":{\"start\":{}}}",
		"{\"event\":{\"start\":{\"pid\":0}}}",
		"{\"event\":{\"start\":{\"pid\":-4}}}",
		"{\"event\":{\"start\":{\"pid\":\"x\"}}}",
		"{\"event\":{\"start\":{\"pid\":4294967297}}}",
		"{\"event\":{\"start\":{\"pid\":1.5}}}",
	};
	CM_AUTO_BUF struct cm_buf out = { .max = 4096 };

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(same); i++) {
		struct cm_e2b_event event;

		assert_int_equal(read_event(same[i], &out, &event), CM_OK);
		assert_int_equal(event.kind, CM_E2B_EVENT_START);
		assert_int_equal(event.pid, 15029);
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		struct cm_e2b_event event = { .pid = 77 };

		assert_int_equal(read_event(bad[i], &out, &event), CM_E_PROTOCOL);
		assert_int_equal(event.pid, 77);
	}
}

static void assert_data(const char *json, int stream, const char *text, size_t len)
{
	CM_AUTO_BUF struct cm_buf out = { .max = 4096 };
	struct cm_e2b_event event;

	cm_buf_puts(&out, "of before");
	assert_int_equal(read_event(json, &out, &event), CM_OK);
	assert_int_equal(event.kind, CM_E2B_EVENT_DATA);
	assert_int_equal(event.stream, stream);
	assert_int_equal(out.len, len);
	assert_memory_equal(out.data, text, len);
}

static void test_data(void **state)
{
	CM_AUTO_BUF struct cm_buf out = { .max = 4096 };
	struct cm_e2b_event event;

	(void)state;
	assert_data("{\"event\":{\"data\":{\"stdout\":\"b3V0Cg==\"}}}", 1, "out\n", 4);
	assert_data("{\"event\":{\"data\":{\"stderr\":\"ZXJyCg==\"}}}", 2, "err\n", 4);
	assert_data("{\"event\":{\"data\":{\"pty\":\"AP8K\"}}}", 1, "\0\xff\n", 3);
	assert_data("{\"event\":{\"data\":{\"stdout\":null,\"stderr\":\"YQ==\"}}}", 2, "a", 1);
	assert_int_equal(read_event("{\"event\":{\"data\":{}}}", &out, &event), CM_OK);
	assert_int_equal(event.kind, CM_E2B_EVENT_OTHER);
	assert_int_equal(read_event("{\"event\":{\"data\":{\"stdout\":\"\"}}}", &out, &event),
			 CM_OK);
	assert_int_equal(event.kind, CM_E2B_EVENT_OTHER);
	assert_int_equal(read_event("{\"event\":{\"data\":{\"stdout\":7}}}", &out, &event),
			 CM_E_PROTOCOL);
	assert_int_equal(read_event("{\"event\":{\"data\":{\"stdout\":\"b3V\"}}}", &out, &event),
			 CM_E_PROTOCOL);
	assert_int_equal(
		read_event("{\"event\":{\"data\":{\"stdout\":\"b3V0\\n\"}}}", &out, &event),
		CM_E_PROTOCOL);
}

static void test_end(void **state)
{
	static const struct {
		const char *end;
		int exit_code;
		int signal;
		bool is_unknown;
	} rows[] = {
		/* what is 0 is left out */
		{ "{\"exited\":true,\"status\":\"exit status 0\"}", 0, 0, false },
		{ "{}", 0, 0, false },
		{ "{\"exitCode\":3,\"exited\":true,\"status\":\"exit status 3\",\"error\":\"exit status "
		  "3\"}",
		  3, 0, false },
		{ "{\"exit_code\":\"3\",\"exited\":true}", 3, 0, false },
		{ "{\"exitCode\":null,\"exited\":true}", 0, 0, false },
		{ "{\"exitCode\":-1,\"status\":\"signal: killed\",\"error\":\"signal: killed\"}", 0,
		  SIGKILL, false },
		{ "{\"exitCode\":\"-1\",\"status\":\"signal: terminated\"}", 0, SIGTERM, false },
		{ "{\"exitCode\":-1,\"status\":\"signal: segmentation fault (core dumped)\"}", 0,
		  SIGSEGV, false },
		{ "{\"exitCode\":-1,\"error\":\"signal: hangup\"}", 0, SIGHUP, false },
		{ "{\"exitCode\":-1,\"status\":\"signal: signal 40\"}", 0, 40, false },
		{ "{\"exitCode\":-1,\"status\":\"something else\"}", 0, 0, true },
		{ "{\"exitCode\":-1}", 0, 0, true },
		{ "{\"exitCode\":70000,\"exited\":true}", 0, 0, true },
		/* a command says what it likes, but it has exited */
		{ "{\"exitCode\":1,\"exited\":true,\"status\":\"signal: killed\"}", 1, 0, false },
	};
	CM_AUTO_BUF struct cm_buf out = { .max = 4096 };
	struct cm_e2b_event event;

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		char json[256];

		(void)snprintf(json, sizeof(json), "{\"event\":{\"end\":%s}}", rows[i].end);
		assert_int_equal(read_event(json, &out, &event), CM_OK);
		assert_int_equal(event.kind, CM_E2B_EVENT_END);
		assert_int_equal(event.exit_code, rows[i].exit_code);
		assert_int_equal(event.signal, rows[i].signal);
		assert_int_equal(event.is_unknown, rows[i].is_unknown);
	}
	assert_int_equal(read_event("{\"event\":{\"end\":{\"exitCode\":\"x\"}}}", &out, &event),
			 CM_E_PROTOCOL);
}

static void test_others(void **state)
{
	static const char *const fine[] = {
		"{\"event\":{\"keepalive\":{}}}",
		"{\"event\":{\"of_next_year\":{\"a\":1}}}",
		"{}",
		"{\"event\":null}",
		"{\"event\":7}",
	};
	static const char *const bad[] = { "", "{", "[]", "7", "{\"event\": ", "{\"a\":1,\"a\":2}" };
	CM_AUTO_BUF struct cm_buf out = { .max = 4096 };
	struct cm_e2b_event event;

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(fine); i++) {
		assert_int_equal(read_event(fine[i], &out, &event), CM_OK);
		assert_int_equal(event.kind, CM_E2B_EVENT_OTHER);
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++)
		assert_int_equal(read_event(bad[i], &out, &event), CM_E_PROTOCOL);
}

static void test_too_large(void **state)
{
	CM_AUTO_BUF struct cm_buf out = { .max = 4 };
	struct cm_e2b_event event;

	(void)state;
	assert_int_equal(
		read_event("{\"event\":{\"data\":{\"stdout\":\"YWJjZGVm\"}}}", &out, &event),
		CM_E_LIMIT);
}

static void test_watch(void **state)
{
	static const struct {
		const char *json;
		enum cm_e2b_watch_kind what;
		enum cm_watch_kind kind;
		const char *name;
	} rows[] = {
		{ "{\"start\":{}}", CM_E2B_WATCH_START, CM_WATCH_READY, NULL },
		{ "{\"keepalive\":{}}", CM_E2B_WATCH_OTHER, CM_WATCH_READY, NULL },
		{ "{\"filesystem\":{\"name\":\"n\",\"type\":\"EVENT_TYPE_CREATE\",\"entry\":{\"size\":\"1\"}"
		  "}}",
		  CM_E2B_WATCH_EVENT, CM_WATCH_CREATED, "n" },
		{ "{\"filesystem\":{\"name\":\"sub/n2\",\"type\":\"EVENT_TYPE_WRITE\"}}",
		  CM_E2B_WATCH_EVENT, CM_WATCH_MODIFIED, "sub/n2" },
		{ "{\"filesystem\":{\"name\":\"n\",\"type\":\"EVENT_TYPE_REMOVE\"}}",
		  CM_E2B_WATCH_EVENT, CM_WATCH_REMOVED, "n" },
		{ "{\"filesystem\":{\"name\":\"n\",\"type\":\"EVENT_TYPE_RENAME\"}}",
		  CM_E2B_WATCH_EVENT, CM_WATCH_RENAMED, "n" },
		{ "{\"filesystem\":{\"name\":\"n\",\"type\":5}}", CM_E2B_WATCH_EVENT,
		  CM_WATCH_ATTRIBUTES, "n" },
		{ "{\"filesystem\":{\"name\":\"n\",\"type\":\"EVENT_TYPE_LATER\"}}",
		  CM_E2B_WATCH_OTHER, CM_WATCH_READY, NULL },
		{ "{\"filesystem\":{}}", CM_E2B_WATCH_OTHER, CM_WATCH_READY, NULL },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		enum cm_e2b_watch_kind what = CM_E2B_WATCH_OTHER;
		enum cm_watch_kind kind = CM_WATCH_READY;
		CM_AUTO_FREE char *name = NULL;

		assert_int_equal(cm_e2b_watch_read(rows[i].json, strlen(rows[i].json), &what, &kind,
						   &name, NULL),
				 CM_OK);
		assert_int_equal(what, rows[i].what);
		if (!rows[i].name) {
			assert_null(name);
			continue;
		}
		assert_int_equal(kind, rows[i].kind);
		assert_string_equal(name, rows[i].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start),	  cmocka_unit_test(test_data),
		cmocka_unit_test(test_end),	  cmocka_unit_test(test_others),
		cmocka_unit_test(test_too_large), cmocka_unit_test(test_watch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
