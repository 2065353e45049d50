/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses: a strict reader. What it does not know the shape of goes to no library, so that two
 * readers cannot see two hosts in one address.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "providers/http_internal.h"
#include "runtime/base/buf.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"
#define HOST_MAX 253

static bool is_hex(char c)
{
	return c != '\0' && strchr(DIGITS "abcdefABCDEF", c) != NULL;
}

/* Of a path or a query. */
static size_t span_of_path(const char *s)
{
	size_t n = 0;

	for (;;) {
		n += strspn(s + n, LETTERS DIGITS "-._~!$&'()*+,;=:@/?");
		if (s[n] != '%' || !is_hex(s[n + 1]) || !is_hex(s[n + 2]))
			return n;
		n += 3;
	}
}

/* The host as a string of its own; NULL: too long for one. */
static const char *copy_host(const struct cm_http_url *url, char buf[HOST_MAX + 1])
{
	if (url->host_len > HOST_MAX)
		return NULL;
	memcpy(buf, url->host, url->host_len);
	buf[url->host_len] = '\0';
	return buf;
}

static bool is_loopback_name(const char *host)
{
	struct in_addr four;

	return strcasecmp(host, "localhost") == 0 ||
	       (inet_pton(AF_INET, host, &four) == 1 && ntohl(four.s_addr) >> 24 == 127);
}

static const char *read_host(const char **at, struct cm_http_url *url)
{
	static const struct in6_addr one = IN6ADDR_LOOPBACK_INIT;
	const char *s = *at;
	char host[HOST_MAX + 1];
	struct in6_addr six;

	if (*s == '[') {
		url->host = ++s;
		url->host_len = strspn(s, DIGITS "abcdefABCDEF:.");
		s += url->host_len;
		if (*s++ != ']' || !copy_host(url, host) || inet_pton(AF_INET6, host, &six) != 1)
			return "its IPv6 address is none";
		url->is_loopback = memcmp(&six, &one, sizeof(six)) == 0;
	} else {
		url->host = s;
		url->host_len = strspn(s, LETTERS DIGITS "-._");
		s += url->host_len;
		if (url->host_len == 0)
			return "it has no host";
		if (!copy_host(url, host))
			return "its host is too long";
		url->is_loopback = is_loopback_name(host);
	}
	*at = s;
	return NULL;
}

static const char *read_port(const char **at)
{
	unsigned long port = 0;
	size_t n;

	if (**at != ':')
		return NULL;
	n = strspn(++*at, DIGITS);
	for (size_t i = 0; i < n && i < 5; i++)
		port = port * 10 + (unsigned long)((*at)[i] - '0');
	*at += n;
	return n < 1 || n > 5 || port < 1 || port > 65535 ? "its port is not 1 to 65535" : NULL;
}

const char *cm_http_url_read(const char *url, struct cm_http_url *ret)
{
	struct cm_http_url parts = { 0 };
	const char *s = url;
	const char *wrong;

	if (strnlen(url, CM_HTTP_URL_MAX) == CM_HTTP_URL_MAX)
		return "it is too long";
	parts.is_tls = strncasecmp(s, "https://", 8) == 0;
	if (!parts.is_tls && strncasecmp(s, "http://", 7) != 0)
		return "it begins neither with https:// nor with http://";
	s += parts.is_tls ? 8 : 7;
	/* nothing that is wrong here is shown, since it may be a password */
	if (memchr(s, '@', strcspn(s, "/?#")))
		return "it has a user name or a password";
	parts.authority = s;
	wrong = read_host(&s, &parts);
	if (!wrong)
		wrong = read_port(&s);
	if (wrong)
		return wrong;
	parts.authority_len = (size_t)(s - parts.authority);
	if (*s != '\0' && *s != '/' && *s != '?' && *s != '#')
		return "its host has a character that no host has";
	parts.path = s;
	parts.path_len = strcspn(s, "?#");
	parts.has_query = s[parts.path_len] == '?';
	s += span_of_path(s);
	if (*s == '#')
		return "it has a fragment ('#')";
	if (*s != '\0')
		return "it has a character that has to be written as %XX";
	*ret = parts;
	return NULL;
}

void cm_http_url_subject(const struct cm_http_url *url, char buf[CM_HTTP_SUBJECT_SIZE])
{
	int host_len = url->authority_len > 150 ? 150 : (int)url->authority_len;
	int path_len = url->path_len > 90 ? 80 : (int)url->path_len;

	(void)snprintf(buf, CM_HTTP_SUBJECT_SIZE, "%s://%.*s%.*s%s", url->is_tls ? "https" : "http",
		       host_len, url->authority, path_len, url->path,
		       (size_t)path_len < url->path_len ? "..." : "");
}

int cm_http_check_url(const char *url, const char *what, struct cm_error *err)
{
	struct cm_http_url parts;
	const char *wrong = cm_http_url_read(url, &parts);

	if (!wrong && parts.has_query)
		wrong = "it has a query ('?')";
	if (!wrong && !parts.is_tls && !parts.is_loopback) {
		cm_error_set(err, CM_E_INVALID, 0,
			     "%s is no address to be used: it is http to '%.*s', which is not this "
			     "machine",
			     what, (int)parts.host_len, parts.host);
		cm_error_hint(err, "give an address with https; http is for loopback alone");
		return CM_E_INVALID;
	}
	if (!wrong)
		return CM_OK;
	cm_error_set(err, CM_E_INVALID, 0, "%s is no address to be used: %s", what, wrong);
	cm_error_hint(err, "give it as https://HOST, https://HOST:PORT or https://HOST/PATH");
	return CM_E_INVALID;
}

bool cm_http_is_loopback(const char *url)
{
	CM_AUTO_FREE char *address =
		strncmp(url, "ws", 2) == 0 ? cm_asprintf("http%s", url + 2) : cm_strdup(url);
	struct cm_http_url parts;

	/* what cannot be read is not followed either */
	return !address || cm_http_url_read(address, &parts) != NULL || parts.is_loopback;
}

static const char *first_of(const struct cm_strv *env, const char *const *names)
{
	const char *value = NULL;

	for (; env && !value && *names; names++)
		value = cm_strv_env_get(env, *names);
	return value ? value : "";
}

/* http has none: it goes to loopback, and what is on loopback no proxy can reach for us. */
const char *cm_http_url_proxy(const struct cm_strv *env, const struct cm_http_url *url)
{
	static const char *const names[] = { "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
					     NULL };

	return !url->is_tls || url->is_loopback ? "" : first_of(env, names);
}

const char *cm_http_url_no_proxy(const struct cm_strv *env)
{
	static const char *const names[] = { "no_proxy", "NO_PROXY", NULL };

	return first_of(env, names);
}
