/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The planner: (spec, host facts) -> plan. Pure: every fact it needs is in the request, so a
 * table of requests and golden plans tests it. Tables that it reads: etc.def (what of /etc is
 * shown), tools.def (toolchains below a home), procfs.def (what of /proc is covered and why).
 */
#ifndef CM_ISOLATION_PLAN_BUILD_H
#define CM_ISOLATION_PLAN_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "casemate/error.h"
#include "isolation/host/host.h"
#include "isolation/plan/plan.h"
#include "runtime/base/buf.h"
#include "runtime/spec/spec.h"

enum cm_node_type {
	CM_NODE_NONE = 0,
	CM_NODE_DIR,
	CM_NODE_FILE,
	CM_NODE_SYMLINK,
	CM_NODE_OTHER,
};

/* A file that the planner may use, as it was found. */
struct cm_node {
	/* absolute host path */
	char *path;
	enum cm_node_type type;
	/* of a symlink: where it leads; of a tool, certificate or PATH entry: its real path where
	 * that is another one */
	char *link;
	uint64_t dev;
	uint64_t ino;
	uid_t uid;
	gid_t gid;
	mode_t mode;
	/* of a file, in bytes */
	uint64_t size;
	uint64_t ctime_ns;
};

/* Can everybody on the host read it? */
static inline bool cm_node_is_public(const struct cm_node *node)
{
	mode_t needed = node->type == CM_NODE_DIR ? 05 : 04;

	return (node->mode & needed) == needed;
}

struct cm_nodes {
	struct cm_node *v;
	size_t n;
};

/* What host/tree.c found: facts only, no choice. */
struct cm_tree_facts {
	/* entries of "/" or of the rootfs that the planner may show */
	struct cm_nodes top;
	/* entries of /etc (of the host or the rootfs) that match etc.def */
	struct cm_nodes etc;
	/* directories and files of tools.def that exist below the user's home */
	struct cm_nodes tools;
	/* entries of procfs.def that this kernel has */
	struct cm_nodes proc;
	/* /dev nodes, /sys directories and others that exist: exact list in tree.c */
	struct cm_nodes extra;
	/* certificate files and directories that the caller's variables name */
	struct cm_nodes certificates;
	/* real path of the rootfs, prefix of every path in top and etc; NULL: the host's own tree */
	char *root;
	/* text of the rootfs' passwd and group; NULL: none */
	char *passwd;
	char *group;
	/* entries of the caller's PATH that are directories, in order, as spelled */
	struct cm_nodes path;
	/* non-secret settings of the user's npm and pip: "key=value" */
	struct cm_strv npm;
	struct cm_strv pip;
	/* what was left out and why, a line each, for people */
	struct cm_strv notes;
};

/* The tree the command works in, as host/workspace.c found it. */
struct cm_workspace_facts {
	/* real path; NULL: none (--no-workspace without a session directory) */
	char *path;
	/* the caller's spelling when it differs, and each symbolic link on its way */
	char *spelled;
	struct cm_nodes links;
	struct cm_node node;
	bool is_read_only;
	/* where the command starts: below path, the caller's own spelling */
	char *cwd;
	/* git directories to pin and make read-only: .git itself, or a linked worktree's gitdir and
	 * common directory, or a submodule's gitdir; those outside path are mounted at their place */
	struct cm_nodes git_dirs;
	/* path/.git when it is a file */
	bool has_gitfile;
	/* paths of the submodules that .gitmodules names, below path */
	struct cm_strv submodules;
	/* below path, what the host's git believes besides .git: made read-only; and the directories
	 * on the way to each, which are only kept from being renamed */
	struct cm_nodes pins;
	struct cm_nodes pin_dirs;
	/* what was not believed and why, a line each, for people */
	struct cm_strv notes;
};

struct cm_git_identity {
	/* "key=value" copied by value from the user's global configuration */
	struct cm_strv settings;
};

struct cm_plan_request {
	const struct cm_spec *spec;
	const struct cm_host *host;
	const struct cm_tree_facts *tree;
	const struct cm_workspace_facts *workspace;
	const struct cm_git_identity *git;
	/* volumes of the spec in order, as found (real paths) */
	const struct cm_nodes *volumes;
	const char *session_id;
	bool is_temporary;
	/*
	 * For a jail of our own, in which no program of the agent's runs: it has the profile no-unix,
	 * by which network 'host' leads to no abstract socket, whatever the kernel's Landlock has.
	 * Then neither that nor the spec's min_level, which is about the agent's jail, forbids it.
	 */
	bool refuses_unix_sockets;
	/* root: first kernel id of the session's slot */
	uint32_t slot_base;
	/* host directories of the session; NULL: a tmpfs that ends with it */
	const char *home_dir;
	const char *tmp_dir;
	const char *socket_path;
	const char *state_dir;
	uint64_t generation;
};

/* What the planner can already say about the result; the keeper's UP record completes it. */
struct cm_plan_summary {
	/* "full", "no-cgroup" with qualifiers "-single-id", "+hostnet" */
	char level[64];
	enum cm_level base_level;
	/* CM_CG_* for which a group is asked */
	uint32_t cgroup_controllers;
	/* what was left out and why: lines, each with its newline; cut when there are too many */
	char notes[1024];
	/* the same for lines that are told in any case */
	char warnings[512];
};

/*
 * The header, and what the jail shows of the system: of the request only spec, host, tree and what
 * is known of the session are looked at. Level or limit that cannot be had: CM_E_LEVEL before
 * anything is made, with cause and hint.
 */
int cm_plan_build_system(const struct cm_plan_request *req, struct cm_plan_builder *b,
			 struct cm_plan_summary *ret, struct cm_error *err);
/* The rest, after it. */
int cm_plan_build_session(const struct cm_plan_request *req, struct cm_plan_builder *b,
			  struct cm_plan_summary *summary, struct cm_error *err);

/*
 * The environment of a command: env.c's short list taken from caller_env, PATH cut to what exists
 * inside, HOME, offline switches of network none, then spec->env.
 */
int cm_env_build(const struct cm_plan_request *req, const struct cm_strv *caller_env,
		 struct cm_strv *ret, struct cm_error *err);
/* The last of these alone: spec->pass_env and then spec->env, over what is in `to`. */
int cm_env_add_named(const struct cm_spec *spec, const struct cm_strv *caller_env,
		     struct cm_strv *to, struct cm_error *err);

/* Inside, the home's path: the user's own, or /home/user with a rootfs. */
const char *cm_plan_home(const struct cm_plan_request *req);

#endif
