/* SPDX-License-Identifier: Apache-2.0 */
/* How many sessions run. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/store/store_internal.h"

struct count {
	size_t n;
	size_t max;
};

static bool add_lasting(int dir_fd, const char *name, void *data)
{
	CM_AUTO_FD int fd = cm_store_openat(dir_fd, name, O_RDONLY | O_DIRECTORY, 0);
	struct count *count = data;

	count->n += fd >= 0 && cm_keeper_lock_is_held(fd);
	return count->n < count->max;
}

static bool add_temporary(int dir_fd, const char *name, void *data)
{
	CM_AUTO_FD int fd = -1;
	char path[CM_STORE_NAME_SIZE];
	struct count *count = data;

	/* not of one that is on its way out */
	if (cm_session_id_check(name, NULL) != CM_OK)
		return true;
	cm_store_name(path, name, CM_STORE_LOCK);
	fd = cm_store_openat(dir_fd, path, O_RDONLY, 0);
	count->n += fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	return count->n < count->max;
}

size_t cm_store_count_live(struct cm_store *store, size_t max)
{
	struct count count = { 0, max };

	(void)cm_store_each_entry(store->state_fd, CM_STORE_SESSIONS, add_lasting, &count);
	if (count.n < max)
		(void)cm_store_each_entry(store->runtime_fd, CM_STORE_TMP, add_temporary, &count);
	return count.n;
}

int cm_store_starts_lock(struct cm_store *store, int *ret_fd)
{
	CM_AUTO_FD int fd = cm_store_openat(store->state_fd, "starts", O_RDWR | O_CREAT, 0600);

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK || errno == EINTR ? 1 : -errno;
	*ret_fd = cm_fd_take(&fd);
	return 0;
}
