/* SPDX-License-Identifier: Apache-2.0 */
/* Directory reading, for the places in the store that cannot do without. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/store/store_internal.h"

int cm_store_each_entry(int base_fd, const char *name, cm_store_entry_fn fn, void *data)
{
	int fd = cm_store_openat(base_fd, name, O_RDONLY | O_DIRECTORY, 0);
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
