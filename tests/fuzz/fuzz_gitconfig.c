/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that whoever wrote a repository, a home or an image chose: git's configuration, gitfiles,
 * npm's and pip's settings, passwd, subuid. The first byte says which.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "isolation/host/gitprograms.h"
#include "isolation/host/host.h"
#include "isolation/host/passwd.h"
#include "isolation/host/toolconf.h"
#include "isolation/host/workspace_internal.h"
#include "tests/fuzz/fuzz.h"

static int check_program(const char *path, unsigned int flags, void *data)
{
	(void)data;
	require(path[0] != '\0' &&
		strlen(path) < sizeof(((struct cm_gitconfig_item *)NULL)->value));
	require((flags & ~(CM_GITPATH_DIR | CM_GITPATH_EXPECTED | CM_GITPATH_TOLD)) == 0);
	return 0;
}

static int check_item(const struct cm_gitconfig_item *item, void *data)
{
	(void)data;
	require(strlen(item->section) < sizeof(item->section));
	require(strlen(item->subsection) < sizeof(item->subsection));
	require(item->key[0] != '\0' && strlen(item->key) < sizeof(item->key));
	require(strlen(item->value) < sizeof(item->value));
	return cm_gitprograms_read(item, check_program, NULL);
}

static void check_gitfile(const char *text)
{
	char path[64];

	if (!cm_gitfile_parse(text, "gitdir: ", path, sizeof(path)))
		return;
	require(path[0] != '\0' && strlen(path) < sizeof(path));
	require(!strchr(path, '\n'));
}

/* Nothing that could be a secret comes through. */
static void check_settings(const char *text)
{
	struct cm_strv npm = { 0 };
	struct cm_strv pip = { 0 };

	require(cm_toolconf_parse_npm(text, &npm) == CM_OK);
	require(cm_toolconf_parse_pip(text, &pip) == CM_OK);
	for (size_t i = 0; i < npm.n + pip.n; i++) {
		const char *setting = i < npm.n ? npm.v[i] : pip.v[i - npm.n];
		const char *value = strchr(setting, '=');

		require(value && cm_toolconf_is_plain(value + 1));
		/* npm's keys for credentials: _auth, _password, //host/:_authToken */
		require(setting[0] != '_' && setting[0] != '/');
	}
	cm_strv_clear(&npm);
	cm_strv_clear(&pip);
}

static void check_names(const char *text)
{
	struct cm_passwd_entry entry = { 0 };
	uint32_t first = 0;
	uint32_t count = 0;
	const char *next = text;
	char home[32];

	if (cm_passwd_find(text, 1000, &entry))
		require(entry.name[0] != '\0' && !strchr(entry.name, ':'));
	cm_passwd_entry_clear(&entry);
	while (cm_passwd_next_home(&next, home, sizeof(home)))
		require(home[0] != '\0');
	if (cm_host_subid_parse(text, "alice", 1000, &first, &count))
		require(first > 0 && count > 0 && count <= UINT32_MAX - first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size == 0)
		return 0;
	text = malloc(size);
	require(text != NULL);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0] % 4) {
	case 0:
		/* length-delimited: a NUL is content */
		(void)cm_gitconfig_parse_all(text, size - 1, check_item, NULL);
		break;
	case 1:
		check_gitfile(text);
		break;
	case 2:
		check_settings(text);
		break;
	default:
		check_names(text);
		break;
	}
	free(text);
	return 0;
}
