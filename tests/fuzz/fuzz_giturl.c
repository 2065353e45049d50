/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of repositories: what is taken reads back as the same without a secret, whatever the
 * password was; errors are whole and repeat nothing; a name is one of a directory.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/buf.h"
#include "runtime/base/giturl.h"
#include "tests/fuzz/fuzz.h"

#define CANARY "C4n4ryC4n4ryC4n4ry"

static bool is_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static void check_plain(const struct cm_giturl *u)
{
	bool is_local = u->kind == CM_GITURL_PATH || u->kind == CM_GITURL_FILE;

	require(u->text && u->path && u->path[0] != '\0');
	require(is_local == (u->host == NULL) && is_local == (u->port == 0));
	for (const char *s = u->text; *s != '\0'; s++)
		require((unsigned char)*s >= ' ' && *s != 0x7f);
	require(!u->host || (u->host[0] != '-' && !strpbrk(u->host, "/@ \\%[]?#")));
	require(!u->user || u->user[0] != '-');
}

static void check_reparse(const struct cm_giturl *u)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_giturl again;

	require(cm_giturl_parse(u->text, &again, &err) == CM_OK);
	require(again.kind == (u->kind == CM_GITURL_FILE ? CM_GITURL_PATH : u->kind));
	require(is_same(again.host, u->host) && again.port == u->port);
	require(is_same(again.path, u->path) && is_same(again.text, u->text));
	require(is_same(again.user, u->kind == CM_GITURL_SSH ? u->user : NULL));
	require(!again.password);
	cm_giturl_clear(&again);
}

static void check_name(const struct cm_giturl *u)
{
	char *name = cm_giturl_name(u);

	require(name && name[0] != '\0' && name[0] != '.' && name[0] != '-');
	require(strlen(name) <= 128);
	require(strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
		strlen(name));
	free(name);
}

/* The same address with another password has the same text: nothing of one is in it. */
static void check_password(const char *text, const struct cm_giturl *u)
{
	const char *userinfo = strstr(text, "://") + 3;
	const char *colon = strchr(userinfo, ':');
	const char *at = strchr(userinfo, '@');
	struct cm_giturl changed;
	char *other;

	require(colon && at && colon < at);
	other = cm_asprintf("%.*s" CANARY "%s", (int)(colon + 1 - text), text, at);
	require(other != NULL);
	/* it may be too long now */
	if (cm_giturl_parse(other, &changed, NULL) == CM_OK) {
		require(is_same(changed.password, CANARY) && is_same(changed.text, u->text));
		cm_giturl_clear(&changed);
	} else {
		require(strlen(other) > CM_GITURL_MAX);
	}
	free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_giturl u = { 0 };
	char *text = malloc(size + 1);
	int r;

	require(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	r = cm_giturl_parse(text, &u, &err);
	if (r == CM_OK) {
		check_plain(&u);
		check_reparse(&u);
		check_name(&u);
		if (u.password)
			check_password(text, &u);
		require(cm_giturl_is_remote(text) == (u.kind != CM_GITURL_PATH));
	} else {
		require(r == CM_E_INVALID && err.code == r && err.hint[0] != '\0');
		require(strncmp(err.msg, "the repository's address ", 25) == 0);
		require(!u.text);
	}
	cm_giturl_clear(&u);
	free(text);
	return 0;
}
