/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/redact.h"

#include <stdint.h>
#include <string.h>

#include "casemate/error.h"

/* a secret is at most as long as an argument, a piece as what is read at once */
#define HELD_MAX (1024UL * 1024)

void cm_redact_init(struct cm_redact *redact, const struct cm_strv *secrets)
{
	redact->secrets = secrets;
	cm_buf_init(&redact->held, HELD_MAX);
}

void cm_redact_clear(struct cm_redact *redact)
{
	if (redact->held.data)
		explicit_bzero(redact->held.data, redact->held.len);
	cm_buf_clear(&redact->held);
}

static const char *value_of(const char *item)
{
	const char *equals = strchr(item, '=');

	return equals ? equals + 1 : "";
}

/* The length of the longest secret at the beginning of text; SIZE_MAX: more of text will tell. */
static size_t match(const struct cm_redact *redact, const char *text, size_t len, bool is_last)
{
	size_t longest = 0;

	for (size_t i = 0; i < redact->secrets->n; i++) {
		const char *value = value_of(redact->secrets->v[i]);
		size_t value_len = strlen(value);

		if (value_len <= longest ||
		    memcmp(text, value, len < value_len ? len : value_len) != 0)
			continue;
		if (value_len <= len)
			longest = value_len;
		else if (!is_last)
			return SIZE_MAX;
	}
	return longest;
}

void cm_redact_add(struct cm_redact *redact, const char *bytes, size_t len, bool is_last,
		   struct cm_buf *out)
{
	struct cm_buf *held = &redact->held;
	size_t at = 0;

	if (redact->secrets->n == 0) {
		cm_buf_append(out, bytes, len);
		return;
	}
	cm_buf_append(held, bytes, len);
	if (cm_buf_status(held) != CM_OK) {
		cm_buf_reset(held);
		return;
	}
	while (at < held->len) {
		size_t n = match(redact, held->data + at, held->len - at, is_last);

		if (n == SIZE_MAX)
			break;
		if (n > 0)
			cm_buf_puts(out, CM_REDACTED);
		else
			cm_buf_putc(out, held->data[at]);
		at += n > 0 ? n : 1;
	}
	if (at > 0)
		memmove(held->data, held->data + at, held->len - at);
	held->len -= at;
}
