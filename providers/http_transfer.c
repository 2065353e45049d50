/* SPDX-License-Identifier: Apache-2.0 */
/* One request once: its handle, and what libcurl calls while it runs. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "providers/http_internal.h"
#include "runtime/base/clock.h"

/* In the functions below that have `easy` and `code`: the first failure counts. */
/* what is shorter is no secret */
#define ECHO_MIN 6
#define SET(option, value)                                                                         \
	do {                                                                                       \
		if (code == CURLE_OK)                                                              \
			code = curl_easy_setopt(easy, option, value);                              \
	} while (0)

/* --- what libcurl calls ----------------------------------------------------------------------- */

static bool is_loopback_address(const struct curl_sockaddr *address)
{
	if (address->family == AF_INET) {
		struct sockaddr_in four;

		memcpy(&four, &address->addr, sizeof(four));
		return ntohl(four.sin_addr.s_addr) >> 24 == 127;
	}
	if (address->family == AF_INET6) {
		struct sockaddr_in6 six;

		if (address->addrlen < sizeof(six))
			return false;
		/* an address of another family in it has more room than struct sockaddr says */
		memcpy(&six, (const void *)&address->addr, sizeof(six));
		return IN6_IS_ADDR_LOOPBACK(&six.sin6_addr) != 0;
	}
	return false;
}

/* Whatever a name is resolved to, http goes to loopback alone. */
static curl_socket_t on_socket(void *data, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct cm_http_transfer *t = data;

	if (purpose != CURLSOCKTYPE_IPCXN)
		return CURL_SOCKET_BAD;
	if (t->is_loopback_only && !is_loopback_address(address)) {
		t->fault = CM_HTTP_FAULT_ADDRESS;
		return CURL_SOCKET_BAD;
	}
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/*
 * A connection is there, and the request goes out next. libcurl sends it on another one by itself when
 * a connection that was kept turns out to be dead; whether it may be sent twice is ours to say.
 */
/* NOLINTNEXTLINE(readability-non-const-parameter): the type is libcurl's */
static int on_connected(void *data, char *peer, char *local, int peer_port, int local_port)
{
	struct cm_http_transfer *t = data;

	(void)peer, (void)local, (void)peer_port, (void)local_port;
	t->active_ms = cm_clock_mono_ms();
	if (t->has_begun) {
		t->fault = CM_HTTP_FAULT_STALE;
		return CURL_PREREQFUNC_ABORT;
	}
	t->has_begun = true;
	return CURL_PREREQFUNC_OK;
}

static size_t on_fill(char *buf, size_t size, size_t n, void *data)
{
	struct cm_http_transfer *t = data;
	ssize_t got = -ESHUTDOWN;

	size_t room = size * n;

	t->has_asked_fill = true;
	if (t->fill_left == 0)
		return 0;
	if (t->fill_left > 0 && (uint64_t)t->fill_left < room)
		room = (size_t)t->fill_left;
	if (t->fill)
		got = t->fill(t->fill_data, buf, room);
	/* the peer would wait for what is missing */
	if (got == 0 && t->fill_left > 0)
		got = -ENODATA;
	if (got >= 0 && (size_t)got <= room) {
		if (t->fill_left > 0)
			t->fill_left -= got;
		return (size_t)got;
	}
	t->fault = CM_HTTP_FAULT_FILL;
	t->fault_errno = got < 0 ? (int)-got : EINVAL;
	return CURL_READFUNC_ABORT;
}

/* "HTTP/1.1 200 OK": the first line of an answer, be it the last one or a 100. */
static void begin_answer(struct cm_http_transfer *t, const char *line, size_t len)
{
	const char *space = memchr(line, ' ', len);
	size_t at = space ? (size_t)(space - line) + 1 : len;
	int status = 0;

	for (size_t i = at; i < len && i < at + 3 && line[i] >= '0' && line[i] <= '9'; i++)
		status = status * 10 + (line[i] - '0');
	cm_http_answer_clear(&t->answer);
	cm_buf_init(&t->answer.body, t->max_bytes);
	t->answer.status = status;
}

/* A server that calls the request by what it was told with it would have that shown in messages. */
static void forget_echo(struct cm_http_transfer *t)
{
	char *id = t->answer.request_id;

	for (const struct curl_slist *h = t->headers; h && id[0] != '\0'; h = h->next) {
		const char *value = strchr(h->data, ':');

		value = value ? value + 1 + strspn(value + 1, " ") : h->data;
		if ((strlen(id) >= ECHO_MIN && strstr(value, id)) ||
		    (strlen(value) >= ECHO_MIN && strstr(id, value)))
			id[0] = '\0';
	}
}

/* After the empty line; false: the answer is of no use. */
static bool end_headers(struct cm_http_transfer *t)
{
	int status = t->answer.status;

	/* another one follows */
	if (status < 200 && status != 101)
		return true;
	t->is_headed = true;
	cm_http_answer_settle(&t->answer);
	forget_echo(t);
	/* 101: what follows is another protocol, which nobody asked for */
	if (status < 200)
		t->fault = CM_HTTP_FAULT_STATUS;
	else if (status >= 300 && status < 400 && status != 304)
		t->fault = CM_HTTP_FAULT_REDIRECT;
	return t->fault == CM_HTTP_FAULT_NONE;
}

static size_t on_header(char *bytes, size_t size, size_t n, void *data)
{
	struct cm_http_transfer *t = data;
	size_t all = size * n;
	size_t len = all;

	t->active_ms = cm_clock_mono_ms();
	t->has_answer_line = true;
	t->header_bytes += all;
	if (t->header_bytes > CM_HTTP_HEADERS_MAX || ++t->n_headers > CM_HTTP_HEADERS_MAX_COUNT) {
		t->fault = CM_HTTP_FAULT_HEADERS;
		return 0;
	}
	/* what comes after a body that was sent in chunks is not looked at */
	if (t->is_headed)
		return all;
	while (len > 0 && (bytes[len - 1] == '\n' || bytes[len - 1] == '\r'))
		len--;
	if (len == 0)
		return end_headers(t) ? all : 0;
	if (len >= 5 && memcmp(bytes, "HTTP/", 5) == 0) {
		begin_answer(t, bytes, len);
		return all;
	}
	if (cm_http_answer_add(&t->answer, bytes, len) == CM_OK)
		return all;
	t->fault = CM_HTTP_FAULT_NOMEM;
	return 0;
}

static size_t keep_body(struct cm_http_transfer *t, const char *bytes, size_t len)
{
	cm_buf_append(&t->answer.body, bytes, len);
	switch (cm_buf_status(&t->answer.body)) {
	case CM_OK:
		return len;
	case CM_E_LIMIT:
		t->fault = CM_HTTP_FAULT_BODY;
		return 0;
	default:
		t->fault = CM_HTTP_FAULT_NOMEM;
		return 0;
	}
}

static size_t give_body(struct cm_http_transfer *t, const char *bytes, size_t len)
{
	int r = t->take(t->take_data, bytes, len);

	/* it may have taken its time, in which the peer was not listened to */
	t->active_ms = cm_clock_mono_ms();
	if (r >= 0)
		return len;
	t->fault = CM_HTTP_FAULT_TAKE;
	t->fault_errno = -r;
	return 0;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *data)
{
	struct cm_http_transfer *t = data;
	size_t len = size * n;
	size_t done;

	t->active_ms = cm_clock_mono_ms();
	if (len == 0)
		return 0;
	if (!cm_http_transfer_is_2xx(t) || (!t->sink && !t->take))
		return keep_body(t, bytes, len);
	done = t->sink ? t->sink(t, bytes, len) : give_body(t, bytes, len);
	if (done == len)
		t->taken += len;
	return done;
}

/* --- the handle ------------------------------------------------------------------------------- */

/* 0 is the default, and all ones are forever. */
static uint32_t or_default(uint32_t ms)
{
	return ms == 0 ? CM_HTTP_SILENCE_MS : ms;
}

static CURLcode set_for_all(struct cm_http_transfer *t)
{
	CURL *easy = t->easy;
	CURLcode code = CURLE_OK;

	SET(CURLOPT_ERRORBUFFER, t->text);
	SET(CURLOPT_PRIVATE, (void *)t);
	SET(CURLOPT_NOSIGNAL, 1L);
	/* a resolver that does not answer is left to itself when the caller gives up */
	SET(CURLOPT_QUICK_EXIT, 1L);
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CM_HTTP_CONNECT_MS);
	/* less than what load balancers keep one that is idle for */
	SET(CURLOPT_MAXAGE_CONN, 50L);
	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	SET(CURLOPT_OPENSOCKETFUNCTION, on_socket);
	SET(CURLOPT_OPENSOCKETDATA, (void *)t);
	/* a stream that stands still must not hold up another one on the same connection */
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_HTTP09_ALLOWED, 0L);
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	SET(CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
	SET(CURLOPT_PATH_AS_IS, 1L);
	/* no header of a request goes to a proxy, and none of a proxy's answer is taken for one */
	SET(CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
	SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	return code;
}

static CURLcode set_tls(struct cm_http_transfer *t)
{
	const struct cm_http *http = t->http;
	CURL *easy = t->easy;
	CURLcode code = CURLE_OK;

	SET(CURLOPT_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_SSL_VERIFYHOST, 2L);
	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(CURLOPT_PROXY_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_PROXY_SSL_VERIFYHOST, 2L);
	SET(CURLOPT_PROXY_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (http->ca_file) {
		SET(CURLOPT_CAINFO, http->ca_file);
		SET(CURLOPT_PROXY_CAINFO, http->ca_file);
	}
	if (http->ca_dir) {
		SET(CURLOPT_CAPATH, http->ca_dir);
		SET(CURLOPT_PROXY_CAPATH, http->ca_dir);
	}
	return code;
}

static CURLcode set_address(struct cm_http_transfer *t, const char *url,
			    const struct cm_http_url *parts)
{
	const struct cm_strv *env = t->http->env;
	CURL *easy = t->easy;
	CURLcode code = CURLE_OK;

	SET(CURLOPT_URL, url);
	SET(CURLOPT_PROTOCOLS_STR, parts->is_tls ? "https" : "http");
	SET(CURLOPT_DEFAULT_PROTOCOL, "https");
	/* both always, or libcurl asks the environment of the process */
	SET(CURLOPT_PROXY, cm_http_url_proxy(env, parts));
	SET(CURLOPT_NOPROXY, cm_http_url_no_proxy(env));
	return code;
}

static int setup_failed(CURLcode code, const char *subject, struct cm_error *err)
{
	if (code == CURLE_OUT_OF_MEMORY)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return cm_error_set(err, CM_E_UNSUPPORTED, 0, "libcurl cannot ask '%s': %s", subject,
			    curl_easy_strerror(code));
}

int cm_http_transfer_prepare(struct cm_http_transfer *t, struct cm_http *http, const char *url,
			     struct cm_error *err)
{
	struct cm_http_url parts;
	const char *wrong = cm_http_url_read(url, &parts);
	CURLcode code = CURLE_OUT_OF_MEMORY;

	*t = (struct cm_http_transfer){ .http = http };
	if (!wrong && !parts.is_tls && !parts.is_loopback)
		wrong = "it is http to another machine";
	if (wrong)
		return cm_error_set(err, CM_E_INVALID, 0, "cannot use an address: %s", wrong);
	cm_http_url_subject(&parts, t->subject);
	(void)snprintf(t->host, sizeof(t->host), "%.*s",
		       parts.authority_len > 150 ? 150 : (int)parts.authority_len, parts.authority);
	t->is_loopback_only = !parts.is_tls;
	t->easy = curl_easy_init();
	if (t->easy)
		code = set_for_all(t);
	if (code == CURLE_OK)
		code = set_tls(t);
	if (code == CURLE_OK)
		code = set_address(t, url, &parts);
	return code == CURLE_OK ? CM_OK : setup_failed(code, t->subject, err);
}

/* --- the request ------------------------------------------------------------------------------ */

static bool add_header(struct cm_http_transfer *t, const char *line)
{
	struct curl_slist *longer = curl_slist_append(t->headers, line);

	if (longer)
		t->headers = longer;
	return longer != NULL;
}

/* "Name:" would take a header of libcurl's away; it sends "Name;" as one without a value. */
static bool add_given(struct cm_http_transfer *t, const char *line)
{
	const char *colon = strchr(line, ':');
	char *empty;
	bool is_added;

	if (colon[1 + strspn(colon + 1, " \t")] != '\0')
		return add_header(t, line);
	empty = cm_asprintf("%.*s;", (int)(colon - line), line);
	is_added = empty && add_header(t, empty);
	free(empty);
	return is_added;
}

static int add_headers(struct cm_http_transfer *t, const struct cm_http_request *request,
		       struct cm_error *err)
{
	bool has_type = false;
	/* libcurl asks before it sends a long body, and waits a second for an answer */
	bool is_added = add_header(t, "Expect:");

	for (const char *const *line = request->headers; line && *line; line++) {
		const char *wrong = cm_http_header_fault(*line);

		if (wrong)
			return cm_error_set(err, CM_E_INVALID, 0, "cannot send header '%.*s': %s",
					    (int)strspn(*line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
							       "abcdefghijklmnopqrstuvwxyz"
							       "0123456789-_"),
					    *line, wrong);
		has_type = has_type || strncasecmp(*line, "content-type:", 13) == 0;
		is_added = is_added && add_given(t, *line);
	}
	/* libcurl says that what is sent is a form */
	if (!has_type)
		is_added = is_added && add_header(t, "Content-Type:");
	return is_added ? CM_OK : cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

static CURLcode set_body(struct cm_http_transfer *t, const struct cm_http_request *request)
{
	CURL *easy = t->easy;
	CURLcode code = CURLE_OK;

	if (request->fill) {
		SET(CURLOPT_UPLOAD, 1L);
		SET(CURLOPT_READFUNCTION, on_fill);
		SET(CURLOPT_READDATA, (void *)t);
		SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)t->fill_left);
		return code;
	}
	/* one that has a meaning with a body says that it has none */
	if (request->body || strcmp(t->method, "POST") == 0 || strcmp(t->method, "PUT") == 0 ||
	    strcmp(t->method, "PATCH") == 0) {
		SET(CURLOPT_POST, 1L);
		SET(CURLOPT_POSTFIELDSIZE_LARGE,
		    (curl_off_t)(request->body ? request->body_len : 0));
		/* a stream's request need not live as long as the stream */
		if (t->sink && request->body && request->body_len > 0)
			SET(CURLOPT_COPYPOSTFIELDS, request->body);
		else
			SET(CURLOPT_POSTFIELDS, request->body ? request->body : "");
	} else if (strcmp(t->method, "HEAD") == 0) {
		SET(CURLOPT_NOBODY, 1L);
	}
	return code;
}

static CURLcode set_request(struct cm_http_transfer *t, const struct cm_http_request *request)
{
	CURL *easy = t->easy;
	CURLcode code = set_body(t, request);

	SET(CURLOPT_CUSTOMREQUEST, t->method);
	SET(CURLOPT_HTTPHEADER, t->headers);
	SET(CURLOPT_USERAGENT, "casemate/" CM_VERSION);
	SET(CURLOPT_BUFFERSIZE, 128L * 1024);
	SET(CURLOPT_PREREQFUNCTION, on_connected);
	SET(CURLOPT_PREREQDATA, (void *)t);
	SET(CURLOPT_HEADERFUNCTION, on_header);
	SET(CURLOPT_HEADERDATA, (void *)t);
	SET(CURLOPT_WRITEFUNCTION, on_body);
	SET(CURLOPT_WRITEDATA, (void *)t);
	return code;
}

int cm_http_transfer_init(struct cm_http_transfer *t, struct cm_http *http,
			  const struct cm_http_request *request, cm_http_sink sink,
			  struct cm_error *err)
{
	size_t method_len = strspn(request->method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
	CURLcode code;
	int r;

	r = cm_http_transfer_prepare(t, http, request->url, err);
	if (r != CM_OK)
		return r;
	if (method_len == 0 || method_len >= sizeof(t->method) || request->method[method_len])
		return cm_error_set(err, CM_E_INVALID, 0, "cannot ask '%s': no such method",
				    t->subject);
	memcpy(t->method, request->method, method_len);
	t->max_bytes = request->max_bytes > 0 ? request->max_bytes : CM_HTTP_BODY_MAX;
	t->first_byte_ms = or_default(request->first_byte_ms);
	t->idle_ms = or_default(request->idle_ms);
	t->is_idempotent = request->is_idempotent;
	t->fill = request->fill;
	t->fill_data = request->fill_data;
	t->fill_left = request->fill_len < 0 ? -1 : request->fill_len;
	t->sink = sink;
	t->take = request->take;
	t->take_data = request->take_data;
	r = add_headers(t, request, err);
	if (r != CM_OK)
		return r;
	code = set_request(t, request);
	return code == CURLE_OK ? CM_OK : setup_failed(code, t->subject, err);
}

int cm_http_transfer_start(struct cm_http_transfer *t, CURLM *multi, struct cm_error *err)
{
	CURLMcode code = curl_multi_add_handle(multi, t->easy);

	if (code == CURLM_RECURSIVE_API_CALL)
		return cm_error_set(err, CM_E_BUG, 0,
				    "'%s' was asked while a body was sent or taken", t->subject);
	if (code != CURLM_OK)
		return cm_error_set(err, CM_E_NOMEM, 0, "cannot ask '%s': %s", t->subject,
				    curl_multi_strerror(code));
	t->multi = multi;
	t->started_ms = t->active_ms = cm_clock_mono_ms();
	return CM_OK;
}

void cm_http_transfer_clear(struct cm_http_transfer *t)
{
	if (t->multi)
		(void)curl_multi_remove_handle(t->multi, t->easy);
	curl_easy_cleanup(t->easy);
	for (struct curl_slist *one = t->headers; one; one = one->next)
		explicit_bzero(one->data, strlen(one->data));
	curl_slist_free_all(t->headers);
	cm_http_answer_clear(&t->answer);
	*t = (struct cm_http_transfer){ 0 };
}

int64_t cm_http_transfer_limit(struct cm_http_transfer *t)
{
	uint32_t ms = t->has_answer_line ? t->idle_ms : t->first_byte_ms;
	curl_off_t sent = 0;

	/* libcurl looks after what takes too long before that */
	if (!t->has_begun)
		return INT64_MAX;
	if (curl_easy_getinfo(t->easy, CURLINFO_SIZE_UPLOAD_T, &sent) == CURLE_OK &&
	    sent != t->sent) {
		t->sent = sent;
		t->active_ms = cm_clock_mono_ms();
	}
	return ms == UINT32_MAX ? INT64_MAX : t->active_ms + ms;
}
