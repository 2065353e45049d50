/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about files: what of this host's tree a jail may show, and the workspace. Reads, never
 * writes. The structures are the planner's (isolation/plan/build.h).
 */
#ifndef CM_ISOLATION_HOST_FACTS_H
#define CM_ISOLATION_HOST_FACTS_H

#include "isolation/plan/build.h"

/* rootfs: NULL for the host's own tree. */
int cm_tree_facts_read_system(const struct cm_host *host, const char *rootfs,
			      struct cm_tree_facts *ret, struct cm_error *err);
/* More: tools, certificates and settings of the caller's, added to what is there. */
int cm_tree_facts_read_user(const struct cm_host *host, const struct cm_strv *caller_env,
			    struct cm_tree_facts *facts, struct cm_error *err);
/* And the entries of the caller's PATH, which only the environment of commands needs. */
int cm_tree_facts_read_path(const struct cm_host *host, const struct cm_strv *caller_env,
			    struct cm_tree_facts *facts, struct cm_error *err);
/* All of it. */
int cm_tree_facts_read(const struct cm_host *host, const char *rootfs,
		       const struct cm_strv *caller_env, struct cm_tree_facts *ret,
		       struct cm_error *err);
void cm_tree_facts_clear(struct cm_tree_facts *facts);

/* Host paths that a mount must neither contain nor be contained in: what could be written there
 * gives power over the host, or over other sessions. */
struct cm_refusals {
	struct cm_nodes nodes;
	/* the first n_trees are refused with all that is below them, the others only themselves:
	 * homes, and each directory that contains something refused */
	size_t n_trees;
};
/* private_dirs: state, runtime, cache directories and the session root. */
int cm_refusals_read(const struct cm_host *host, const struct cm_strv *caller_env,
		     const struct cm_strv *private_dirs, struct cm_refusals *ret,
		     struct cm_error *err);
void cm_refusals_clear(struct cm_refusals *refusals);
/*
 * Is path refused? By device and inode of it and of each of its parents, never by text.
 * what: "a workspace" or "a volume", for the message. allow: a directory of ours that may be
 * mounted although it lies below the session root (the session's own), or NULL.
 */
int cm_refusals_check(const struct cm_refusals *refusals, const char *path, const char *what,
		      const char *allow, struct cm_error *err);

/*
 * Finds the workspace. kind DEFAULT: git top level above cwd, else cwd. dir: CM_WORKSPACE_DIR's
 * path, a session directory, or a checkout. cwd: the caller's directory as spelled ($PWD when it
 * names the same inode).
 */
int cm_workspace_facts_read(const struct cm_spec *spec, const char *dir, const char *cwd,
			    struct cm_workspace_facts *ret, struct cm_error *err);
void cm_workspace_facts_clear(struct cm_workspace_facts *facts);
/* A repository to read. */
struct cm_source_facts {
	/* its real path */
	char *path;
	/* what else has to be read: the git directory of a linked worktree's repository, or a
	 * submodule's, where it is not below path; else NULL */
	char *git_dir;
};
/*
 * dir: as the caller named it. CM_E_CHECKOUT when it is no top level, or a tree whose .git file
 * names what does not name it back. Whether it is a repository at all is not asked.
 */
int cm_source_facts_read(const char *dir, struct cm_source_facts *ret, struct cm_error *err);
void cm_source_facts_clear(struct cm_source_facts *source);
/* One file or directory; ret->path is its real path. CM_E_NOT_FOUND when absent. */
int cm_node_read(const char *path, struct cm_node *ret, struct cm_error *err);
void cm_node_clear(struct cm_node *node);
void cm_nodes_clear(struct cm_nodes *nodes);

/* user.name, user.email, init.defaultBranch, core.autocrlf, pull.*, merge.* by value. */
int cm_git_identity_read(const struct cm_host *host, const struct cm_strv *caller_env,
			 struct cm_git_identity *ret, struct cm_error *err);

#endif
