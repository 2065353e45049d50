/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/websocket_handshake.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "runtime/base/base64.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

/* RFC 3986: what an address consists of, without '#' */
static const char url_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				"-._~:/?[]@!$&'()*+,;=%";
/* RFC 9110: of a token */
static const char token_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				  "!#$%&'*+-.^_`|~";

struct span {
	const char *at;
	size_t len;
};

static const char *host_of(const char *url)
{
	return strstr(url, "://") + 3;
}

int cm_ws_check_url(const char *url, struct cm_error *err)
{
	size_t host_len;

	if (!cm_text_has_prefix(url, "wss://") && !cm_text_has_prefix(url, "ws://"))
		return cm_error_set(err, CM_E_INVALID, 0,
				    "a WebSocket's address begins with wss://");
	if (url[strspn(url, url_chars)] != '\0')
		return cm_error_set(err, CM_E_INVALID, 0,
				    "a WebSocket's address has a character that cannot be there");
	host_len = strcspn(host_of(url), "/?");
	if (host_len == 0 || memchr(host_of(url), '@', host_len))
		return cm_error_set(err, CM_E_INVALID, 0,
				    "a WebSocket's address wants a host and no user name");
	return CM_OK;
}

void cm_ws_key(struct cm_buf *out, const unsigned char nonce[CM_WS_NONCE_SIZE])
{
	cm_base64_encode(out, nonce, CM_WS_NONCE_SIZE, true);
}

static bool is_token(const char *s)
{
	return *s != '\0' && s[strspn(s, token_chars)] == '\0';
}

int cm_ws_request(struct cm_buf *out, const char *url, const char *key,
		  const char *const *protocols, struct cm_error *err)
{
	const char *host = host_of(url);
	size_t host_len = strcspn(host, "/?");
	const char *path = host + host_len;

	cm_buf_printf(
		out,
		"GET %s%s HTTP/1.1\r\nHost: %.*s\r\nUpgrade: websocket\r\n"
		"Connection: Upgrade\r\nSec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n",
		*path == '/' ? "" : "/", path, (int)host_len, host, key);
	for (size_t i = 0; protocols && protocols[i]; i++) {
		if (!is_token(protocols[i]))
			return cm_error_set(err, CM_E_INVALID, 0,
					    "a WebSocket's subprotocol has a character that cannot "
					    "be there");
		cm_buf_printf(out, "%s%s", i == 0 ? "Sec-WebSocket-Protocol: " : ", ",
			      protocols[i]);
		if (!protocols[i + 1])
			cm_buf_puts(out, "\r\n");
	}
	cm_buf_puts(out, "\r\n");
	if (cm_buf_status(out) < 0)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a request");
	return CM_OK;
}

size_t cm_ws_head_len(const char *bytes, size_t len)
{
	const char *end = len > 0 ? memmem(bytes, len, "\r\n\r\n", 4) : NULL;

	return end ? (size_t)(end - bytes) + 4 : 0;
}

static bool span_is(struct span s, const char *word)
{
	return s.len == strlen(word) && strncasecmp(s.at, word, s.len) == 0;
}

static struct span trimmed(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	while (at < end && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	return (struct span){ at, (size_t)(end - at) };
}

/* Is word one of the list "a, b"? */
static bool list_has(struct span list, const char *word)
{
	const char *end = list.at + list.len;

	for (const char *at = list.at; at < end;) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		const char *stop = comma ? comma : end;

		if (span_is(trimmed(at, stop), word))
			return true;
		at = stop + 1;
	}
	return false;
}

struct answer {
	bool has_upgrade;
	bool has_connection;
	bool has_extensions;
	unsigned int n_accept;
	unsigned int n_protocol;
	struct span accept;
	struct span protocol;
};

static bool take_field(struct answer *a, struct span name, struct span value)
{
	if (name.len == 0 || memchr(name.at, ' ', name.len) || memchr(name.at, '\t', name.len))
		return false;
	if (span_is(name, "upgrade")) {
		a->has_upgrade = a->has_upgrade || list_has(value, "websocket");
	} else if (span_is(name, "connection")) {
		a->has_connection = a->has_connection || list_has(value, "upgrade");
	} else if (span_is(name, "sec-websocket-extensions")) {
		a->has_extensions = true;
	} else if (span_is(name, "sec-websocket-accept")) {
		a->n_accept++;
		a->accept = value;
	} else if (span_is(name, "sec-websocket-protocol")) {
		a->n_protocol++;
		a->protocol = value;
	}
	return true;
}

/* The fields below the first line, the empty one at their end included. */
static bool take_fields(struct answer *a, const char *at, const char *end)
{
	while (at < end) {
		const char *stop = memmem(at, (size_t)(end - at), "\r\n", 2);
		const char *colon;

		if (!stop)
			return false;
		if (stop == at)
			return stop + 2 == end;
		colon = memchr(at, ':', (size_t)(stop - at));
		if (!colon || !take_field(a, (struct span){ at, (size_t)(colon - at) },
					  trimmed(colon + 1, stop)))
			return false;
		at = stop + 2;
	}
	return false;
}

/* "HTTP/1.1 101 ...": 0: it is none. */
static int status_of(const char *head, size_t len)
{
	static const char version[] = "HTTP/1.1 ";
	const char *digits = head + sizeof(version) - 1;
	int status = 0;

	if (len < sizeof(version) + 3 || memcmp(head, version, sizeof(version) - 1) != 0)
		return 0;
	for (int i = 0; i < 3; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return 0;
		status = status * 10 + (digits[i] - '0');
	}
	return digits[3] == ' ' || digits[3] == '\r' ? status : 0;
}

static int refuse(struct cm_error *err, const char *what)
{
	return cm_error_set(err, CM_E_PROTOCOL, 0, "the WebSocket's server %s", what);
}

static int check_protocol(const struct answer *a, const char *const *protocols,
			  struct cm_error *err)
{
	if (!protocols || !protocols[0])
		return a->n_protocol == 0 ? CM_OK
					  : refuse(err, "chose a protocol that was not offered");
	if (a->n_protocol != 1)
		return refuse(err, "did not choose one of the protocols that were offered");
	for (size_t i = 0; protocols[i]; i++) {
		if (a->protocol.len == strlen(protocols[i]) &&
		    memcmp(a->protocol.at, protocols[i], a->protocol.len) == 0)
			return CM_OK;
	}
	return refuse(err, "chose a protocol that was not offered");
}

int cm_ws_check_answer(const char *head, size_t len, const char *key, const char *const *protocols,
		       int *ret_status, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf accept = { 0 };
	struct answer a = { 0 };
	const char *fields = len > 0 ? memmem(head, len, "\r\n", 2) : NULL;

	*ret_status = status_of(head, len);
	if (*ret_status == 0 || !fields)
		return refuse(err, "does not speak HTTP/1.1");
	if (*ret_status != 101)
		return cm_error_set(err, CM_E_REMOTE, 0, "the WebSocket's server says %d",
				    *ret_status);
	if (!take_fields(&a, fields + 2, head + len))
		return refuse(err, "sent headers that are none");
	cm_buf_init(&accept, 64);
	cm_ws_accept(&accept, key);
	if (cm_buf_status(&accept) < 0)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for an answer");
	if (!a.has_upgrade || !a.has_connection)
		return refuse(err, "did not change to WebSocket");
	if (a.n_accept != 1 || a.accept.len != accept.len ||
	    memcmp(a.accept.at, accept.data, accept.len) != 0)
		return refuse(err, "gave a wrong answer to the key");
	if (a.has_extensions)
		return refuse(err, "chose an extension, and none was offered");
	return check_protocol(&a, protocols, err);
}
