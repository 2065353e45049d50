/* SPDX-License-Identifier: Apache-2.0 */
/* git's configuration: the format, and the settings that a jail may have by value. */
#include "isolation/host/gitconfig.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isolation/host/node.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"

struct reader {
	const char *at;
	const char *end;
	struct cm_gitconfig_item item;
	bool is_in_section;
};

static bool is_at_end(const struct reader *r)
{
	return r->at >= r->end;
}

static char peek(const struct reader *r)
{
	if (is_at_end(r))
		return '\n';
	return *r->at;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static char lower(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return c;
}

static bool is_name(char c)
{
	c = lower(c);
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

static void skip_blanks(struct reader *r)
{
	while (!is_at_end(r) && is_blank(*r->at))
		r->at++;
}

static void skip_line(struct reader *r)
{
	while (!is_at_end(r) && *r->at != '\n')
		r->at++;
}

/* False: no room. */
static bool put(char *buf, size_t size, size_t *len, char c)
{
	if (*len + 1 >= size)
		return false;
	buf[(*len)++] = c;
	buf[*len] = '\0';
	return true;
}

static void put_value(struct reader *r, size_t *len, char c)
{
	r->item.is_cut = !put(r->item.value, sizeof(r->item.value), len, c) || r->item.is_cut;
}

static bool read_name(struct reader *r, char *buf, size_t size)
{
	size_t len = 0;

	buf[0] = '\0';
	for (; !is_at_end(r) && is_name(*r->at); r->at++)
		(void)put(buf, size, &len, lower(*r->at));
	return len > 0;
}

/* The quoted part of [section "subsection"], after what a dot in the section began. */
static bool read_subsection(struct reader *r)
{
	size_t len = strlen(r->item.subsection);

	if (len > 0)
		(void)put(r->item.subsection, sizeof(r->item.subsection), &len, '.');
	r->at++;
	while (!is_at_end(r) && *r->at != '"' && *r->at != '\n') {
		if (*r->at == '\\' && r->at + 1 < r->end && r->at[1] != '\n')
			r->at++;
		(void)put(r->item.subsection, sizeof(r->item.subsection), &len, *r->at);
		r->at++;
	}
	if (peek(r) != '"')
		return false;
	r->at++;
	return true;
}

/* git's old form, [section.subsection], is the same variable's name to it. */
static void split_section(struct cm_gitconfig_item *item)
{
	char *dot = strchr(item->section, '.');

	item->subsection[0] = '\0';
	if (!dot)
		return;
	(void)snprintf(item->subsection, sizeof(item->subsection), "%s", dot + 1);
	*dot = '\0';
}

static bool read_section(struct reader *r)
{
	r->at++;
	if (!read_name(r, r->item.section, sizeof(r->item.section)))
		return false;
	split_section(&r->item);
	skip_blanks(r);
	if (peek(r) == '"' && !read_subsection(r))
		return false;
	if (peek(r) != ']')
		return false;
	r->at++;
	return true;
}

/* The character after a backslash; '\0' for a continued line, -1 for what git refuses. */
static int unescape(char c)
{
	switch (c) {
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case '\\':
	case '"':
		return c;
	case '\n':
		return '\0';
	default:
		return -1;
	}
}

static bool read_escape(struct reader *r, size_t *len)
{
	int c;

	r->at++;
	if (peek(r) == '\r' && r->at + 1 < r->end && r->at[1] == '\n')
		r->at++;
	c = is_at_end(r) ? -1 : unescape(*r->at);
	if (c < 0)
		return false;
	r->at++;
	if (c != '\0')
		put_value(r, len, (char)c);
	return true;
}

static bool read_value(struct reader *r)
{
	size_t len = 0;
	/* length without the blanks at the end, which count only inside quotes */
	size_t kept = 0;
	bool is_quoted = false;

	r->item.value[0] = '\0';
	r->item.is_cut = false;
	skip_blanks(r);
	while (peek(r) != '\n') {
		char c = *r->at;

		if (!is_quoted && (c == '#' || c == ';'))
			break;
		if (c == '\\') {
			if (!read_escape(r, &len))
				return false;
			kept = len;
			continue;
		}
		r->at++;
		if (c == '"') {
			is_quoted = !is_quoted;
			kept = len;
			continue;
		}
		if (c == '\0')
			return false;
		put_value(r, &len, c);
		if (is_quoted || !is_blank(c))
			kept = len;
	}
	r->item.value[kept] = '\0';
	return !is_quoted;
}

static bool read_variable(struct reader *r)
{
	if (!r->is_in_section || !read_name(r, r->item.key, sizeof(r->item.key)))
		return false;
	skip_blanks(r);
	if (peek(r) == '=') {
		r->at++;
		return read_value(r);
	}
	/* a name alone means true */
	(void)snprintf(r->item.value, sizeof(r->item.value), "true");
	r->item.is_cut = false;
	return peek(r) == '\n' || peek(r) == '#' || peek(r) == ';';
}

static int parse(struct reader *r, bool wants_cut, cm_gitconfig_fn fn, void *data)
{
	int result;

	/* as git, past a byte order mark */
	if (r->end - r->at >= 3 && memcmp(r->at, "\xef\xbb\xbf", 3) == 0)
		r->at += 3;
	while (!is_at_end(r)) {
		skip_blanks(r);
		if (peek(r) == '[') {
			/* a variable may follow on the same line */
			r->is_in_section = read_section(r);
			if (r->is_in_section)
				continue;
		} else if (peek(r) != '\n' && peek(r) != '#' && peek(r) != ';' &&
			   read_variable(r)) {
			result = r->item.is_cut && !wants_cut ? 0 : fn(&r->item, data);
			if (result != 0)
				return result;
		}
		skip_line(r);
		if (!is_at_end(r))
			r->at++;
	}
	return 0;
}

int cm_gitconfig_parse(const char *text, size_t len, cm_gitconfig_fn fn, void *data)
{
	struct reader r = { .at = text, .end = text + len };

	return parse(&r, false, fn, data);
}

int cm_gitconfig_parse_all(const char *text, size_t len, cm_gitconfig_fn fn, void *data)
{
	struct reader r = { .at = text, .end = text + len };

	return parse(&r, true, fn, data);
}

static const struct {
	const char *section;
	/* NULL: all of the section */
	const char *key;
} identity_keys[] = {
	{ "user", "name" },	{ "user", "email" }, { "init", "defaultbranch" },
	{ "core", "autocrlf" }, { "pull", NULL },    { "merge", NULL },
};

static bool is_identity_key(const struct cm_gitconfig_item *item)
{
	/* a merge driver, [merge "NAME"], is a command */
	if (item->subsection[0] != '\0')
		return false;
	for (size_t i = 0; i < CM_ARRAY_SIZE(identity_keys); i++) {
		if (strcmp(item->section, identity_keys[i].section) == 0 &&
		    (!identity_keys[i].key || strcmp(item->key, identity_keys[i].key) == 0))
			return true;
	}
	return false;
}

static int take_identity(const struct cm_gitconfig_item *item, void *data)
{
	struct cm_strv *settings = data;
	char name[160];

	if (!is_identity_key(item))
		return 0;
	for (const char *p = item->value; *p; p++) {
		if ((unsigned char)*p < ' ')
			return 0;
	}
	(void)snprintf(name, sizeof(name), "%s.%s", item->section, item->key);
	/* git takes the last one, too */
	return cm_strv_env_set(settings, name, item->value) < 0 ? CM_E_NOMEM : 0;
}

static int read_config(const char *dir, const char *name, struct cm_strv *settings)
{
	CM_AUTO_FREE char *path = cm_path_join(dir, name);
	CM_AUTO_FREE char *text = NULL;
	int r;

	if (!path)
		return CM_E_NOMEM;
	r = cm_read_text_at(AT_FDCWD, path, CM_GITCONFIG_MAX_BYTES, &text);
	if (r < 0)
		return r == -ENOMEM ? CM_E_NOMEM : CM_OK;
	return cm_gitconfig_parse(text, strlen(text), take_identity, settings);
}

int cm_git_identity_read(const struct cm_host *host, const struct cm_strv *caller_env,
			 struct cm_git_identity *ret, struct cm_error *err)
{
	const char *xdg = cm_strv_env_get(caller_env, "XDG_CONFIG_HOME");
	struct cm_git_identity identity = { 0 };
	int r;

	/* git's own order: the older file, in the home, wins */
	if (xdg && xdg[0] == '/')
		r = read_config(xdg, "git/config", &identity.settings);
	else
		r = read_config(host->home, ".config/git/config", &identity.settings);
	if (r == CM_OK)
		r = read_config(host->home, ".gitconfig", &identity.settings);
	if (r < 0) {
		cm_strv_clear(&identity.settings);
		return cm_facts_nomem(err);
	}
	*ret = identity;
	return CM_OK;
}
