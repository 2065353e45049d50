/* SPDX-License-Identifier: Apache-2.0 */
/* What the command works with: tools, certificates, the workspace, volumes, git directories. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isolation/plan/build_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"

/* One mount of the work; they are made in the order of their targets' lengths, so that none
 * covers another. */
struct mount {
	const char *target;
	const struct cm_node *node;
	bool is_read_only;
	/* first of two with one target: the order that was given */
	size_t index;
};

/* What only its owner can read becomes the agent's to read. Where the file system cannot map, what
 * everybody can read still is. */
static void map_readable(struct cm_build *build, struct cm_plan_op *op, const struct cm_node *node)
{
	cm_build_idmap(build, op, node);
	if ((op->flags & CM_OPF_IDMAP) != 0 && cm_node_is_public(node))
		op->flags |= CM_OPF_TRY;
}

static void build_tools(struct cm_build *build)
{
	const struct cm_plan_request *req = build->req;
	const struct cm_nodes *tools = &req->tree->tools;

	for (size_t i = 0; i < tools->n; i++) {
		const struct cm_node *tool = &tools->v[i];
		struct cm_plan_op *op;
		const char *why;

		if (!cm_build_shows_tool(req, tool, &why)) {
			cm_build_note_hidden(build, tool->path, why);
			continue;
		}
		op = cm_build_bind_node(build, tool, tool->path, CM_OPF_READ_ONLY);
		if (cm_path_is_below(tool->path, req->host->home))
			map_readable(build, op, tool);
	}
}

static void build_certificates(struct cm_build *build)
{
	const struct cm_nodes *nodes = &build->req->tree->certificates;

	for (size_t i = 0; i < nodes->n; i++) {
		const struct cm_node *node = &nodes->v[i];

		if (node->type == CM_NODE_OTHER || cm_build_shows(build->req, node->path))
			continue;
		if (cm_text_has_prefix(node->path, "/etc/ssl/private/") ||
		    !cm_build_can_read(build, node))
			cm_build_note_hidden(build, node->path, "it cannot be read by the agent");
		else
			(void)cm_build_bind_node(build, node, node->path, CM_OPF_READ_ONLY);
	}
}

/* The caller's spelling of the workspace and each link on the way lead to the real path. */
static void build_links(struct cm_build *build)
{
	const struct cm_nodes *links = &build->req->workspace->links;

	for (size_t i = 0; i < links->n; i++) {
		const struct cm_node *node = &links->v[i];
		bool is_known = cm_build_shows(build->req, node->path);

		for (size_t j = 0; j < i && !is_known; j++)
			is_known = strcmp(links->v[j].path, node->path) == 0;
		if (!is_known)
			cm_build_symlink(build, node->path, node->link);
	}
}

/* A single-id map cannot drop the caller's groups, so what they own would be open to the agent. */
static int check_groups(const struct cm_build *build, const struct cm_node *node,
			struct cm_error *err)
{
	const struct cm_host *host = build->req->host;

	if (build->b->header.idmap != CM_IDMAP_SINGLE || (node->mode & 07) != 0 ||
	    node->uid == host->uid || node->gid == host->gid)
		return CM_OK;
	for (size_t i = 0; i < host->n_groups; i++) {
		if (host->groups[i] != node->gid)
			continue;
		cm_error_set(err, CM_E_DENIED, 0,
			     "'%s' is open to one of your groups (%u) and to nobody else, and the "
			     "agent would keep that group",
			     node->path, (unsigned int)node->gid);
		cm_error_hint(err, "chown it to yourself, or run casemate without that group");
		return CM_E_DENIED;
	}
	return CM_OK;
}

/* Where nothing of the caller's may stand, or something of ours would be covered. */
static int check_target(const struct cm_build *build, const char *target, struct cm_error *err)
{
	static const char *const whole[] = { "/proc", "/sys", "/dev" };
	static const char *const covered[] = {
		"/", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/var", "/run", "/home",
	};
	const struct cm_workspace_facts *ws = build->req->workspace;
	bool is_bad = target[0] != '/';

	for (size_t i = 0; i < CM_ARRAY_SIZE(whole); i++)
		is_bad = is_bad || cm_path_is_below(target, whole[i]);
	for (size_t i = 0; i < CM_ARRAY_SIZE(covered); i++)
		is_bad = is_bad || strcmp(target, covered[i]) == 0;
	is_bad = is_bad || cm_path_is_below(cm_plan_home(build->req), target);
	is_bad = is_bad || (ws && ws->path && cm_path_is_below(ws->path, target));
	if (!is_bad)
		return CM_OK;
	cm_error_set(err, CM_E_INVALID, 0, "cannot put a volume at '%s' in the jail", target);
	cm_error_hint(err, "choose a path of its own, as in --volume SRC:/data");
	return CM_E_INVALID;
}

static int add_volumes(struct cm_build *build, struct mount *mounts, size_t *n,
		       struct cm_error *err)
{
	const struct cm_spec *spec = build->req->spec;

	for (size_t i = 0; i < spec->n_volumes; i++) {
		const struct cm_volume *volume = &spec->volumes[i];
		const struct cm_node *node = &build->req->volumes->v[i];
		int r;

		r = check_target(build, volume->dst, err);
		if (r == CM_OK)
			r = check_groups(build, node, err);
		if (r < 0)
			return r;
		mounts[*n] = (struct mount){ .target = volume->dst,
					     .node = node,
					     .is_read_only = volume->is_read_only,
					     .index = *n };
		(*n)++;
	}
	return CM_OK;
}

/* Outside the workspace, and not below another one that is mounted anyway. */
static bool is_outside_git_dir(const struct cm_workspace_facts *ws, size_t at)
{
	const struct cm_nodes *dirs = &ws->git_dirs;

	if (cm_path_is_below(dirs->v[at].path, ws->path))
		return false;
	for (size_t i = 0; i < dirs->n; i++) {
		if (i != at && cm_path_is_below(dirs->v[at].path, dirs->v[i].path) &&
		    (i < at || strcmp(dirs->v[at].path, dirs->v[i].path) != 0))
			return false;
	}
	return true;
}

static int add_workspace(struct cm_build *build, struct mount *mounts, size_t *n,
			 struct cm_error *err)
{
	const struct cm_workspace_facts *ws = build->req->workspace;
	int r;

	r = check_groups(build, &ws->node, err);
	if (r < 0)
		return r;
	mounts[*n] = (struct mount){
		.target = ws->path, .node = &ws->node, .is_read_only = ws->is_read_only, .index = *n
	};
	(*n)++;
	for (size_t i = 0; i < ws->git_dirs.n; i++) {
		const struct cm_node *node = &ws->git_dirs.v[i];

		if (!is_outside_git_dir(ws, i))
			continue;
		r = check_groups(build, node, err);
		if (r < 0)
			return r;
		mounts[*n] = (struct mount){ .target = node->path,
					     .node = node,
					     .is_read_only = ws->is_read_only ||
							     build->req->spec->git != CM_GIT_RW,
					     .index = *n };
		(*n)++;
	}
	return CM_OK;
}

static int compare_mounts(const void *a, const void *b)
{
	const struct mount *x = a;
	const struct mount *y = b;
	size_t nx = strlen(x->target);
	size_t ny = strlen(y->target);

	if (nx != ny)
		return nx < ny ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* A read-only mount is still a way to the host's sockets and FIFOs; /usr has none. */
static bool needs_inert(const struct mount *m)
{
	return m->is_read_only && m->node->type == CM_NODE_DIR &&
	       !cm_path_is_below(m->node->path, "/usr");
}

static void build_mount(struct cm_build *build, const struct mount *m)
{
	uint32_t flags = m->is_read_only ? CM_OPF_READ_ONLY : CM_OPF_WRITABLE;
	struct cm_plan_op *op;

	op = cm_build_bind_node(build, m->node, m->target, flags);
	if (needs_inert(m))
		op->kind = CM_OP_BIND_INERT;
	if (m->is_read_only)
		map_readable(build, op, m->node);
	else
		cm_build_idmap(build, op, m->node);
	op->expect_dev = m->node->dev;
	op->expect_ino = m->node->ino;
}

static void pin(struct cm_build *build, const char *target, uint32_t flags)
{
	struct cm_plan_op *op = cm_plan_builder_op(build->b, CM_OP_PIN);

	op->target = cm_plan_builder_str(build->b, target);
	op->flags = flags;
}

/*
 * The workspace is a mount, so it cannot be renamed; .git becomes one, so that hooks and
 * configuration, which the host's git would run, cannot be written or replaced; nor can what else
 * of the tree it believes, as it is at the start.
 */
static int build_pins(struct cm_build *build, struct cm_error *err)
{
	const struct cm_workspace_facts *ws = build->req->workspace;
	CM_AUTO_FREE char *gitfile = NULL;

	if (ws->is_read_only || build->req->spec->git == CM_GIT_RW)
		return CM_OK;
	if (ws->has_gitfile) {
		gitfile = cm_path_join(ws->path, ".git");
		if (!gitfile)
			return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the plan");
		pin(build, gitfile, CM_OPF_FILE | CM_OPF_READ_ONLY);
	}
	for (size_t i = 0; i < ws->git_dirs.n; i++) {
		if (cm_path_is_below(ws->git_dirs.v[i].path, ws->path))
			pin(build, ws->git_dirs.v[i].path, CM_OPF_READ_ONLY);
	}
	for (size_t i = 0; i < ws->pin_dirs.n; i++)
		pin(build, ws->pin_dirs.v[i].path, 0);
	for (size_t i = 0; i < ws->pins.n; i++)
		pin(build, ws->pins.v[i].path,
		    CM_OPF_READ_ONLY | (ws->pins.v[i].type == CM_NODE_DIR ? 0 : CM_OPF_FILE));
	return CM_OK;
}

static int build_mounts(struct cm_build *build, struct cm_error *err)
{
	const struct cm_plan_request *req = build->req;
	bool has_workspace = req->workspace && req->workspace->path;
	CM_AUTO_FREE struct mount *mounts = NULL;
	size_t max = req->spec->n_volumes + 1 + (has_workspace ? req->workspace->git_dirs.n : 0);
	size_t n = 0;
	int r = CM_OK;

	if (req->spec->n_volumes > 0 && (!req->volumes || req->volumes->n != req->spec->n_volumes))
		return cm_error_set(err, CM_E_BUG, 0, "volumes were not looked at");
	mounts = cm_calloc(max, sizeof(*mounts));
	if (!mounts)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the plan");
	if (has_workspace)
		r = add_workspace(build, mounts, &n, err);
	if (r == CM_OK)
		r = add_volumes(build, mounts, &n, err);
	if (r < 0)
		return r;
	if (n > 1)
		qsort(mounts, n, sizeof(*mounts), compare_mounts);
	for (size_t i = 0; i < n; i++)
		build_mount(build, &mounts[i]);
	return CM_OK;
}

int cm_build_work(struct cm_build *build, struct cm_error *err)
{
	bool has_workspace = build->req->workspace && build->req->workspace->path;
	int r;

	build_tools(build);
	build_certificates(build);
	if (has_workspace)
		build_links(build);
	r = build_mounts(build, err);
	if (r == CM_OK && has_workspace)
		r = build_pins(build, err);
	return r;
}
