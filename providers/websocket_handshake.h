/* SPDX-License-Identifier: Apache-2.0 */
/* The opening handshake of a WebSocket (RFC 6455, section 4), as texts. No system calls. */
#ifndef CM_PROVIDERS_WEBSOCKET_HANDSHAKE_H
#define CM_PROVIDERS_WEBSOCKET_HANDSHAKE_H

#include <stddef.h>

#include "casemate/error.h"
#include "runtime/base/buf.h"

#define CM_WS_NONCE_SIZE 16
/* of the head of an answer */
#define CM_WS_HEAD_MAX 16384

/* ws or wss, a host, and what may stand in an address; no user name, no fragment. */
int cm_ws_check_url(const char *url, struct cm_error *err);
/* The key: the nonce in base64. */
void cm_ws_key(struct cm_buf *out, const unsigned char nonce[CM_WS_NONCE_SIZE]);
/* What a server answers to a key. */
void cm_ws_accept(struct cm_buf *out, const char *key);
/*
 * The request. url is one that was checked. protocols: NULL-terminated, NULL: none. CM_E_INVALID: one of
 * them has a character that it cannot have.
 */
int cm_ws_request(struct cm_buf *out, const char *url, const char *key,
		  const char *const *protocols, struct cm_error *err);
/* Its length with the empty line that ends it; 0: that has not come yet. */
size_t cm_ws_head_len(const char *bytes, size_t len);
/*
 * The answer's head. *ret_status, where it has one, is set also when it is refused; the other errors
 * leave 0 there. With protocols it has to have chosen one of them.
 */
int cm_ws_check_answer(const char *head, size_t len, const char *key, const char *const *protocols,
		       int *ret_status, struct cm_error *err);

#endif
