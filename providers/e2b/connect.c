/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/e2b/connect.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/text.h"

#define FLAG_COMPRESSED 0x01U
#define FLAG_END 0x02U

void cm_e2b_envelopes_init(struct cm_e2b_envelopes *e)
{
	*e = (struct cm_e2b_envelopes){ 0 };
	cm_buf_init(&e->body, CM_E2B_ENVELOPE_MAX);
}

void cm_e2b_envelopes_clear(struct cm_e2b_envelopes *e)
{
	cm_buf_clear(&e->body);
	cm_e2b_envelopes_init(e);
}

static int check_head(struct cm_e2b_envelopes *e, struct cm_error *err)
{
	uint8_t flags = e->head[0];

	e->len = (uint32_t)e->head[1] << 24 | (uint32_t)e->head[2] << 16 |
		 (uint32_t)e->head[3] << 8 | (uint32_t)e->head[4];
	if ((flags & FLAG_COMPRESSED) != 0)
		return cm_error_set(
			err, CM_E_PROTOCOL, 0,
			"a message of the sandbox is compressed, which was not asked for");
	if ((flags & ~FLAG_END) != 0)
		return cm_error_set(err, CM_E_PROTOCOL, 0,
				    "a message of the sandbox has flags 0x%02x", flags);
	if (e->len > CM_E2B_ENVELOPE_MAX)
		return cm_error_set(err, CM_E_LIMIT, 0,
				    "a message of the sandbox has %u bytes, and more than %lu",
				    (unsigned int)e->len, CM_E2B_ENVELOPE_MAX);
	return CM_OK;
}

/* How many of len bytes belong to what is not complete yet, of which there are `have` of `want`. */
static size_t part(size_t have, size_t want, size_t len)
{
	return want - have < len ? want - have : len;
}

int cm_e2b_envelopes_take(struct cm_e2b_envelopes *e, const void *bytes, size_t len,
			  size_t *ret_used, struct cm_error *err)
{
	const uint8_t *at = bytes;
	size_t n;
	int r;

	*ret_used = 0;
	if (e->has_ended && len > 0)
		return cm_error_set(err, CM_E_PROTOCOL, 0, "the sandbox sends more after the end");
	if (e->is_complete) {
		e->is_complete = false;
		e->n_head = 0;
		cm_buf_reset(&e->body);
	}
	if (e->n_head < sizeof(e->head)) {
		n = part(e->n_head, sizeof(e->head), len);
		if (n > 0)
			memcpy(e->head + e->n_head, at, n);
		e->n_head += n;
		*ret_used = n;
		if (e->n_head < sizeof(e->head))
			return CM_E2B_ENVELOPE_NONE;
		r = check_head(e, err);
		if (r < 0)
			return r;
	}
	/* memory is for what has come, not for what a length promises */
	n = part(e->body.len, e->len, len - *ret_used);
	if (n > 0)
		cm_buf_append(&e->body, at + *ret_used, n);
	r = cm_buf_status(&e->body);
	if (r < 0)
		return cm_error_set(err, r, 0, "no memory for a message of the sandbox");
	*ret_used += n;
	if (e->body.len < e->len)
		return CM_E2B_ENVELOPE_NONE;
	e->is_complete = true;
	e->has_ended = (e->head[0] & FLAG_END) != 0;
	return e->has_ended ? CM_E2B_ENVELOPE_END : CM_E2B_ENVELOPE_MESSAGE;
}

void cm_e2b_envelope_write(struct cm_buf *out, const void *json, size_t len)
{
	const uint8_t head[CM_E2B_ENVELOPE_HEAD] = { 0, (uint8_t)(len >> 24), (uint8_t)(len >> 16),
						     (uint8_t)(len >> 8), (uint8_t)len };

	cm_buf_append(out, head, sizeof(head));
	cm_buf_append(out, json, len);
}

/* --- errors ----------------------------------------------------------------------------------- */

int cm_e2b_code(const char *name)
{
	static const struct {
		const char *name;
		int code;
	} codes[] = {
		{ "invalid_argument", CM_E_INVALID },  { "failed_precondition", CM_E_INVALID },
		{ "out_of_range", CM_E_INVALID },      { "unauthenticated", CM_E_DENIED },
		{ "permission_denied", CM_E_DENIED },  { "not_found", CM_E_NOT_FOUND },
		{ "already_exists", CM_E_EXISTS },     { "aborted", CM_E_BUSY },
		{ "resource_exhausted", CM_E_LIMIT },  { "unimplemented", CM_E_UNSUPPORTED },
		{ "deadline_exceeded", CM_E_TIMEOUT },
		/* canceled, unknown, internal, data_loss, unavailable: nothing that we can change */
	};

	for (size_t i = 0; name && i < CM_ARRAY_SIZE(codes); i++) {
		if (strcmp(name, codes[i].name) == 0)
			return codes[i].code;
	}
	return CM_E_REMOTE;
}

static bool ends_with(const char *s, const char *end)
{
	size_t len = strlen(s);

	return len >= strlen(end) && strcmp(s + len - strlen(end), end) == 0;
}

const char *cm_e2b_file_fault(const char *name, int status, const char *message)
{
	static const struct {
		const char *name;
		int status;
		/* the message's last words: of some faults there is no more */
		const char *end;
		const char *text;
	} faults[] = {
		{ "not_found", 404, NULL, "it is not there" },
		{ "already_exists", 0, NULL, "something is there" },
		{ "permission_denied", 0, "permission denied", "the session's user may not" },
		{ NULL, 0, "' is a directory", "it is a directory" },
		{ NULL, 0, ": not a directory", "a part of the path is no directory" },
	};

	for (size_t i = 0; i < CM_ARRAY_SIZE(faults); i++) {
		if (name ? faults[i].name && strcmp(name, faults[i].name) == 0
			 : faults[i].status != 0 && status == faults[i].status)
			return faults[i].text;
		if (message && faults[i].end && ends_with(message, faults[i].end))
			return faults[i].text;
	}
	return message && cm_text_has_prefix(message, "path is not a directory")
		       ? "it is no directory"
		       : NULL;
}

int cm_e2b_error_of(const struct cm_json *v, const char *what, struct cm_error *err)
{
	const char *name = cm_json_str(v, "code", "unknown");
	const char *message = cm_json_str(v, "message", "");
	int code = cm_e2b_code(name);

	if (message[0] != '\0')
		return cm_error_set(err, code, 0, "cannot %s: %.300s (%.40s)", what, message, name);
	return cm_error_set(err, code, 0, "cannot %s: the sandbox says '%.40s'", what, name);
}

int cm_e2b_end_of(const char *json, size_t len, const char *what, char *ret_name, size_t size,
		  struct cm_error *err)
{
	struct cm_json_doc *doc = NULL;
	const struct cm_json *error;
	int r;

	if (ret_name)
		ret_name[0] = '\0';
	r = cm_json_parse(json, len, "the end of a stream", 0, &doc, err);
	if (r < 0 && r != CM_E_NOMEM)
		return cm_error_set(err, CM_E_PROTOCOL, 0,
				    "cannot %s: the end of the sandbox's answer cannot be read",
				    what);
	if (r < 0)
		return r;
	if (cm_json_root(doc)->type != CM_JSON_OBJECT) {
		r = cm_error_set(err, CM_E_PROTOCOL, 0,
				 "cannot %s: the end of the sandbox's answer is no object", what);
		cm_json_free(doc);
		return r;
	}
	error = cm_json_get(cm_json_root(doc), "error");
	if (error && error->type != CM_JSON_NULL) {
		if (ret_name)
			(void)snprintf(ret_name, size, "%s", cm_json_str(error, "code", "unknown"));
		r = cm_e2b_error_of(error, what, err);
	}
	cm_json_free(doc);
	return r;
}
