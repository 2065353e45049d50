/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/store/dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "runtime/base/fd.h"

int cm_store_each_in(int dir_fd, cm_store_entry_fn fn, void *data)
{
	/* of its own: copies of a descriptor share the position in the directory */
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent *e;
	DIR *dir;
	int r;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		cm_fd_close(&fd);
		return r;
	}
	do {
		errno = 0;
		e = readdir(dir);
		r = -errno;
	} while (e && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		       fn(dirfd(dir), e->d_name, data)));
	(void)closedir(dir);
	return e ? 0 : r;
}
