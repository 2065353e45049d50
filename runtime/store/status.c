/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status shown: a pure function of the record, the keeper's lock and its last word.
 *
 * Nothing is written when a session dies, so a crash and a reboot need no repair: the lock is
 * free, and the end record is missing or of an earlier generation.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/store/store_internal.h"

enum cm_session_status cm_session_status(const struct cm_session_record *record,
					 bool is_keeper_alive, const struct cm_end_record *end)
{
	if (is_keeper_alive)
		return CM_STATUS_RUNNING;
	if (record->setup_state == CM_SETUP_FAILED)
		return CM_STATUS_ERROR;
	if (record->generation == 0)
		return CM_STATUS_CREATED;
	if (end && end->generation == record->generation && end->reason == CM_ENDED_START_FAILED)
		return CM_STATUS_ERROR;
	return CM_STATUS_STOPPED;
}

const char *cm_session_status_name(enum cm_session_status status)
{
	switch (status) {
	case CM_STATUS_CREATED:
		return "created";
	case CM_STATUS_RUNNING:
		return "running";
	case CM_STATUS_STOPPED:
		return "stopped";
	case CM_STATUS_ERROR:
		return "error";
	}
	return "unknown";
}

bool cm_store_keeper_alive(const struct cm_store_session *s)
{
	CM_AUTO_FD int fd = -1;

	if (!s->record.is_temporary)
		return cm_keeper_lock_is_held(s->dir_fd);
	if (s->lock_fd >= 0)
		return true;
	fd = cm_store_openat(s->dir_fd, CM_STORE_LOCK, O_RDONLY, 0);
	/* shared, and for a moment: the owner has it long since, or waits for us while it begins */
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* The time of the lock is that of the last use: a write of the state each time would cost more. */
void cm_store_session_touch(const struct cm_store_session *s)
{
	(void)utimensat(s->dir_fd, CM_STORE_LOCK, NULL, AT_SYMLINK_NOFOLLOW);
}

static int64_t changed_ms(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

int64_t cm_store_session_used_ms(const struct cm_store_session *s, const struct cm_end_record *end)
{
	int64_t used_ms = s->record.created_ms;
	struct stat st;

	if (end && end->magic == CM_END_RECORD_MAGIC && end->real_ms > used_ms)
		used_ms = end->real_ms;
	if (fstatat(s->dir_fd, CM_STORE_LOCK, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		int64_t touched_ms = changed_ms(&st);

		if (touched_ms > used_ms)
			used_ms = touched_ms;
	}
	return used_ms;
}

/* Each keeper makes its socket anew, and nothing changes it after that. */
int64_t cm_store_session_started_ms(const struct cm_store_session *s)
{
	struct stat st;

	return lstat(s->socket_path, &st) == 0 && S_ISSOCK(st.st_mode) ? changed_ms(&st) : 0;
}

int cm_store_read_end(const struct cm_store_session *s, struct cm_end_record *ret)
{
	CM_AUTO_FD int fd = -1;
	/* one byte more, so that a longer file is seen */
	char data[sizeof(struct cm_end_record) + 1];
	struct cm_end_record end;

	fd = cm_store_openat(s->dir_fd, CM_STORE_END, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0 || cm_read_all(fd, data, sizeof(data)) != (ssize_t)sizeof(end))
		return CM_E_NOT_FOUND;
	memcpy(&end, data, sizeof(end));
	if (end.magic != CM_END_RECORD_MAGIC || end.version != CM_END_RECORD_VERSION ||
	    end.reason == 0 || end.reason >= CM_ENDED_COUNT_)
		return CM_E_NOT_FOUND;
	*ret = end;
	return CM_OK;
}
