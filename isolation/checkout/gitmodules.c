/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/checkout/gitmodules.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/base/alloc.h"
#include "runtime/base/buf.h"
#include "runtime/base/fd.h"

#define VALUE_MAX 4096

static int out_of_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

static int add_module(struct cm_gitmodules *m, char *name, struct cm_error *err)
{
	if (m->n == m->capacity) {
		size_t capacity = m->capacity ? m->capacity * 2 : 16;
		struct cm_gitmodule *v = cm_realloc(m->v, capacity * sizeof(*v));

		if (!v) {
			free(name);
			return out_of_memory(err);
		}
		m->v = v;
		m->capacity = capacity;
	}
	m->v[m->n++] = (struct cm_gitmodule){ .name = name };
	return CM_OK;
}

/*
 * A value up to the end of its line: quotes, backslash escapes, comments, trailing blanks. A line
 * that goes on over its end is not git's output and ends there; of what is too long nothing is left.
 */
static char *parse_value(const char *s, size_t len)
{
	char value[VALUE_MAX];
	bool is_quoted = false;
	size_t n = 0;
	size_t end = 0;

	for (size_t i = 0; i < len; i++) {
		char c = s[i];

		if (c == '"') {
			is_quoted = !is_quoted;
			continue;
		}
		if (!is_quoted && (c == '#' || c == ';'))
			break;
		if (c == '\\' && i + 1 < len)
			c = s[++i];
		if (n + 1 == sizeof(value))
			return cm_strdup("");
		value[n++] = c;
		if (is_quoted || (c != ' ' && c != '\t' && c != '\r'))
			end = n;
	}
	value[end] = '\0';
	return cm_strdup(value);
}

static int set_value(struct cm_gitmodule *module, char **field, const char *s, size_t len,
		     struct cm_error *err)
{
	module->is_ambiguous |= *field != NULL;
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

/* [submodule "NAME"], from the NAME's quote on; what is no name is an empty one. */
static int begin_module(struct cm_gitmodules *m, const char *s, size_t len, struct cm_error *err)
{
	size_t end = 1;
	char *name;

	while (end < len && s[end] != '"')
		end += s[end] == '\\' ? 2 : 1;
	name = s[0] == '"' && end < len ? parse_value(s, end + 1) : cm_strdup("");
	return name ? add_module(m, name, err) : out_of_memory(err);
}

static int parse_line(struct cm_gitmodules *m, bool *in_module, const char *s, size_t len,
		      struct cm_error *err)
{
	static const char section[] = "[submodule ";
	const size_t section_len = sizeof(section) - 1;
	size_t at = skip_blanks(s, len);
	size_t key_len = 0;
	struct cm_gitmodule *module;
	const char *key;

	s += at;
	len -= at;
	if (len > 0 && s[0] == '[') {
		*in_module = len > section_len && strncasecmp(s, section, section_len) == 0;
		return *in_module ? begin_module(m, s + section_len, len - section_len, err)
				  : CM_OK;
	}
	if (!*in_module || !m->v)
		return CM_OK;
	module = &m->v[m->n - 1];
	key = s;
	while (key_len < len && s[key_len] != '=' && s[key_len] != ' ' && s[key_len] != '\t')
		key_len++;
	at = key_len + skip_blanks(s + key_len, len - key_len);
	if (at >= len || s[at] != '=')
		return CM_OK;
	at++;
	at += skip_blanks(s + at, len - at);
	if (key_len == 4 && strncasecmp(key, "path", 4) == 0)
		return set_value(module, &module->path, s + at, len - at, err);
	if (key_len == 3 && strncasecmp(key, "url", 3) == 0)
		return set_value(module, &module->url, s + at, len - at, err);
	return CM_OK;
}

static int compare(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_names(const void *a, const void *b)
{
	return compare(((const struct cm_gitmodule *)a)->name,
		       ((const struct cm_gitmodule *)b)->name);
}

static int compare_paths(const void *a, const void *b)
{
	return compare(((const struct cm_gitmodule *)a)->path,
		       ((const struct cm_gitmodule *)b)->path);
}

/* The file may have a hundred thousand entries: each is compared with its neighbours alone. */
static void sort_and_mark(struct cm_gitmodules *m, int (*order)(const void *a, const void *b))
{
	qsort(m->v, m->n, sizeof(*m->v), order);
	for (size_t i = 1; i < m->n; i++) {
		if (order(&m->v[i - 1], &m->v[i]) == 0)
			m->v[i - 1].is_ambiguous = m->v[i].is_ambiguous = true;
	}
}

int cm_gitmodules_parse(const char *text, size_t len, struct cm_gitmodules *ret,
			struct cm_error *err)
{
	struct cm_gitmodules m = { NULL, 0, 0 };
	bool in_module = false;
	int r = CM_OK;

	while (len > 0 && r == CM_OK) {
		const char *newline = memchr(text, '\n', len);
		size_t line = newline ? (size_t)(newline - text) : len;

		r = parse_line(&m, &in_module, text, line, err);
		line += newline ? 1 : 0;
		text += line;
		len -= line;
	}
	if (r < 0) {
		cm_gitmodules_clear(&m);
		return r;
	}
	if (m.n > 0) {
		sort_and_mark(&m, compare_names);
		sort_and_mark(&m, compare_paths);
	}
	*ret = m;
	return CM_OK;
}

const struct cm_gitmodule *cm_gitmodules_find(const struct cm_gitmodules *modules, const char *path)
{
	const struct cm_gitmodule key = { .path = (char *)(uintptr_t)path };

	return modules->n > 0 ? bsearch(&key, modules->v, modules->n, sizeof(key), compare_paths)
			      : NULL;
}

void cm_gitmodules_clear(struct cm_gitmodules *modules)
{
	for (size_t i = 0; i < modules->n; i++) {
		free(modules->v[i].name);
		free(modules->v[i].path);
		free(modules->v[i].url);
	}
	free(modules->v);
	*modules = (struct cm_gitmodules){ NULL, 0, 0 };
}
