/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/websocket_frame.h"

#include <string.h>

#include "runtime/base/text.h"

#define BIT_FINAL 0x80
#define BITS_RESERVED 0x70
#define BITS_OPCODE 0x0f
#define BIT_CONTROL 0x08
#define BIT_MASKED 0x80
#define BITS_LEN 0x7f
#define LEN_IS_16 126
#define LEN_IS_64 127

void cm_ws_parser_init(struct cm_ws_parser *p)
{
	memset(p, 0, sizeof(*p));
	cm_buf_init(&p->text, CM_WS_TEXT_MAX);
}

void cm_ws_parser_clear(struct cm_ws_parser *p)
{
	cm_buf_clear(&p->text);
}

static int refuse(struct cm_ws_parser *p, unsigned int close_code, const char *what,
		  struct cm_error *err)
{
	p->wrong = close_code;
	return cm_error_set(err, close_code == CM_WS_CLOSE_TOO_LONG ? CM_E_LIMIT : CM_E_PROTOCOL, 0,
			    "the WebSocket's server sent %s", what);
}

static bool is_control(const struct cm_ws_parser *p)
{
	return (p->opcode & BIT_CONTROL) != 0;
}

static bool is_utf8(const char *s, size_t len)
{
	while (len > 0) {
		size_t n = cm_text_utf8_len(s, len);

		if (n == 0)
			return false;
		s += n;
		len -= n;
	}
	return true;
}

/* What the first two bytes can be judged by, before anything else of the frame is there. */
static int check_start(struct cm_ws_parser *p, struct cm_error *err)
{
	unsigned int len = p->header[1] & BITS_LEN;

	p->is_final = (p->header[0] & BIT_FINAL) != 0;
	p->opcode = p->header[0] & BITS_OPCODE;
	if (p->header[0] & BITS_RESERVED)
		return refuse(p, CM_WS_CLOSE_PROTOCOL, "a frame with reserved bits", err);
	if (p->header[1] & BIT_MASKED)
		return refuse(p, CM_WS_CLOSE_PROTOCOL, "a masked frame", err);
	switch (p->opcode) {
	case CM_WS_OP_CONTINUATION:
		if (p->message == 0)
			return refuse(p, CM_WS_CLOSE_PROTOCOL, "the rest of no message", err);
		break;
	case CM_WS_OP_TEXT:
	case CM_WS_OP_BINARY:
		if (p->message != 0)
			return refuse(p, CM_WS_CLOSE_PROTOCOL, "a message inside another", err);
		break;
	case CM_WS_OP_CLOSE:
	case CM_WS_OP_PING:
	case CM_WS_OP_PONG:
		if (!p->is_final)
			return refuse(p, CM_WS_CLOSE_PROTOCOL, "a control frame in parts", err);
		if (len > CM_WS_CONTROL_MAX)
			return refuse(p, CM_WS_CLOSE_PROTOCOL, "a control frame too long", err);
		break;
	default:
		return refuse(p, CM_WS_CLOSE_PROTOCOL, "a frame of a reserved kind", err);
	}
	return CM_OK;
}

static size_t header_size(const struct cm_ws_parser *p)
{
	unsigned int len = p->header[1] & BITS_LEN;

	if (p->header_len < 2)
		return 2;
	return len == LEN_IS_64 ? 10 : len == LEN_IS_16 ? 4 : 2;
}

static int read_len(struct cm_ws_parser *p, struct cm_error *err)
{
	unsigned int len = p->header[1] & BITS_LEN;
	uint64_t n = 0;

	if (len < LEN_IS_16) {
		p->left = len;
		return CM_OK;
	}
	for (size_t i = 2; i < header_size(p); i++)
		n = n << 8 | p->header[i];
	if (n < LEN_IS_16 || (len == LEN_IS_64 && (n <= UINT16_MAX || n > INT64_MAX)))
		return refuse(p, CM_WS_CLOSE_PROTOCOL, "a length that is not written so", err);
	p->left = n;
	return CM_OK;
}

/* The header is there: the frame begins. */
static int begin_frame(struct cm_ws_parser *p, struct cm_error *err)
{
	int r = read_len(p, err);

	if (r < 0)
		return r;
	p->header_len = 0;
	p->is_in_frame = true;
	if (is_control(p)) {
		p->control_len = 0;
		return CM_OK;
	}
	if (p->opcode != CM_WS_OP_CONTINUATION) {
		p->message = p->opcode;
		p->has_begun = false;
		cm_buf_reset(&p->text);
	}
	if (p->left > CM_WS_FRAME_MAX)
		return refuse(p, CM_WS_CLOSE_TOO_LONG, "a frame too long", err);
	if (p->message == CM_WS_OP_TEXT && p->left > CM_WS_TEXT_MAX - p->text.len)
		return refuse(p, CM_WS_CLOSE_TOO_LONG, "a message too long", err);
	return CM_OK;
}

static int take_header(struct cm_ws_parser *p, const unsigned char *bytes, size_t len, size_t *used,
		       struct cm_error *err)
{
	while (*used < len) {
		int r = CM_OK;

		p->header[p->header_len++] = bytes[(*used)++];
		if (p->header_len == 2)
			r = check_start(p, err);
		if (r == CM_OK && p->header_len == header_size(p))
			return begin_frame(p, err);
		if (r < 0)
			return r;
	}
	return CM_OK;
}

/* 1004 to 1006 and 1015 stand for what is never sent; what nobody has defined is not to be, either. */
static bool is_close_code(unsigned int code)
{
	return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
	       (code >= 3000 && code <= 4999);
}

static int end_close(struct cm_ws_parser *p, struct cm_ws_event *ret, struct cm_error *err)
{
	p->is_closed = true;
	ret->kind = CM_WS_CLOSE;
	ret->close_code = CM_WS_CLOSE_NO_CODE;
	ret->bytes = p->control;
	ret->len = 0;
	if (p->control_len == 0)
		return CM_OK;
	if (p->control_len == 1)
		return refuse(p, CM_WS_CLOSE_PROTOCOL, "half a close code", err);
	ret->close_code =
		(unsigned int)(unsigned char)p->control[0] << 8 | (unsigned char)p->control[1];
	ret->bytes = p->control + 2;
	ret->len = p->control_len - 2;
	if (!is_close_code(ret->close_code))
		return refuse(p, CM_WS_CLOSE_PROTOCOL, "a close code that there is not", err);
	if (!is_utf8(ret->bytes, ret->len))
		return refuse(p, CM_WS_CLOSE_NOT_UTF8, "a reason that is not UTF-8", err);
	return CM_OK;
}

static int end_control(struct cm_ws_parser *p, struct cm_ws_event *ret, struct cm_error *err)
{
	p->control[p->control_len] = '\0';
	if (p->opcode == CM_WS_OP_CLOSE)
		return end_close(p, ret, err);
	ret->kind = p->opcode == CM_WS_OP_PING ? CM_WS_PING : CM_WS_PONG;
	ret->bytes = p->control;
	ret->len = p->control_len;
	return CM_OK;
}

static int end_text(struct cm_ws_parser *p, struct cm_ws_event *ret, struct cm_error *err)
{
	p->message = 0;
	if (!is_utf8(p->text.data, p->text.len))
		return refuse(p, CM_WS_CLOSE_NOT_UTF8, "text that is not UTF-8", err);
	ret->kind = CM_WS_TEXT;
	ret->bytes = p->text.data ? p->text.data : "";
	ret->len = p->text.len;
	return CM_OK;
}

static void give_binary(struct cm_ws_parser *p, const unsigned char *bytes, size_t n,
			struct cm_ws_event *ret)
{
	bool is_last = p->left == 0 && p->is_final;

	if (n > 0 || is_last) {
		ret->kind = CM_WS_BINARY;
		ret->bytes = (const char *)bytes;
		ret->len = n;
		ret->is_first = !p->has_begun;
		ret->is_last = is_last;
		p->has_begun = true;
	}
	if (is_last)
		p->message = 0;
}

static int take_payload(struct cm_ws_parser *p, const unsigned char *bytes, size_t len,
			size_t *used, struct cm_ws_event *ret, struct cm_error *err)
{
	const unsigned char *at = bytes + *used;
	size_t n = p->left < len - *used ? (size_t)p->left : len - *used;

	*used += n;
	p->left -= n;
	p->is_in_frame = p->left > 0;
	if (is_control(p)) {
		memcpy(p->control + p->control_len, at, n);
		p->control_len += n;
		return p->is_in_frame ? CM_OK : end_control(p, ret, err);
	}
	if (p->message == CM_WS_OP_BINARY) {
		give_binary(p, at, n, ret);
		return CM_OK;
	}
	cm_buf_append(&p->text, at, n);
	if (cm_buf_status(&p->text) < 0) {
		p->wrong = CM_WS_CLOSE_TOO_LONG;
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a message");
	}
	return p->is_in_frame || !p->is_final ? CM_OK : end_text(p, ret, err);
}

int cm_ws_parse(struct cm_ws_parser *p, const void *bytes, size_t len, size_t *ret_used,
		struct cm_ws_event *ret, struct cm_error *err)
{
	struct cm_ws_event event = { 0 };
	size_t used = 0;
	int r = CM_OK;

	if (p->wrong)
		return cm_error_set(err, CM_E_PROTOCOL, 0, "the WebSocket has failed before");
	while (r == CM_OK && event.kind == CM_WS_NOTHING && used < len) {
		/* what comes after a close frame is nobody's */
		if (p->is_closed) {
			used = len;
			break;
		}
		if (!p->is_in_frame)
			r = take_header(p, bytes, len, &used, err);
		if (r == CM_OK && p->is_in_frame)
			r = take_payload(p, bytes, len, &used, &event, err);
	}
	if (r < 0)
		return r;
	*ret_used = used;
	*ret = event;
	return CM_OK;
}

void cm_ws_frame(struct cm_buf *out, enum cm_ws_opcode opcode, const void *payload, size_t len,
		 const unsigned char mask[CM_WS_MASK_SIZE])
{
	const unsigned char *bytes = payload;
	size_t begin;

	cm_buf_reserve(out, len + CM_WS_HEADER_MAX);
	cm_buf_putc(out, (char)(BIT_FINAL | opcode));
	if (len < LEN_IS_16) {
		cm_buf_putc(out, (char)(BIT_MASKED | len));
	} else {
		size_t width = len <= UINT16_MAX ? 2 : 8;

		cm_buf_putc(out, (char)(BIT_MASKED | (width == 2 ? LEN_IS_16 : LEN_IS_64)));
		for (size_t i = width; i-- > 0;)
			cm_buf_putc(out, (char)((uint64_t)len >> (8 * i)));
	}
	cm_buf_append(out, mask, CM_WS_MASK_SIZE);
	begin = out->len;
	if (len > 0)
		cm_buf_append(out, bytes, len);
	if (cm_buf_status(out) < 0)
		return;
	for (size_t i = 0; i < len; i++)
		out->data[begin + i] = (char)(bytes[i] ^ mask[i % CM_WS_MASK_SIZE]);
}
