/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/store/watch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "runtime/base/fd.h"

int cm_store_watch(int dir_fd)
{
	CM_AUTO_FD int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	char path[32];

	if (fd < 0)
		return -errno;
	/* inotify knows paths alone, and the directory may have another one by now */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
	if (inotify_add_watch(fd, path,
			      IN_CREATE | IN_MODIFY | IN_MOVED_TO | IN_DELETE | IN_MOVE_SELF |
				      IN_DELETE_SELF | IN_ONLYDIR) < 0)
		return -errno;
	return cm_fd_take(&fd);
}

void cm_store_watch_drain(int watch_fd)
{
	_Alignas(struct inotify_event) char
		events[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)];

	/* what changed is looked for, not told */
	while (read(watch_fd, events, sizeof(events)) > 0)
		;
}
