/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket frames split at every byte, everything a server must not send, and the handshake. */
#include "providers/websocket_frame.h"
#include "providers/websocket_handshake.h"
#include "tests/unit/test_base.h"

#define TRACE_MAX (4UL * 1024 * 1024)

/* --- frames ---------------------------------------------------------------------------------- */

/* What a parser says of bytes given in pieces of `step`, as text; pieces of a message put together. */
static int parse_all(const char *bytes, size_t len, size_t step, struct cm_buf *trace,
		     unsigned int *ret_wrong, struct cm_error *err)
{
	struct cm_ws_parser p;
	int r = CM_OK;

	cm_ws_parser_init(&p);
	for (size_t at = 0; at < len && r == CM_OK; at += step) {
		size_t n = len - at < step ? len - at : step;
		/* exactly as large, so that a sanitizer sees a byte too many read */
		char *piece = malloc(n);
		size_t begin = 0;

		assert_non_null(piece);
		memcpy(piece, bytes + at, n);
		while (begin < n && r == CM_OK) {
			struct cm_ws_event e = { 0 };
			size_t used = 0;

			r = cm_ws_parse(&p, piece + begin, n - begin, &used, &e, err);
			if (r < 0)
				break;
			assert_true(used > 0 && used <= n - begin);
			begin += used;
			switch (e.kind) {
			case CM_WS_TEXT:
				assert_int_equal(e.bytes[e.len], '\0');
				cm_buf_printf(trace, "text %zu ", e.len);
				cm_buf_append(trace, e.bytes, e.len);
				cm_buf_putc(trace, '\n');
				break;
			case CM_WS_BINARY:
				if (e.is_first)
					cm_buf_puts(trace, "binary ");
				if (e.len > 0)
					cm_buf_append(trace, e.bytes, e.len);
				if (e.is_last)
					cm_buf_putc(trace, '\n');
				break;
			case CM_WS_PING:
			case CM_WS_PONG:
				cm_buf_printf(trace, "%s %.*s\n",
					      e.kind == CM_WS_PING ? "ping" : "pong", (int)e.len,
					      e.bytes);
				break;
			case CM_WS_CLOSE:
				cm_buf_printf(trace, "close %u %.*s\n", e.close_code, (int)e.len,
					      e.bytes);
				break;
			case CM_WS_NOTHING:
				assert_int_equal(begin, n);
				break;
			case CM_WS_CUT:
			case CM_WS_WOKEN:
				fail_msg("not of a parser");
			}
		}
		free(piece);
	}
	*ret_wrong = p.wrong;
	if (r < 0) {
		struct cm_ws_event e = { .kind = CM_WS_WOKEN };
		size_t used = UNTOUCHED;

		/* and it stays so, with nothing given */
		assert_int_equal(cm_ws_parse(&p, "\x81\x00", 2, &used, &e, NULL), CM_E_PROTOCOL);
		assert_int_equal(used, UNTOUCHED);
		assert_int_equal(e.kind, CM_WS_WOKEN);
	}
	cm_ws_parser_clear(&p);
	return r;
}

static void assert_events(const char *bytes, size_t len, const char *expected)
{
	for (size_t step = 1; step <= len; step++) {
		struct cm_error err = CM_ERROR_INIT;
		unsigned int wrong = 0;
		struct cm_buf trace;

		cm_buf_init(&trace, TRACE_MAX);
		if (parse_all(bytes, len, step, &trace, &wrong, &err) < 0)
			fail_msg("in pieces of %zu: %s", step, err.msg);
		cm_buf_putc(&trace, '\0');
		if (strcmp(trace.data, expected) != 0)
			fail_msg("in pieces of %zu: '%s', not '%s'", step, trace.data, expected);
		cm_buf_clear(&trace);
	}
}
#define EVENTS(bytes, expected) assert_events(bytes, sizeof(bytes) - 1, expected)

static void test_messages(void **state)
{
	(void)state;
	EVENTS("\x81\x05hello", "text 5 hello\n");
	EVENTS("\x81\x00\x82\x00", "text 0 \nbinary \n");
	EVENTS("\x82\x06\x01out\r\n", "binary \x01out\r\n\n");
	/* in parts, the last of them empty; with something in between */
	EVENTS("\x01\x03hel\x89\x02hi\x80\x02lo", "ping hi\ntext 5 hello\n");
	EVENTS("\x02\x01\x01\x8a\x00\x00\x02"
	       "ab\x00\x00\x80\x00",
	       "binary \x01pong \nab\n");
	EVENTS("\x01\x00\x00\x00\x80\x02ok", "text 2 ok\n");
	/* a character in two frames */
	EVENTS("\x01\x01\xc3\x80\x01\xa9", "text 2 \xc3\xa9\n");
	EVENTS("\x88\x00", "close 1005 \n");
	EVENTS("\x88\x02\x03\xe8", "close 1000 \n");
	EVENTS("\x88\x05\x0f\xa0"
	       "bye",
	       "close 4000 bye\n");
	/* after a close frame nothing counts */
	EVENTS("\x88\x00\xff\xff\xff", "close 1005 \n");
}

/* A frame's beginning: opcode with its flags, and a length in the form that it wants. */
static void put_head(struct cm_buf *b, unsigned int first, uint64_t len)
{
	size_t width = len < 126 ? 0 : len <= 0xffff ? 2 : 8;

	cm_buf_putc(b, (char)first);
	cm_buf_putc(b, (char)(width == 0 ? len : width == 2 ? 126 : 127));
	for (size_t i = width; i-- > 0;)
		cm_buf_putc(b, (char)(len >> (8 * i)));
}

static void test_lengths(void **state)
{
	static const size_t lens[] = { 125, 126, 127, 65535, 65536, 70000, CM_WS_TEXT_MAX };
	static const size_t steps[] = { 1, 2, 3, 4093, 65536, SIZE_MAX / 2 };

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(lens); i++) {
		for (size_t k = 0; k < CM_ARRAY_SIZE(steps); k++) {
			struct cm_error err = CM_ERROR_INIT;
			unsigned int wrong = 0;
			struct cm_buf in;
			struct cm_buf trace;

			if (lens[i] > 70000 && steps[k] < 4000)
				continue;
			cm_buf_init(&in, TRACE_MAX);
			cm_buf_init(&trace, TRACE_MAX);
			put_head(&in, 0x81, lens[i]);
			for (size_t n = 0; n < lens[i]; n++)
				cm_buf_putc(&in, 'x');
			assert_int_equal(parse_all(in.data, in.len, steps[k], &trace, &wrong, &err),
					 CM_OK);
			assert_true(trace.len > lens[i]);
			cm_buf_clear(&in);
			cm_buf_clear(&trace);
		}
	}
}

static void assert_refused(const char *bytes, size_t len, unsigned int wrong, const char *why)
{
	for (size_t step = 1; step <= len; step++) {
		struct cm_error err = CM_ERROR_INIT;
		unsigned int got = 0;
		struct cm_buf trace;
		int r;

		cm_buf_init(&trace, TRACE_MAX);
		r = parse_all(bytes, len, step, &trace, &got, &err);
		if (r >= 0)
			fail_msg("in pieces of %zu it was taken: '%s'", step, why);
		assert_int_equal(r, wrong == CM_WS_CLOSE_TOO_LONG ? CM_E_LIMIT : CM_E_PROTOCOL);
		assert_int_equal(err.code, r);
		assert_int_equal(got, wrong);
		if (!strstr(err.msg, why))
			fail_msg("'%s' has no '%s'", err.msg, why);
		cm_buf_clear(&trace);
	}
}
#define REFUSED(bytes, wrong, why) assert_refused(bytes, sizeof(bytes) - 1, wrong, why)

static void test_violations(void **state)
{
	(void)state;
	REFUSED("\xc1\x00", 1002, "reserved bits");
	REFUSED("\xa1\x00", 1002, "reserved bits");
	REFUSED("\x91\x00", 1002, "reserved bits");
	REFUSED("\x81\x80", 1002, "masked");
	REFUSED("\x83\x00", 1002, "reserved kind");
	REFUSED("\x87\x00", 1002, "reserved kind");
	REFUSED("\x8b\x00", 1002, "reserved kind");
	REFUSED("\x8f\x00", 1002, "reserved kind");
	REFUSED("\x80\x00", 1002, "no message");
	REFUSED("\x01\x01"
		"a\x81\x01"
		"b",
		1002, "inside another");
	REFUSED("\x02\x01"
		"a\x82\x01"
		"b",
		1002, "inside another");
	/* once the message is over there is nothing to go on with */
	REFUSED("\x81\x00\x80\x00", 1002, "no message");
	REFUSED("\x09\x00", 1002, "in parts");
	REFUSED("\x08\x00", 1002, "in parts");
	REFUSED("\x89\x7e\x00\x7e", 1002, "control frame too long");
	REFUSED("\x88\x7f", 1002, "control frame too long");
	/* lengths that are not in their shortest form, and one with its highest bit */
	REFUSED("\x81\x7e\x00\x7d", 1002, "not written so");
	REFUSED("\x82\x7f\x00\x00\x00\x00\x00\x00\xff\xff", 1002, "not written so");
	REFUSED("\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00", 1002, "not written so");
	REFUSED("\x82\x7f\x40\x00\x00\x00\x00\x00\x00\x00", 1009, "frame too long");
	/* one above CM_WS_TEXT_MAX, at once and in parts; nothing of it need come */
	REFUSED("\x81\x7f\x00\x00\x00\x00\x00\x10\x00\x01", 1009, "message too long");
	REFUSED("\x01\x01"
		"a\x00\x7f\x00\x00\x00\x00\x00\x10\x00\x00",
		1009, "message too long");
	REFUSED("\x88\x01\x03", 1002, "half a close code");
	REFUSED("\x88\x02\x03\xed", 1002, "close code");
	REFUSED("\x88\x02\x03\xee", 1002, "close code");
	REFUSED("\x88\x02\x03\xec", 1002, "close code");
	REFUSED("\x88\x02\x03\xf7", 1002, "close code");
	REFUSED("\x88\x02\x03\xe7", 1002, "close code");
	REFUSED("\x88\x02\x13\x88", 1002, "close code");
	REFUSED("\x88\x02\x07\xd0", 1002, "close code");
	REFUSED("\x88\x03\x03\xe8\xff", 1007, "UTF-8");
	REFUSED("\x81\x01\xff", 1007, "UTF-8");
	/* overlong, a surrogate, above U+10FFFF, half a character */
	REFUSED("\x81\x02\xc0\x80", 1007, "UTF-8");
	REFUSED("\x81\x03\xed\xa0\x80", 1007, "UTF-8");
	REFUSED("\x81\x04\xf4\x90\x80\x80", 1007, "UTF-8");
	REFUSED("\x01\x01\xc3\x80\x00", 1007, "UTF-8");
}

static void assert_frame(size_t len, const char *head, size_t head_len)
{
	static const unsigned char mask[4] = { 0x11, 0x22, 0x44, 0x88 };
	struct cm_buf payload;
	struct cm_buf frame;

	cm_buf_init(&payload, TRACE_MAX);
	cm_buf_init(&frame, TRACE_MAX);
	for (size_t i = 0; i < len; i++)
		cm_buf_putc(&payload, (char)i);
	cm_ws_frame(&frame, CM_WS_OP_BINARY, payload.data, len, mask);
	assert_int_equal(frame.len, head_len + 4 + len);
	assert_memory_equal(frame.data, head, head_len);
	assert_memory_equal(frame.data + head_len, mask, 4);
	for (size_t i = 0; i < len; i++)
		assert_int_equal((unsigned char)frame.data[head_len + 4 + i],
				 (unsigned char)i ^ mask[i % 4]);
	cm_buf_clear(&payload);
	cm_buf_clear(&frame);
}

static void test_frames_out(void **state)
{
	struct cm_buf small;

	(void)state;
	assert_frame(0, "\x82\x80", 2);
	assert_frame(125, "\x82\xfd", 2);
	assert_frame(126, "\x82\xfe\x00\x7e", 4);
	assert_frame(65535, "\x82\xfe\xff\xff", 4);
	assert_frame(65536, "\x82\xff\x00\x00\x00\x00\x00\x01\x00\x00", 10);
	cm_buf_init(&small, 8);
	cm_ws_frame(&small, CM_WS_OP_TEXT, "abcdef", 6, (const unsigned char *)"abcd");
	assert_int_equal(cm_buf_status(&small), CM_E_LIMIT);
	cm_buf_clear(&small);
}

static bool parse_once(void *data)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_ws_event e = { 0 };
	struct cm_ws_parser p;
	size_t used = 0;
	int r;

	(void)data;
	cm_ws_parser_init(&p);
	r = cm_ws_parse(&p, "\x81\x05hello", 7, &used, &e, &err);
	if (r < 0)
		assert_int_equal(r, CM_E_NOMEM);
	cm_ws_parser_clear(&p);
	return r == CM_OK;
}

static void test_no_memory(void **state)
{
	(void)state;
	assert_true(fail_each_allocation(parse_once, NULL) > 0);
}

/* --- the handshake --------------------------------------------------------------------------- */

#define KEY "dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

static void test_accept(void **state)
{
	static const struct {
		const char *key;
		const char *accept;
	} rows[] = {
		/* RFC 6455, section 1.3 */
		{ KEY, ACCEPT },
		{ "x3JJHMbDL1EzLkh9GBhXDw==", "HSmrc0sMlYUkAGmm5OPpG2HaGWk=" },
	};
	struct cm_buf out;

	(void)state;
	cm_buf_init(&out, 64);
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		cm_buf_reset(&out);
		cm_ws_accept(&out, rows[i].key);
		assert_string_equal(out.data, rows[i].accept);
	}
	cm_buf_reset(&out);
	cm_ws_key(&out, (const unsigned char *)"the sample nonce");
	assert_string_equal(out.data, KEY);
	cm_buf_clear(&out);
}

static void test_urls(void **state)
{
	static const char *const good[] = { "wss://h", "wss://h/", "ws://127.0.0.1:1/a?b=c&d",
					    "wss://[::1]:9/x", "wss://h?q" };
	static const char *const bad[] = { "",		 "http://h/",	"wss:/h",      "wss://",
					   "wss:///x",	 "wss://?x",	"wss://u@h/",  "wss://h/#f",
					   "wss://h/ b", "wss://h\r\n", "wss://h/\x7f" };
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(good); i++)
		assert_int_equal(cm_ws_check_url(good[i], &err), CM_OK);
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		if (cm_ws_check_url(bad[i], &err) != CM_E_INVALID)
			fail_msg("'%s' was taken", bad[i]);
	}
}

static void test_request(void **state)
{
	static const char *const protocols[] = { "exec.v1", "eyJ.a-b_c.d", NULL };
	static const char *const spoiled[] = { "exec.v1", "a\r\nX: y", NULL };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_buf out;

	(void)state;
	cm_buf_init(&out, 4096);
	assert_int_equal(cm_ws_request(&out, "wss://h:9/p?q=1", KEY, protocols, &err), CM_OK);
	assert_string_equal(out.data, "GET /p?q=1 HTTP/1.1\r\nHost: h:9\r\nUpgrade: websocket\r\n"
				      "Connection: Upgrade\r\nSec-WebSocket-Key: " KEY "\r\n"
				      "Sec-WebSocket-Version: 13\r\n"
				      "Sec-WebSocket-Protocol: exec.v1, eyJ.a-b_c.d\r\n\r\n");
	cm_buf_reset(&out);
	assert_int_equal(cm_ws_request(&out, "ws://h?q", KEY, NULL, &err), CM_OK);
	assert_memory_equal(out.data, "GET /?q HTTP/1.1\r\nHost: h\r\n", 27);
	assert_null(strstr(out.data, "Protocol"));
	cm_buf_reset(&out);
	assert_int_equal(cm_ws_request(&out, "ws://h", KEY, spoiled, &err), CM_E_INVALID);
	/* it may be a secret */
	assert_null(strstr(err.msg, "X: y"));
	cm_buf_clear(&out);
}

#define HEAD                                                                                       \
	"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"        \
	"Sec-WebSocket-Accept: " ACCEPT "\r\n"
#define CHOICE "Sec-WebSocket-Protocol: exec.v1\r\n"

static int check_answer(const char *head, const char *const *protocols, int *status,
			struct cm_error *err)
{
	return cm_ws_check_answer(head, strlen(head), KEY, protocols, status, err);
}

static void test_answers(void **state)
{
	static const char *const offered[] = { "exec.v1", "jwt", NULL };
	static const char *const good[] = {
		HEAD CHOICE "\r\n",
		"HTTP/1.1 101\r\nupgrade:WebSocket\r\nCONNECTION: keep-alive, UPGRADE \r\n"
		"sec-websocket-accept:" ACCEPT "\r\nsec-websocket-protocol:\t exec.v1 \r\n\r\n",
	};
	static const struct {
		const char *head;
		int code;
		int status;
	} bad[] = {
		{ "", CM_E_PROTOCOL, 0 },
		{ "\r\n\r\n", CM_E_PROTOCOL, 0 },
		{ "HTTP/1.0 101 x\r\n\r\n", CM_E_PROTOCOL, 0 },
		{ "HTTP/1.1 1x1 x\r\n\r\n", CM_E_PROTOCOL, 0 },
		{ "HTTP/1.1 1010\r\n\r\n", CM_E_PROTOCOL, 0 },
		{ "SSH-2.0-OpenSSH\r\n\r\n", CM_E_PROTOCOL, 0 },
		{ "HTTP/1.1 403 Forbidden\r\n\r\n", CM_E_REMOTE, 403 },
		{ "HTTP/1.1 200 OK\r\n\r\n", CM_E_REMOTE, 200 },
		/* no choice, another one, two */
		{ HEAD "\r\n", CM_E_PROTOCOL, 101 },
		{ HEAD "Sec-WebSocket-Protocol: exec.v2\r\n\r\n", CM_E_PROTOCOL, 101 },
		{ HEAD "Sec-WebSocket-Protocol: exec.v1, jwt\r\n\r\n", CM_E_PROTOCOL, 101 },
		{ HEAD "Sec-WebSocket-Protocol: EXEC.v1\r\n\r\n", CM_E_PROTOCOL, 101 },
		{ HEAD CHOICE CHOICE "\r\n", CM_E_PROTOCOL, 101 },
		{ HEAD CHOICE "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n", CM_E_PROTOCOL,
		  101 },
		{ HEAD CHOICE "Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n", CM_E_PROTOCOL, 101 },
		{ "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" CHOICE
		  "Sec-WebSocket-Accept: S3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
		  CM_E_PROTOCOL, 101 },
		{ "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" CHOICE "\r\n",
		  CM_E_PROTOCOL, 101 },
		{ "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " ACCEPT
		  "\r\n" CHOICE "\r\n",
		  CM_E_PROTOCOL, 101 },
		{ "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: " ACCEPT
		  "\r\n" CHOICE "\r\n",
		  CM_E_PROTOCOL, 101 },
		/* headers that are none */
		{ HEAD CHOICE "nothing\r\n\r\n", CM_E_PROTOCOL, 101 },
		{ HEAD CHOICE "a b: c\r\n\r\n", CM_E_PROTOCOL, 101 },
		{ HEAD CHOICE ": c\r\n\r\n", CM_E_PROTOCOL, 101 },
		{ HEAD CHOICE " folded\r\n\r\n", CM_E_PROTOCOL, 101 },
		{ HEAD CHOICE, CM_E_PROTOCOL, 101 },
	};
	struct cm_error err = CM_ERROR_INIT;
	int status = 0;

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(good); i++) {
		if (check_answer(good[i], offered, &status, &err) != CM_OK)
			fail_msg("%zu: %s", i, err.msg);
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		if (check_answer(bad[i].head, offered, &status, &err) != bad[i].code ||
		    status != bad[i].status)
			fail_msg("%zu: %d with %d", i, err.code, status);
	}
	assert_int_equal(check_answer(HEAD "\r\n", NULL, &status, &err), CM_OK);
	assert_int_equal(check_answer(HEAD CHOICE "\r\n", NULL, &status, &err), CM_E_PROTOCOL);
}

static void test_head_len(void **state)
{
	(void)state;
	assert_int_equal(cm_ws_head_len("", 0), 0);
	assert_int_equal(cm_ws_head_len("a\r\n\r", 4), 0);
	assert_int_equal(cm_ws_head_len("a\r\n\r\nrest", 9), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),   cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_violations), cmocka_unit_test(test_frames_out),
		cmocka_unit_test(test_no_memory),  cmocka_unit_test(test_accept),
		cmocka_unit_test(test_urls),	   cmocka_unit_test(test_request),
		cmocka_unit_test(test_answers),	   cmocka_unit_test(test_head_len),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
