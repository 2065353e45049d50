/* SPDX-License-Identifier: Apache-2.0 */
/* Host paths of the plan as detached mounts. */
#include <errno.h>
#include <limits.h>
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
	sources->tmpfs_fd = -1;
	sources->idmap_holder = 0;
}

void cm_mount_sources_close(struct cm_mount_sources *sources)
{
	for (size_t i = 0; i < CM_PLAN_MAX_OPS; i++)
		cm_fd_close(&sources->fd[i]);
	cm_fd_close(&sources->tmpfs_fd);
	cm_ns_idmap_reap(&sources->idmap_holder);
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

static struct mount_attr attributes_of(const struct cm_plan_op *op)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID, .propagation = MS_PRIVATE };

	if ((op->flags & CM_OPF_DEV) == 0)
		attr.attr_set |= MOUNT_ATTR_NODEV;
	if ((op->flags & CM_OPF_READ_ONLY) != 0)
		attr.attr_set |= MOUNT_ATTR_RDONLY;
	if ((op->flags & CM_OPF_NOEXEC) != 0)
		attr.attr_set |= MOUNT_ATTR_NOEXEC;
	return attr;
}

static int set_attributes(const struct cm_plan_op *op, const char *source, int mount_fd,
			  int idmap_fd, struct cm_error *err)
{
	struct mount_attr attr = attributes_of(op);

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

/* The directory of the last source: steps come in groups with one. */
struct parent {
	int fd;
	char path[PATH_MAX];
};

/*
 * The source's directory, found without a symbolic link on the way, and its last name; that one is
 * never followed by whoever uses it. EINVAL: no directory has the name "" (the source is "/").
 */
static int find_parent(const char *source, struct parent *parent, const char **ret_name)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	const char *slash = strrchr(source, '/');
	size_t len = slash == source ? 1 : (size_t)(slash - source);

	if (slash[1] == '\0' || len >= sizeof(parent->path))
		return -EINVAL;
	*ret_name = slash + 1;
	if (parent->fd >= 0 && strncmp(parent->path, source, len) == 0 && parent->path[len] == '\0')
		return 0;
	cm_fd_close(&parent->fd);
	memcpy(parent->path, source, len);
	parent->path[len] = '\0';
	parent->fd = cm_sys_openat2(AT_FDCWD, parent->path, &how);
	return parent->fd < 0 ? -errno : 0;
}

static int cannot_open(const char *source, int error, struct cm_error *err)
{
	return cm_error_set(err, CM_E_ISOLATION, error, "cannot open '%s'", source);
}

/* recursive: a clone without the mounts below is refused where those are locked, and the flags are set
 * on all of them */
#define CLONE_FLAGS (OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW | AT_RECURSIVE)

/* With its flags, by one call where the kernel has that; -1: it has not, or the two have to say why. */
static int clone_with_attributes(const struct cm_plan_op *op, int dir_fd, const char *name)
{
	static bool is_missing;
	struct mount_attr attr = attributes_of(op);
	int fd;

	if (is_missing || (op->flags & CM_OPF_IDMAP) != 0)
		return -1;
	fd = cm_sys_open_tree_attr(dir_fd, name, CLONE_FLAGS, &attr);
	/* EPERM: a filter that does not know it */
	is_missing = fd < 0 && (errno == ENOSYS || errno == EPERM);
	return fd;
}

/* A detached clone, and whether it has its flags already. */
static int open_source(const struct cm_plan_op *op, const char *source, struct parent *parent,
		       int *ret_fd, bool *ret_has_attributes, struct cm_error *err)
{
	const char *name = NULL;
	int r = find_parent(source, parent, &name);

	if (r < 0)
		return cannot_open(source, -r, err);
	*ret_fd = clone_with_attributes(op, parent->fd, name);
	*ret_has_attributes = *ret_fd >= 0;
	if (*ret_fd < 0)
		*ret_fd = cm_sys_open_tree(parent->fd, name, CLONE_FLAGS);
	if (*ret_fd < 0)
		return cannot_open(source, errno, err);
	/* of what was cloned, and not of what its name leads to by now */
	return check_identity(op, source, *ret_fd, err);
}

/* One namespace for each owner seen; sessions have one or two. */
struct idmap_cache {
	uint32_t uid;
	uint32_t gid;
	int fd;
	pid_t *holder;
};

static int idmap_for(const struct cm_plan *plan, const struct cm_plan_op *op,
		     struct idmap_cache *cache, struct cm_error *err)
{
	if (cache->fd >= 0 && cache->uid == op->owner_uid && cache->gid == op->owner_gid)
		return CM_OK;
	cm_fd_close(&cache->fd);
	cm_ns_idmap_reap(cache->holder);
	cache->uid = op->owner_uid;
	cache->gid = op->owner_gid;
	return cm_ns_idmap_open(plan->header->uid_base, op->owner_uid, op->owner_gid, &cache->fd,
				cache->holder, err);
}

int cm_mount_sources_open(const struct cm_plan *plan, struct cm_mount_sources *sources,
			  struct cm_error *err)
{
	static struct parent parent;
	struct idmap_cache cache = { 0, 0, -1, &sources->idmap_holder };
	int r = CM_OK;

	parent.fd = -1;
	for (uint32_t i = 0; i < plan->header->n_ops && r == CM_OK; i++) {
		const struct cm_plan_op *op = &plan->ops[i];
		const char *source = cm_plan_str(plan, op->source);
		bool is_mapped = (op->flags & CM_OPF_IDMAP) != 0;
		bool has_attributes = false;

		if (op->kind != CM_OP_BIND && op->kind != CM_OP_BIND_INERT &&
		    op->kind != CM_OP_ROOT && op->kind != CM_OP_MASK)
			continue;
		if (sources->fd[i] >= 0 || *source == '\0')
			continue;
		r = open_source(op, source, &parent, &sources->fd[i], &has_attributes, err);
		if (r == CM_OK && is_mapped)
			r = idmap_for(plan, op, &cache, err);
		if (r == CM_OK && !has_attributes)
			r = set_attributes(op, source, sources->fd[i], is_mapped ? cache.fd : -1,
					   err);
	}
	cm_fd_close(&cache.fd);
	cm_fd_close(&parent.fd);
	return r;
}
