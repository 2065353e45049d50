/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP for the remote providers: the one user of libcurl.
 *
 * A struct cm_http is a pool of connections and belongs to one thread, as all that is opened from it
 * does; that is closed before it. `fill` and `take` make no request of it. TLS is always verified. https, and http to loopback alone. No
 * redirect is followed: an answer that asks for one is an error, since what it is sent has credentials.
 * Proxies are those of the caller's environment (https_proxy, http_proxy, all_proxy, no_proxy).
 *
 * A request is sent again, with growing waits and jitter, within the call's deadline: where nothing of
 * it can have arrived (no connection); after 429, and after 503 with a Retry-After, as long as that asks
 * for; and, where it is_idempotent, after 502, 503, 504, a reset or silence. No more than three times,
 * and not once `fill` was asked or `take` got something. Who asks to wait for more than five minutes,
 * or past the deadline, is not waited for: that answer is given.
 *
 * Phases have bounds of their own, beside the call's deadline: a connection with its TLS, the first byte
 * of the answer, silence in the middle of it.
 *
 * Headers and answers may have secrets: they are in no message and no trace line. Errors name the host
 * and the path, the status and the server's request id.
 *
 * Errors: CM_E_INVALID (the URL), CM_E_TIMEOUT, CM_E_CANCELLED, CM_E_REMOTE (no connection, TLS, cut
 * off), CM_E_PROTOCOL (no HTTP, a redirect), CM_E_LIMIT (too long), CM_E_NOMEM.
 */
#ifndef CM_PROVIDERS_HTTP_H
#define CM_PROVIDERS_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "casemate/error.h"
#include "providers/call.h"
#include "runtime/base/buf.h"

struct cm_http;

struct cm_http_options {
	/* the caller's environment, where proxies and SSL_CERT_FILE are named; borrowed. NULL: none */
	const struct cm_strv *env;
	/* a line for each request and answer, without secrets; NULL: none */
	void (*trace)(void *data, const char *line);
	void *data;
};
int cm_http_open(const struct cm_http_options *options, struct cm_http **ret, struct cm_error *err);
/* NULL is allowed. */
void cm_http_close(struct cm_http *http);

/*
 * An address that a user gave: https, or http to loopback; without user name, query or fragment, and no
 * character that an address has not. what: who says so ("E2B_API_URL"), for the message.
 */
int cm_http_check_url(const char *url, const char *what, struct cm_error *err);
/*
 * Is it an address on this machine (http, https, ws, wss)? What a service answers with is followed there
 * only where the service is here, too.
 */
bool cm_http_is_loopback(const char *url);
/* Appends text as it stands in a path or a query: all but A-Z a-z 0-9 - . _ ~ as %XX. */
void cm_http_escape(struct cm_buf *out, const char *text);

#define CM_HTTP_BODY_MAX (4UL * 1024 * 1024)

struct cm_http_request {
	/* "GET", ... */
	const char *method;
	const char *url;
	/* "Name: value", NULL-terminated; NULL: none */
	const char *const *headers;
	/* what is sent; NULL: nothing, or what `fill` gives */
	const void *body;
	size_t body_len;
	/*
	 * Or: the next bytes of it, 0 at its end, -errno to give up. fill_len: how many there are in all;
	 * -1: not known. Such a request is never sent again once a byte was asked for.
	 */
	ssize_t (*fill)(void *data, void *buf, size_t size);
	void *fill_data;
	int64_t fill_len;
	/* it does no harm twice */
	bool is_idempotent;
	/* a longer answer is refused; 0: CM_HTTP_BODY_MAX. With `take`: of what is no 2xx */
	size_t max_bytes;
	/* gets the body of a 2xx answer, piece by piece, in place of answer.body; -errno to give up */
	int (*take)(void *data, const void *bytes, size_t len);
	void *take_data;
	/* until the first byte of the answer, and between two of it; 0: 60 s; UINT32_MAX: none */
	uint32_t first_byte_ms;
	uint32_t idle_ms;
};

struct cm_http_answer {
	int status;
	/* of the type without parameters, in small letters; "": none */
	char content_type[96];
	/* X-Request-Id and its like, printable; "": none */
	char request_id[96];
	/* "name: value", names in small letters */
	struct cm_strv headers;
	struct cm_buf body;
	/*
	 * By how much the clock of who sent it is ahead of this host's: times in it are by that clock. 0: it
	 * does not say, or less than can be told of a date in seconds (CM_HTTP_CLOCK_MS)
	 */
	int64_t clock_ahead_ms;
	/* also after a failure: there was a connection, so that the request may have done what it asks for */
	bool may_have_arrived;
};
#define CM_HTTP_CLOCK_MS 2000

/*
 * CM_OK: there was an answer, whatever its status; *ret is the caller's to clear, and after a failure has
 * may_have_arrived alone. A failure of fill or take is CM_E_SYS with its errno.
 */
int cm_http_send(struct cm_http *http, const struct cm_http_request *request,
		 const struct cm_call *call, struct cm_http_answer *ret, struct cm_error *err);
void cm_http_answer_clear(struct cm_http_answer *answer);
/* Borrowed; NULL: it has none. name in small letters. */
const char *cm_http_header(const struct cm_http_answer *answer, const char *name);
/*
 * The answer is no success: "cannot WHAT: HOST says 503 (MESSAGE), request ID". message: what the service
 * said, or NULL. The code is by the status: 401, 403 CM_E_DENIED; 404, 410 CM_E_NOT_FOUND; 409
 * CM_E_BUSY; 400, 413, 422 CM_E_INVALID; 408, 504 CM_E_TIMEOUT; 429 CM_E_LIMIT; else CM_E_REMOTE.
 */
int cm_http_error(const struct cm_http_request *request, const struct cm_http_answer *answer,
		  const char *what, const char *message, struct cm_error *err);

/* --- an answer that is read as it comes ------------------------------------------------------ */

/* It holds what has come up to a bound; then its server waits. Other requests may be sent meanwhile. */
struct cm_http_stream;
/*
 * Until the headers of the answer are there: cm_http_stream_answer has them. Never sent again by itself
 * but where nothing can have arrived. The request need not live on, and its fill is not asked any more.
 */
int cm_http_stream_open(struct cm_http *http, const struct cm_http_request *request,
			const struct cm_call *call, struct cm_http_stream **ret,
			struct cm_error *err);
/* Of a status that is no 2xx it has the body too. Borrowed. */
const struct cm_http_answer *cm_http_stream_answer(const struct cm_http_stream *stream);

/* The answers of a read that are no error. */
#define CM_HTTP_END 0
#define CM_HTTP_DATA 1
#define CM_HTTP_WOKEN 2
/*
 * DATA: *ret_len bytes (at least one) are in buf; END: that was all of it; WOKEN: see struct cm_wake.
 * DATA comes first, but the revents of wake are set with it as well. A read that ends by its call's
 * deadline or is cancelled can be made again.
 */
int cm_http_stream_read(struct cm_http_stream *stream, void *buf, size_t size, struct cm_wake *wake,
			const struct cm_call *call, size_t *ret_len, struct cm_error *err);
/* Closes the connection if the answer is not at its end. NULL is allowed. */
void cm_http_stream_close(struct cm_http_stream *stream);

/* --- a connection for another protocol ------------------------------------------------------- */

/* With TLS and through proxies as above; what goes over it is the caller's. */
struct cm_http_conn;
/* url: scheme https, http, wss or ws; its path is not used. */
int cm_http_connect(struct cm_http *http, const char *url, const struct cm_call *call,
		    struct cm_http_conn **ret, struct cm_error *err);
/* All of it. */
int cm_http_conn_write(struct cm_http_conn *conn, const void *bytes, size_t len,
		       const struct cm_call *call, struct cm_error *err);
/* As cm_http_stream_read. */
int cm_http_conn_read(struct cm_http_conn *conn, void *buf, size_t size, struct cm_wake *wake,
		      const struct cm_call *call, size_t *ret_len, struct cm_error *err);
void cm_http_conn_close(struct cm_http_conn *conn);

#endif
