/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of npm and pip that builds need and that are no secret: without nodedir an addon is not
 * built, without the registry's URL nothing of a company is found. The files themselves hold
 * tokens, so only listed keys pass, and no value with a user in its URL or a variable in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "isolation/host/gitconfig.h"
#include "isolation/host/node.h"
#include "isolation/host/toolconf.h"
#include "isolation/host/tree_internal.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"

#define MAX_BYTES (64UL * 1024)
#define MAX_KEY 128
#define MAX_VALUE 1024

/* where packages come from, what builds them, and what of them is written to the project */
static const char *const npm_keys[] = {
	"registry",
	"@*:registry",
	"nodedir",
	"python",
	"cafile",
	"fetch-*",
	"script-shell",
	"ignore-scripts",
	"engine-strict",
	"legacy-peer-deps",
	"strict-peer-deps",
	"min-release-age",
	"save-exact",
	"save-prefix",
	"package-lock",
	"lockfile-version",
	"omit-lockfile-registry-resolved",
	"audit",
	"fund",
	"update-notifier",
};

static const char *const pip_keys[] = { "index-url", "extra-index-url", "find-links", "cert" };

bool cm_toolconf_is_plain(const char *value)
{
	for (const char *p = value; *p; p++) {
		if ((unsigned char)*p < ' ' || *p == 127)
			return false;
	}
	/* user:password@host, and a reference to a variable that may hold one */
	return *value && !strchr(value, '@') && !strstr(value, "${");
}

static bool is_listed(const char *key, const char *const keys[], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (cm_text_matches(keys[i], key))
			return true;
	}
	return false;
}

/* Copies without the blanks and quotes around it; false when it does not fit. */
static bool trim(const char *s, size_t len, char *buf, size_t size)
{
	while (len > 0 && strchr(" \t\r", s[0])) {
		s++;
		len--;
	}
	while (len > 0 && strchr(" \t\r", s[len - 1]))
		len--;
	if (len >= 2 && (s[0] == '"' || s[0] == '\'') && s[len - 1] == s[0]) {
		s++;
		len -= 2;
	}
	if (len >= size)
		return false;
	memcpy(buf, s, len);
	buf[len] = '\0';
	return true;
}

static int take_npm_line(const char *line, size_t len, struct cm_strv *settings)
{
	const char *equals = memchr(line, '=', len);
	char key[MAX_KEY];
	char value[MAX_VALUE];

	if (!equals || !trim(line, (size_t)(equals - line), key, sizeof(key)) ||
	    !trim(equals + 1, len - (size_t)(equals - line) - 1, value, sizeof(value)))
		return CM_OK;
	if (!is_listed(key, npm_keys, CM_ARRAY_SIZE(npm_keys)) || strchr(key, '/') ||
	    !cm_toolconf_is_plain(value))
		return CM_OK;
	return cm_strv_env_set(settings, key, value);
}

int cm_toolconf_parse_npm(const char *text, struct cm_strv *settings)
{
	int r = CM_OK;

	while (r == CM_OK && *text) {
		size_t len = strcspn(text, "\n");

		if (text[0] != '#' && text[0] != ';' && text[0] != '[')
			r = take_npm_line(text, len, settings);
		text += len;
		if (*text)
			text++;
	}
	return r;
}

static int take_pip(const struct cm_gitconfig_item *item, void *data)
{
	if ((strcmp(item->section, "global") != 0 && strcmp(item->section, "install") != 0) ||
	    !is_listed(item->key, pip_keys, CM_ARRAY_SIZE(pip_keys)) ||
	    !cm_toolconf_is_plain(item->value))
		return 0;
	return cm_strv_env_set(data, item->key, item->value) < 0 ? CM_E_NOMEM : 0;
}

int cm_toolconf_parse_pip(const char *text, struct cm_strv *settings)
{
	return cm_gitconfig_parse(text, strlen(text), take_pip, settings);
}

static int read_file(const char *dir, const char *name, struct cm_strv *settings,
		     int (*parse)(const char *text, struct cm_strv *settings))
{
	CM_AUTO_FREE char *path = cm_path_join(dir, name);
	CM_AUTO_FREE char *text = NULL;
	int r;

	if (!path)
		return CM_E_NOMEM;
	r = cm_read_text_at(AT_FDCWD, path, MAX_BYTES, &text);
	if (r < 0)
		return r == -ENOMEM ? CM_E_NOMEM : CM_OK;
	return parse(text, settings);
}

int cm_tree_toolconf_read(struct cm_tree_reader *reader)
{
	const char *xdg = cm_strv_env_get(reader->env, "XDG_CONFIG_HOME");
	const char *home = reader->host->home;
	struct cm_strv *npm = &reader->facts->npm;
	struct cm_strv *pip = &reader->facts->pip;
	bool has_xdg = xdg && xdg[0] == '/';
	int r;

	r = read_file("/etc", "npmrc", npm, cm_toolconf_parse_npm);
	if (r == CM_OK)
		r = read_file(home, ".npmrc", npm, cm_toolconf_parse_npm);
	if (r == CM_OK)
		r = read_file("/etc", "pip.conf", pip, cm_toolconf_parse_pip);
	if (r == CM_OK)
		r = read_file(home, ".pip/pip.conf", pip, cm_toolconf_parse_pip);
	if (r == CM_OK)
		r = read_file(has_xdg ? xdg : home,
			      has_xdg ? "pip/pip.conf" : ".config/pip/pip.conf", pip,
			      cm_toolconf_parse_pip);
	return r;
}
