/* SPDX-License-Identifier: Apache-2.0 */
/* The root file system but for /etc: programs, /proc, /dev, /sys, /var, /run, /tmp, the home. */
#include <stdio.h>
#include <string.h>

#include "isolation/plan/build_internal.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"

struct proc_row {
	const char *name;
	bool is_mask;
};

static const struct proc_row proc_rows[] = {
#define MASK true
#define READ_ONLY false
#define CM_PROC(kind, name, why) { name, kind },
#include "isolation/plan/procfs.def"
#undef CM_PROC
#undef READ_ONLY
#undef MASK
};

/* Per user namespace: the agent can make none of these, so no kernel code behind them is reached,
 * and its share of the kernel's inotify memory is its own. UTS and cgroup namespaces init itself
 * makes, one a running command; the agent has no capability for them, and without a user namespace
 * it gets none. */
static const struct {
	const char *name;
	const char *value;
} sysctls[] = {
	{ "user/max_cgroup_namespaces", "512" },  { "user/max_ipc_namespaces", "0" },
	{ "user/max_mnt_namespaces", "0" },	  { "user/max_net_namespaces", "0" },
	{ "user/max_pid_namespaces", "0" },	  { "user/max_time_namespaces", "0" },
	{ "user/max_user_namespaces", "0" },	  { "user/max_uts_namespaces", "512" },
	{ "user/max_inotify_instances", "1024" }, { "user/max_inotify_watches", "524288" },
};

void cm_build_system(struct cm_build *build)
{
	const struct cm_nodes *top = &build->req->tree->top;

	for (size_t i = 0; i < top->n; i++) {
		const struct cm_node *node = &top->v[i];
		const char *target = cm_build_target(build->req, node);

		if (node->type == CM_NODE_SYMLINK)
			cm_build_symlink(build, target, node->link);
		else if (node->type != CM_NODE_OTHER && cm_build_can_read(build, node))
			(void)cm_build_bind_node(build, node, target, CM_OPF_READ_ONLY);
	}
}

static const struct proc_row *find_proc(const char *path)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(proc_rows); i++) {
		if (strcmp(path + sizeof("/proc/") - 1, proc_rows[i].name) == 0)
			return &proc_rows[i];
	}
	return NULL;
}

void cm_build_proc(struct cm_build *build)
{
	const struct cm_nodes *proc = &build->req->tree->proc;
	struct cm_plan_op *op = cm_plan_builder_op(build->b, CM_OP_PROC);

	op->target = cm_plan_builder_str(build->b, "/proc");
	/* its own processes' files: oom_score_adj, comm, coredump_filter */
	op->flags = CM_OPF_WRITABLE;
	for (size_t i = 0; i < CM_ARRAY_SIZE(sysctls); i++) {
		op = cm_plan_builder_op(build->b, CM_OP_SYSCTL);
		op->target = cm_plan_builder_str(build->b, sysctls[i].name);
		op->content = cm_plan_builder_str(build->b, sysctls[i].value);
		op->content_len = (uint32_t)strlen(sysctls[i].value);
		/* only the two of inotify are comfort; user namespaces are the wall */
		op->flags = strstr(sysctls[i].name, "inotify") ? CM_OPF_TRY : 0;
	}
	for (size_t i = 0; i < proc->n; i++) {
		const struct cm_node *node = &proc->v[i];
		const struct proc_row *row = find_proc(node->path);

		/* what grants nothing to everybody grants nothing to anybody inside */
		if (!row || (row->is_mask && node->type == CM_NODE_FILE && (node->mode & 07) == 0))
			continue;
		op = cm_plan_builder_op(build->b, row->is_mask ? CM_OP_MASK : CM_OP_READ_ONLY);
		op->target = cm_plan_builder_str(build->b, node->path);
		op->flags = node->type == CM_NODE_DIR ? 0 : CM_OPF_FILE;
		if (row->is_mask)
			op->flags |= CM_OPF_READ_ONLY | CM_OPF_NOEXEC;
	}
}

/* Nodes of the host, one mount each: no node can be made in a user namespace. */
void cm_build_dev(struct cm_build *build)
{
	static const char *const links[][2] = {
		{ "/dev/ptmx", "pts/ptmx" },	      { "/dev/fd", "/proc/self/fd" },
		{ "/dev/stdin", "/proc/self/fd/0" },  { "/dev/stdout", "/proc/self/fd/1" },
		{ "/dev/stderr", "/proc/self/fd/2" },
	};
	const struct cm_nodes *extra = &build->req->tree->extra;
	struct cm_plan_op *op;

	for (size_t i = 0; i < extra->n; i++) {
		if (cm_text_has_prefix(extra->v[i].path, "/dev/"))
			(void)cm_build_bind_node(build, &extra->v[i], extra->v[i].path,
						 CM_OPF_DEV | CM_OPF_NOEXEC | CM_OPF_WRITABLE);
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(links); i++)
		cm_build_symlink(build, links[i][0], links[i][1]);
	op = cm_plan_builder_op(build->b, CM_OP_DEVPTS);
	op->target = cm_plan_builder_str(build->b, "/dev/pts");
	op->flags = CM_OPF_DEV | CM_OPF_NOEXEC | CM_OPF_WRITABLE;
	cm_build_tmpfs(build, "/dev/shm", 01777, CM_OPF_WRITABLE);
	op = cm_plan_builder_op(build->b, CM_OP_MQUEUE);
	op->target = cm_plan_builder_str(build->b, "/dev/mqueue");
	op->flags = CM_OPF_TRY | CM_OPF_NOEXEC | CM_OPF_WRITABLE;
}

/* Without it the JVM and Node size themselves by the machine and are killed at the limit. */
static void build_cgroupfs(struct cm_build *build)
{
	const struct cm_plan_header *h = &build->b->header;
	struct cm_plan_op *op;
	char target[64];

	if (h->cgroup == CM_CGROUP_V2) {
		op = cm_plan_builder_op(build->b, CM_OP_CGROUPFS);
		op->target = cm_plan_builder_str(build->b, "/sys/fs/cgroup");
		op->flags = CM_OPF_READ_ONLY | CM_OPF_TRY;
	}
	for (size_t i = 0; h->cgroup == CM_CGROUP_V1 && i < CM_CG_N; i++) {
		if ((h->cgroup_controllers & CM_CG_LIMITING & 1U << i) == 0)
			continue;
		(void)snprintf(target, sizeof(target), "/sys/fs/cgroup/%s", cm_cgroup_names[i]);
		op = cm_plan_builder_op(build->b, CM_OP_CGROUPFS);
		op->source = cm_plan_builder_str(build->b, cm_cgroup_names[i]);
		op->target = cm_plan_builder_str(build->b, target);
		op->flags = CM_OPF_READ_ONLY | CM_OPF_TRY;
	}
}

void cm_build_sys(struct cm_build *build)
{
	const struct cm_nodes *extra = &build->req->tree->extra;

	build_cgroupfs(build);
	for (size_t i = 0; i < extra->n; i++) {
		if (cm_text_has_prefix(extra->v[i].path, "/sys/"))
			(void)cm_build_bind_node(build, &extra->v[i], extra->v[i].path,
						 CM_OPF_READ_ONLY | CM_OPF_NOEXEC);
	}
}

/* A directory of the session's own on the host, or one in memory that ends with it. */
static void build_own(struct cm_build *build, const char *dir, const char *target, uint16_t mode,
		      uint32_t flags)
{
	if (dir)
		(void)cm_build_bind(build, dir, target, CM_OPF_WRITABLE | CM_OPF_AGENT);
	else
		cm_build_tmpfs(build, target, mode, CM_OPF_WRITABLE | flags);
}

/* Is something mounted below dir? Nothing is mounted through a symbolic link. */
static bool has_mounts_below(const struct cm_plan_request *req, const char *dir)
{
	const struct cm_workspace_facts *ws = req->workspace;
	const struct cm_nodes *const lists[] = { &req->tree->tools, &req->tree->certificates,
						 ws ? &ws->git_dirs : NULL,
						 ws ? &ws->links : NULL };
	bool found = cm_path_is_below(cm_plan_home(req), dir) ||
		     (ws && ws->path && cm_path_is_below(ws->path, dir));

	for (size_t i = 0; i < CM_ARRAY_SIZE(lists); i++) {
		for (size_t j = 0; lists[i] && j < lists[i]->n; j++)
			found = found || cm_path_is_below(lists[i]->v[j].path, dir);
	}
	for (size_t i = 0; i < req->spec->n_volumes; i++)
		found = found || cm_path_is_below(req->spec->volumes[i].dst, dir);
	return found;
}

/* The same file system as /tmp where possible: one bound for both, and one mount less. */
static void build_var_tmp(struct cm_build *build)
{
	if (has_mounts_below(build->req, "/var/tmp"))
		build_own(build, build->req->tmp_dir, "/var/tmp", 01777, 0);
	else
		cm_build_symlink(build, "/var/tmp", "../tmp");
}

void cm_build_var(struct cm_build *build)
{
	const struct cm_nodes *extra = &build->req->tree->extra;

	for (size_t i = 0; i < extra->n; i++) {
		const struct cm_node *node = &extra->v[i];
		const char *target = cm_build_target(build->req, node);

		if (cm_text_has_prefix(target, "/var/") && node->type == CM_NODE_DIR &&
		    cm_build_can_read(build, node))
			(void)cm_build_bind_node(build, node, target, CM_OPF_READ_ONLY);
	}
	cm_build_dir(build, "/var/cache", 0755, 0);
	cm_build_dir(build, "/var/log", 0755, 0);
	cm_build_symlink(build, "/var/run", "../run");
	cm_build_symlink(build, "/var/lock", "../run/lock");
	build_var_tmp(build);
	/* one mount for what is written below /run; its top is not the agent's */
	cm_build_tmpfs(build, "/run", 0755, CM_OPF_WRITABLE | CM_OPF_NOEXEC);
	cm_build_dir(build, "/run/lock", 01777, 0);
	/* a step of its own: what is made on the way to another costs a search */
	cm_build_dir(build, "/run/user", 0755, 0);
	cm_build_dir(build, "/run/user/1000", 0700, CM_OPF_AGENT);
}

void cm_build_tmp(struct cm_build *build)
{
	build_own(build, build->req->tmp_dir, "/tmp", 01777, 0);
}

static bool is_usable_home(const char *home)
{
	static const char *const ours[] = {
		"/usr", "/bin",	 "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
		"/etc", "/proc", "/dev",  "/sys", "/run",   "/boot",
	};

	if (home[0] != '/' || home[1] == '\0' || strcmp(home, "/tmp") == 0 ||
	    strcmp(home, "/var") == 0 || strcmp(home, "/var/tmp") == 0)
		return false;
	for (size_t i = 0; i < CM_ARRAY_SIZE(ours); i++) {
		if (cm_path_is_below(home, ours[i]))
			return false;
	}
	return true;
}

const char *cm_plan_home(const struct cm_plan_request *req)
{
	if (req->tree->root || !is_usable_home(req->host->home))
		return "/home/user";
	return req->host->home;
}

void cm_build_home(struct cm_build *build)
{
	build_own(build, build->req->home_dir, cm_plan_home(build->req), 0700, CM_OPF_AGENT);
}
