/* SPDX-License-Identifier: Apache-2.0 */
/* keeper.lock and the end record; linked by the keeper, so nothing here parses text. */
#include "runtime/store/keeper_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "runtime/base/fd.h"

#define LOCK_NAME "keeper.lock"

int cm_store_keeper_lock(int dir_fd, int *ret_fd, struct cm_error *err)
{
	CM_AUTO_FD int fd = -1;
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	fd = openat(dir_fd, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		(void)cm_error_set(err, CM_E_SYS, errno, "cannot open '%s'", LOCK_NAME);
		cm_error_hint(err, "check that the file system of the state directory is not full "
				   "or read-only");
		return CM_E_SYS;
	}
	if (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
		if (errno == EAGAIN || errno == EACCES) {
			(void)cm_error_set(err, CM_E_BUSY, 0, "another keeper holds '%s'",
					   LOCK_NAME);
			cm_error_hint(
				err,
				"the session runs already: 'casemate run --session ID' joins it");
			return CM_E_BUSY;
		}
		(void)cm_error_set(err, CM_E_SYS, errno, "cannot lock '%s'", LOCK_NAME);
		cm_error_hint(err, "put the state directory on a file system that has locks");
		return CM_E_SYS;
	}
	*ret_fd = cm_fd_take(&fd);
	return CM_OK;
}

bool cm_keeper_lock_is_held(int dir_fd)
{
	CM_AUTO_FD int fd = -1;
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	fd = openat(dir_fd, LOCK_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return false;
	return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static int write_new(int dir_fd, const char *temp, const void *data, size_t len, bool is_durable)
{
	CM_AUTO_FD int fd = -1;
	int r;

	fd = openat(dir_fd, temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = cm_write_all(fd, data, len);
	if (r == 0 && is_durable && fsync(fd) < 0)
		r = -errno;
	/* network and quota file systems report a lost write only here */
	if (close(cm_fd_take(&fd)) < 0 && r == 0 && errno != EINTR)
		r = -errno;
	return r;
}

int cm_store_replace(int dir_fd, const char *name, const char *temp, const void *data, size_t len,
		     bool is_durable)
{
	int r = write_new(dir_fd, temp, data, len, is_durable);

	if (r == 0 && renameat(dir_fd, temp, dir_fd, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir_fd, temp, 0);
	else if (is_durable && fsync(dir_fd) < 0)
		r = -errno;
	return r;
}

int cm_store_write_end(int dir_fd, const struct cm_end_record *end)
{
	struct cm_end_record out = *end;

	out.magic = CM_END_RECORD_MAGIC;
	out.version = CM_END_RECORD_VERSION;
	/* not durable: after a power cut the session is stopped, with or without a last word */
	return cm_store_replace(dir_fd, "end", "end.new", &out, sizeof(out), false);
}

const char *cm_end_reason_name(uint32_t reason)
{
	switch (reason) {
	case CM_ENDED_STOPPED:
		return "stopped";
	case CM_ENDED_INIT_DIED:
		return "init died";
	case CM_ENDED_START_FAILED:
		return "start failed";
	case CM_ENDED_TEMPORARY:
		return "temporary session ended";
	case CM_ENDED_IDLE:
		return "idle timeout";
	case CM_ENDED_LIFETIME:
		return "lifetime";
	default:
		return NULL;
	}
}
