/* SPDX-License-Identifier: Apache-2.0 */
/* Repositories: which configuration is a work tree's, and the submodules below it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "isolation/host/gitconfig.h"
#include "isolation/host/workspace_pins.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"

#define MAX_NESTED 8
/* those that are not checked out take no pin */
#define MAX_SUBMODULES 256

/*
 * The directory that the file base/name names, as git reads such files: the text to its last line
 * break. 1, 0: none. The place is protected, so that no other directory can stand there.
 */
static int read_named(struct cm_pins *pins, const char *base, const char *name, const char *prefix,
		      char **ret)
{
	CM_AUTO_FREE char *file = cm_path_join(base, name);
	CM_AUTO_FREE char *text = NULL;
	CM_AUTO_FREE char *joined = NULL;
	CM_AUTO_FREE char *path = NULL;
	size_t len;
	int r;

	if (!file)
		return cm_pins_nomem(pins);
	r = cm_pins_read_text(pins, file, &text);
	if (r <= 0 || !text || strncmp(text, prefix, strlen(prefix)) != 0)
		return r < 0 ? r : 0;
	len = strlen(text);
	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		text[--len] = '\0';
	if (len <= strlen(prefix))
		return 0;
	joined = cm_path_join(base, text + strlen(prefix));
	*ret = joined ? cm_path_real(joined) : NULL;
	path = joined && !*ret ? cm_path_clean(joined) : NULL;
	if (!*ret && errno == ENOMEM)
		return cm_pins_nomem(pins);
	if (!*ret && !path)
		return 0;
	r = cm_pins_protect(pins, *ret ? *ret : path, true);
	if (r == CM_PIN_ABSENT || r == CM_PIN_LINKED)
		r = cm_pins_note(
			pins,
			cm_asprintf(
				"'%s', which '%s' takes for a git directory, cannot be protected: "
				"what the command puts there may run on this host at the next git "
				"command",
				*ret ? *ret : path, file));
	if (r < 0)
		return r;
	return *ret ? 1 : 0;
}

/* The git directory of the work tree top. 1, 0: none. */
static int find_git_dir(struct cm_pins *pins, const char *top, char **ret)
{
	CM_AUTO_FREE char *path = cm_path_join(top, ".git");
	struct stat st;

	if (!path)
		return cm_pins_nomem(pins);
	if (stat(path, &st) < 0)
		return 0;
	if (!S_ISDIR(st.st_mode))
		return S_ISREG(st.st_mode) ? read_named(pins, top, ".git", "gitdir: ", ret) : 0;
	*ret = cm_path_real(path);
	if (!*ret)
		return errno == ENOMEM ? cm_pins_nomem(pins) : 0;
	return 1;
}

struct modules {
	struct cm_pins *pins;
	const char *file;
	struct cm_strv paths;
};

static bool has_dot_dot(const char *path)
{
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && path[0] == '.' && path[1] == '.')
			return true;
		path += n + (path[n] == '/');
	}
	return false;
}

static int take_module(const struct cm_gitconfig_item *item, void *data)
{
	struct modules *modules = data;
	const char *path = item->value;
	int r = cm_pins_count_item(modules->pins);

	if (r < 0 || strcmp(item->section, "submodule") != 0 || strcmp(item->key, "path") != 0)
		return r;
	if (item->is_cut)
		return cm_pins_refuse(modules->pins, CM_E_LIMIT, modules->file,
				      "has a value that is too long");
	/* the index holds no such path, and git looks at what is in the index */
	if (path[0] == '/' || path[0] == '\0' || has_dot_dot(path))
		return CM_OK;
	return cm_strv_add(&modules->paths, path) < 0 ? cm_pins_nomem(modules->pins) : CM_OK;
}

/* git takes whatever repository stands in the place of one that is not checked out. */
static int protect_module(struct cm_pins *pins, const char *path, unsigned int depth)
{
	CM_AUTO_FREE char *gitfile = cm_path_join(path, ".git");
	int r = gitfile ? cm_pins_protect(pins, gitfile, true) : cm_pins_nomem(pins);

	if (r < 0)
		return r;
	if (r != CM_PIN_PROTECTED)
		r = cm_pins_protect(pins, path, true);
	if (r == CM_PIN_PROTECTED)
		return cm_pins_read_tree(pins, path, depth + 1);
	if (r == CM_PIN_ABSENT || r == CM_PIN_LINKED)
		return cm_pins_note(
			pins,
			cm_asprintf("the submodule '%s' %s: what the command puts there may run on "
				    "this host at the next git command",
				    path,
				    r == CM_PIN_ABSENT ? "is not there"
						       : "cannot be protected (a link)"));
	return r < 0 ? r : CM_OK;
}

static int take_path(struct cm_pins *pins, const char *top, const char *named, unsigned int depth)
{
	struct cm_strv *known = &pins->facts->submodules;
	CM_AUTO_FREE char *joined = cm_path_join(top, named);
	CM_AUTO_FREE char *path = joined ? cm_path_clean(joined) : NULL;

	if (!path)
		return errno == ENOMEM ? cm_pins_nomem(pins) : CM_OK;
	if (!cm_path_is_below(path, pins->facts->path) || strcmp(path, pins->facts->path) == 0 ||
	    strcmp(path, top) == 0 || cm_strv_has(known, path))
		return CM_OK;
	if (known->n >= MAX_SUBMODULES || depth >= MAX_NESTED)
		return cm_pins_refuse(pins, CM_E_LIMIT, path,
				      depth >= MAX_NESTED ? "is too deep in submodules"
							  : "is a submodule too many");
	if (cm_strv_add(known, path) < 0)
		return cm_pins_nomem(pins);
	return protect_module(pins, path, depth);
}

static int read_modules(struct cm_pins *pins, const char *top, unsigned int depth)
{
	CM_AUTO_FREE char *file = cm_path_join(top, ".gitmodules");
	CM_AUTO_FREE char *text = NULL;
	struct modules modules = { .pins = pins, .file = file };
	struct stat st;
	int r;

	if (!file)
		return cm_pins_nomem(pins);
	if (lstat(file, &st) == 0 && !S_ISREG(st.st_mode))
		return cm_pins_note(
			pins,
			cm_asprintf("'%s' is not a file: the submodules of '%s' are not protected",
				    file, top));
	r = cm_pins_read_text(pins, file, &text);
	if (r <= 0)
		return r;
	r = cm_gitconfig_parse_all(text, strlen(text), take_module, &modules);
	for (size_t i = 0; i < modules.paths.n && r == CM_OK; i++)
		r = take_path(pins, top, modules.paths.v[i], depth);
	/* a submodule that is taken out of it would not be protected at the next start */
	if (r == CM_OK && modules.paths.n > 0)
		r = cm_pins_protect(pins, file, true);
	cm_strv_clear(&modules.paths);
	return r < 0 ? r : CM_OK;
}

/* What of a repository counts for one top; further tops that it names are added to tops. */
static int read_configs(struct cm_pins *pins, const char *git_dir, const char *common,
			const char *top, struct cm_strv *tops)
{
	const char *const paths[][2] = {
		{ git_dir, "config" },
		{ git_dir, "config.worktree" },
		{ common, "config" },
	};
	CM_AUTO_STRV struct cm_strv seen = { 0 };
	int r = CM_OK;

	for (size_t i = 0; i < CM_ARRAY_SIZE(paths) && r == CM_OK; i++) {
		CM_AUTO_FREE char *path = NULL;

		if (!paths[i][0])
			continue;
		path = cm_path_join(paths[i][0], paths[i][1]);
		r = path ? cm_pins_read_config(pins, path, top, &seen, tops) : cm_pins_nomem(pins);
	}
	return r;
}

int cm_pins_read_tree(struct cm_pins *pins, const char *top, unsigned int depth)
{
	CM_AUTO_STRV struct cm_strv tops = { 0 };
	CM_AUTO_FREE char *git_dir = NULL;
	CM_AUTO_FREE char *common = NULL;
	int r = find_git_dir(pins, top, &git_dir);

	if (r <= 0)
		return r;
	r = read_named(pins, git_dir, "commondir", "", &common);
	if (r < 0)
		return r;
	if (cm_strv_add(&tops, top) < 0)
		return cm_pins_nomem(pins);
	r = CM_OK;
	for (size_t i = 0; i < tops.n && r == CM_OK; i++) {
		/* the list grows meanwhile */
		CM_AUTO_FREE char *at = cm_strdup(tops.v[i]);

		if (!at)
			return cm_pins_nomem(pins);
		r = read_configs(pins, git_dir, common, at, &tops);
		if (r == CM_OK)
			r = read_modules(pins, at, depth);
	}
	return r;
}
