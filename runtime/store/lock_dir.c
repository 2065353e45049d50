/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories that are somebody's as long as he has the flock of the file `lock` in them.
 *
 * Two rules make it safe that anybody may take away what nobody has. Who has the lock of a directory
 * that is at its name removes it by renaming it first, so that from the moment its lock file goes
 * nobody finds it at that name. And a lock counts only when the directory is at its name afterwards:
 * the file may be a new one, in what is being removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/store/store_internal.h"

static int lock_file(int dir_fd, bool will_wait, int *ret_fd)
{
	CM_AUTO_FD int fd = -1;
	struct stat st;
	int r;

	fd = openat(dir_fd, CM_STORE_LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return errno == ENOENT ? 1 : -errno;
	do {
		r = flock(fd, LOCK_EX | (will_wait ? 0 : LOCK_NB));
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return errno == EWOULDBLOCK ? 1 : -errno;
	/* whoever took it for a dead one's has removed it by now */
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_nlink == 0)
		return 1;
	*ret_fd = cm_fd_take(&fd);
	return 0;
}

bool cm_store_is_at(int parent_fd, const char *name, int fd)
{
	struct stat by_name;
	struct stat by_fd;

	return fstat(fd, &by_fd) == 0 &&
	       fstatat(parent_fd, name, &by_name, AT_SYMLINK_NOFOLLOW) == 0 &&
	       by_fd.st_ino == by_name.st_ino && by_fd.st_dev == by_name.st_dev;
}

int cm_store_lock_dir(int parent_fd, const char *name, bool will_wait, int *ret_dir_fd,
		      int *ret_lock_fd)
{
	CM_AUTO_FD int dir_fd = cm_store_openat(parent_fd, name, O_RDONLY | O_DIRECTORY, 0);
	CM_AUTO_FD int lock_fd = -1;
	int r;

	if (dir_fd < 0)
		return errno == ENOENT ? 1 : -errno;
	r = lock_file(dir_fd, will_wait, &lock_fd);
	if (r != 0)
		return r;
	if (!cm_store_is_at(parent_fd, name, dir_fd))
		return 1;
	*ret_dir_fd = cm_fd_take(&dir_fd);
	*ret_lock_fd = cm_fd_take(&lock_fd);
	return 0;
}

int cm_store_remove_locked_dir(int parent_fd, const char *name)
{
	char random[17];
	char gone[CM_STORE_NAME_SIZE];
	char lock[CM_STORE_NAME_SIZE];

	cm_store_random_hex(random);
	(void)snprintf(gone, sizeof(gone), CM_STORE_GONE "%s", random);
	if (renameat(parent_fd, name, parent_fd, gone) < 0)
		return -errno;
	/* first, so that who waits for it does not take what is left for whole */
	cm_store_name(lock, gone, CM_STORE_LOCK);
	(void)unlinkat(parent_fd, lock, 0);
	if (unlinkat(parent_fd, gone, AT_REMOVEDIR) == 0)
		return 0;
	return cm_remove_tree_at(parent_fd, gone);
}
