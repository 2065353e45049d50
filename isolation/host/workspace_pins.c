/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host's git believes below the workspace, besides .git. `git status` asks each submodule
 * with that submodule's own configuration; and a configuration may name hooks, programs and further
 * configuration that lie in the tree. All of it is made read-only where it is; the directories above
 * are pinned, so that none can be renamed away. What is not there, or is a link, cannot be: that is
 * said. The user's own configuration, for all repositories, is not looked at.
 */
#include "isolation/host/workspace_pins.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/host/gitconfig.h"
#include "isolation/host/node.h"
#include "isolation/host/workspace_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"

/* a mount each */
#define MAX_PINS 160
#define MAX_FILES 1024
#define MAX_BYTES (4UL * 1024 * 1024)
#define MAX_ITEMS 32768
#define MAX_PATHS 32768
#define MAX_NOTES 32

int cm_pins_nomem(struct cm_pins *pins)
{
	return cm_facts_nomem(pins->err);
}

static int refused(struct cm_pins *pins, int r)
{
	cm_error_hint(pins->err, "repair that, or go on without protection with --git rw: then "
				 "what the command writes there may run on this host at the next "
				 "git command");
	return r;
}

int cm_pins_refuse(struct cm_pins *pins, enum cm_errc code, const char *path, const char *what)
{
	cm_error_set(pins->err, code, 0,
		     "'%s' %s: what git would run because of it cannot be protected", path, what);
	return refused(pins, code);
}

static int too_much(struct cm_pins *pins)
{
	cm_error_set(pins->err, CM_E_LIMIT, 0,
		     "'%s' has more submodules, or git's configuration names more programs in it, "
		     "than can be protected",
		     pins->facts->path);
	return refused(pins, CM_E_LIMIT);
}

int cm_pins_count_item(struct cm_pins *pins)
{
	return ++pins->n_items > MAX_ITEMS ? too_much(pins) : CM_OK;
}

static bool is_listed(const struct cm_nodes *nodes, const char *path)
{
	for (size_t i = 0; i < nodes->n; i++) {
		if (strcmp(nodes->v[i].path, path) == 0)
			return true;
	}
	return false;
}

/* The directories between the workspace and path. 1, 0: not all are. */
static int add_parents(struct cm_pins *pins, const char *path)
{
	struct cm_workspace_facts *facts = pins->facts;
	CM_AUTO_FREE char *parent = cm_strdup(path);
	size_t top = strlen(facts->path);
	struct stat st;

	if (!parent)
		return cm_pins_nomem(pins);
	for (char *slash = strchr(parent + top + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (lstat(parent, &st) < 0 || !S_ISDIR(st.st_mode))
			return 0;
		if (!is_listed(&facts->pin_dirs, parent) &&
		    cm_nodes_add(&facts->pin_dirs, parent, &st, NULL) < 0)
			return cm_pins_nomem(pins);
		*slash = '/';
	}
	return 1;
}

int cm_pins_protect(struct cm_pins *pins, const char *path, bool takes_dir)
{
	struct cm_workspace_facts *facts = pins->facts;
	struct stat st;
	int r;

	if (++pins->n_paths > MAX_PATHS)
		return too_much(pins);
	if (strcmp(path, facts->path) == 0 || !cm_path_is_below(path, facts->path))
		return CM_PIN_NOT_OURS;
	/* read-only as a whole, what is not there included */
	for (size_t i = 0; i < facts->git_dirs.n; i++) {
		if (cm_path_is_below(path, facts->git_dirs.v[i].path))
			return CM_PIN_NOT_OURS;
	}
	if (facts->pins.n + facts->pin_dirs.n >= MAX_PINS)
		return too_much(pins);
	if (lstat(path, &st) < 0)
		return CM_PIN_ABSENT;
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return CM_PIN_LINKED;
	if (S_ISDIR(st.st_mode) && !takes_dir)
		return CM_PIN_NOT_OURS;
	if (is_listed(&facts->pins, path))
		return CM_PIN_PROTECTED;
	r = add_parents(pins, path);
	if (r <= 0)
		return r < 0 ? r : CM_PIN_LINKED;
	if (cm_nodes_add(&facts->pins, path, &st, NULL) < 0)
		return cm_pins_nomem(pins);
	return CM_PIN_PROTECTED;
}

int cm_pins_note(struct cm_pins *pins, char *note)
{
	CM_AUTO_FREE char *owned = note;
	struct cm_strv *notes = &pins->facts->notes;

	if (!owned)
		return cm_pins_nomem(pins);
	if (cm_strv_has(notes, owned) || ++pins->n_notes > MAX_NOTES)
		return CM_OK;
	return cm_strv_add(notes, owned) < 0 ? cm_pins_nomem(pins) : CM_OK;
}

static int note_the_rest(struct cm_pins *pins)
{
	if (pins->n_notes <= MAX_NOTES)
		return CM_OK;
	if (cm_strv_addf(&pins->facts->notes, "and %zu more that git's configuration names",
			 pins->n_notes - MAX_NOTES) < 0)
		return cm_pins_nomem(pins);
	return CM_OK;
}

/* Nothing that the command could put right later: git, too, does not get anything from it. */
static bool is_nothing(const struct cm_pins *pins, const char *path, int error)
{
	struct stat st;

	if (error == -ENOENT || error == -ENOTDIR)
		return true;
	if (cm_path_is_below(path, pins->facts->path))
		return false;
	return error == -EACCES ||
	       (error == -EINVAL && stat(path, &st) == 0 && !S_ISREG(st.st_mode));
}

int cm_pins_read_text(struct cm_pins *pins, const char *path, char **ret)
{
	int r;

	if (++pins->n_files > MAX_FILES)
		return too_much(pins);
	r = cm_read_text_at(AT_FDCWD, path, CM_GITCONFIG_MAX_BYTES, ret);
	if (r == -ENOMEM)
		return cm_pins_nomem(pins);
	if (r < 0 && is_nothing(pins, path, r))
		return 0;
	if (r == -E2BIG)
		return cm_pins_refuse(pins, CM_E_LIMIT, path, "is larger than 256 KiB");
	if (r == -EINVAL)
		return cm_pins_refuse(pins, CM_E_INVALID, path, "is not a text file");
	if (r < 0) {
		cm_error_set(pins->err, CM_E_SYS, -r,
			     "cannot read '%s', so that what git would run because of it cannot be "
			     "protected",
			     path);
		return refused(pins, CM_E_SYS);
	}
	pins->n_bytes += strlen(*ret);
	return pins->n_bytes > MAX_BYTES ? too_much(pins) : 1;
}

/*
 * The repositories around the workspace, as where it is a directory of one, or a submodule. git
 * refuses one of somebody else, who could stop each start with it.
 */
static int read_outer(struct cm_pins *pins)
{
	CM_AUTO_FREE char *top = cm_strdup(pins->facts->path);
	int r = CM_OK;
	char *slash;

	if (!top)
		return cm_pins_nomem(pins);
	while (r == CM_OK && (slash = strrchr(top, '/')) && slash != top) {
		CM_AUTO_FREE char *path = NULL;
		struct stat st;

		*slash = '\0';
		path = cm_path_join(top, ".git");
		if (!path)
			return cm_pins_nomem(pins);
		if (lstat(path, &st) == 0 &&
		    (st.st_uid == geteuid() || st.st_uid == pins->facts->node.uid))
			r = cm_pins_read_tree(pins, top, 0);
	}
	return r;
}

int cm_workspace_pins_read(struct cm_workspace_facts *facts, struct cm_error *err)
{
	struct cm_pins pins = { .facts = facts, .err = err };
	int r = CM_OK;

	/* a git directory deeper in the tree, as where .git is a link to it */
	for (size_t i = 0; i < facts->git_dirs.n && r >= 0; i++) {
		if (cm_path_is_below(facts->git_dirs.v[i].path, facts->path))
			r = add_parents(&pins, facts->git_dirs.v[i].path);
	}
	if (r >= 0)
		r = cm_pins_read_tree(&pins, facts->path, 0);
	if (r >= 0)
		r = read_outer(&pins);
	return r < 0 ? r : note_the_rest(&pins);
}
