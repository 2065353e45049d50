/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the planner. Each adds its steps in the order in which init carries them out;
 * build.c has the order of the parts, with the reasons.
 *
 * The builder keeps a failed append in mind (cm_plan_builder_finish reports it), so the parts
 * return only what the caller can act on.
 */
#ifndef CM_ISOLATION_PLAN_BUILD_INTERNAL_H
#define CM_ISOLATION_PLAN_BUILD_INTERNAL_H

#include "isolation/plan/build.h"

struct cm_build {
	const struct cm_plan_request *req;
	struct cm_plan_builder *b;
	struct cm_plan_summary *summary;
	/* for one text after the other: memory for each would be mapped and unmapped anew */
	struct cm_buf text;
};

/* build_level.c: who is who inside, and the level. Before everything: it can refuse. */
int cm_build_identity(struct cm_build *build, struct cm_error *err);
/* build_limits.c: limits, groups, the base of the level. */
int cm_build_limits(struct cm_build *build, struct cm_error *err);
int cm_build_level(struct cm_build *build, struct cm_error *err);

/* build_root.c */
void cm_build_system(struct cm_build *build);
void cm_build_proc(struct cm_build *build);
void cm_build_dev(struct cm_build *build);
void cm_build_sys(struct cm_build *build);
void cm_build_var(struct cm_build *build);
void cm_build_tmp(struct cm_build *build);
void cm_build_home(struct cm_build *build);

/* build_etc.c: what is the host's, and what is the jail's own */
void cm_build_etc(struct cm_build *build);
void cm_build_own_etc(struct cm_build *build);
/* build_names.c: passwd, group and the like */
void cm_build_names(struct cm_build *build);
/* The agent's login name and shell inside. */
#define CM_USER_NAME_SIZE 80
void cm_build_user_name(const struct cm_plan_request *req, char buf[CM_USER_NAME_SIZE]);
const char *cm_build_shell(const struct cm_plan_request *req);
void cm_build_hostname(const struct cm_plan_request *req, char buf[65]);

/* build_work.c: tools, certificates, workspace, volumes, git directories. */
int cm_build_work(struct cm_build *build, struct cm_error *err);

/* build_show.c: is this host path there inside, under the same path? Textual. */
bool cm_build_shows(const struct cm_plan_request *req, const char *path);
/* Where a node of top, etc or extra stands inside: its path without the rootfs'. */
const char *cm_build_target(const struct cm_plan_request *req, const struct cm_node *node);
/* Can the agent read it: by the mode of others, or because it is the agent's own. */
bool cm_build_can_read(const struct cm_build *build, const struct cm_node *node);
/* Is a tool shown? Why not: false and a note. */
bool cm_build_shows_tool(const struct cm_plan_request *req, const struct cm_node *tool,
			 const char **ret_why);

/* Steps. */
struct cm_plan_op *cm_build_bind(struct cm_build *build, const char *source, const char *target,
				 uint32_t flags);
/* A node mounted read-only at target: a directory with what is mounted below it. */
struct cm_plan_op *cm_build_bind_node(struct cm_build *build, const struct cm_node *node,
				      const char *target, uint32_t flags);
void cm_build_symlink(struct cm_build *build, const char *target, const char *text);
void cm_build_dir(struct cm_build *build, const char *target, uint16_t mode, uint32_t flags);
void cm_build_file(struct cm_build *build, const char *target, const char *content);
/* build->text, empty */
struct cm_buf *cm_build_text(struct cm_build *build);
/* A file of what is in build->text; when that has failed, a failed plan. */
void cm_build_file_text(struct cm_build *build, const char *target);
void cm_build_tmpfs(struct cm_build *build, const char *target, uint16_t mode, uint32_t flags);
/* A repository's own limit, which stops no start: a line of the summary's warnings. */
void cm_build_warn_unenforced(struct cm_build *build, const char *what, const char *value);
/* A line of the summary's notes. */
void cm_build_note_hidden(struct cm_build *build, const char *path, const char *why);
/* As root the mount shows files of the node's owner as the agent's. */
void cm_build_idmap(struct cm_build *build, struct cm_plan_op *op, const struct cm_node *node);

#endif
