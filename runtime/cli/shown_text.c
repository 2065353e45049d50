/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/shown_text.h"

#include <string.h>

#include "casemate/error.h"
#include "runtime/base/text.h"

#define MAX_UTF8 4U

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* How long the character is that c begins; 1 where c begins none. */
static size_t length_of(char c)
{
	unsigned char u = (unsigned char)c;

	return u >= 0xf0 ? 4 : u >= 0xe0 ? 3 : u >= 0xc0 ? 2 : 1;
}

/* How many bytes at the end are the beginning of something longer. */
static size_t unfinished(const char *s, size_t len)
{
	if (len > 0 && s[len - 1] == '\r')
		return 1;
	for (size_t n = 1; n < MAX_UTF8 && n <= len; n++) {
		const char *from = s + len - n;

		if (is_continuation(*from))
			continue;
		return length_of(*from) > n ? n : 0;
	}
	return 0;
}

static void put(const char *s, size_t len, struct cm_buf *out)
{
	size_t from = 0;

	for (size_t i = 0; i + 1 < len; i++) {
		if (s[i] != '\r' || s[i + 1] != '\n')
			continue;
		cm_text_escape(out, s + from, i - from, true);
		from = i + 1;
	}
	cm_text_escape(out, s + from, len - from, true);
}

void cm_shown_text_add(struct cm_shown_text *t, const char *data, size_t len, struct cm_buf *out)
{
	CM_AUTO_BUF struct cm_buf all = { 0 };
	size_t n_held;

	for (; t->n_torn > 0 && len > 0; t->n_torn--, data++, len--) {
		if (is_continuation(*data))
			continue;
		t->n_torn = 0;
		break;
	}
	if (len == 0)
		return;
	cm_buf_init(&all, t->n_held + len);
	cm_buf_append(&all, t->held, t->n_held);
	cm_buf_append(&all, data, len);
	if (cm_buf_status(&all) != CM_OK) {
		out->has_failed = true;
		return;
	}
	n_held = unfinished(all.data, all.len);
	put(all.data, all.len - n_held, out);
	memcpy(t->held, all.data + all.len - n_held, n_held);
	t->n_held = n_held;
}

void cm_shown_text_gap(struct cm_shown_text *t)
{
	t->n_held = 0;
	t->n_torn = MAX_UTF8 - 1;
}

void cm_shown_text_end(struct cm_shown_text *t, struct cm_buf *out)
{
	put(t->held, t->n_held, out);
	t->n_held = 0;
}
