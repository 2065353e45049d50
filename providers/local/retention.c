/* SPDX-License-Identifier: Apache-2.0 */
/* What the configuration says of sessions that nobody uses, done by starts: there is no daemon. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/local/prune.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"
#include "runtime/spec/retention.h"

/* in the state directory: its time is that of the last look, and what is in it the last session that
 * was looked at and stayed, where that look was broken off */
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

struct progress {
	size_t n_removed;
	/* "": none */
	char stayed[CM_SESSION_ID_MAX + 1];
};

static void on_pruned(void *data, const struct cm_pruned *pruned)
{
	struct progress *progress = data;

	if (pruned->outcome == CM_PRUNE_REMOVED)
		progress->n_removed++;
	else
		(void)snprintf(progress->stayed, sizeof(progress->stayed), "%s",
			       pruned->s->record.id);
}

static void read_stayed(int fd, struct progress *progress)
{
	ssize_t n = pread(fd, progress->stayed, sizeof(progress->stayed) - 1, 0);

	progress->stayed[n > 0 ? n : 0] = '\0';
}

static void write_stayed(int fd, const struct progress *progress)
{
	size_t len = strlen(progress->stayed);

	/* what is not written begins at the front again */
	if (ftruncate(fd, 0) == 0)
		(void)!pwrite(fd, progress->stayed, len, 0);
}

void cm_local_retention(struct cm_store *store, const char *retention,
			const struct cm_config *config)
{
	const struct cm_session_filter any = { 0 };
	CM_AUTO_FD int stamp_fd = -1;
	char after[CM_SESSION_ID_MAX + 1];
	struct progress progress = { 0 };
	struct cm_retention says;
	struct cm_prune prune = {
		.filter = &any,
		.max = MAX_SESSIONS,
		.span_ms = SPAN_MS,
		.look_ms = LOOK_MS,
		.after = after,
		.tell = on_pruned,
		.data = &progress,
	};
	bool is_left;

	if (cm_retention_parse(retention, "retention", &says, NULL) != CM_OK)
		return;
	stamp_fd = open_stamp(store);
	if (stamp_fd < 0)
		return;
	/* before: a session that cannot be looked at must not hold up each start */
	set_stamp(stamp_fd, true);
	read_stayed(stamp_fd, &progress);
	memcpy(after, progress.stayed, sizeof(after));
	prune.older_ms = says.older_ms;
	prune.keep_last = says.keep_last;
	prune.with_files = says.with_files;
	is_left = cm_local_prune(store, &prune, config, NULL) == CM_PRUNE_LEFT;
	/* those that stay are looked at once a round, and hold up neither the others nor each start */
	if (!is_left)
		progress.stayed[0] = '\0';
	write_stayed(stamp_fd, &progress);
	set_stamp(stamp_fd, !is_left || progress.n_removed == 0);
}
