/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the HTTP layer share. */
#ifndef CM_PROVIDERS_HTTP_INTERNAL_H
#define CM_PROVIDERS_HTTP_INTERNAL_H

#include <curl/curl.h>

#include "providers/http.h"

/* Until there is a connection, its TLS included. */
#define CM_HTTP_CONNECT_MS 20000
#define CM_HTTP_SILENCE_MS 60000
#define CM_HTTP_URL_MAX 16384
/* of one answer, all its lines; libcurl takes no longer line than 100 KiB */
#define CM_HTTP_HEADERS_MAX 65536UL
#define CM_HTTP_HEADERS_MAX_COUNT 256
/* of an address in messages: without query, cut */
#define CM_HTTP_SUBJECT_SIZE 256

struct cm_http {
	/* the connections that are kept */
	CURLM *multi;
	/* borrowed; NULL: empty */
	const struct cm_strv *env;
	/* of env; NULL: the system's */
	const char *ca_file;
	const char *ca_dir;
	void (*trace)(void *data, const char *line);
	void *data;
};

/* --- http_url.c ------------------------------------------------------------------------------- */

/* Parts of an address, which they point into. */
struct cm_http_url {
	bool is_tls;
	/* 127.0.0.0/8, ::1 and localhost, as they are written */
	bool is_loopback;
	/* the host without brackets; with port as it stands, which is what a message names */
	const char *host;
	size_t host_len;
	const char *authority;
	size_t authority_len;
	/* "" or from its '/' on */
	const char *path;
	size_t path_len;
	bool has_query;
};
/* NULL, or what is wrong with it ("it has no host"), which shows nothing of it. */
const char *cm_http_url_read(const char *url, struct cm_http_url *ret);
/* Scheme, host, port and path, shortened: what messages call it. */
void cm_http_url_subject(const struct cm_http_url *url, char buf[CM_HTTP_SUBJECT_SIZE]);
/* The proxy for it, as the environment has it: "" for none, and of no_proxy the same. Borrowed. */
const char *cm_http_url_proxy(const struct cm_strv *env, const struct cm_http_url *url);
const char *cm_http_url_no_proxy(const struct cm_strv *env);

/* --- http_text.c ------------------------------------------------------------------------------ */

/* NULL, or what is wrong with a header that is to be sent, which shows nothing of its value. */
const char *cm_http_header_fault(const char *line);
/* Takes one header line of an answer in, without its end. CM_OK or CM_E_NOMEM. */
int cm_http_answer_add(struct cm_http_answer *answer, const char *line, size_t len);
/* What content_type and request_id are, when all lines are there. */
void cm_http_answer_settle(struct cm_http_answer *answer);
/* How long the answer asks to wait; -1: it does not, or not in words that have a meaning. */
int64_t cm_http_retry_after_ms(const struct cm_http_answer *answer, int64_t real_ms);

/* --- http_transfer.c -------------------------------------------------------------------------- */

/* Why we ended it ourselves. */
enum cm_http_fault {
	CM_HTTP_FAULT_NONE,
	CM_HTTP_FAULT_NOMEM,
	/* of fill and of take: fault_errno */
	CM_HTTP_FAULT_FILL,
	CM_HTTP_FAULT_TAKE,
	/* an address that is not loopback's for one that has to be */
	CM_HTTP_FAULT_ADDRESS,
	/* libcurl was about to send it on a second connection */
	CM_HTTP_FAULT_STALE,
	/* 101, or none at all */
	CM_HTTP_FAULT_STATUS,
	CM_HTTP_FAULT_REDIRECT,
	CM_HTTP_FAULT_HEADERS,
	CM_HTTP_FAULT_BODY,
	/* nothing came for first_byte_ms, idle_ms */
	CM_HTTP_FAULT_MUTE,
	CM_HTTP_FAULT_SILENT,
};

struct cm_http_transfer;
/* Gets the body of a 2xx answer: len, CURL_WRITEFUNC_PAUSE, or 0 with t->fault set. */
typedef size_t (*cm_http_sink)(struct cm_http_transfer *t, const char *bytes, size_t len);

/* One request once. */
struct cm_http_transfer {
	struct cm_http *http;
	CURL *easy;
	/* where easy was added; NULL: nowhere */
	CURLM *multi;
	struct curl_slist *headers;
	/* what libcurl says of a failure */
	char text[CURL_ERROR_SIZE];
	char method[16];
	char subject[CM_HTTP_SUBJECT_SIZE];
	char host[CM_HTTP_SUBJECT_SIZE];
	struct cm_http_answer answer;
	size_t header_bytes;
	size_t n_headers;
	size_t max_bytes;
	ssize_t (*fill)(void *data, void *buf, size_t size);
	void *fill_data;
	/* -1: not known */
	int64_t fill_left;
	int (*take)(void *data, const void *bytes, size_t len);
	void *take_data;
	/* a stream's, in place of `take` */
	cm_http_sink sink;
	bool is_idempotent;
	bool is_loopback_only;
	/* there was a connection, so that something of it may have arrived */
	bool has_begun;
	bool has_asked_fill;
	/* a line of the answer has come; its headers are complete */
	bool has_answer_line;
	bool is_headed;
	bool is_done;
	CURLcode result;
	enum cm_http_fault fault;
	int fault_errno;
	uint32_t first_byte_ms;
	uint32_t idle_ms;
	int64_t started_ms;
	/* the last progress of any kind */
	int64_t active_ms;
	curl_off_t sent;
	/* of a 2xx answer */
	uint64_t taken;
};

/* A handle with what holds for all: TLS, proxies, addresses. t is zeroed first, and to be cleared. */
int cm_http_transfer_prepare(struct cm_http_transfer *t, struct cm_http *http, const char *url,
			     struct cm_error *err);
/* And a whole request. sink: NULL for none, and with one, request may go once there are headers. */
int cm_http_transfer_init(struct cm_http_transfer *t, struct cm_http *http,
			  const struct cm_http_request *request, cm_http_sink sink,
			  struct cm_error *err);
int cm_http_transfer_start(struct cm_http_transfer *t, CURLM *multi, struct cm_error *err);
void cm_http_transfer_clear(struct cm_http_transfer *t);
static inline bool cm_http_transfer_is_2xx(const struct cm_http_transfer *t)
{
	return t->answer.status >= 200 && t->answer.status < 300;
}
/* Looks at what was sent; until when the peer may be silent. INT64_MAX: forever. */
int64_t cm_http_transfer_limit(struct cm_http_transfer *t);

/* --- http_fault.c ----------------------------------------------------------------------------- */

/* The error of a transfer that is over, or whose peer was silent; CM_OK where it has none. */
int cm_http_transfer_error(const struct cm_http_transfer *t, struct cm_error *err);
/* It failed before anything can have arrived, and not for a reason that stays. */
bool cm_http_transfer_may_start_again(const struct cm_http_transfer *t);
/* It may be sent again, after a failure or an answer. */
bool cm_http_transfer_may_repeat(const struct cm_http_transfer *t);

/* --- http.c ----------------------------------------------------------------------------------- */

/* Lets all transfers of multi go on as far as they can without waiting. */
int cm_http_run(CURLM *multi, struct cm_error *err);
/*
 * Until a transfer may go on, wake has an event (*ret_is_woken, where wake is given), or until_ms.
 * fd: one more to wait for, with events; -1: none. subject: for the message of what ends it.
 */
struct cm_http_wait {
	CURLM *multi;
	const struct cm_call *call;
	struct cm_wake *wake;
	int64_t until_ms;
	int fd;
	short events;
	const char *subject;
};
int cm_http_wait(const struct cm_http_wait *wait, bool *ret_is_woken, struct cm_error *err);
/* What the fds of wake have now; NULL is allowed. */
bool cm_http_look(struct cm_wake *wake);
/* CM_E_CANCELLED, CM_E_TIMEOUT: it is over, whatever else there is. */
int cm_http_check_call(const struct cm_call *call, const char *subject, struct cm_error *err);
/*
 * Runs t, on multi, until its answer is complete, or has its headers where wants_headers and it is a
 * 2xx one. CM_OK, or the error.
 */
int cm_http_transfer_run(struct cm_http_transfer *t, CURLM *multi, bool wants_headers,
			 const struct cm_call *call, struct cm_error *err);
/*
 * Waits before the next attempt, the first being 0. asked_ms: how long the peer wants, -1: it does not
 * say. CM_OK: go on; CM_E_LIMIT without *err: no attempt is left, or the deadline comes first; else an
 * error.
 */
int cm_http_before_again(struct cm_http *http, unsigned int attempt, int64_t asked_ms,
			 const struct cm_call *call, const char *subject, struct cm_error *err);
void cm_http_trace(const struct cm_http *http, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
