/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of a WebSocket's server: the frames of them are the same however they are split, and what comes
 * of an answer to the handshake holds.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "providers/websocket_frame.h"
#include "providers/websocket_handshake.h"
#include "runtime/base/hash.h"
#include "runtime/base/text.h"
#include "tests/fuzz/fuzz.h"

struct outcome {
	int r;
	unsigned int wrong;
	/* of all that came, pieces of a message put together */
	uint64_t hash;
	size_t n;
};

static void check_event(const struct cm_ws_event *e)
{
	require(e->kind == CM_WS_BINARY || e->kind == CM_WS_NOTHING || e->bytes != NULL);
	require(e->kind != CM_WS_TEXT || (e->len <= CM_WS_TEXT_MAX && e->bytes[e->len] == '\0'));
	require(e->kind != CM_WS_PING || e->len <= CM_WS_CONTROL_MAX);
	require(e->kind != CM_WS_CLOSE || (e->close_code >= 1000 && e->close_code <= 4999));
	for (size_t i = 0; e->kind == CM_WS_TEXT && i < e->len;) {
		size_t n = cm_text_utf8_len(e->bytes + i, e->len - i);

		require(n > 0);
		i += n;
	}
}

static void take_event(struct outcome *o, const struct cm_ws_event *e)
{
	unsigned char kind = (unsigned char)e->kind;

	check_event(e);
	if (e->kind == CM_WS_NOTHING)
		return;
	if (e->kind != CM_WS_BINARY || e->is_first) {
		o->n++;
		o->hash = cm_hash(o->hash, &kind, 1);
		o->hash = cm_hash(o->hash, &e->close_code, sizeof(e->close_code));
	}
	if (e->len > 0)
		o->hash = cm_hash(o->hash, e->bytes, e->len);
	if (e->kind != CM_WS_BINARY || e->is_last)
		o->hash = cm_hash(o->hash, "|", 1);
}

static struct outcome parse(const uint8_t *data, size_t size, size_t step)
{
	struct outcome o = { .hash = CM_HASH_START };
	struct cm_ws_parser p;

	cm_ws_parser_init(&p);
	for (size_t at = 0; at < size && o.r == CM_OK; at += step) {
		size_t end = size - at < step ? size : at + step;

		for (size_t begin = at; begin < end && o.r == CM_OK;) {
			struct cm_ws_event e = { 0 };
			size_t used = 0;

			o.r = cm_ws_parse(&p, data + begin, end - begin, &used, &e, NULL);
			if (o.r < 0)
				break;
			require(used > 0 && used <= end - begin);
			begin += used;
			take_event(&o, &e);
		}
	}
	o.wrong = p.wrong;
	require((o.r < 0) == (o.wrong != 0));
	cm_ws_parser_clear(&p);
	return o;
}

static void handshake(const uint8_t *data, size_t size)
{
	static const char *const protocols[] = { "exec.v1", "eyJ0", NULL };
	static const char key[] = "dGhlIHNhbXBsZSBub25jZQ==";
	size_t head_len = cm_ws_head_len((const char *)data, size);
	int status = 0;
	int r;

	require(head_len <= size);
	if (head_len == 0)
		return;
	r = cm_ws_check_answer((const char *)data, head_len, key, protocols, &status, NULL);
	require(r < 0 || status == 101);
	require(r == CM_OK || r == CM_E_PROTOCOL || (r == CM_E_REMOTE && status != 101));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome whole;

	handshake(data, size);
	if (size == 0)
		return 0;
	whole = parse(data, size, size);
	for (size_t step = 1; step <= 16; step = step * 3 + 1) {
		struct outcome split = parse(data, size, step);

		require(split.r == whole.r && split.wrong == whole.wrong);
		/* of a message that is then cut off, more pieces may have come */
		require(split.n == whole.n || whole.r < 0);
		require(split.hash == whole.hash || whole.r < 0);
	}
	return 0;
}
