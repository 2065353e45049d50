/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One descriptor a level, so the depth is bounded, and what is below is said to be missing: a chain of
 * directories costs who makes it a few bytes each.
 */
#include "runtime/base/tree_size.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"

#define DEPTH_MAX 128
/* st_blocks is in these, whatever the file system's own are */
#define BLOCK 512

struct level {
	DIR *dir;
	dev_t dev;
};

/* -1 with errno. A filter of a container manager may not know the call. */
static int open_strict(int dirfd, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	struct open_how how = {
		.flags = (uint64_t)(unsigned int)flags,
		.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH,
	};
	int fd = cm_sys_openat2(dirfd, name, &how);

	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = openat(dirfd, name, flags);
	return fd;
}

static bool enter(int dirfd, const char *name, dev_t dev, struct level *ret)
{
	CM_AUTO_FD int fd = open_strict(dirfd, name);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_dev != dev)
		return false;
	ret->dir = fdopendir(fd);
	ret->dev = dev;
	if (ret->dir)
		(void)cm_fd_take(&fd);
	return ret->dir != NULL;
}

/* Is it a directory that is to be entered? */
static bool count(int dirfd, const char *name, dev_t dev, struct cm_tree_size *size)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		size->is_partial = size->is_partial || errno != ENOENT;
		return false;
	}
	if (st.st_dev != dev) {
		size->is_partial = true;
		return false;
	}
	size->bytes += (uint64_t)st.st_blocks * BLOCK /
		       (S_ISDIR(st.st_mode) || st.st_nlink == 0 ? 1 : (uint64_t)st.st_nlink);
	return S_ISDIR(st.st_mode);
}

static void walk(struct level *levels, struct cm_tree_size *size)
{
	size_t n = 1;

	while (n > 0) {
		struct level *top = &levels[n - 1];
		/* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
		const struct dirent *e = readdir(top->dir);

		if (!e) {
			(void)closedir(top->dir);
			n--;
			continue;
		}
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    !count(dirfd(top->dir), e->d_name, top->dev, size))
			continue;
		if (n == DEPTH_MAX || !enter(dirfd(top->dir), e->d_name, top->dev, &levels[n]))
			size->is_partial = true;
		else
			n++;
	}
}

void cm_tree_size_add(int dirfd, const char *name, struct cm_tree_size *size)
{
	struct level levels[DEPTH_MAX];
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		size->is_partial = size->is_partial || errno != ENOENT;
		return;
	}
	if (!count(dirfd, name, st.st_dev, size))
		return;
	if (enter(dirfd, name, st.st_dev, &levels[0]))
		walk(levels, size);
	else
		size->is_partial = true;
}
