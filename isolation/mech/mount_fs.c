/* SPDX-License-Identifier: Apache-2.0 */
/* New file systems as detached mounts, before there is a place for them. */
#include "isolation/mech/mount_fs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "isolation/mech/mounts.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"

/* more than agents open, and a fraction of the 3072 that all jails together have */
#define PTYS_OPTION "max=256"

static int fail(struct cm_error *err, const char *what, const char *path)
{
	return cm_error_set(err, CM_E_ISOLATION, errno, "cannot %s '%s'", what, path);
}

int cm_mount_new_fs(const char *type, const char *const *options, unsigned int attrs,
		    const char *path, int *ret_fd, struct cm_error *err)
{
	CM_AUTO_FD int fs_fd = cm_sys_fsopen(type, FSOPEN_CLOEXEC);
	CM_AUTO_FD int mount_fd = -1;

	if (fs_fd < 0)
		return fail(err, "open the file system for", path);
	for (; options && *options; options++) {
		char key[32];
		const char *eq = strchr(*options, '=');
		int r;

		if (!eq) {
			r = cm_sys_fsconfig(fs_fd, FSCONFIG_SET_FLAG, *options, NULL, 0);
		} else {
			(void)snprintf(key, sizeof(key), "%.*s", (int)(eq - *options), *options);
			r = cm_sys_fsconfig(fs_fd, FSCONFIG_SET_STRING, key, eq + 1, 0);
		}
		if (r < 0)
			return fail(err, "configure the file system at", path);
	}
	if (cm_sys_fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return fail(err, "make the file system at", path);
	mount_fd = cm_sys_fsmount(fs_fd, FSMOUNT_CLOEXEC, attrs);
	if (mount_fd < 0)
		return fail(err, "mount the file system at", path);
	*ret_fd = cm_fd_take(&mount_fd);
	return CM_OK;
}

void cm_mount_tmpfs_name(uint32_t number, char buf[CM_MOUNT_TMPFS_NAME_SIZE])
{
	(void)snprintf(buf, CM_MOUNT_TMPFS_NAME_SIZE, "%u", number);
}

unsigned int cm_mount_attrs(const struct cm_plan_op *op)
{
	unsigned int attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

	if ((op->flags & CM_OPF_NOEXEC) != 0)
		attrs |= MOUNT_ATTR_NOEXEC;
	if ((op->flags & CM_OPF_READ_ONLY) != 0)
		attrs |= MOUNT_ATTR_RDONLY;
	return attrs;
}

/* One for all that is in memory: making and taking down one costs as much as ten mounts. */
static int make_tmpfs(const struct cm_plan_header *h, const char *path, int *ret_fd,
		      struct cm_error *err)
{
	char size[32];
	char inodes[40];
	const char *options[] = { size, inodes, "mode=0755", NULL };

	(void)snprintf(size, sizeof(size), "size=%llu", (unsigned long long)h->tmpfs_bytes);
	(void)snprintf(inodes, sizeof(inodes), "nr_inodes=%llu",
		       (unsigned long long)h->tmpfs_inodes);
	return cm_mount_new_fs("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, path, ret_fd,
			       err);
}

/* Named by its step. */
static int make_tmpfs_dir(int fd, const struct cm_plan_op *op, uint32_t number, const char *path,
			  struct cm_error *err)
{
	char name[CM_MOUNT_TMPFS_NAME_SIZE];

	cm_mount_tmpfs_name(number, name);
	if (mkdirat(fd, name, op->mode) < 0)
		return errno == EEXIST ? CM_OK : fail(err, "make the directory for", path);
	if ((op->flags & CM_OPF_AGENT) != 0 &&
	    fchownat(fd, name, CM_ID_AGENT, CM_ID_AGENT, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(err, "give away", path);
	return CM_OK;
}

static int make_proc(const char *path, int *ret_fd, struct cm_error *err)
{
	int r = cm_mount_new_fs("proc", NULL,
				MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, path,
				ret_fd, err);

	if (r < 0 && err && err->sys_errno == EPERM) {
		/* mount_too_revealing(): somebody masked the /proc that we see */
		err->code = CM_E_LEVEL;
		cm_error_hint(err, "this looks like a container whose /proc is masked: "
				   "'casemate doctor' lists the flags that it needs");
		return CM_E_LEVEL;
	}
	return r;
}

static int make_devpts(const char *path, int *ret_fd, struct cm_error *err)
{
	char uid[16];
	char gid[16];
	/* the kernel's own bound is one for all containers of the machine */
	const char *options[] = { "ptmxmode=0666", "mode=0620", PTYS_OPTION, uid, gid, NULL };

	/* slaves are the agent's although init opens them */
	(void)snprintf(uid, sizeof(uid), "uid=%u", CM_ID_AGENT);
	(void)snprintf(gid, sizeof(gid), "gid=%u", CM_ID_AGENT);
	return cm_mount_new_fs("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, path,
			       ret_fd, err);
}

static int make_op(const struct cm_plan *plan, uint32_t i, struct cm_mount_sources *sources,
		   struct cm_error *err)
{
	const struct cm_plan_op *op = &plan->ops[i];
	const char *path = cm_plan_str(plan, op->target);
	int *ret_fd = &sources->fd[i];
	int r = CM_OK;

	if (op->kind == CM_OP_PROC && *ret_fd < 0)
		return make_proc(path, ret_fd, err);
	if (op->kind == CM_OP_DEVPTS && *ret_fd < 0)
		return make_devpts(path, ret_fd, err);
	if (op->kind == CM_OP_MQUEUE && *ret_fd < 0)
		return cm_mount_new_fs("mqueue", NULL, cm_mount_attrs(op), path, ret_fd, err);
	if (op->kind != CM_OP_TMPFS)
		return CM_OK;
	if (sources->tmpfs_fd < 0)
		r = make_tmpfs(plan->header, path, &sources->tmpfs_fd, err);
	return r < 0 ? r : make_tmpfs_dir(sources->tmpfs_fd, op, i, path, err);
}

int cm_mounts_prepare(const struct cm_plan *plan, struct cm_mount_sources *sources,
		      struct cm_error *err)
{
	int r = CM_OK;

	for (uint32_t i = 0; i < plan->header->n_ops && r == CM_OK; i++) {
		bool may_fail = (plan->ops[i].flags & CM_OPF_TRY) != 0;

		r = make_op(plan, i, sources, may_fail ? NULL : err);
		if (r < 0 && may_fail)
			r = CM_OK;
	}
	return r;
}
