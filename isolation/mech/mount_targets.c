/* SPDX-License-Identifier: Apache-2.0 */
/* Places below the new root, found and made without following a link. */
#include "isolation/mech/mount_targets.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"

static int fail(struct cm_error *err, const char *what, const char *path)
{
	return cm_error_set(err, CM_E_ISOLATION, errno, "cannot %s '%s'", what, path);
}

void cm_targets_init(struct cm_targets *t)
{
	t->root_fd = t->parent_fd = -1;
	t->n_own = 0;
	t->parent_path[0] = '\0';
	t->builder_uid = geteuid();
}

void cm_targets_clear(struct cm_targets *t)
{
	cm_fd_close(&t->root_fd);
	cm_fd_close(&t->parent_fd);
}

static bool is_own(const struct cm_targets *t, uint64_t mount_id)
{
	for (size_t i = 0; i < t->n_own; i++) {
		if (t->own[i] == mount_id)
			return true;
	}
	return false;
}

int cm_targets_own(struct cm_targets *t, int fd, struct cm_error *err)
{
	struct cm_statx st;

	if (cm_sys_statx_fd(fd, CM_STATX_MNT_ID, &st) < 0)
		return fail(err, "look at", "a mount of the jail");
	if (t->n_own == CM_TARGET_MAX_OWN)
		return cm_error_set(err, CM_E_LIMIT, 0, "the plan has too many mounts of its own");
	t->own[t->n_own++] = st.mnt_id;
	return CM_OK;
}

int cm_targets_open(const struct cm_targets *t, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned int)flags | O_PATH | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	while (*path == '/')
		path++;
	return cm_sys_openat2(t->root_fd, *path ? path : ".", &how);
}

static void forget_parent(struct cm_targets *t)
{
	cm_fd_close(&t->parent_fd);
	t->parent_path[0] = '\0';
}

static int use_parent(struct cm_targets *t, int own_fd, const char *path, size_t len,
		      struct cm_error *err)
{
	struct cm_statx st;

	forget_parent(t);
	if (cm_sys_statx_fd(own_fd, CM_STATX_UID | CM_STATX_GID | CM_STATX_MNT_ID, &st) < 0) {
		(void)fail(err, "look at", path);
		cm_fd_close(&own_fd);
		return CM_E_ISOLATION;
	}
	t->parent_fd = own_fd;
	t->parent_uid = st.uid;
	t->parent_gid = st.gid;
	t->is_parent_own = is_own(t, st.mnt_id);
	memcpy(t->parent_path, path, len);
	t->parent_path[len] = '\0';
	return CM_OK;
}

static int refuse_to_make(const char *path, struct cm_error *err)
{
	cm_error_set(err, CM_E_ISOLATION, ENOENT,
		     "cannot mount at '%s': it is not there, and nothing is ever made in a tree of "
		     "yours",
		     path);
	cm_error_hint(err, "make it first, or choose another place");
	return CM_E_ISOLATION;
}

/* What is made on the way belongs to whom its directory belongs (in a home: to the agent). */
static int give_away(const struct cm_targets *t, const char *name, const char *path,
		     struct cm_error *err)
{
	if (t->parent_uid == t->builder_uid)
		return CM_OK;
	if (fchownat(t->parent_fd, name, t->parent_uid, t->parent_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(err, "give away", path);
	return CM_OK;
}

static int make_dir(const struct cm_targets *t, const char *name, const char *path,
		    struct cm_error *err)
{
	if (!t->is_parent_own)
		return CM_OK;
	if (mkdirat(t->parent_fd, name, 0755) == 0)
		return give_away(t, name, path, err);
	return errno == EEXIST ? CM_OK : fail(err, "make the directory", path);
}

/* Component by component, each made when it is absent and may be. */
static int walk_parent(struct cm_targets *t, const char *path, size_t len, struct cm_error *err)
{
	size_t at = 0;
	int fd = cm_targets_open(t, "/", O_DIRECTORY);
	int r = fd < 0 ? fail(err, "open", "/") : use_parent(t, fd, "/", 1, err);

	while (r == CM_OK && at < len) {
		char name[256];
		size_t n;

		at += strspn(path + at, "/");
		n = strcspn(path + at, "/");
		if (at + n > len || n == 0)
			break;
		if (n >= sizeof(name))
			return cm_error_set(err, CM_E_ISOLATION, ENAMETOOLONG, "cannot open '%s'",
					    path);
		memcpy(name, path + at, n);
		name[n] = '\0';
		at += n;
		r = make_dir(t, name, path, err);
		if (r < 0)
			break;
		fd = openat(t->parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return errno == ENOENT ? refuse_to_make(path, err)
					       : fail(err, "open the directory of", path);
		r = use_parent(t, fd, path, at, err);
	}
	return r;
}

int cm_targets_place(struct cm_targets *t, const char *path, struct cm_place *ret,
		     struct cm_error *err)
{
	const char *slash = strrchr(path, '/');
	size_t len = (size_t)(slash - path);
	char parent[CM_TARGET_PATH_SIZE];
	int fd;
	int r = CM_OK;

	if (len >= sizeof(parent))
		return cm_error_set(err, CM_E_ISOLATION, ENAMETOOLONG, "cannot open '%s'", path);
	memcpy(parent, path, len);
	parent[len] = '\0';
	if (len == 0) {
		parent[0] = '/';
		parent[len = 1] = '\0';
	}
	if (t->parent_fd < 0 || strcmp(t->parent_path, parent) != 0) {
		fd = cm_targets_open(t, parent, O_DIRECTORY);
		if (fd >= 0)
			r = use_parent(t, fd, parent, len, err);
		else if (errno == ENOENT)
			r = walk_parent(t, parent, len, err);
		else
			r = fail(err, "open", parent);
	}
	if (r < 0)
		return r;
	ret->parent_fd = t->parent_fd;
	ret->name = slash + 1;
	return CM_OK;
}

int cm_targets_dir(struct cm_targets *t, const char *path, struct cm_place *ret,
		   struct cm_error *err)
{
	int r = cm_targets_place(t, path, ret, err);

	return r < 0 ? r : make_dir(t, ret->name, path, err);
}

int cm_targets_file(struct cm_targets *t, const char *path, struct cm_place *ret,
		    struct cm_error *err)
{
	int r = cm_targets_place(t, path, ret, err);
	int fd;

	if (r < 0 || !t->is_parent_own)
		return r;
	fd = openat(ret->parent_fd, ret->name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC,
		    0644);
	if (fd < 0)
		return errno == EEXIST ? CM_OK : fail(err, "make the mount point", path);
	cm_fd_close(&fd);
	return give_away(t, ret->name, path, err);
}

int cm_targets_attach(struct cm_targets *t, int mount_fd, const struct cm_place *place,
		      const char *path, struct cm_error *err)
{
	size_t len = strlen(path);

	/* without MOVE_MOUNT_T_SYMLINKS a link at that name is not followed, and is no directory */
	if (cm_sys_move_mount(mount_fd, "", place->parent_fd, place->name,
			      MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return errno == ENOENT ? refuse_to_make(path, err) : fail(err, "mount at", path);
	/* what was below it is not what is below it now */
	if (strncmp(t->parent_path, path, len) == 0 &&
	    (t->parent_path[len] == '/' || t->parent_path[len] == '\0'))
		forget_parent(t);
	return CM_OK;
}
