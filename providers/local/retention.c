/* SPDX-License-Identifier: Apache-2.0 */
/* What the configuration says of sessions that nobody uses, done by starts: there is no daemon. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/local/prune.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/spec/retention.h"

/* in the state directory: its time is that of the last look */
#define STAMP "pruned"
#define HOUR_S (60 * 60)
/* of a start's time; what was begun is finished */
#define SPAN_MS 300
#define LOOK_MS 2000
#define MAX_SESSIONS 64

/* Opened, locked and due; or -1. */
static int open_stamp(const struct cm_store *store)
{
	const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
	CM_AUTO_FD int fd = openat(store->state_fd, STAMP, flags | O_CREAT | O_EXCL, 0600);
	bool is_first = fd >= 0;
	struct stat st;

	if (!is_first)
		fd = openat(store->state_fd, STAMP, flags);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0)
		return -1;
	return is_first || cm_clock_real_ms() / 1000 - st.st_mtime >= HOUR_S ? cm_fd_take(&fd) : -1;
}

/* What was not finished goes on at the next start. */
static void set_stamp(int fd, bool is_finished)
{
	struct timespec when[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_NOW } };

	if (!is_finished)
		when[1] = (struct timespec){ .tv_sec = cm_clock_real_ms() / 1000 - HOUR_S };
	(void)futimens(fd, when);
}

static void count(void *data, const struct cm_pruned *pruned)
{
	(void)pruned;
	(*(size_t *)data)++;
}

void cm_local_retention(struct cm_store *store, const char *retention,
			const struct cm_config *config)
{
	const struct cm_session_filter any = { 0 };
	CM_AUTO_FD int stamp_fd = -1;
	struct cm_retention says;
	size_t n = 0;
	struct cm_prune prune = {
		.filter = &any, .max = MAX_SESSIONS, .look_ms = LOOK_MS, .tell = count, .data = &n
	};

	if (cm_retention_parse(retention, "retention", &says, NULL) != CM_OK)
		return;
	stamp_fd = open_stamp(store);
	if (stamp_fd < 0)
		return;
	/* before: a session that cannot be looked at must not hold up each start */
	set_stamp(stamp_fd, true);
	prune.older_ms = says.older_ms;
	prune.keep_last = says.keep_last;
	prune.with_files = says.with_files;
	prune.deadline_ms = cm_clock_mono_ms() + SPAN_MS;
	(void)cm_local_prune(store, &prune, config, NULL);
	if (n > 0 && (n == MAX_SESSIONS || cm_clock_mono_ms() >= prune.deadline_ms))
		set_stamp(stamp_fd, false);
}
