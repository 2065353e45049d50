/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up hosts and requests for the planner: what a test changes is what it is about. */
#ifndef CM_TESTS_UNIT_PLAN_FIXTURE_H
#define CM_TESTS_UNIT_PLAN_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "isolation/host/facts.h"
#include "isolation/host/node.h"
#include "runtime/base/fd.h"

#define ALICE 1001

struct fixture {
	struct cm_spec spec;
	struct cm_host host;
	struct cm_tree_facts tree;
	struct cm_workspace_facts workspace;
	struct cm_git_identity git;
	struct cm_nodes volumes;
	struct cm_strv env;
	struct cm_plan_request req;
};

static inline void must(bool condition)
{
	if (!condition)
		abort();
}

static inline void fix_set(char **to, const char *value)
{
	free(*to);
	*to = cm_strdup(value);
	must(*to || !value);
}

/* type is S_IFDIR, S_IFREG or S_IFLNK; link only for a link, or a real path. */
static inline void fix_node(struct cm_nodes *nodes, const char *path, mode_t mode, uid_t owner,
			    const char *link)
{
	static uint64_t ino = 100;
	struct stat st = { 0 };

	st.st_dev = 7;
	st.st_ino = ino++;
	st.st_mode = mode;
	st.st_uid = owner;
	st.st_gid = owner;
	must(cm_nodes_add(nodes, path, &st, link) == CM_OK);
}

static inline void fix_tree(struct cm_tree_facts *tree)
{
	static const char *const devices[] = { "null", "zero", "full", "random", "urandom", "tty" };
	char path[64];

	fix_node(&tree->top, "/usr", S_IFDIR | 0755, 0, NULL);
	fix_node(&tree->top, "/bin", S_IFLNK | 0777, 0, "usr/bin");
	fix_node(&tree->top, "/lib64", S_IFLNK | 0777, 0, "usr/lib64");
	fix_node(&tree->etc, "/etc/alternatives", S_IFDIR | 0755, 0, NULL);
	fix_node(&tree->etc, "/etc/ld.so.cache", S_IFREG | 0644, 0, NULL);
	fix_node(&tree->etc, "/etc/localtime", S_IFLNK | 0777, 0, "/usr/share/zoneinfo/Etc/UTC");
	/* listed, but not for everybody */
	fix_node(&tree->etc, "/etc/php", S_IFDIR | 0750, 0, NULL);
	fix_node(&tree->etc, "/etc/ssl/certs", S_IFDIR | 0755, 0, NULL);
	fix_node(&tree->proc, "/proc/kcore", S_IFREG | 0400, 0, NULL);
	fix_node(&tree->proc, "/proc/acpi", S_IFDIR | 0555, 0, NULL);
	fix_node(&tree->proc, "/proc/sys", S_IFDIR | 0555, 0, NULL);
	for (size_t i = 0; i < CM_ARRAY_SIZE(devices); i++) {
		(void)snprintf(path, sizeof(path), "/dev/%s", devices[i]);
		fix_node(&tree->extra, path, S_IFCHR | 0666, 0, NULL);
	}
	fix_node(&tree->extra, "/sys/devices/system/cpu", S_IFDIR | 0755, 0, NULL);
	fix_node(&tree->extra, "/etc/resolv.conf", S_IFREG | 0644, 0,
		 "/run/systemd/resolve/stub-resolv.conf");
	fix_node(&tree->extra, "/etc/hosts", S_IFREG | 0644, 0, NULL);
	fix_node(&tree->extra, "/var/lib/dpkg", S_IFDIR | 0755, 0, NULL);
	fix_node(&tree->path, "/usr/local/bin", S_IFDIR | 0755, 0, NULL);
	fix_node(&tree->path, "/usr/bin", S_IFDIR | 0755, 0, NULL);
	fix_node(&tree->path, "/bin", S_IFDIR | 0755, 0, NULL);
}

static inline void fix_host(struct cm_host *host, uid_t uid, const char *name, const char *home)
{
	*host = (struct cm_host){ 0 };
	host->uid = uid;
	host->gid = uid;
	host->is_root = uid == 0;
	fix_set(&host->user_name, name);
	fix_set(&host->home, home);
	fix_set(&host->shell, "/bin/bash");
	host->kernel_major = 6;
	host->kernel_minor = 12;
	host->landlock_abi = 6;
	host->memory_bytes = 8ULL << 30;
	host->max_open_files = 1U << 20;
	host->cgroup.kind = CM_CGROUP_V2;
	host->cgroup.controllers = CM_CG_MEMORY | CM_CG_PIDS | CM_CG_CPU | CM_CG_FREEZER;
	(void)snprintf(host->cgroup.v2_base, sizeof(host->cgroup.v2_base), "/sys/fs/cgroup/app");
}

static inline void fix_workspace(struct cm_workspace_facts *ws, const char *path, uid_t owner)
{
	struct cm_nodes one = { 0 };

	fix_node(&one, path, S_IFDIR | 0755, owner, NULL);
	ws->node = one.v[0];
	free(one.v);
	fix_set(&ws->path, path);
	fix_set(&ws->cwd, path);
}

static inline void fix_volume(struct fixture *f, const char *src, const char *dst,
			      bool is_read_only, uid_t owner)
{
	size_t n = f->spec.n_volumes + 1;
	struct cm_volume *v = realloc(f->spec.volumes, n * sizeof(*v));

	must(v != NULL);
	f->spec.volumes = v;
	v[n - 1] = (struct cm_volume){ cm_strdup(src), cm_strdup(dst), is_read_only };
	f->spec.n_volumes = n;
	fix_node(&f->volumes, src, S_IFDIR | 0755, owner, NULL);
}

/* An ordinary user on a host with everything, in a repository of her own. */
static inline void fixture_init(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	cm_spec_init(&f->spec);
	fix_host(&f->host, ALICE, "alice", "/home/alice");
	fix_tree(&f->tree);
	fix_workspace(&f->workspace, "/home/alice/app", ALICE);
	fix_node(&f->workspace.git_dirs, "/home/alice/app/.git", S_IFDIR | 0755, ALICE, NULL);
	must(cm_strv_add(&f->git.settings, "user.name=Alice \"A\" \\ B") == CM_OK);
	must(cm_strv_add(&f->git.settings, "user.email=alice@example.org") == CM_OK);
	f->req = (struct cm_plan_request){
		.spec = &f->spec,
		.host = &f->host,
		.tree = &f->tree,
		.workspace = &f->workspace,
		.git = &f->git,
		.volumes = &f->volumes,
		.session_id = "t1",
		.is_temporary = true,
	};
}

static inline void fixture_be_root(struct fixture *f)
{
	cm_host_clear(&f->host);
	fix_host(&f->host, 0, "root", "/root");
	f->req.slot_base = CM_ID_SLOT_BASE + 3 * CM_ID_SLOT_SIZE;
}

/* As a client does: the system, then the rest. */
static inline int fixture_build(const struct fixture *f, struct cm_plan_builder *b,
				struct cm_plan_summary *ret, struct cm_error *err)
{
	struct cm_plan_summary summary;
	int r = cm_plan_build_system(&f->req, b, &summary, err);

	if (r == CM_OK)
		r = cm_plan_build_session(&f->req, b, &summary, err);
	if (r == CM_OK)
		*ret = summary;
	return r;
}

static inline void fixture_clear(struct fixture *f)
{
	cm_spec_clear(&f->spec);
	cm_host_clear(&f->host);
	cm_tree_facts_clear(&f->tree);
	cm_workspace_facts_clear(&f->workspace);
	cm_strv_clear(&f->git.settings);
	cm_nodes_clear(&f->volumes);
	cm_strv_clear(&f->env);
}

#endif
