/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A WebSocket client (RFC 6455) over a connection of http.h: handshake, messages, the close. No
 * extension is offered. Pings are answered in here, and pongs are nobody's.
 *
 * A struct cm_ws belongs to the thread of its struct cm_http and is closed before that.
 */
#ifndef CM_PROVIDERS_WEBSOCKET_H
#define CM_PROVIDERS_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>

#include "casemate/error.h"
#include "providers/call.h"
#include "providers/http.h"
#include "providers/websocket_frame.h"

struct cm_ws;

/*
 * protocols: what is offered, NULL-terminated; they may be secrets, and so may what stands in url after
 * its host: both are in no message. *ret_status: of an answer that was none of a WebSocket; else 0.
 */
int cm_ws_open(struct cm_http *http, const char *url, const char *const *protocols,
	       const struct cm_call *call, struct cm_ws **ret, int *ret_status,
	       struct cm_error *err);
/* All of it, or the connection is of no use any more. */
int cm_ws_send_text(struct cm_ws *ws, const char *text, size_t len, const struct cm_call *call,
		    struct cm_error *err);
/*
 * TEXT, BINARY, CLOSE (answered; nothing comes after it), CUT or WOKEN. What the server must not send,
 * and a message too long: the server was told, and an error comes. After CM_E_TIMEOUT and
 * CM_E_CANCELLED it can be called again.
 */
int cm_ws_read(struct cm_ws *ws, struct cm_wake *wake, const struct cm_call *call,
	       struct cm_ws_event *ret, struct cm_error *err);
/* With a close frame, if the connection can still take one at once. NULL is allowed. */
void cm_ws_close(struct cm_ws *ws);

#endif
