/* SPDX-License-Identifier: Apache-2.0 */
/* What of the host is there inside, under the same path; and what the agent can read of it. */
#include <string.h>

#include "isolation/plan/build_internal.h"
#include "runtime/base/path.h"

const char *cm_build_target(const struct cm_plan_request *req, const struct cm_node *node)
{
	const char *root = req->tree->root;

	/* /dev and /sys are the host's in any case, and have no rootfs before them */
	if (root && cm_path_is_below(node->path, root))
		return node->path + strlen(root);
	return node->path;
}

bool cm_build_can_read(const struct cm_build *build, const struct cm_node *node)
{
	uint32_t idmap = build->b->header.idmap;

	if (cm_node_is_public(node))
		return true;
	/* the agent is the caller to the kernel, and owners read by the owner's bits */
	return idmap != CM_IDMAP_SLOT && node->uid == build->req->host->uid;
}

static bool is_below_any(const struct cm_plan_request *req, const struct cm_nodes *nodes,
			 const char *path)
{
	for (size_t i = 0; i < nodes->n; i++) {
		if (cm_path_is_below(path, cm_build_target(req, &nodes->v[i])))
			return true;
	}
	return false;
}

static bool is_below_work(const struct cm_plan_request *req, const char *path)
{
	if (req->workspace && req->workspace->path && cm_path_is_below(path, req->workspace->path))
		return true;
	for (size_t i = 0; i < req->spec->n_volumes; i++) {
		if (cm_path_is_below(path, req->spec->volumes[i].dst))
			return true;
	}
	return false;
}

bool cm_build_shows_tool(const struct cm_plan_request *req, const struct cm_node *tool,
			 const char **ret_why)
{
	const struct cm_workspace_facts *ws = req->workspace;
	const char *real = tool->link ? tool->link : tool->path;

	*ret_why = NULL;
	/* what a jail can write must not be on its PATH as a tool of the host's */
	if (ws && ws->path &&
	    (cm_path_is_below(real, ws->path) || cm_path_is_below(tool->path, ws->path)))
		*ret_why = "it lies in the workspace";
	else if (req->spec->root && cm_path_is_below(real, req->spec->root))
		*ret_why = "it lies below the session root";
	else if (!cm_node_is_public(tool) && tool->uid != req->host->uid && !req->host->is_root)
		*ret_why = "it cannot be read by the agent";
	return *ret_why == NULL;
}

static bool is_below_tool(const struct cm_plan_request *req, const char *path)
{
	const struct cm_nodes *tools = &req->tree->tools;
	const char *why;

	for (size_t i = 0; i < tools->n; i++) {
		if (cm_path_is_below(path, tools->v[i].path) &&
		    cm_build_shows_tool(req, &tools->v[i], &why))
			return true;
	}
	return false;
}

bool cm_build_shows(const struct cm_plan_request *req, const char *path)
{
	const struct cm_tree_facts *tree = req->tree;

	return is_below_any(req, &tree->top, path) || is_below_any(req, &tree->etc, path) ||
	       is_below_tool(req, path) || is_below_work(req, path);
}
