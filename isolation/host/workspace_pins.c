/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host's git believes below the workspace, besides .git. `git status` asks each submodule
 * with that submodule's own configuration; and a configuration may name hooks, programs and further
 * configuration that lie in the tree. All of it is made read-only where it is; the directories above
 * are pinned, so that none can be renamed away. What is not there, or is a link, cannot be: that is
 * said. The user's own configuration, for all repositories, is not looked at.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "isolation/host/gitprograms.h"
#include "isolation/host/node.h"
#include "isolation/host/workspace_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"

/* a mount each */
#define MAX_PINS 160
/* of includes, as git's */
#define MAX_DEPTH 10
#define MAX_FILES 64
#define MAX_GITFILE 8192

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

enum outcome {
	/* not below the workspace, protected anyway, or nothing that could be meant */
	NOT_OURS = 0,
	PROTECTED,
	ABSENT,
	/* a link, or behind one, can be moved between the look and the mount, which would stop the
	 * start; and afterwards */
	LINKED,
};

/* An enum outcome, or CM_E_NOMEM, CM_E_LIMIT. */
static int protect(struct cm_workspace_facts *facts, const char *path, bool takes_dir)
{
	struct stat st;
	int r;

	if (strcmp(path, facts->path) == 0 || !cm_path_is_below(path, facts->path))
		return NOT_OURS;
	/* read-only as a whole, what is not there included */
	for (size_t i = 0; i < facts->git_dirs.n; i++) {
		if (cm_path_is_below(path, facts->git_dirs.v[i].path))
			return NOT_OURS;
	}
	if (facts->pins.n + facts->pin_dirs.n >= MAX_PINS)
		return CM_E_LIMIT;
	if (lstat(path, &st) < 0)
		return ABSENT;
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return LINKED;
	if (S_ISDIR(st.st_mode) && !takes_dir)
		return NOT_OURS;
	if (is_listed(&facts->pins, path))
		return PROTECTED;
	r = add_parents(facts, path);
	if (r <= 0)
		return r < 0 ? r : LINKED;
	return cm_nodes_add(&facts->pins, path, &st, NULL) < 0 ? CM_E_NOMEM : PROTECTED;
}

/* A configuration file, and what is found in it. */
struct config_walk {
	struct cm_workspace_facts *facts;
	/* the file's directory: what an include is relative to */
	const char *dir;
	/* the top of the work tree: what a program is */
	const char *top;
	const struct cm_gitconfig_item *item;
	unsigned int depth;
	/* paths that were read for this repository: each once, whatever includes what */
	struct cm_strv *seen;
};

static int read_config(const struct config_walk *from, const char *path);

/* Said to everybody: it is the one way left, and the user can close it. */
static int tell(const struct config_walk *walk, const char *path, int outcome)
{
	const struct cm_gitconfig_item *item = walk->item;
	CM_AUTO_FREE char *note = NULL;

	note = cm_asprintf(
		"'%s', which git's configuration names (%s.%s), %s: what the command puts "
		"there may run on this host at the next git command",
		path, item->section, item->key,
		outcome == ABSENT ? "is not there" : "cannot be protected (a link)");
	if (!note)
		return CM_E_NOMEM;
	if (cm_strv_has(&walk->facts->notes, note))
		return CM_OK;
	return cm_strv_add(&walk->facts->notes, note) < 0 ? CM_E_NOMEM : CM_OK;
}

/* What flags say, of one path that may be meant. */
static int take(const struct config_walk *walk, const char *path, unsigned int flags)
{
	int r = protect(walk->facts, path, (flags & CM_GITPATH_DIR) != 0);

	if ((r == LINKED && (flags & CM_GITPATH_TOLD) != 0) ||
	    (r == ABSENT && (flags & CM_GITPATH_EXPECTED) != 0))
		return tell(walk, path, r);
	return r < 0 ? r : CM_OK;
}

/*
 * "~/x": which home git means depends on who calls it, and it matters here only where the
 * workspace is in it. So each directory above the workspace is taken for one.
 */
static int each_home(const struct config_walk *walk, const char *rest,
		     int (*fn)(const struct config_walk *, const char *, unsigned int),
		     unsigned int flags)
{
	CM_AUTO_FREE char *home = cm_strdup(walk->facts->path);
	int r = home ? CM_OK : CM_E_NOMEM;
	char *slash;

	while (r == CM_OK && (slash = strrchr(home, '/')) && slash != home) {
		CM_AUTO_FREE char *joined = NULL;
		CM_AUTO_FREE char *path = NULL;

		*slash = '\0';
		joined = cm_path_join(home, rest);
		path = joined ? cm_path_clean(joined) : NULL;
		r = path ? fn(walk, path, flags) : CM_E_NOMEM;
	}
	return r;
}

/* The caller's spelling of the workspace, or a link somewhere above it, leads there as well. */
static char *real_of(const struct cm_workspace_facts *facts, const char *path)
{
	CM_AUTO_FD int fd = -1;

	if (cm_path_is_below(path, facts->path))
		return cm_strdup(path);
	if (facts->spelled && cm_path_is_below(path, facts->spelled))
		return cm_asprintf("%s%s", facts->path, path + strlen(facts->spelled));
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? cm_strdup(path) : cm_fd_real_path(fd);
}

static int each_path(const struct config_walk *walk, const char *base, const char *value,
		     int (*fn)(const struct config_walk *, const char *, unsigned int),
		     unsigned int flags)
{
	const char *slash = value[0] == '~' ? strchr(value, '/') : NULL;
	CM_AUTO_FREE char *joined = NULL;
	CM_AUTO_FREE char *clean = NULL;
	CM_AUTO_FREE char *path = NULL;

	if (slash)
		return each_home(walk, slash + 1, fn, flags);
	joined = cm_path_join(base, value);
	clean = joined ? cm_path_clean(joined) : NULL;
	if (!clean)
		return errno == ENOMEM ? CM_E_NOMEM : CM_OK;
	path = value[0] == '/' ? real_of(walk->facts, clean) : cm_ptr_take(&clean);
	return path ? fn(walk, path, flags) : CM_OK;
}

static int take_program(const char *path, unsigned int flags, void *data)
{
	const struct config_walk *walk = data;

	return each_path(walk, walk->top, path, take, flags);
}

static int take_include(const struct config_walk *walk, const char *path, unsigned int flags)
{
	int r = take(walk, path, flags);

	return r < 0 ? r : read_config(walk, path);
}

static bool is_include(const struct cm_gitconfig_item *item)
{
	/* each condition can come true */
	return (strcmp(item->section, "include") == 0 || strcmp(item->section, "includeif") == 0) &&
	       strcmp(item->key, "path") == 0;
}

static int take_item(const struct cm_gitconfig_item *item, void *data)
{
	struct config_walk *walk = data;

	walk->item = item;
	if (!is_include(item))
		return cm_gitprograms_read(item, take_program, walk);
	if (item->value[0] == '\0')
		return 0;
	return each_path(walk, walk->dir, item->value, take_include,
			 CM_GITPATH_EXPECTED | CM_GITPATH_TOLD);
}

static int not_read(const struct config_walk *walk, const char *path)
{
	return cm_strv_addf(&walk->facts->notes,
			    "'%s' is not looked at (too large, too many includes, or unreadable): "
			    "what it names in the tree is not protected",
			    path);
}

/* With what it includes. A file that is not there names nothing. */
static int read_config(const struct config_walk *from, const char *path)
{
	CM_AUTO_FREE char *dir = NULL;
	CM_AUTO_FREE char *text = NULL;
	struct config_walk walk = *from;
	int r;

	/* git stops there */
	if (++walk.depth > MAX_DEPTH || cm_strv_has(walk.seen, path))
		return CM_OK;
	if (walk.seen->n >= MAX_FILES)
		return not_read(from, path);
	if (cm_strv_add(walk.seen, path) < 0)
		return CM_E_NOMEM;
	r = cm_read_text_at(AT_FDCWD, path, CM_GITCONFIG_MAX_BYTES, &text);
	if (r == -ENOMEM)
		return CM_E_NOMEM;
	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR ? CM_OK : not_read(from, path);
	dir = cm_asprintf("%.*s", (int)(cm_path_base(path) - path - 1), path);
	if (!dir)
		return CM_E_NOMEM;
	walk.dir = dir;
	return cm_gitconfig_parse(text, strlen(text), take_item, &walk);
}

static int read_git_dir(struct cm_workspace_facts *facts, const char *git_dir, const char *top)
{
	static const char *const names[] = { "config", "config.worktree" };
	CM_AUTO_STRV struct cm_strv seen = { 0 };
	const struct config_walk walk = { .facts = facts, .top = top, .seen = &seen };
	int r = CM_OK;

	for (size_t i = 0; i < CM_ARRAY_SIZE(names) && r == CM_OK; i++) {
		CM_AUTO_FREE char *path = cm_path_join(git_dir, names[i]);

		r = path ? read_config(&walk, path) : CM_E_NOMEM;
	}
	return r;
}

/* git runs in it with its own configuration, and from its own top. */
static int read_submodule(struct cm_workspace_facts *facts, const char *path, const char *gitfile)
{
	CM_AUTO_FREE char *text = NULL;
	CM_AUTO_FREE char *joined = NULL;
	CM_AUTO_FREE char *git_dir = NULL;
	char named[PATH_MAX];

	if (cm_read_text_at(AT_FDCWD, gitfile, MAX_GITFILE, &text) < 0)
		return read_git_dir(facts, gitfile, path);
	if (!cm_gitfile_parse(text, "gitdir: ", named, sizeof(named)))
		return CM_OK;
	joined = cm_path_join(path, named);
	git_dir = joined ? cm_path_clean(joined) : NULL;
	return git_dir ? read_git_dir(facts, git_dir, path) : CM_E_NOMEM;
}

static int protect_submodule(struct cm_workspace_facts *facts, const char *named)
{
	CM_AUTO_FREE char *path = cm_path_clean(named);
	CM_AUTO_FREE char *gitfile = path ? cm_path_join(path, ".git") : NULL;
	int r;

	if (!gitfile)
		return CM_E_NOMEM;
	r = protect(facts, gitfile, true);
	if (r == PROTECTED)
		return read_submodule(facts, path, gitfile);
	/* git takes whatever repository stands in the place of one that is not checked out */
	return r < 0 ? r : protect(facts, path, true);
}

/* A git directory deeper in the tree, as where .git is a link to it. */
static int read_git_dirs(struct cm_workspace_facts *facts)
{
	int r = CM_OK;

	for (size_t i = 0; i < facts->git_dirs.n && r >= 0; i++) {
		const char *path = facts->git_dirs.v[i].path;

		if (cm_path_is_below(path, facts->path))
			r = add_parents(facts, path);
		if (r >= 0)
			r = read_git_dir(facts, path, facts->path);
	}
	return r;
}

int cm_workspace_pins_read(struct cm_workspace_facts *facts)
{
	CM_AUTO_FREE char *modules = NULL;
	int r = read_git_dirs(facts);

	for (size_t i = 0; i < facts->submodules.n && r >= 0; i++)
		r = protect_submodule(facts, facts->submodules.v[i]);
	if (r < 0 || facts->submodules.n == 0)
		return r < 0 ? r : CM_OK;
	/* a submodule that is taken out of it would not be protected at the next start */
	modules = cm_path_join(facts->path, ".gitmodules");
	if (!modules)
		return CM_E_NOMEM;
	r = protect(facts, modules, true);
	return r < 0 ? r : CM_OK;
}
