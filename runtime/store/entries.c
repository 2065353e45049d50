/* SPDX-License-Identifier: Apache-2.0 */
/* Directory reading, for the places in the store that cannot do without. */
#include <errno.h>
#include <fcntl.h>

#include "runtime/base/fd.h"
#include "runtime/store/store_internal.h"

int cm_store_each_entry(int base_fd, const char *name, cm_store_entry_fn fn, void *data)
{
	CM_AUTO_FD int fd = cm_store_openat(base_fd, name, O_RDONLY | O_DIRECTORY, 0);

	return fd < 0 ? -errno : cm_store_each_in(fd, fn, data);
}
