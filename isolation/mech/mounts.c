/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jail's tree.
 *
 * Theory of operation. The new root is a read-only bind of the plan's skeleton, where all mount
 * points of the root file system are there already. It is attached over the old "/" so that it has a
 * place in the mount namespace without any host directory being needed; the process's own root
 * stays the host's until the pivot. Places are found by mount_targets.c, below the new root's
 * descriptor and without a link.
 */
#include "isolation/mech/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "isolation/mech/mount_fs.h"
#include "isolation/mech/mount_targets.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"

struct builder {
	const struct cm_plan *plan;
	struct cm_mount_sources *sources;
	struct cm_error *err;
	struct cm_targets targets;
	/* /proc/sys of the procfs that was mounted, below whatever is mounted over it later */
	int sysctl_fd;
	bool is_tmpfs_attached;
};

static int fail(struct builder *b, const char *what, const char *path)
{
	return cm_error_set(b->err, CM_E_ISOLATION, errno, "cannot %s '%s'", what, path);
}

static int attach_at(struct builder *b, int mount_fd, const char *path)
{
	struct cm_place place;
	int r = cm_targets_dir(&b->targets, path, &place, b->err);

	return r < 0 ? r : cm_targets_attach(&b->targets, mount_fd, &place, path, b->err);
}

static int mount_fs_at(struct builder *b, const char *type, const char *const *options,
		       unsigned int attrs, const char *path, int *ret_fd)
{
	CM_AUTO_FD int mount_fd = -1;
	int r = cm_mount_new_fs(type, options, attrs, path, &mount_fd, b->err);

	if (r == CM_OK)
		r = attach_at(b, mount_fd, path);
	if (r == CM_OK && ret_fd)
		*ret_fd = cm_fd_take(&mount_fd);
	return r;
}

/* A directory in which mount points may be made. */
static int attach_own(struct builder *b, const struct cm_plan_op *op, int fd, const char *path)
{
	struct mount_attr attr = { .attr_set = cm_mount_attrs(op) };
	struct cm_place place;
	int r;

	if (cm_sys_mount_setattr(fd, "", AT_EMPTY_PATH, &attr) < 0)
		return fail(b, "set the mount flags of", path);
	r = cm_targets_dir(&b->targets, path, &place, b->err);
	if (r == CM_OK)
		r = cm_targets_attach(&b->targets, fd, &place, path, b->err);
	return r < 0 ? r : cm_targets_own(&b->targets, fd, b->err);
}

static int run_bind(struct builder *b, const struct cm_plan_op *op, const char *path,
		    const int *source)
{
	struct cm_place place;
	int r;

	if ((op->flags & CM_OPF_FILE) != 0)
		r = cm_targets_file(&b->targets, path, &place, b->err);
	else
		r = cm_targets_dir(&b->targets, path, &place, b->err);
	if (r == CM_OK)
		r = cm_targets_attach(&b->targets, *source, &place, path, b->err);
	if (r == CM_OK && (op->flags & CM_OPF_AGENT) != 0)
		r = cm_targets_own(&b->targets, *source, b->err);
	/* its descriptor goes with all the others, at once, when the tree stands */
	return r;
}

/*
 * An overlay of source above nothing. One lower layer alone is refused by the kernel, so an empty
 * one goes below it: of a file system of its own, since a directory that is removed while it is a
 * layer cannot be listed any more. For as long as this takes, that file system stands at path.
 * Relative names: the layers may hold ':' and ',' in theirs. The overlay holds mounts of its own on
 * its layers.
 */
static int make_overlay(struct builder *b, const struct cm_plan_op *op, int source,
			const char *path, int *ret_fd)
{
	static const char *const bounds[] = { "size=4096", "nr_inodes=8", "mode=0700", NULL };
	static const char *const layers[] = { "lowerdir=lower:empty", NULL };
	CM_AUTO_FD int old_cwd = cm_open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CM_AUTO_FD int staging = -1;
	int r;

	if (old_cwd < 0)
		return fail(b, "open the directory before", path);
	r = mount_fs_at(b, "tmpfs", bounds, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, path, &staging);
	if (r < 0)
		return r;
	if (mkdirat(staging, "lower", 0700) < 0 || mkdirat(staging, "empty", 0700) < 0 ||
	    cm_sys_move_mount(source, "", staging, "lower", MOVE_MOUNT_F_EMPTY_PATH) < 0 ||
	    fchdir(staging) < 0)
		return fail(b, "make the layers for", path);
	r = cm_mount_new_fs("overlay", layers, cm_mount_attrs(op) | MOUNT_ATTR_RDONLY, path, ret_fd,
			    b->err);
	if (umount2(".", MNT_DETACH) < 0 && r == CM_OK)
		r = fail(b, "let go of the layers of", path);
	if (fchdir(old_cwd) < 0 && r == CM_OK)
		r = fail(b, "leave the layers of", path);
	return r;
}

/*
 * Behind an overlay that has the directory as its lower layer, connecting to a socket and opening
 * a FIFO reach no host process: a mount that is read-only alone keeps nobody from either.
 */
static int run_bind_inert(struct builder *b, const struct cm_plan_op *op, const char *path,
			  int *source)
{
	CM_AUTO_FD int overlay = -1;
	struct cm_place place;
	int r;

	if ((op->flags & CM_OPF_FILE) != 0)
		return run_bind(b, op, path, source);
	r = make_overlay(b, op, *source, path, &overlay);
	cm_fd_close(source);
	if (r == CM_OK)
		r = cm_targets_dir(&b->targets, path, &place, b->err);
	return r < 0 ? r : cm_targets_attach(&b->targets, overlay, &place, path, b->err);
}

/* Where the first of its directories is mounted, which then covers it. */
static int attach_tmpfs(struct builder *b, const char *path)
{
	int r = attach_at(b, b->sources->tmpfs_fd, path);

	b->is_tmpfs_attached = r == CM_OK;
	return r;
}

static int run_tmpfs(struct builder *b, const struct cm_plan_op *op, uint32_t number,
		     const char *path)
{
	CM_AUTO_FD int fd = -1;
	char name[CM_MOUNT_TMPFS_NAME_SIZE];
	int r = b->is_tmpfs_attached ? CM_OK : attach_tmpfs(b, path);

	if (r < 0)
		return r;
	cm_mount_tmpfs_name(number, name);
	fd = cm_sys_open_tree(b->sources->tmpfs_fd, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fd < 0)
		return fail(b, "clone the mount for", path);
	return attach_own(b, op, fd, path);
}

static int run_proc(struct builder *b, const char *path, int proc_fd)
{
	int r = attach_at(b, proc_fd, path);

	if (r < 0)
		return r;
	b->sysctl_fd = openat(proc_fd, "sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return b->sysctl_fd < 0 ? fail(b, "open", "/proc/sys") : CM_OK;
}

static int run_cgroupfs(struct builder *b, const char *controller, const char *path)
{
	const unsigned int attrs =
		MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY;
	const char *options[] = { controller, NULL };

	if (*controller == '\0')
		return mount_fs_at(b, "cgroup2", NULL, attrs, path, NULL);
	return mount_fs_at(b, "cgroup", options, attrs, path, NULL);
}

static int run_dir(struct builder *b, const struct cm_plan_op *op, const char *path)
{
	struct cm_place place;
	int r = cm_targets_dir(&b->targets, path, &place, b->err);

	if (r < 0)
		return r;
	if ((op->flags & CM_OPF_AGENT) != 0 && fchownat(place.parent_fd, place.name, CM_ID_AGENT,
							CM_ID_AGENT, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(b, "give away", path);
	/* after the change of owner, which may clear bits */
	if (op->mode != 0 && fchmodat(place.parent_fd, place.name, op->mode, 0) < 0)
		return fail(b, "set the mode of", path);
	return CM_OK;
}

/* A new file of ours; one of a former start, in a home that persists, is replaced. */
static int make_file(struct builder *b, const char *path, int *ret_fd)
{
	const int flags = O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC;
	struct cm_place place;
	int r = cm_targets_place(&b->targets, path, &place, b->err);
	int fd;

	if (r < 0)
		return r;
	fd = openat(place.parent_fd, place.name, flags, 0644);
	if (fd < 0 && errno == EEXIST && unlinkat(place.parent_fd, place.name, 0) == 0)
		fd = openat(place.parent_fd, place.name, flags, 0644);
	if (fd < 0)
		return fail(b, "make", path);
	*ret_fd = fd;
	return CM_OK;
}

static int run_file(struct builder *b, const struct cm_plan_op *op, const char *path)
{
	CM_AUTO_FD int fd = -1;
	int r = make_file(b, path, &fd);

	if (r < 0)
		return r;
	r = cm_write_all(fd, cm_plan_str(b->plan, op->content), op->content_len);
	if (r < 0) {
		errno = -r;
		return fail(b, "write", path);
	}
	if ((op->flags & CM_OPF_AGENT) != 0 && fchown(fd, CM_ID_AGENT, CM_ID_AGENT) < 0)
		return fail(b, "give away", path);
	if (op->mode != 0 && op->mode != 0644 && fchmod(fd, op->mode) < 0)
		return fail(b, "set the mode of", path);
	return CM_OK;
}

static int run_symlink(struct builder *b, const struct cm_plan_op *op, const char *path)
{
	const char *text = cm_plan_str(b->plan, op->source);
	struct cm_place place;
	int r = cm_targets_place(&b->targets, path, &place, b->err);

	if (r < 0)
		return r;
	if (symlinkat(text, place.parent_fd, place.name) == 0)
		return CM_OK;
	if (errno != EEXIST || unlinkat(place.parent_fd, place.name, 0) < 0 ||
	    symlinkat(text, place.parent_fd, place.name) < 0)
		return fail(b, "make the link", path);
	return CM_OK;
}

/* Clone `from_fd` and attach it at path, read-only when asked. */
static int bind_fd(struct builder *b, int from_fd, bool is_read_only, const char *path)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_NOSUID | (is_read_only ? MOUNT_ATTR_RDONLY : 0),
	};
	CM_AUTO_FD int fd = cm_sys_open_tree(
		from_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
	struct cm_place place;
	int r;

	if (fd < 0 || cm_sys_mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr) < 0)
		return fail(b, "bind", path);
	r = cm_targets_place(&b->targets, path, &place, b->err);
	return r < 0 ? r : cm_targets_attach(&b->targets, fd, &place, path, b->err);
}

static int run_mask(struct builder *b, const char *path, int source)
{
	struct cm_place place;
	int r = cm_targets_place(&b->targets, path, &place, b->err);

	/* this jail's procfs may lack what the host's has */
	if (r == CM_OK &&
	    cm_sys_move_mount(source, "", place.parent_fd, place.name, MOVE_MOUNT_F_EMPTY_PATH) <
		    0 &&
	    errno != ENOENT)
		return fail(b, "mount at", path);
	return r;
}

static int run_over_itself(struct builder *b, const struct cm_plan_op *op, const char *path)
{
	CM_AUTO_FD int fd = cm_targets_open(&b->targets, path, 0);
	bool is_read_only = op->kind == CM_OP_READ_ONLY || (op->flags & CM_OPF_READ_ONLY) != 0;

	if (fd < 0)
		return fail(b, "open", path);
	return bind_fd(b, fd, is_read_only, path);
}

/* Through a descriptor of the procfs that we mounted, so nothing can stand in for it. */
static int run_sysctl(struct builder *b, const struct cm_plan_op *op, const char *name)
{
	int r;

	if (b->sysctl_fd < 0)
		return cm_error_set(b->err, CM_E_BUG, 0, "the plan sets '%s' without a /proc",
				    name);
	r = cm_write_file_at(b->sysctl_fd, name, cm_plan_str(b->plan, op->content));
	if (r < 0) {
		errno = -r;
		return fail(b, "set the sysctl", name);
	}
	return CM_OK;
}

static int run_op(struct builder *b, uint32_t i)
{
	const struct cm_plan_op *op = &b->plan->ops[i];
	const char *target = cm_plan_str(b->plan, op->target);
	int *source = &b->sources->fd[i];

	switch ((enum cm_plan_op_kind)op->kind) {
	case CM_OP_BIND:
		return run_bind(b, op, target, source);
	case CM_OP_BIND_INERT:
		return run_bind_inert(b, op, target, source);
	case CM_OP_TMPFS:
		return run_tmpfs(b, op, i, target);
	case CM_OP_PROC:
		return run_proc(b, target, *source);
	case CM_OP_DEVPTS:
	case CM_OP_MQUEUE:
		/* one that may be left out was left out when it was made */
		return *source < 0 ? CM_OK : attach_at(b, *source, target);
	case CM_OP_CGROUPFS:
		return run_cgroupfs(b, cm_plan_str(b->plan, op->source), target);
	case CM_OP_DIR:
		return run_dir(b, op, target);
	case CM_OP_FILE:
		return run_file(b, op, target);
	case CM_OP_SYMLINK:
		return run_symlink(b, op, target);
	case CM_OP_MASK:
		return run_mask(b, target, *source);
	case CM_OP_READ_ONLY:
	case CM_OP_PIN:
		return run_over_itself(b, op, target);
	case CM_OP_SYSCTL:
		return run_sysctl(b, op, target);
	case CM_OP_ROOT:
	case CM_OP_COPY:
	case CM_OP_COUNT_:
		break;
	}
	return cm_error_set(b->err, CM_E_BUG, 0, "a step that init does not carry out");
}

/* Sysctls, or everything else; a step that may fail is left out when it does. */
static int run_ops(struct builder *b, bool sysctls)
{
	struct cm_error ignored = CM_ERROR_INIT;
	struct cm_error *err = b->err;
	int r = CM_OK;

	/* the first one is the root */
	for (uint32_t i = 1; i < b->plan->header->n_ops && r == CM_OK; i++) {
		const struct cm_plan_op *op = &b->plan->ops[i];
		/* of a bind it is the map that may fail, and that was tried with its source */
		bool may_fail = (op->flags & CM_OPF_TRY) != 0 && op->kind != CM_OP_BIND &&
				op->kind != CM_OP_BIND_INERT;

		if ((op->kind == CM_OP_SYSCTL) != sysctls)
			continue;
		b->err = may_fail ? &ignored : err;
		r = run_op(b, i);
		if (r < 0 && may_fail)
			r = CM_OK;
	}
	b->err = err;
	return r;
}

static int make_root(struct builder *b)
{
	if (b->plan->header->n_ops == 0 || b->plan->ops[0].kind != CM_OP_ROOT ||
	    b->sources->fd[0] < 0)
		return cm_error_set(b->err, CM_E_BUG, 0, "the plan has no root");
	b->targets.root_fd = cm_fd_take(&b->sources->fd[0]);
	if (cm_sys_move_mount(b->targets.root_fd, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return fail(b, "attach the new root at", "/");
	return CM_OK;
}

static int pivot(struct builder *b)
{
	if (fchdir(b->targets.root_fd) < 0)
		return fail(b, "enter", "the new root");
	if (cm_sys_pivot_root(".", ".") < 0)
		return fail(b, "pivot to", "the new root");
	/* the old root now lies over the new one: this is the last that is seen of the host */
	if (umount2(".", MNT_DETACH) < 0)
		return fail(b, "detach", "the host's root");
	if (chdir("/") < 0)
		return fail(b, "enter", "/");
	return CM_OK;
}

int cm_mounts_build(const struct cm_plan *plan, struct cm_mount_sources *sources,
		    struct cm_error *err)
{
	struct builder b = {
		.plan = plan,
		.sources = sources,
		.err = err,
		.sysctl_fd = -1,
	};
	int r;

	cm_targets_init(&b.targets);
	r = cm_mounts_prepare(plan, sources, err);
	if (r == CM_OK)
		r = make_root(&b);
	r = r == CM_OK ? run_ops(&b, false) : r;
	/* last: a limit of no mount namespaces holds for the detached mounts above, too */
	r = r == CM_OK ? run_ops(&b, true) : r;
	if (r == CM_OK)
		r = pivot(&b);
	cm_targets_clear(&b.targets);
	cm_fd_close(&b.sysctl_fd);
	return r;
}
