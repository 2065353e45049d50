/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submodules.
 *
 * A .gitmodules that names a local path would copy a neighbour's repository into the session, and
 * libgit2 has no rule against it; http and git can be changed on the way. So only https and ssh
 * are ever followed, and here, without a network, none is.
 *
 * .gitmodules is read by a small parser, from the blob and not from the file: libgit2's reader of
 * configuration follows include.path, which would open any path that the repository's author chose.
 */
#include "isolation/checkout/modules.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

#define GITMODULES_MAX (1U << 20)
#define VALUE_MAX 4096
#define NOTES_MAX 16

struct module {
	char *path;
	char *url;
};

struct modules {
	struct module *v;
	size_t n;
	size_t capacity;
};

static int out_of_memory(struct cm_error *err)
{
	cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return CM_E_NOMEM;
}

static void modules_clear(struct modules *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->v[i].path);
		free(m->v[i].url);
	}
	free(m->v);
}

static int add_module(struct modules *m, struct cm_error *err)
{
	if (m->n == m->capacity) {
		size_t capacity = m->capacity ? m->capacity * 2 : 16;
		struct module *v = cm_realloc(m->v, capacity * sizeof(*v));

		if (!v)
			return out_of_memory(err);
		m->v = v;
		m->capacity = capacity;
	}
	m->v[m->n++] = (struct module){ NULL, NULL };
	return CM_OK;
}

/*
 * A value up to the end of its line: quotes, backslash escapes, comments, trailing blanks. A line
 * that goes on over its end is not git's output and is cut there.
 */
static char *parse_value(const char *s, size_t len)
{
	char value[VALUE_MAX];
	bool is_quoted = false;
	size_t n = 0;
	size_t end = 0;

	for (size_t i = 0; i < len && n + 1 < sizeof(value); i++) {
		char c = s[i];

		if (c == '"') {
			is_quoted = !is_quoted;
			continue;
		}
		if (!is_quoted && (c == '#' || c == ';'))
			break;
		if (c == '\\' && i + 1 < len)
			c = s[++i];
		value[n++] = c;
		if (is_quoted || (c != ' ' && c != '\t' && c != '\r'))
			end = n;
	}
	value[end] = '\0';
	return cm_strdup(value);
}

static int set_value(char **field, const char *s, size_t len, struct cm_error *err)
{
	free(*field);
	*field = parse_value(s, len);
	return *field ? CM_OK : out_of_memory(err);
}

static size_t skip_blanks(const char *s, size_t len)
{
	size_t i = 0;

	while (i < len && (s[i] == ' ' || s[i] == '\t'))
		i++;
	return i;
}

static int parse_line(struct modules *m, bool *in_module, const char *s, size_t len,
		      struct cm_error *err)
{
	static const char section[] = "[submodule ";
	size_t at = skip_blanks(s, len);
	size_t key_len = 0;
	const char *key;

	s += at;
	len -= at;
	if (len > 0 && s[0] == '[') {
		*in_module = len > sizeof(section) - 1 &&
			     strncasecmp(s, section, sizeof(section) - 1) == 0;
		return *in_module ? add_module(m, err) : CM_OK;
	}
	if (!*in_module)
		return CM_OK;
	key = s;
	while (key_len < len && s[key_len] != '=' && s[key_len] != ' ' && s[key_len] != '\t')
		key_len++;
	at = key_len + skip_blanks(s + key_len, len - key_len);
	if (at >= len || s[at] != '=')
		return CM_OK;
	at++;
	at += skip_blanks(s + at, len - at);
	if (key_len == 4 && strncasecmp(key, "path", 4) == 0)
		return set_value(&m->v[m->n - 1].path, s + at, len - at, err);
	if (key_len == 3 && strncasecmp(key, "url", 3) == 0)
		return set_value(&m->v[m->n - 1].url, s + at, len - at, err);
	return CM_OK;
}

static int parse(struct modules *m, const char *text, size_t len, struct cm_error *err)
{
	bool in_module = false;

	while (len > 0) {
		const char *newline = memchr(text, '\n', len);
		size_t line = newline ? (size_t)(newline - text) : len;
		int r = parse_line(m, &in_module, text, line, err);

		if (r != CM_OK)
			return r;
		line += newline ? 1 : 0;
		text += line;
		len -= line;
	}
	return CM_OK;
}

static int read_gitmodules(git_repository *repo, git_index *index, struct modules *m,
			   struct cm_error *err)
{
	const git_index_entry *e = git_index_get_bypath(index, ".gitmodules", 0);
	CM_AUTO_GIT(git_blob) git_blob *blob = NULL;

	if (!e || (e->mode != GIT_FILEMODE_BLOB && e->mode != GIT_FILEMODE_BLOB_EXECUTABLE))
		return CM_OK;
	if (git_blob_lookup(&blob, repo, &e->id) < 0)
		return cm_library_error(err, "cannot read '.gitmodules'");
	/* without the file's text every submodule is one without an address */
	if (git_blob_rawsize(blob) > GITMODULES_MAX)
		return CM_OK;
	return parse(m, git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob), err);
}

/* The host part must not look like an option of ssh. */
static bool is_host(const char *s)
{
	const char *at;
	size_t len = strcspn(s, "/");

	if (len == 0 || s[0] == '-')
		return false;
	at = memchr(s, '@', len);
	return !at || (at[1] != '-' && at[1] != '\0' && at[1] != '/');
}

enum cm_module_url cm_module_url_check(const char *url)
{
	static const char *const schemes[] = { "https://", "ssh://", "git+ssh://", "ssh+git://" };
	const char *colon = strchr(url, ':');
	const char *slash = strchr(url, '/');

	for (size_t i = 0; i < CM_ARRAY_SIZE(schemes); i++) {
		size_t len = strlen(schemes[i]);

		if (strncasecmp(url, schemes[i], len) == 0)
			return is_host(url + len) ? CM_MODULE_URL_ALLOWED : CM_MODULE_URL_REFUSED;
	}
	/* user@host:path, git's short form; "x::y" would name a program, "c:/" is a path */
	if (!strstr(url, "://") && colon && colon != url && colon[1] != ':' && colon[1] != '\0' &&
	    (!slash || colon < slash) && is_host(url))
		return CM_MODULE_URL_ALLOWED;
	return CM_MODULE_URL_REFUSED;
}

/* The address without "user:password@", which has no place in notes and logs. */
static char *without_userinfo(const char *url)
{
	const char *scheme = strstr(url, "://");
	const char *host = scheme ? scheme + 3 : url;
	size_t len = strcspn(host, "/");
	const char *at = NULL;

	for (size_t i = 0; i < len; i++) {
		if (host[i] == '@')
			at = host + i;
	}
	if (!at)
		return cm_strdup(url);
	return cm_asprintf("%.*s%s", (int)(host - url), url, at + 1);
}

static int note_one(struct cm_report *rep, const struct modules *m, const char *path,
		    struct cm_error *err)
{
	CM_AUTO_FREE char *shown = NULL;
	const char *url = NULL;

	for (size_t i = 0; i < m->n && !url; i++) {
		if (m->v[i].path && strcmp(m->v[i].path, path) == 0)
			url = m->v[i].url;
	}
	if (!url)
		return cm_report_note(rep, err, "submodule '%s' has no address and stays empty",
				      path);
	shown = without_userinfo(url);
	if (!shown)
		return out_of_memory(err);
	if (cm_module_url_check(url) == CM_MODULE_URL_REFUSED)
		return cm_report_note(rep, err,
				      "submodule '%s' is refused: only https and ssh addresses are "
				      "followed, not '%s'",
				      path, shown);
	return cm_report_note(rep, err, "submodule '%s' is not fetched yet: '%s'", path, shown);
}

int cm_modules_note(git_repository *repo, git_index *index, struct cm_report *rep,
		    struct cm_error *err)
{
	__attribute__((cleanup(modules_clear))) struct modules m = { 0 };
	size_t count = git_index_entrycount(index);
	int r = CM_OK;

	rep->submodules = 0;
	for (size_t i = 0; i < count && r == CM_OK; i++) {
		const git_index_entry *e = git_index_get_byindex(index, i);

		if (e->mode != GIT_FILEMODE_COMMIT)
			continue;
		if (rep->submodules == 0)
			r = read_gitmodules(repo, index, &m, err);
		rep->submodules++;
		if (r == CM_OK && rep->submodules <= NOTES_MAX)
			r = note_one(rep, &m, e->path, err);
	}
	if (r == CM_OK && rep->submodules > NOTES_MAX)
		r = cm_report_note(rep, err, "%llu more submodules stay empty",
				   (unsigned long long)(rep->submodules - NOTES_MAX));
	return r;
}
