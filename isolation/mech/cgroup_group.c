/* SPDX-License-Identifier: Apache-2.0 */
/* Making, listing and removing groups by directory descriptors, on v1 and v2 alike. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "isolation/mech/cgroup_internal.h"
#include "runtime/base/fd.h"

/* A user keeper's jail may have made groups of its own below ours, though not without end. */
#define DEPTH_MAX 16

void cm_cgroup_sleep_ms(unsigned int ms)
{
	struct timespec ts = { ms / 1000, (long)(ms % 1000) * 1000000L };

	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

int cm_cgroup_dir_open(int dirfd, const char *path, uint32_t magic, int *ret_fd)
{
	struct statfs fs;
	CM_AUTO_FD int fd = openat(dirfd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	if ((uint32_t)fs.f_type != magic)
		return -EINVAL;
	*ret_fd = cm_fd_take(&fd);
	return 0;
}

int cm_cgroup_group_make(int base_fd, const char *name, int *ret_fd)
{
	int fd;

	if (mkdirat(base_fd, name, 0755) < 0) {
		if (errno != EEXIST)
			return -errno;
		/* its limits are another start's, so it is not taken over */
		if (unlinkat(base_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
			return -errno;
		if (mkdirat(base_fd, name, 0755) < 0)
			return errno == EEXIST ? -EBUSY : -errno;
	}
	/* in spite of the caller's umask: programs inside read their limits through this directory */
	fd = fchmodat(base_fd, name, 0755, 0);
	if (fd == 0)
		fd = openat(base_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		int r = -errno;

		(void)unlinkat(base_fd, name, AT_REMOVEDIR);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

void cm_cgroup_children(int group_fd, void (*fn)(int group_fd, const char *name, void *data),
			void *data)
{
	int fd = openat(group_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		cm_fd_close(&fd);
		return;
	}
	while ((entry = readdir(dir)) != NULL)
		if (entry->d_type == DT_DIR && strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0)
			fn(group_fd, entry->d_name, data);
	closedir(dir);
}

static void remove_child(int group_fd, const char *name, void *data)
{
	unsigned int depth = *(const unsigned int *)data + 1;
	CM_AUTO_FD int fd = -1;

	if (depth > DEPTH_MAX || unlinkat(group_fd, name, AT_REMOVEDIR) == 0)
		return;
	fd = openat(group_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	cm_cgroup_children(fd, remove_child, &depth);
	/* what stays makes the rmdir of its parent fail, which is reported */
	(void)unlinkat(group_fd, name, AT_REMOVEDIR);
}

int cm_cgroup_group_remove(int base_fd, const char *name)
{
	unsigned int depth = 0;
	CM_AUTO_FD int fd = -1;

	if (unlinkat(base_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	fd = openat(base_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	cm_cgroup_children(fd, remove_child, &depth);
	if (unlinkat(base_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	return -errno;
}
