/* SPDX-License-Identifier: Apache-2.0 */
/* git's configuration, with what it includes: the paths in the tree that it names. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "isolation/host/gitprograms.h"
#include "isolation/host/node.h"
#include "isolation/host/workspace_pins.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"

/* git includes ten deep, and dies beyond */
#define MAX_INCLUDES 10

/* A configuration file, and what is found in it. */
struct config_walk {
	struct cm_pins *pins;
	/* the file, and its directory: what an include is relative to */
	const char *path;
	const char *dir;
	/* the top of the work tree: what a program is */
	const char *top;
	const struct cm_gitconfig_item *item;
	unsigned int depth;
	/* paths that were read for this repository: each once, whatever includes what */
	struct cm_strv *seen;
	struct cm_strv *worktrees;
};

static int read_file(const struct config_walk *from, const char *path);

/* A name too long for any file is none. */
static int no_path(struct cm_pins *pins)
{
	return errno == ENOMEM ? cm_pins_nomem(pins) : CM_OK;
}

/* What flags say, of one path that may be meant. */
static int take(const struct config_walk *walk, const char *path, unsigned int flags)
{
	int r = cm_pins_protect(walk->pins, path, (flags & CM_GITPATH_DIR) != 0);

	if ((r == CM_PIN_LINKED && (flags & CM_GITPATH_TOLD) != 0) ||
	    (r == CM_PIN_ABSENT && (flags & CM_GITPATH_EXPECTED) != 0))
		return cm_pins_note(
			walk->pins,
			cm_asprintf(
				"'%s', which git's configuration names (%s.%s), %s: what the "
				"command puts there may run on this host at the next git command",
				path, walk->item->section, walk->item->key,
				r == CM_PIN_ABSENT ? "is not there"
						   : "cannot be protected (a link)"));
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
	CM_AUTO_FREE char *home = cm_strdup(walk->pins->facts->path);
	int r = CM_OK;
	char *slash;

	if (!home)
		return cm_pins_nomem(walk->pins);
	while (r == CM_OK && (slash = strrchr(home, '/')) && slash != home) {
		CM_AUTO_FREE char *joined = NULL;
		CM_AUTO_FREE char *path = NULL;

		*slash = '\0';
		joined = cm_path_join(home, rest);
		path = joined ? cm_path_clean(joined) : NULL;
		if (path)
			r = fn(walk, path, flags);
		else
			r = no_path(walk->pins);
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
	fd = cm_open(path, O_PATH | O_CLOEXEC);
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
		return no_path(walk->pins);
	path = value[0] == '/' ? real_of(walk->pins->facts, clean) : cm_ptr_take(&clean);
	return path ? fn(walk, path, flags) : no_path(walk->pins);
}

static int take_program(const char *path, unsigned int flags, void *data)
{
	const struct config_walk *walk = data;

	return each_path(walk, walk->top, path, take, flags);
}

static int take_include(const struct config_walk *walk, const char *path, unsigned int flags)
{
	int r = take(walk, path, flags);

	return r < 0 ? r : read_file(walk, path);
}

static int take_worktree(const struct config_walk *walk, const char *path, unsigned int flags)
{
	CM_AUTO_FREE char *real = cm_path_real(path);

	(void)flags;
	if (!real)
		return no_path(walk->pins);
	if (cm_strv_has(walk->worktrees, real))
		return CM_OK;
	return cm_strv_add(walk->worktrees, real) < 0 ? cm_pins_nomem(walk->pins) : CM_OK;
}

static bool is_include(const struct cm_gitconfig_item *item)
{
	/* each condition can come true */
	return (strcmp(item->section, "include") == 0 || strcmp(item->section, "includeif") == 0) &&
	       strcmp(item->key, "path") == 0;
}

static bool is_worktree(const struct cm_gitconfig_item *item)
{
	return strcmp(item->section, "core") == 0 && item->subsection[0] == '\0' &&
	       strcmp(item->key, "worktree") == 0;
}

static int take_item(const struct cm_gitconfig_item *item, void *data)
{
	struct config_walk *walk = data;
	int r = cm_pins_count_item(walk->pins);

	if (r < 0)
		return r;
	walk->item = item;
	if (item->is_cut)
		return is_include(item) || is_worktree(item) || cm_gitprograms_has(item)
			       ? cm_pins_refuse(walk->pins, CM_E_LIMIT, walk->path,
						"has a value that is too long")
			       : CM_OK;
	if (item->value[0] == '\0')
		return CM_OK;
	if (is_include(item))
		return each_path(walk, walk->dir, item->value, take_include,
				 CM_GITPATH_EXPECTED | CM_GITPATH_TOLD);
	if (is_worktree(item))
		return each_path(walk, walk->dir, item->value, take_worktree, 0);
	return cm_gitprograms_read(item, take_program, walk);
}

/* With what it includes. A file that is not there names nothing. */
static int read_file(const struct config_walk *from, const char *path)
{
	CM_AUTO_FREE char *dir = NULL;
	CM_AUTO_FREE char *text = NULL;
	struct config_walk walk = *from;
	int r;

	if (cm_strv_has(walk.seen, path))
		return CM_OK;
	if (cm_strv_add(walk.seen, path) < 0)
		return cm_pins_nomem(walk.pins);
	r = cm_pins_read_text(walk.pins, path, &text);
	if (r <= 0)
		return r;
	if (walk.depth++ > MAX_INCLUDES)
		return cm_pins_refuse(walk.pins, CM_E_LIMIT, path, "is included too deep");
	dir = cm_asprintf("%.*s", (int)(cm_path_base(path) - path - 1), path);
	if (!dir)
		return cm_pins_nomem(walk.pins);
	walk.path = path;
	walk.dir = dir;
	return cm_gitconfig_parse_all(text, strlen(text), take_item, &walk);
}

int cm_pins_read_config(struct cm_pins *pins, const char *path, const char *top,
			struct cm_strv *seen, struct cm_strv *worktrees)
{
	const struct config_walk walk = {
		.pins = pins, .top = top, .seen = seen, .worktrees = worktrees
	};

	return read_file(&walk, path);
}
