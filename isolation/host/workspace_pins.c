/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host's git believes below the workspace, besides .git. `git status` asks each submodule
 * with that submodule's own configuration, which may name a program to run; and the repository's
 * configuration may name hooks and further configuration that lie in the tree. All of it is made
 * read-only where it is; the directories above are pinned, so that none can be renamed away.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "isolation/host/gitconfig.h"
#include "isolation/host/node.h"
#include "isolation/host/workspace_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"

/* a mount each */
#define MAX_PINS 160

static bool is_listed(const struct cm_nodes *nodes, const char *path)
{
	for (size_t i = 0; i < nodes->n; i++) {
		if (strcmp(nodes->v[i].path, path) == 0)
			return true;
	}
	return false;
}

/* The directories between the workspace and path. 1, 0: not all are, or CM_E_NOMEM. */
static int add_parents(struct cm_workspace_facts *facts, const char *path)
{
	CM_AUTO_FREE char *parent = cm_strdup(path);
	size_t top = strlen(facts->path);
	struct stat st;

	if (!parent)
		return CM_E_NOMEM;
	for (char *slash = strchr(parent + top + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (lstat(parent, &st) < 0 || !S_ISDIR(st.st_mode))
			return 0;
		if (!is_listed(&facts->pin_dirs, parent) &&
		    cm_nodes_add(&facts->pin_dirs, parent, &st, NULL) < 0)
			return CM_E_NOMEM;
		*slash = '/';
	}
	return 1;
}

/* 1: path is protected, 0: there is nothing that could be, or CM_E_NOMEM, CM_E_LIMIT. */
static int protect(struct cm_workspace_facts *facts, const char *path)
{
	struct stat st;
	int r;

	if (strcmp(path, facts->path) == 0 || !cm_path_is_below(path, facts->path))
		return 0;
	if (facts->pins.n + facts->pin_dirs.n >= MAX_PINS)
		return CM_E_LIMIT;
	/* a link can be moved between the look and the mount, which would stop the start */
	if (lstat(path, &st) < 0 || !(S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)))
		return 0;
	if (is_listed(&facts->pins, path))
		return 1;
	r = add_parents(facts, path);
	if (r <= 0)
		return r;
	return cm_nodes_add(&facts->pins, path, &st, NULL) < 0 ? CM_E_NOMEM : 1;
}

static int protect_submodule(struct cm_workspace_facts *facts, const char *named)
{
	CM_AUTO_FREE char *path = cm_path_clean(named);
	CM_AUTO_FREE char *gitfile = path ? cm_path_join(path, ".git") : NULL;
	int r;

	if (!gitfile)
		return CM_E_NOMEM;
	r = protect(facts, gitfile);
	/* git takes whatever repository stands in the place of one that is not checked out */
	return r == 0 ? protect(facts, path) : r;
}

struct config_walk {
	struct cm_workspace_facts *facts;
	const char *git_dir;
};

static int take_path(const struct cm_gitconfig_item *item, void *data)
{
	const struct config_walk *walk = data;
	bool is_include = (strcmp(item->section, "include") == 0 ||
			   strcmp(item->section, "includeif") == 0) &&
			  strcmp(item->key, "path") == 0;
	bool is_hooks = strcmp(item->section, "core") == 0 && strcmp(item->key, "hookspath") == 0;
	CM_AUTO_FREE char *joined = NULL;
	CM_AUTO_FREE char *path = NULL;
	int r;

	/* "~" is a home, which is not below a workspace as long as it is spelled so */
	if ((!is_include && !is_hooks) || item->value[0] == '\0' || item->value[0] == '~')
		return 0;
	joined = cm_path_join(is_include ? walk->git_dir : walk->facts->path, item->value);
	path = joined ? cm_path_clean(joined) : NULL;
	if (!path)
		return CM_E_NOMEM;
	r = protect(walk->facts, path);
	return r < 0 ? r : 0;
}

static int protect_configured(struct cm_workspace_facts *facts, const char *git_dir)
{
	struct config_walk walk = { facts, git_dir };
	CM_AUTO_FREE char *config = cm_path_join(git_dir, "config");
	CM_AUTO_FREE char *text = NULL;

	if (!config)
		return CM_E_NOMEM;
	if (cm_read_text_at(AT_FDCWD, config, CM_GITCONFIG_MAX_BYTES, &text) < 0)
		return CM_OK;
	return cm_gitconfig_parse(text, strlen(text), take_path, &walk);
}

int cm_workspace_pins_read(struct cm_workspace_facts *facts)
{
	CM_AUTO_FREE char *modules = NULL;
	int r = CM_OK;

	for (size_t i = 0; i < facts->git_dirs.n && r == CM_OK; i++)
		r = protect_configured(facts, facts->git_dirs.v[i].path);
	for (size_t i = 0; i < facts->submodules.n && r >= 0; i++)
		r = protect_submodule(facts, facts->submodules.v[i]);
	if (r < 0 || facts->submodules.n == 0)
		return r < 0 ? r : CM_OK;
	/* a submodule that is taken out of it would not be protected at the next start */
	modules = cm_path_join(facts->path, ".gitmodules");
	if (!modules)
		return CM_E_NOMEM;
	r = protect(facts, modules);
	return r < 0 ? r : CM_OK;
}
