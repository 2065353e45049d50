/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/submodule.h"

#include <string.h>
#include <strings.h>

#include "runtime/base/buf.h"
#include "runtime/base/text.h"

static bool is_component(const char *s, size_t len)
{
	if (len == 0 || (len == 1 && s[0] == '.') || (len == 2 && s[0] == '.' && s[1] == '.'))
		return false;
	return len != 4 || strncasecmp(s, ".git", 4) != 0;
}

/* What cannot be told in a report, would be obeyed by a terminal, or is a slash to some. */
static bool is_text(const char *s, const char *refused)
{
	size_t len = strlen(s);

	if (len > CM_SUBMODULE_PATH_MAX)
		return false;
	for (size_t i = 0; i < len;) {
		size_t n = cm_text_utf8_len(s + i, len - i);

		if (n == 0 || (unsigned char)s[i] < ' ' || s[i] == 0x7f || strchr(refused, s[i]))
			return false;
		i += n;
	}
	return true;
}

static bool is_below(const char *path, const char *refused)
{
	if (path[0] == '-' || !is_text(path, refused))
		return false;
	for (;;) {
		size_t len = strcspn(path, "/");

		if (!is_component(path, len))
			return false;
		if (path[len] == '\0')
			return true;
		path += len + 1;
	}
}

bool cm_submodule_is_path(const char *path)
{
	return is_below(path, "\\");
}

bool cm_submodule_is_name(const char *name)
{
	return is_below(name, "\\\"");
}

static int refuse(struct cm_error *err, const char *what)
{
	cm_error_set(err, CM_E_INVALID, 0, "the submodule's address %s", what);
	cm_error_hint(err, "only https and ssh addresses are followed");
	return CM_E_INVALID;
}

static bool is_relative(const char *url)
{
	return cm_text_has_prefix(url, "./") || cm_text_has_prefix(url, "../");
}

/* The last component of path[0..*len) and the slash before it; false: there is none. */
static bool drop_component(const char *path, size_t *len)
{
	size_t n = *len;

	while (n > 0 && path[n - 1] == '/')
		n--;
	if (n == 0)
		return false;
	while (n > 0 && path[n - 1] != '/')
		n--;
	*len = n > 0 ? n - 1 : 0;
	return true;
}

/*
 * git's rule, except that it takes more "../" than there are components for the host's name, and the
 * scheme's after it.
 */
static int join(const struct cm_giturl *base, const char *url, struct cm_buf *out,
		struct cm_error *err)
{
	/* its path ends the text, as it was written */
	size_t before = strlen(base->text) - strlen(base->path);
	const char *path = base->path;
	size_t len = strlen(path);
	int r;

	while (len > 0 && path[len - 1] == '/')
		len--;
	while (is_relative(url)) {
		if (url[1] == '.' && !drop_component(path, &len))
			return refuse(err, "leads above its server");
		url += url[1] == '.' ? 3 : 2;
	}
	cm_buf_append(out, base->text, before + len);
	/* of HOST:PATH nothing is left of the path */
	if (len > 0 || path[0] == '/')
		cm_buf_putc(out, '/');
	cm_buf_puts(out, url);
	r = cm_buf_status(out);
	if (r == CM_E_NOMEM)
		return cm_error_set(err, r, 0, "no memory for a submodule's address");
	return r == CM_OK ? r : refuse(err, "is too long");
}

static int resolve(const char *base, const char *url, struct cm_buf *out, struct cm_error *err)
{
	struct cm_giturl parsed = { 0 };
	int r = cm_giturl_parse(base, &parsed, err);

	if (r < 0)
		return r;
	/* a neighbour of a repository on this host would be copied out of where it is private */
	if (!parsed.host)
		r = refuse(err, "is a path of this host");
	else
		r = join(&parsed, url, out, err);
	cm_giturl_clear(&parsed);
	return r;
}

int cm_submodule_url(const char *base, const char *url, struct cm_giturl *ret, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf joined = { 0 };
	struct cm_giturl parsed = { 0 };
	int r = CM_OK;

	cm_buf_init(&joined, CM_GITURL_MAX + 1);
	if (is_relative(url))
		r = resolve(base, url, &joined, err);
	if (r == CM_OK)
		r = cm_giturl_parse(is_relative(url) ? joined.data : url, &parsed, err);
	if (r < 0)
		return r;
	if (parsed.kind != CM_GITURL_HTTPS && parsed.kind != CM_GITURL_SSH) {
		cm_giturl_clear(&parsed);
		return refuse(err, "is neither https nor ssh");
	}
	*ret = parsed;
	return CM_OK;
}
