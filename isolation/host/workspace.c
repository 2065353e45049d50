/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workspace: which directory, how the caller spells it, and each symbolic link on the way, so
 * that both spellings work inside.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/host/node.h"
#include "isolation/host/workspace_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"

/* as the kernel */
#define MAX_LINKS 40

/*
 * The caller's spelling of top, where cwd is the spelling of real_cwd, which is top or below it.
 * NULL: no memory, or no such spelling, as when a link lies between them.
 */
static char *spell_top(const char *cwd, const char *real_cwd, const char *top)
{
	size_t rest = strlen(real_cwd) - strlen(top);
	size_t len = strlen(cwd);
	char *spelled;

	if (rest > len || strcmp(cwd + len - rest, real_cwd + strlen(top)) != 0)
		return NULL;
	spelled = cm_strdup(cwd);
	if (spelled)
		spelled[len - rest] = '\0';
	return spelled;
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat sa;
	struct stat sb;

	return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

/* Appends the components of text to those still to be walked. */
static char *prepend_components(const char *text, const char *rest)
{
	return cm_asprintf("%s%s%s", text, *rest ? "/" : "", rest);
}

struct walk {
	char at[PATH_MAX];
	size_t len;
	unsigned int n_links;
};

static bool step(struct walk *walk, const char *name, size_t n)
{
	if (n == 0 || (n == 1 && name[0] == '.'))
		return true;
	if (n == 2 && name[0] == '.' && name[1] == '.') {
		while (walk->len > 0 && walk->at[--walk->len] != '/')
			;
		walk->at[walk->len] = '\0';
		return true;
	}
	if (walk->len + n + 2 > sizeof(walk->at))
		return false;
	walk->at[walk->len++] = '/';
	memcpy(walk->at + walk->len, name, n);
	walk->len += n;
	walk->at[walk->len] = '\0';
	return true;
}

/*
 * Records every symbolic link that resolving path goes through, except those inside the
 * workspace, which come with it. The walk is the kernel's, so that a link in a link's target is
 * found, too.
 */
static int read_links(struct cm_workspace_facts *facts, const char *path)
{
	CM_AUTO_FREE char *rest = cm_strdup(path);
	struct walk walk = { "", 0, 0 };
	const char *p = rest;

	if (!rest)
		return CM_E_NOMEM;
	while (*p) {
		size_t n = strcspn(p, "/");
		size_t before = walk.len;
		char *text;
		int r;

		if (!step(&walk, p, n))
			return CM_OK;
		p += n + (p[n] == '/');
		if (walk.len <= before || cm_path_is_below(walk.at, facts->path))
			continue;
		r = cm_nodes_add_path(&facts->links, AT_FDCWD, walk.at, walk.at);
		if (r < 0)
			return r;
		if (r == 0)
			return CM_OK;
		if (facts->links.v[facts->links.n - 1].type != CM_NODE_SYMLINK) {
			cm_node_clear(&facts->links.v[--facts->links.n]);
			continue;
		}
		if (++walk.n_links > MAX_LINKS)
			return CM_OK;
		text = prepend_components(facts->links.v[facts->links.n - 1].link, p);
		if (!text)
			return CM_E_NOMEM;
		walk.len = text[0] == '/' ? 0 : before;
		walk.at[walk.len] = '\0';
		free(rest);
		rest = text;
		p = rest;
	}
	return CM_OK;
}

static int set_spelling(struct cm_workspace_facts *facts, const char *spelled)
{
	if (strcmp(spelled, facts->path) == 0)
		return CM_OK;
	facts->spelled = cm_strdup(spelled);
	if (!facts->spelled)
		return CM_E_NOMEM;
	return read_links(facts, spelled);
}

/* The caller's directory where it is inside; else the top. A relative --workdir is below it. */
static int set_cwd(struct cm_workspace_facts *facts, const char *workdir, const char *cwd)
{
	const char *top = facts->spelled ? facts->spelled : facts->path;
	CM_AUTO_FREE char *real = cwd ? cm_path_real(cwd) : NULL;
	CM_AUTO_FREE char *joined = NULL;

	if (workdir) {
		joined = cm_path_join(top, workdir);
		facts->cwd = joined ? cm_path_clean(joined) : NULL;
	} else if (real && cm_path_is_below(real, facts->path)) {
		facts->cwd = cm_path_clean(cwd);
		if (facts->cwd && (!facts->spelled || !cm_path_is_below(facts->cwd, top)) &&
		    strcmp(facts->cwd, real) != 0) {
			/* spelled in a way of its own: through other links than the workspace is */
			if (read_links(facts, facts->cwd) < 0)
				return CM_E_NOMEM;
		}
	} else {
		facts->cwd = cm_strdup(top);
	}
	return facts->cwd ? CM_OK : CM_E_NOMEM;
}

static int find(const struct cm_spec *spec, const char *dir, const char *cwd,
		struct cm_workspace_facts *facts, struct cm_error *err)
{
	bool wants_top = !dir && spec->workspace_kind == CM_WORKSPACE_DEFAULT;
	CM_AUTO_FREE char *spelled = cm_path_clean(wants_top ? cwd : dir);
	CM_AUTO_FREE char *real_cwd = NULL;
	CM_AUTO_FREE char *top = NULL;
	int r;

	if (!spelled)
		return cm_error_set(err, CM_E_INVALID, errno, "cannot use '%s' as a workspace",
				    wants_top ? cwd : dir);
	if (wants_top) {
		real_cwd = cm_path_real(cwd);
		if (!real_cwd) {
			cm_error_set(err, CM_E_NOT_FOUND, errno, "cannot find the directory '%s'",
				     cwd);
			cm_error_hint(err, "cd into a project, or name one with --workspace DIR");
			return CM_E_NOT_FOUND;
		}
		top = cm_path_git_top(real_cwd);
		if (!top)
			return cm_facts_nomem(err);
		free(spelled);
		spelled = spell_top(cwd, real_cwd, top);
		if (!spelled || !is_same_file(spelled, top)) {
			free(spelled);
			spelled = cm_strdup(top);
		}
		if (!spelled)
			return cm_facts_nomem(err);
	}
	r = cm_node_read(spelled, &facts->node, err);
	if (r < 0)
		return r;
	if (facts->node.type != CM_NODE_DIR) {
		cm_error_set(err, CM_E_INVALID, 0, "the workspace '%s' is not a directory",
			     spelled);
		cm_error_hint(err, "name a directory with --workspace DIR");
		return CM_E_INVALID;
	}
	facts->path = cm_strdup(facts->node.path);
	if (!facts->path || set_spelling(facts, spelled) < 0)
		return cm_facts_nomem(err);
	return CM_OK;
}

int cm_workspace_facts_read(const struct cm_spec *spec, const char *dir, const char *cwd,
			    struct cm_workspace_facts *ret, struct cm_error *err)
{
	struct cm_workspace_facts facts = { 0 };
	int r = CM_OK;

	facts.is_read_only = spec->is_workspace_read_only;
	if (dir || spec->workspace_kind == CM_WORKSPACE_DEFAULT) {
		r = find(spec, dir, cwd, &facts, err);
		if (r == CM_OK &&
		    (set_cwd(&facts, spec->workdir, cwd) < 0 || cm_workspace_git_read(&facts) < 0))
			r = cm_facts_nomem(err);
		/* what cannot be written needs no protection, and cannot stop a start */
		if (r == CM_OK && spec->git != CM_GIT_RW && !facts.is_read_only)
			r = cm_workspace_pins_read(&facts, err);
	}
	if (r < 0) {
		cm_workspace_facts_clear(&facts);
		return r;
	}
	*ret = facts;
	return CM_OK;
}

void cm_workspace_facts_clear(struct cm_workspace_facts *facts)
{
	if (!facts)
		return;
	free(facts->path);
	free(facts->spelled);
	free(facts->cwd);
	cm_nodes_clear(&facts->links);
	cm_node_clear(&facts->node);
	cm_nodes_clear(&facts->git_dirs);
	cm_nodes_clear(&facts->pins);
	cm_nodes_clear(&facts->pin_dirs);
	cm_strv_clear(&facts->submodules);
	cm_strv_clear(&facts->notes);
	*facts = (struct cm_workspace_facts){ 0 };
}
