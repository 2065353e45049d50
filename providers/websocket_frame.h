/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WebSocket frames (RFC 6455, section 5), as a client reads and writes them. No system calls.
 *
 * The parser takes bytes as they come, split anywhere. A text message is put together, checked to be
 * UTF-8 and bounded; a binary one is given away in pieces as they arrive, so that its length has no
 * bound, and that of each of its frames one that nobody means. What a server must not send (masked frames, reserved bits and opcodes, fragmented or long
 * control frames, lengths not in their shortest form, messages inside messages) is an error, and so is
 * every call after one.
 */
#ifndef CM_PROVIDERS_WEBSOCKET_FRAME_H
#define CM_PROVIDERS_WEBSOCKET_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "casemate/error.h"
#include "runtime/base/buf.h"

#define CM_WS_TEXT_MAX (1024UL * 1024)
#define CM_WS_FRAME_MAX (256UL * 1024 * 1024)
#define CM_WS_CONTROL_MAX 125
#define CM_WS_MASK_SIZE 4
/* two bytes, the longest length, the mask */
#define CM_WS_HEADER_MAX 14

enum cm_ws_opcode {
	CM_WS_OP_CONTINUATION = 0,
	CM_WS_OP_TEXT = 1,
	CM_WS_OP_BINARY = 2,
	CM_WS_OP_CLOSE = 8,
	CM_WS_OP_PING = 9,
	CM_WS_OP_PONG = 10,
};

/* section 7.4.1 */
#define CM_WS_CLOSE_NORMAL 1000
#define CM_WS_CLOSE_PROTOCOL 1002
/* never sent: a close frame without a code */
#define CM_WS_CLOSE_NO_CODE 1005
#define CM_WS_CLOSE_NOT_UTF8 1007
#define CM_WS_CLOSE_TOO_LONG 1009

enum cm_ws_event_kind {
	/* all bytes were used, and more are needed */
	CM_WS_NOTHING = 0,
	/* a whole message; NUL-terminated beyond its length */
	CM_WS_TEXT,
	/* a piece of a message; the last one may be empty */
	CM_WS_BINARY,
	CM_WS_PING,
	CM_WS_PONG,
	/* nothing comes after it */
	CM_WS_CLOSE,
	/* of a connection, not of the parser: it was cut without a close frame */
	CM_WS_CUT,
	/* likewise: one of the caller's descriptors has an event */
	CM_WS_WOKEN,
};

struct cm_ws_event {
	enum cm_ws_event_kind kind;
	/* good until the next call; of CLOSE the reason */
	const char *bytes;
	size_t len;
	/* of BINARY: where in its message it is */
	bool is_first;
	bool is_last;
	/* of CLOSE */
	unsigned int close_code;
};

struct cm_ws_parser {
	unsigned char header[CM_WS_HEADER_MAX];
	size_t header_len;
	/* the frame under way: its opcode, and how much of it is to come */
	bool is_in_frame;
	bool is_final;
	unsigned int opcode;
	uint64_t left;
	/* the message under way, TEXT or BINARY; 0: none */
	unsigned int message;
	bool has_begun;
	struct cm_buf text;
	char control[CM_WS_CONTROL_MAX + 1];
	size_t control_len;
	bool is_closed;
	/* the code to close with once something was wrong; 0: all is well */
	unsigned int wrong;
};

void cm_ws_parser_init(struct cm_ws_parser *p);
void cm_ws_parser_clear(struct cm_ws_parser *p);
/*
 * The next event of bytes[0..len), of which *ret_used were used. To be called again with the rest until
 * NOTHING comes. CM_E_PROTOCOL, CM_E_LIMIT, CM_E_NOMEM; then p->wrong is what the peer is to be told.
 */
int cm_ws_parse(struct cm_ws_parser *p, const void *bytes, size_t len, size_t *ret_used,
		struct cm_ws_event *ret, struct cm_error *err);

/* Appends one whole frame with its payload masked. */
void cm_ws_frame(struct cm_buf *out, enum cm_ws_opcode opcode, const void *payload, size_t len,
		 const unsigned char mask[CM_WS_MASK_SIZE]);

#endif
