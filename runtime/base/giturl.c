/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/giturl.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/base/alloc.h"
#include "runtime/base/buf.h"
#include "runtime/base/fd.h"

/* of a name, by the DNS; of one that becomes a directory's */
#define HOST_MAX 253
#define NAME_MAX_LEN 128

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

static int unknown_kind(struct cm_error *err)
{
	int r = bad(err, "is of an unknown kind");

	cm_error_hint(err, "there are https://, http://, ssh://, git:// and file://, HOST:PATH for "
			   "ssh, and the path of a repository");
	return r;
}

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the repository's address");
}

/* Not of <ctype.h>: what a letter is must not depend on a locale. */
static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_control(char c)
{
	return (unsigned char)c < ' ' || c == 0x7f;
}

/* Of "scheme://", where the scheme ends; NULL: the text does not begin so. */
static const char *find_scheme_end(const char *text)
{
	const char *end = text;

	while (is_alnum(*end) || (end > text && *end != '\0' && strchr("+-.", *end)))
		end++;
	return end > text && strncmp(end, "://", 3) == 0 ? end : NULL;
}

static size_t find_scheme(const char *name, size_t len)
{
	size_t i = 0;

	while (i < CM_ARRAY_SIZE(schemes) &&
	       (strlen(schemes[i].scheme) != len || strncasecmp(schemes[i].scheme, name, len) != 0))
		i++;
	return i;
}

bool cm_giturl_is_remote(const char *text)
{
	return text[strcspn(text, ":/")] == ':';
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * Without its percent signs. CM_E_INVALID: not well-formed, or a character that would end a line
 * of a protocol.
 */
static int decode(const char *s, size_t len, char **ret)
{
	char *out = cm_malloc(len + 1);
	size_t n = 0;

	if (!out)
		return CM_E_NOMEM;
	for (size_t i = 0; i < len; i++) {
		int high = s[i] == '%' && i + 2 < len ? digit_of(s[i + 1]) : -1;
		int low = high >= 0 ? digit_of(s[i + 2]) : -1;

		out[n] = s[i];
		if (low >= 0)
			out[n] = (char)(high * 16 + low);
		if ((s[i] == '%' && low < 0) || is_control(out[n])) {
			explicit_bzero(out, n);
			free(out);
			return CM_E_INVALID;
		}
		i += low >= 0 ? 2 : 0;
		n++;
	}
	out[n] = '\0';
	*ret = out;
	return CM_OK;
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

static bool is_ipv6(const char *s)
{
	struct in6_addr ignored;

	return inet_pton(AF_INET6, s, &ignored) == 1;
}

/* A dash at its beginning is an option's. */
static bool is_host_name(const char *s)
{
	if (s[0] == '\0' || s[0] == '-' || s[0] == '.')
		return false;
	for (; *s != '\0'; s++) {
		if (!is_alnum(*s) && !strchr("-._", *s))
			return false;
	}
	return true;
}

static int take_host(struct cm_giturl *u, const char *s, size_t len, bool is_address,
		     struct cm_error *err)
{
	if (len > HOST_MAX)
		return bad(err, "has no usable host name");
	u->host = copy(s, len);
	if (!u->host)
		return no_memory(err);
	if (is_address ? !is_ipv6(u->host) : !is_host_name(u->host))
		return bad(err, "has no usable host name");
	for (char *p = u->host; *p != '\0'; p++) {
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p - 'A' + 'a');
	}
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
	int r = CM_OK;

	if (u->kind == CM_GITURL_GIT)
		return bad(err, "has a user name, where git:// has none");
	if (n > 0)
		r = decode(s, n, &u->user);
	if (r == CM_OK && colon)
		r = decode(colon + 1, len - n - 1, &u->password);
	if (r == CM_E_NOMEM)
		return no_memory(err);
	if (r != CM_OK)
		return bad(err, "has a user name or a password that cannot be read");
	/* it ends in the arguments of other programs */
	if (u->user && u->user[0] == '-')
		return bad(err, "has a user name that begins with a dash");
	return CM_OK;
}

/* HOST, HOST:PORT, [ADDRESS], [ADDRESS]:PORT */
static int take_host_and_port(struct cm_giturl *u, const char *s, const char *end,
			      struct cm_error *err)
{
	bool is_address = s < end && *s == '[';
	const char *stop = memchr(s, is_address ? ']' : ':', (size_t)(end - s));
	const char *colon = is_address && stop ? stop + 1 : stop;
	int r;

	if (is_address && (!stop || (colon < end && *colon != ':')))
		return bad(err, "has no usable host name");
	if (is_address)
		s++;
	r = take_host(u, s, (size_t)((stop ? stop : end) - s), is_address, err);
	if (r == CM_OK && colon && colon < end)
		r = take_port(u, colon + 1, (size_t)(end - colon - 1), err);
	return r;
}

static int take_authority(struct cm_giturl *u, const char *s, size_t len, struct cm_error *err)
{
	const char *end = s + len;
	const char *at = memchr(s, '@', len);
	int r;

	if (!at)
		return take_host_and_port(u, s, end, err);
	/* for some the host begins behind the first, for others behind the last */
	if (memchr(at + 1, '@', (size_t)(end - at - 1))) {
		r = bad(err, "has more than one '@' before its path");
		cm_error_hint(err, "write one that belongs to a user name or a password as %%40");
		return r;
	}
	r = take_userinfo(u, s, (size_t)(at - s), err);
	return r == CM_OK ? take_host_and_port(u, at + 1, end, err) : r;
}

/*
 * Blanks and control characters end in lines of protocols and in configuration files; a backslash
 * is a slash to some readers, which moves the end of the host.
 */
static bool is_text_ok(const char *s, bool is_remote)
{
	for (; *s != '\0'; s++) {
		if (is_control(*s) || (is_remote && (*s == ' ' || *s == '\\')))
			return false;
	}
	return true;
}

/* As http:// and https:// take part in lists and records, and a token alone is a user name there,
 * theirs have none. */
static int write_text(struct cm_giturl *u, const char *scheme, unsigned int own_port,
		      const char *raw_user, size_t raw_user_len, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };

	cm_buf_init(&text, CM_GITURL_MAX * 2);
	cm_buf_printf(&text, "%s://", scheme);
	if (raw_user_len > 0 && u->kind == CM_GITURL_SSH) {
		cm_buf_append(&text, raw_user, raw_user_len);
		cm_buf_putc(&text, '@');
	}
	cm_buf_printf(&text, strchr(u->host, ':') ? "[%s]" : "%s", u->host);
	if (u->port != own_port)
		cm_buf_printf(&text, ":%u", u->port);
	cm_buf_puts(&text, u->path);
	u->text = cm_buf_take(&text);
	return u->text ? CM_OK : no_memory(err);
}

static int parse_file(const char *rest, size_t authority_len, struct cm_giturl *u,
		      struct cm_error *err)
{
	const char *path = rest + authority_len;
	int r;

	if (authority_len > 0 &&
	    (authority_len != 9 || strncasecmp(rest, "localhost", authority_len) != 0))
		return bad(err, "names a host, where file:// has none");
	if (path[0] != '/')
		return bad(err, "has no path");
	r = decode(path, strlen(path), &u->path);
	if (r == CM_OK)
		u->text = cm_strdup(u->path);
	if (r == CM_E_NOMEM || (r == CM_OK && !u->text))
		return no_memory(err);
	return r == CM_OK ? r : bad(err, "has a path that cannot be read");
}

/* The path as the server gets it, which of ssh:// and git:// is the decoded one. */
static int check_path(const struct cm_giturl *u, const char *path, struct cm_error *err)
{
	CM_AUTO_FREE char *decoded = NULL;
	int r;

	if (path[0] != '/' || path[1] == '\0')
		return bad(err, "has no path");
	/* what a server never sees, and what may be a token and would be shown */
	if (strpbrk(path, "?#"))
		return bad(err, "has a '?' or '#' in it");
	r = decode(path, strlen(path), &decoded);
	if (r == CM_E_NOMEM)
		return no_memory(err);
	if (r != CM_OK)
		return bad(err, "has a path that cannot be read");
	/* ssh hands it to a program of the server's */
	if (u->kind == CM_GITURL_SSH && decoded[1] == '-')
		return bad(err, "has a path that begins with a dash");
	return CM_OK;
}

static int parse_with_scheme(const char *text, const char *scheme_end, struct cm_giturl *u,
			     struct cm_error *err)
{
	const char *rest = scheme_end + 3;
	size_t authority_len = strcspn(rest, "/?#");
	const char *path = rest + authority_len;
	size_t i = find_scheme(text, (size_t)(scheme_end - text));
	int r;

	if (i == CM_ARRAY_SIZE(schemes))
		return unknown_kind(err);
	u->kind = schemes[i].kind;
	u->port = schemes[i].port;
	if (u->kind == CM_GITURL_FILE)
		return parse_file(rest, authority_len, u, err);
	r = take_authority(u, rest, authority_len, err);
	if (r == CM_OK)
		r = check_path(u, path, err);
	if (r != CM_OK)
		return r;
	u->path = cm_strdup(path);
	if (!u->path)
		return no_memory(err);
	return write_text(u, u->kind == CM_GITURL_SSH ? "ssh" : schemes[i].scheme, schemes[i].port,
			  rest, u->user ? strcspn(rest, ":@") : 0, err);
}

/* Of [user@]host:path, the colon; of an address in brackets, the one behind them. */
static const char *find_scp_colon(const char *text)
{
	const char *bracket = text + strcspn(text, "[:");

	if (*bracket != '[')
		return bracket;
	bracket = strchr(bracket, ']');
	return bracket && bracket[1] == ':' ? bracket + 1 : NULL;
}

/* [user@]host:path. What looks like another form with a slip in it may hold a password. */
static int parse_scp(const char *text, struct cm_giturl *u, struct cm_error *err)
{
	const char *colon = find_scp_colon(text);
	size_t len = colon ? (size_t)(colon - text) : 0;
	const char *path = colon ? colon + 1 : "";
	int r;

	if (!colon)
		return bad(err, "has no usable host name");
	/* "ext::COMMAND", which to git names a program; "https:/HOST" */
	if (*path == ':' || find_scheme(text, len) < CM_ARRAY_SIZE(schemes))
		return unknown_kind(err);
	if (len == 1 && *path == '/')
		return bad(err, "is a path of Windows");
	/* "user:password@host/path" */
	if (memchr(path, '@', strcspn(path, "/")))
		return bad(err, "has a password, but no scheme");
	u->kind = CM_GITURL_SSH;
	u->port = 22;
	r = take_authority(u, text, len, err);
	if (r < 0)
		return r;
	if (u->password)
		return bad(err, "has a password, but no scheme");
	if (*path == '\0' || strcmp(path, "/") == 0)
		return bad(err, "has no path");
	if (path[path[0] == '/'] == '-')
		return bad(err, "has a path that begins with a dash");
	u->path = cm_strdup(path);
	u->text = cm_strdup(text);
	return u->path && u->text ? CM_OK : no_memory(err);
}

static int parse(const char *text, struct cm_giturl *u, struct cm_error *err)
{
	const char *scheme_end = find_scheme_end(text);
	bool is_remote = cm_giturl_is_remote(text);

	if (text[0] == '\0' || text[0] == '-')
		return bad(err, "is empty, or an option");
	if (strlen(text) > CM_GITURL_MAX)
		return bad(err, "is too long");
	if (!is_text_ok(text, is_remote))
		return bad(err, is_remote ? "has a blank, a backslash or a control character in it"
					  : "has a control character in it");
	if (scheme_end)
		return parse_with_scheme(text, scheme_end, u, err);
	if (is_remote)
		return parse_scp(text, u, err);
	u->kind = CM_GITURL_PATH;
	u->path = cm_strdup(text);
	u->text = cm_strdup(text);
	return u->path && u->text ? CM_OK : no_memory(err);
}

int cm_giturl_parse(const char *text, struct cm_giturl *ret, struct cm_error *err)
{
	struct cm_giturl u = { 0 };
	int r = parse(text, &u, err);

	if (r < 0)
		cm_giturl_clear(&u);
	else
		*ret = u;
	return r;
}

bool cm_giturl_is_here(const struct cm_giturl *url)
{
	/* a name could lead anywhere by the time that git asks for its address */
	return url->host && (strcmp(url->host, "localhost") == 0 || strcmp(url->host, "::1") == 0 ||
			     (strncmp(url->host, "127.", 4) == 0 &&
			      url->host[strspn(url->host, "0123456789.")] == '\0'));
}

bool cm_giturl_is_safe(const struct cm_giturl *url)
{
	return url->kind == CM_GITURL_HTTPS ||
	       (url->kind == CM_GITURL_HTTP && cm_giturl_is_here(url));
}

bool cm_giturl_same_server(const struct cm_giturl *a, const struct cm_giturl *b)
{
	return a->host && b->host && a->kind == b->kind && a->port == b->port &&
	       strcmp(a->host, b->host) == 0;
}

/* Shortens [s, *end) by slashes and by a component that is "." or ".git". */
static void drop_tail(const char *s, const char **end)
{
	static const char *const tails[] = { "/", "/.", "/.git" };

	for (size_t i = 0; i < CM_ARRAY_SIZE(tails);) {
		size_t len = strlen(tails[i]);

		if ((size_t)(*end - s) < len || memcmp(*end - len, tails[i], len) != 0) {
			i++;
			continue;
		}
		*end -= len;
		i = 0;
	}
}

char *cm_giturl_name(const struct cm_giturl *url)
{
	const char *end = url->path + strlen(url->path);
	const char *base;
	char name[NAME_MAX_LEN + 1];
	size_t n = 0;

	drop_tail(url->path, &end);
	base = end;
	while (base > url->path && base[-1] != '/')
		base--;
	if (end - base > 4 && memcmp(end - 4, ".git", 4) == 0)
		end -= 4;
	for (; base < end && n < NAME_MAX_LEN; base++) {
		char c = '-';

		if (is_alnum(*base) || strchr("._-", *base))
			c = *base;
		/* hidden, or an option */
		if (n > 0 || is_alnum(c) || c == '_')
			name[n++] = c;
	}
	return n > 0 ? copy(name, n) : cm_strdup("repository");
}

void cm_giturl_clear(struct cm_giturl *url)
{
	/* a token may be all there is */
	cm_free_secret(&url->user);
	cm_free_secret(&url->password);
	free(url->host);
	free(url->path);
	free(url->text);
	*url = (struct cm_giturl){ 0 };
}
