/* SPDX-License-Identifier: Apache-2.0 */
/* mkdir, rm and mv. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "isolation/keeper/file_builtin.h"
#include "isolation/keeper/file_link.h"
#include "runtime/base/buf.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"

/* --- mkdir --------------------------------------------------------------------------------- */

static int make(struct cm_file_request *q, const char *path)
{
	int r = 0;

	if ((q->flags & CM_FILEF_PARENTS) != 0)
		r = cm_file_make_parents(path, false);
	if (r < 0)
		return r;
	if (mkdir(path, 0777) < 0) {
		/* one that was there keeps its mode */
		if (errno == EEXIST && (q->flags & CM_FILEF_PARENTS) != 0)
			return cm_file_make_parents(path, true);
		return -errno;
	}
	if ((q->flags & CM_FILEF_MODE) != 0 && chmod(path, q->mode) < 0)
		return -errno;
	return 0;
}

int cm_file_op_mkdir(struct cm_file_request *q, uint64_t *ret_value)
{
	*ret_value = 0;
	for (size_t i = 0; i < q->n_paths; i++) {
		int r = make(q, q->paths[i]);

		if (r < 0 && cm_file_failed(q, CM_FILE_STEP_MKDIR, -r, q->paths[i]) < 0)
			return 1;
		*ret_value += r == 0;
	}
	return 0;
}

/* --- rm ------------------------------------------------------------------------------------ */

static bool is_refused_name(const char *path)
{
	char base[CM_FILE_PATH_MAX + 1];

	return !cm_file_base(path, base, sizeof(base)) || base[0] == '\0';
}

static int remove_one(struct cm_file_request *q, const char *path)
{
	CM_AUTO_FD int dir_fd = -1;
	const char *base = NULL;
	char text[CM_FILE_PATH_MAX + 1];
	size_t len = strlen(path);
	struct stat st;

	if (len > CM_FILE_PATH_MAX)
		return -ENAMETOOLONG;
	/* as rm has it: neither "." nor ".." nor "/" */
	if (is_refused_name(path))
		return -EINVAL;
	memcpy(text, path, len + 1);
	while (len > 1 && text[len - 1] == '/')
		text[--len] = '\0';
	dir_fd = cm_file_open_parent(text, &base);
	if (dir_fd < 0)
		return dir_fd;
	if (fstatat(dir_fd, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return unlinkat(dir_fd, base, 0) < 0 ? -errno : 0;
	if ((q->flags & CM_FILEF_RECURSIVE) != 0)
		return cm_remove_tree_at(dir_fd, base);
	return -EISDIR;
}

int cm_file_op_rm(struct cm_file_request *q, uint64_t *ret_value)
{
	*ret_value = 0;
	for (size_t i = 0; i < q->n_paths; i++) {
		int r = remove_one(q, q->paths[i]);

		if ((r == -ENOENT || r == -ENOTDIR) && (q->flags & CM_FILEF_FORCE) != 0)
			continue;
		if (r < 0 && cm_file_failed(q, CM_FILE_STEP_REMOVE, -r, q->paths[i]) < 0)
			return 1;
		*ret_value += r == 0;
	}
	return 0;
}

/* --- mv ------------------------------------------------------------------------------------ */

/* Into a directory that is there, under the name that it has; else to that name. */
static int move(struct cm_file_request *q, const char *from, const char *to)
{
	unsigned int flags = (q->flags & CM_FILEF_NO_CLOBBER) != 0 ? RENAME_NOREPLACE : 0;
	CM_AUTO_FD int dir_fd = open(to, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char base[CM_FILE_PATH_MAX + 1];
	int r;

	if (dir_fd >= 0 && cm_file_base(from, base, sizeof(base)) && base[0] != '\0')
		r = cm_sys_renameat2(AT_FDCWD, from, dir_fd, base, flags);
	else
		r = cm_sys_renameat2(AT_FDCWD, from, AT_FDCWD, to, flags);
	return r < 0 ? -errno : 0;
}

int cm_file_op_mv(struct cm_file_request *q, uint64_t *ret_value)
{
	int r = move(q, q->paths[0], q->paths[1]);
	struct stat st;

	*ret_value = 1;
	if (r == 0)
		return 0;
	/* which of the two is not there? */
	if (r == -ENOENT && lstat(q->paths[0], &st) == 0)
		return cm_file_fail(q, CM_FILE_STEP_CREATE, ENOENT, q->paths[1], 0);
	if (r == -EEXIST || r == -ENOTEMPTY)
		return cm_file_fail(q, CM_FILE_STEP_CREATE, EEXIST, q->paths[1], 0);
	return cm_file_fail(q, CM_FILE_STEP_RENAME, -r, q->paths[0], 0);
}
