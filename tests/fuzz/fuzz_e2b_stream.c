/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of envelopes: cut into pieces or whole, it has the same messages and the same end. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "providers/e2b/connect.h"
#include "providers/e2b/events.h"
#include "tests/fuzz/fuzz.h"

/* What was read, as far as it has to be the same. */
struct outcome {
	size_t n_messages;
	uint64_t sum;
	int last;
};

static void look_at(const struct cm_e2b_envelopes *e, int what, struct outcome *o)
{
	const char *json = e->body.data ? e->body.data : "";
	struct cm_e2b_event event = { 0 };
	struct cm_buf out;
	char name[16];
	int r;

	require(e->body.len == e->len && e->body.len <= CM_E2B_ENVELOPE_MAX);
	for (size_t i = 0; i < e->body.len; i++)
		o->sum = o->sum * 31 + (uint8_t)json[i];
	o->n_messages++;
	if (what == CM_E2B_ENVELOPE_END) {
		r = cm_e2b_end_of(json, e->body.len, "do it", name, sizeof(name), NULL);
		require(r <= 0 && memchr(name, '\0', sizeof(name)) != NULL);
		require(r != CM_OK || name[0] == '\0');
		return;
	}
	cm_buf_init(&out, 65536);
	r = cm_e2b_event_read(json, e->body.len, &out, &event, NULL);
	require(r <= 0);
	if (r == CM_OK && event.kind == CM_E2B_EVENT_START)
		require(event.pid > 0);
	if (r == CM_OK && event.kind == CM_E2B_EVENT_DATA)
		require(out.len > 0 && (event.stream == 1 || event.stream == 2));
	if (r == CM_OK && event.kind == CM_E2B_EVENT_END)
		require(event.exit_code >= 0 && event.exit_code <= 255 && event.signal >= 0 &&
			event.signal <= 64);
	cm_buf_clear(&out);
}

static void read_in_pieces(const uint8_t *data, size_t size, size_t piece, struct outcome *o)
{
	struct cm_e2b_envelopes e;
	size_t at = 0;

	*o = (struct outcome){ 0 };
	cm_e2b_envelopes_init(&e);
	while (at < size && o->last >= 0) {
		size_t end = at + piece < size ? at + piece : size;

		while (at < end && o->last >= 0) {
			size_t used = 0;

			o->last = cm_e2b_envelopes_take(&e, data + at, end - at, &used, NULL);
			require(used <= end - at);
			/* it goes on, or says why not */
			require(used > 0 || o->last < 0);
			at += used;
			if (o->last > 0)
				look_at(&e, o->last, o);
		}
	}
	cm_e2b_envelopes_clear(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome whole;
	struct outcome cut;

	if (size == 0)
		return 0;
	read_in_pieces(data + 1, size - 1, size, &whole);
	read_in_pieces(data + 1, size - 1, (size_t)(data[0] % 32) + 1, &cut);
	require(whole.n_messages == cut.n_messages && whole.sum == cut.sum &&
		whole.last == cut.last);
	return 0;
}
