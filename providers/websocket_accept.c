/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer to a key (RFC 6455, 4.2.2): the digest of it and a constant. It proves that a WebSocket
 * server answers, and protects nothing.
 */
#include <string.h>

#include "providers/websocket_handshake.h"
#include "runtime/base/base64.h"
#include "runtime/base/sha1.h"

/* a key has 24 characters */
#define KEY_MAX 64

static const char constant[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

void cm_ws_accept(struct cm_buf *out, const char *key)
{
	char text[KEY_MAX + sizeof(constant)];
	uint8_t digest[CM_SHA1_SIZE];
	size_t key_len = strnlen(key, KEY_MAX);

	memcpy(text, key, key_len);
	memcpy(text + key_len, constant, sizeof(constant) - 1);
	/* never too long */
	if (cm_sha1(text, key_len + sizeof(constant) - 1, digest))
		cm_base64_encode(out, digest, sizeof(digest), true);
}
