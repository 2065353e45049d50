/* SPDX-License-Identifier: Apache-2.0 */
/* Host paths of the plan as detached mounts. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "isolation/mech/mounts.h"
#include "isolation/mech/ns.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"

void cm_mount_sources_init(struct cm_mount_sources *sources)
{
	for (size_t i = 0; i < CM_PLAN_MAX_OPS; i++)
		sources->fd[i] = -1;
}

void cm_mount_sources_close(struct cm_mount_sources *sources)
{
	for (size_t i = 0; i < CM_PLAN_MAX_OPS; i++)
		cm_fd_close(&sources->fd[i]);
}

/* The planner looked at an object; another one there now means that somebody changes paths. */
static int check_identity(const struct cm_plan_op *op, const char *source, int fd,
			  struct cm_error *err)
{
	struct stat st;

	if (op->expect_ino == 0)
		return CM_OK;
	if (fstat(fd, &st) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot look at '%s'", source);
	if (st.st_ino != op->expect_ino || st.st_dev != op->expect_dev) {
		cm_error_set(err, CM_E_ISOLATION, 0, "'%s' was replaced while the jail was made",
			     source);
		cm_error_hint(err, "run the command again");
		return CM_E_ISOLATION;
	}
	return CM_OK;
}

static int set_attributes(const struct cm_plan_op *op, const char *source, int mount_fd,
			  int idmap_fd, struct cm_error *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID, .propagation = MS_PRIVATE };

	if ((op->flags & CM_OPF_DEV) == 0)
		attr.attr_set |= MOUNT_ATTR_NODEV;
	if ((op->flags & CM_OPF_READ_ONLY) != 0)
		attr.attr_set |= MOUNT_ATTR_RDONLY;
	if ((op->flags & CM_OPF_NOEXEC) != 0)
		attr.attr_set |= MOUNT_ATTR_NOEXEC;
	if (idmap_fd >= 0) {
		attr.attr_set |= MOUNT_ATTR_IDMAP;
		attr.userns_fd = (uint64_t)idmap_fd;
	}
	if (cm_sys_mount_setattr(mount_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr) == 0)
		return CM_OK;
	if (idmap_fd >= 0 && (errno == EINVAL || errno == EPERM)) {
		/* everybody can read it: then the agent can without being its owner */
		if ((op->flags & CM_OPF_TRY) != 0)
			return set_attributes(op, source, mount_fd, -1, err);
		cm_error_set(err, CM_E_LEVEL, errno,
			     "'%s' is on a file system without idmapped mounts, and its owner is "
			     "not the session's",
			     source);
		cm_error_hint(err, "give the tree to an ordinary user and run casemate as that "
				   "user, or start without it: --no-workspace");
		return CM_E_LEVEL;
	}
	return cm_error_set(err, CM_E_ISOLATION, errno, "cannot set the mount flags of '%s'",
			    source);
}

static int open_source(const struct cm_plan_op *op, const char *source, int *ret_fd,
		       struct cm_error *err)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	CM_AUTO_FD int path_fd = cm_sys_openat2(AT_FDCWD, source, &how);
	int r;

	if (path_fd < 0) {
		if (errno == ENOENT && (op->flags & CM_OPF_OPTIONAL) != 0)
			return CM_OK;
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot open '%s'", source);
	}
	r = check_identity(op, source, path_fd, err);
	if (r < 0)
		return r;
	/* recursive: a clone without the mounts below is refused where those are locked, and the
	 * flags are then set on all of them */
	*ret_fd = cm_sys_open_tree(
		path_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
	if (*ret_fd < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot bind '%s'", source);
	return CM_OK;
}

/* To be read, and not mounted. */
static int open_copied(const struct cm_plan_op *op, const char *source, int *ret_fd,
		       struct cm_error *err)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	struct stat st;

	*ret_fd = cm_sys_openat2(AT_FDCWD, source, &how);
	if (*ret_fd < 0) {
		if (errno == ENOENT && (op->flags & CM_OPF_OPTIONAL) != 0)
			return CM_OK;
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot open '%s'", source);
	}
	/* as root this is read with root's rights: only what everybody may read */
	if (fstat(*ret_fd, &st) < 0 || !S_ISREG(st.st_mode) || (st.st_mode & S_IROTH) == 0)
		return cm_error_set(err, CM_E_ISOLATION, EACCES, "cannot copy '%s'", source);
	return CM_OK;
}

/* One namespace for each owner seen; sessions have one or two. */
struct idmap_cache {
	uint32_t uid;
	uint32_t gid;
	int fd;
};

static int idmap_for(const struct cm_plan *plan, const struct cm_plan_op *op,
		     struct idmap_cache *cache, struct cm_error *err)
{
	if (cache->fd >= 0 && cache->uid == op->owner_uid && cache->gid == op->owner_gid)
		return CM_OK;
	cm_fd_close(&cache->fd);
	cache->uid = op->owner_uid;
	cache->gid = op->owner_gid;
	return cm_ns_idmap_open(plan->header->uid_base, op->owner_uid, op->owner_gid, &cache->fd,
				err);
}

int cm_mount_sources_open(const struct cm_plan *plan, struct cm_mount_sources *sources,
			  struct cm_error *err)
{
	struct idmap_cache cache = { 0, 0, -1 };
	int r = CM_OK;

	for (uint32_t i = 0; i < plan->header->n_ops && r == CM_OK; i++) {
		const struct cm_plan_op *op = &plan->ops[i];
		const char *source = cm_plan_str(plan, op->source);
		bool is_mapped = (op->flags & CM_OPF_IDMAP) != 0;

		if (op->kind == CM_OP_COPY)
			r = open_copied(op, source, &sources->fd[i], err);
		if (op->kind != CM_OP_BIND && op->kind != CM_OP_BIND_INERT)
			continue;
		r = open_source(op, source, &sources->fd[i], err);
		if (r < 0 || sources->fd[i] < 0)
			continue;
		if (is_mapped)
			r = idmap_for(plan, op, &cache, err);
		if (r == CM_OK)
			r = set_attributes(op, source, sources->fd[i], is_mapped ? cache.fd : -1,
					   err);
	}
	cm_fd_close(&cache.fd);
	return r;
}
