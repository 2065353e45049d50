/* SPDX-License-Identifier: Apache-2.0 */
/* A connection for another protocol: TLS and proxies are libcurl's, what goes over it is not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "providers/http_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"

struct cm_http_conn {
	struct cm_http_transfer t;
	/* of its own: in a pool it would be taken for one that nobody uses, and closed */
	CURLM *multi;
	curl_socket_t fd;
};

/* wss is https, and ws is http. NULL: no memory. */
static char *as_http(const char *url)
{
	if (strncasecmp(url, "wss://", 6) == 0)
		return cm_asprintf("https://%s", url + 6);
	if (strncasecmp(url, "ws://", 5) == 0)
		return cm_asprintf("http://%s", url + 5);
	return cm_strdup(url);
}

static int connect_once(struct cm_http_conn *conn, struct cm_http *http, const char *url,
			const struct cm_call *call, struct cm_error *err)
{
	int r = cm_http_transfer_prepare(&conn->t, http, url, err);

	if (r != CM_OK)
		return r;
	if (curl_easy_setopt(conn->t.easy, CURLOPT_CONNECT_ONLY, 1L) != CURLE_OK)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	cm_http_trace(http, "connection to %s", conn->t.host);
	r = cm_http_transfer_run(&conn->t, conn->multi, false, call, err);
	if (r != CM_OK)
		return r;
	if (curl_easy_getinfo(conn->t.easy, CURLINFO_ACTIVESOCKET, &conn->fd) != CURLE_OK ||
	    conn->fd == CURL_SOCKET_BAD)
		return cm_error_set(err, CM_E_REMOTE, 0, "the connection to '%s' is gone",
				    conn->t.host);
	return CM_OK;
}

static int connect_with_retries(struct cm_http_conn *conn, struct cm_http *http, const char *url,
				const struct cm_call *call, struct cm_error *err)
{
	for (unsigned int attempt = 0;; attempt++) {
		int r = connect_once(conn, http, url, call, err);
		int again;

		if (r == CM_OK || !cm_http_transfer_may_start_again(&conn->t))
			return r;
		again = cm_http_before_again(http, attempt, -1, call, conn->t.subject, err);
		if (again != CM_OK)
			return again == CM_E_LIMIT ? r : again;
		cm_http_transfer_clear(&conn->t);
	}
}

int cm_http_connect(struct cm_http *http, const char *url, const struct cm_call *call,
		    struct cm_http_conn **ret, struct cm_error *err)
{
	CM_AUTO_FREE char *address = as_http(url);
	struct cm_http_conn *conn = cm_calloc(1, sizeof(*conn));
	int r = CM_E_NOMEM;

	if (conn)
		conn->multi = curl_multi_init();
	if (address && conn && conn->multi)
		r = connect_with_retries(conn, http, address, call, err);
	else
		cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	if (r != CM_OK) {
		cm_http_conn_close(conn);
		return r;
	}
	*ret = conn;
	return CM_OK;
}

static int conn_failed(const struct cm_http_conn *conn, CURLcode code, struct cm_error *err)
{
	if (code == CURLE_OUT_OF_MEMORY)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return cm_error_set(err, CM_E_REMOTE, 0, "the connection to '%s' was cut off (%s)",
			    conn->t.host, curl_easy_strerror(code));
}

int cm_http_conn_write(struct cm_http_conn *conn, const void *bytes, size_t len,
		       const struct cm_call *call, struct cm_error *err)
{
	struct cm_http_wait wait = { .multi = conn->multi,
				     .call = call,
				     .until_ms = INT64_MAX,
				     .fd = conn->fd,
				     .events = POLLOUT,
				     .subject = conn->t.subject };
	const char *at = bytes;

	while (len > 0) {
		size_t n = 0;
		CURLcode code = curl_easy_send(conn->t.easy, at, len, &n);
		int r;

		at += n;
		len -= n;
		if (code == CURLE_AGAIN) {
			r = cm_http_wait(&wait, NULL, err);
			if (r != CM_OK)
				return r;
		} else if (code != CURLE_OK) {
			return conn_failed(conn, code, err);
		}
	}
	return CM_OK;
}

int cm_http_conn_read(struct cm_http_conn *conn, void *buf, size_t size, struct cm_wake *wake,
		      const struct cm_call *call, size_t *ret_len, struct cm_error *err)
{
	struct cm_http_wait wait = { .multi = conn->multi,
				     .call = call,
				     .wake = wake,
				     .until_ms = INT64_MAX,
				     .fd = conn->fd,
				     .events = POLLIN,
				     .subject = conn->t.subject };
	bool is_woken = false;
	/* a peer that never stops sending keeps nobody */
	int over = cm_http_check_call(call, conn->t.subject, err);

	if (over < 0)
		return over;
	for (;;) {
		size_t n = 0;
		/* first, since TLS may have read more than it has given */
		CURLcode code = curl_easy_recv(conn->t.easy, buf, size, &n);
		int r;

		if (code == CURLE_OK || code == CURLE_AGAIN)
			(void)cm_http_look(code == CURLE_OK ? wake : NULL);
		if (code == CURLE_OK && n > 0) {
			*ret_len = n;
			return CM_HTTP_DATA;
		}
		if (code == CURLE_OK)
			return CM_HTTP_END;
		if (code != CURLE_AGAIN)
			return conn_failed(conn, code, err);
		r = cm_http_wait(&wait, &is_woken, err);
		if (r != CM_OK)
			return r;
		if (is_woken)
			return CM_HTTP_WOKEN;
	}
}

void cm_http_conn_close(struct cm_http_conn *conn)
{
	if (!conn)
		return;
	cm_http_transfer_clear(&conn->t);
	(void)curl_multi_cleanup(conn->multi);
	free(conn);
}
