/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/giturl.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/base/alloc.h"
#include "runtime/base/buf.h"
#include "runtime/base/fd.h"

static const struct {
	const char *scheme;
	enum cm_giturl_kind kind;
	unsigned int port;
} schemes[] = {
	{ "https", CM_GITURL_HTTPS, 443 }, { "http", CM_GITURL_HTTP, 80 },
	{ "ssh", CM_GITURL_SSH, 22 },	   { "git+ssh", CM_GITURL_SSH, 22 },
	{ "ssh+git", CM_GITURL_SSH, 22 },  { "git", CM_GITURL_GIT, 9418 },
	{ "file", CM_GITURL_FILE, 0 },
};

static int bad(struct cm_error *err, const char *what)
{
	cm_error_set(err, CM_E_INVALID, 0, "the repository's address %s", what);
	cm_error_hint(err, "write https://HOST/PATH, or the path of a repository");
	return CM_E_INVALID;
}

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the repository's address");
}

bool cm_giturl_is_remote(const char *text)
{
	return strstr(text, "://") || text[strcspn(text, ":/")] == ':';
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* NULL: not well-formed, or a character that has no place in a name; or no memory. */
static char *decode(const char *s, size_t len)
{
	char *out = cm_malloc(len + 1);
	size_t n = 0;

	for (size_t i = 0; out && i < len; i++) {
		int c = (unsigned char)s[i];

		if (c == '%') {
			int high = i + 2 < len ? digit_of(s[i + 1]) : -1;
			int low = i + 2 < len ? digit_of(s[i + 2]) : -1;

			if (high < 0 || low < 0) {
				free(out);
				return NULL;
			}
			c = high * 16 + low;
			i += 2;
		}
		if (c < ' ' || c == 0x7f) {
			free(out);
			return NULL;
		}
		out[n++] = (char)c;
	}
	if (out)
		out[n] = '\0';
	return out;
}

static char *copy(const char *s, size_t len)
{
	char *out = cm_malloc(len + 1);

	if (out) {
		memcpy(out, s, len);
		out[len] = '\0';
	}
	return out;
}

/* What a name or an address may consist of; a dash at its beginning is an option's. */
static bool host_ok(const char *s, size_t len, bool is_address)
{
	const char *allowed = is_address ? "0123456789abcdefABCDEF:." : "-._";

	if (len == 0 || len > 253 || s[0] == '-' || s[0] == '.')
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!strchr(allowed, s[i]) && (is_address || !isalnum((unsigned char)s[i])))
			return false;
	}
	return true;
}

static int take_host(struct cm_giturl *u, const char *s, size_t len, bool is_address,
		     struct cm_error *err)
{
	if (!host_ok(s, len, is_address))
		return bad(err, "has no usable host name");
	u->host = copy(s, len);
	if (!u->host)
		return no_memory(err);
	for (char *p = u->host; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	return CM_OK;
}

static int take_port(struct cm_giturl *u, const char *s, size_t len, struct cm_error *err)
{
	unsigned int port = 0;

	/* "host:" is the default one */
	if (len == 0)
		return CM_OK;
	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9' || port > 65535)
			return bad(err, "has a port that is none");
		port = port * 10 + (unsigned int)(s[i] - '0');
	}
	if (port == 0 || port > 65535)
		return bad(err, "has a port that is none");
	u->port = port;
	return CM_OK;
}

static int take_userinfo(struct cm_giturl *u, const char *s, size_t len, struct cm_error *err)
{
	const char *colon = memchr(s, ':', len);
	size_t n = colon ? (size_t)(colon - s) : len;

	if (n > 0)
		u->user = decode(s, n);
	if (colon)
		u->password = decode(colon + 1, len - n - 1);
	if ((n > 0 && !u->user) || (colon && !u->password))
		return bad(err, "has a user name that cannot be read");
	/* it ends in the arguments of other programs */
	if (u->user && u->user[0] == '-')
		return bad(err, "has a user name that begins with a dash");
	return CM_OK;
}

static int take_authority(struct cm_giturl *u, const char *s, size_t len, struct cm_error *err)
{
	const char *at = NULL;
	const char *end = s + len;
	const char *colon;
	bool is_address;
	int r = CM_OK;

	for (size_t i = 0; i < len; i++) {
		if (s[i] == '@')
			at = s + i;
	}
	if (at) {
		r = take_userinfo(u, s, (size_t)(at - s), err);
		s = at + 1;
	}
	if (r < 0)
		return r;
	is_address = s < end && *s == '[';
	if (is_address) {
		const char *bracket = memchr(s, ']', (size_t)(end - s));

		if (!bracket || (bracket + 1 < end && bracket[1] != ':'))
			return bad(err, "has no usable host name");
		r = take_host(u, s + 1, (size_t)(bracket - s - 1), true, err);
		colon = bracket + 1 < end ? bracket + 1 : NULL;
	} else {
		colon = memchr(s, ':', (size_t)(end - s));
		r = take_host(u, s, (size_t)((colon ? colon : end) - s), false, err);
	}
	if (r == CM_OK && colon)
		r = take_port(u, colon + 1, (size_t)(end - colon - 1), err);
	return r;
}

/* No blank, no control character: it goes into configuration files and lines of protocols. */
static bool text_ok(const char *s)
{
	for (; *s; s++) {
		if ((unsigned char)*s <= ' ' || *s == 0x7f)
			return false;
	}
	return true;
}

static int write_text(struct cm_giturl *u, const char *scheme, unsigned int own_port,
		      const char *raw_user, size_t raw_user_len, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	bool is_address = strchr(u->host, ':') != NULL;

	cm_buf_init(&text, 16384);
	cm_buf_printf(&text, "%s://", scheme);
	if (raw_user_len > 0) {
		cm_buf_append(&text, raw_user, raw_user_len);
		cm_buf_putc(&text, '@');
	}
	cm_buf_printf(&text, is_address ? "[%s]" : "%s", u->host);
	if (u->port != own_port)
		cm_buf_printf(&text, ":%u", u->port);
	cm_buf_puts(&text, u->path);
	u->text = cm_buf_take(&text);
	return u->text ? CM_OK : no_memory(err);
}

static int parse_with_scheme(const char *text, const char *sep, struct cm_giturl *u,
			     struct cm_error *err)
{
	size_t scheme_len = (size_t)(sep - text);
	const char *rest = sep + 3;
	size_t authority_len = strcspn(rest, "/?#");
	const char *path = rest + authority_len;
	size_t i = 0;
	int r;

	while (i < CM_ARRAY_SIZE(schemes) &&
	       (strlen(schemes[i].scheme) != scheme_len ||
		strncasecmp(schemes[i].scheme, text, scheme_len) != 0))
		i++;
	if (i == CM_ARRAY_SIZE(schemes))
		return bad(err, "is of an unknown kind");
	u->kind = schemes[i].kind;
	u->port = schemes[i].port;
	if (u->kind == CM_GITURL_FILE) {
		if (authority_len > 0 && strncmp(rest, "localhost/", 10) != 0)
			return bad(err, "names a host, where file: has none");
		u->path = cm_strdup(path);
		u->text = cm_strdup(path);
		if (!u->path || !u->text)
			return no_memory(err);
		return u->path[0] == '/' ? CM_OK : bad(err, "has no path");
	}
	r = take_authority(u, rest, authority_len, err);
	if (r < 0)
		return r;
	/* the part of a path that a server never sees */
	if (strchr(path, '#'))
		return bad(err, "has a '#' in it");
	if (path[0] != '/' || path[1] == '\0')
		return bad(err, "has no path");
	/* ssh hands it to a program of the server's */
	if (u->kind == CM_GITURL_SSH && path[1] == '-')
		return bad(err, "has a path that begins with a dash");
	u->path = cm_strdup(path);
	if (!u->path)
		return no_memory(err);
	return write_text(u, u->kind == CM_GITURL_SSH ? "ssh" : schemes[i].scheme, schemes[i].port,
			  rest, u->user ? strcspn(rest, ":@") : 0, err);
}

/* [user@]host:path */
static int parse_scp(const char *text, struct cm_giturl *u, struct cm_error *err)
{
	const char *colon = strchr(text, ':');
	const char *path;
	int r;

	/* [::1]:path */
	if (strchr(text, '[')) {
		const char *bracket = strchr(text, ']');

		colon = bracket ? strchr(bracket, ':') : NULL;
	}
	if (!colon)
		return bad(err, "has no usable host name");
	u->kind = CM_GITURL_SSH;
	u->port = 22;
	r = take_authority(u, text, (size_t)(colon - text), err);
	if (r < 0)
		return r;
	path = colon + 1;
	if (*path == '\0' || *path == '-' || u->password)
		return bad(err, "has no path");
	u->path = cm_strdup(path);
	u->text = cm_strdup(text);
	return u->path && u->text ? CM_OK : no_memory(err);
}

int cm_giturl_parse(const char *text, struct cm_giturl *ret, struct cm_error *err)
{
	struct cm_giturl u = { 0 };
	const char *sep = strstr(text, "://");
	int r = CM_OK;

	if (text[0] == '\0' || text[0] == '-')
		r = bad(err, "is empty, or an option");
	else if (cm_giturl_is_remote(text) && !text_ok(text))
		r = bad(err, "has a blank or a control character in it");
	else if (sep)
		r = parse_with_scheme(text, sep, &u, err);
	else if (cm_giturl_is_remote(text))
		r = parse_scp(text, &u, err);
	else {
		u.kind = CM_GITURL_PATH;
		u.path = cm_strdup(text);
		u.text = cm_strdup(text);
		if (!u.path || !u.text)
			r = no_memory(err);
	}
	if (r < 0)
		cm_giturl_clear(&u);
	else
		*ret = u;
	return r;
}

bool cm_giturl_same_server(const struct cm_giturl *a, const struct cm_giturl *b)
{
	return a->host && b->host && a->kind == b->kind && a->port == b->port &&
	       strcmp(a->host, b->host) == 0;
}

void cm_giturl_clear(struct cm_giturl *url)
{
	if (url->password)
		explicit_bzero(url->password, strlen(url->password));
	free(url->host);
	free(url->user);
	free(url->password);
	free(url->path);
	free(url->text);
	*url = (struct cm_giturl){ 0 };
}
