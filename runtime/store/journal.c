/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing journals; linked by the keeper.
 *
 * A journal is made beside its place and renamed to it, and leaves it by another rename, so a
 * death on the way leaves something that nobody takes for a journal. Nothing is synced: after a
 * power cut there is of it what there is, which readers can tell.
 */
#include "runtime/store/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/store/dir.h"
#include "runtime/store/journal_internal.h"
#include "runtime/store/keeper_lock.h"

#define CHUNK 65536U

void cm_journal_init(struct cm_journal *j)
{
	*j = (struct cm_journal){ .dir_fd = -1, .fd = { -1, -1 } };
}

void cm_journal_close(struct cm_journal *j)
{
	for (int i = 0; i < CM_JOURNAL_STREAMS; i++)
		cm_fd_close(&j->fd[i]);
	cm_fd_close(&j->dir_fd);
}

static void name_of(const char *prefix, uint64_t exec_id, char buf[CM_JOURNAL_NAME_SIZE])
{
	char id[CM_EXEC_ID_SIZE];

	cm_exec_id_format(exec_id, id);
	(void)snprintf(buf, CM_JOURNAL_NAME_SIZE, "%s%s", prefix, id);
}

/* --- making one ---------------------------------------------------------------------------- */

static int make_dir(int dir_fd, const char *name)
{
	int fd;

	if (mkdirat(dir_fd, name, 0700) < 0)
		return -errno;
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int make_execs(int state_fd)
{
	int fd = cm_journal_open_execs(state_fd);

	if (fd != -ENOENT)
		return fd;
	fd = make_dir(state_fd, CM_STORE_EXECS);
	return fd == -EEXIST ? cm_journal_open_execs(state_fd) : fd;
}

static int write_request(int dir_fd, const struct cm_journal_request *request, const void *text)
{
	CM_AUTO_FD int fd = openat(dir_fd, CM_JOURNAL_REQUEST,
				   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	uint64_t sum = cm_journal_sum(request, sizeof(*request), text, request->text_len);
	int r = fd < 0 ? -errno : cm_write_all(fd, request, sizeof(*request));

	if (r == 0)
		r = cm_write_all(fd, text, request->text_len);
	return r == 0 ? cm_write_all(fd, &sum, sizeof(sum)) : r;
}

/* The directory, in its place; -errno, and then nothing of it is there. */
static int make_journal(int execs_fd, const struct cm_journal_request *request, const void *text)
{
	char temp[CM_JOURNAL_NAME_SIZE];
	char name[CM_JOURNAL_NAME_SIZE];
	CM_AUTO_FD int fd = -1;
	int r;

	name_of(CM_JOURNAL_NEW, request->exec_id, temp);
	name_of("", request->exec_id, name);
	fd = make_dir(execs_fd, temp);
	/* there is one writer, so what is there was left by one that died */
	if (fd == -EEXIST && cm_remove_tree_at(execs_fd, temp) == 0)
		fd = make_dir(execs_fd, temp);
	r = fd < 0 ? fd : write_request(fd, request, text);
	/* onto a journal, which is a directory that is not empty, it fails */
	if (r == 0 && renameat(execs_fd, temp, execs_fd, name) < 0)
		r = errno == ENOTEMPTY ? -EEXIST : -errno;
	if (r == 0)
		return cm_fd_take(&fd);
	(void)cm_remove_tree_at(execs_fd, temp);
	return r;
}

static int create_failed(int sys_errno, uint64_t exec_id, struct cm_error *err)
{
	char id[CM_EXEC_ID_SIZE];

	cm_exec_id_format(exec_id, id);
	if (sys_errno == EEXIST)
		return cm_error_set(err, CM_E_EXISTS, 0, "there is a journal of command %s already",
				    id);
	(void)cm_error_set(err, CM_E_SYS, sys_errno, "cannot make the journal of command %s", id);
	cm_error_hint(err, "check that the file system of the state directory is not full or "
			   "read-only");
	return CM_E_SYS;
}

int cm_journal_create(int state_fd, const struct cm_journal_request *request, const void *text,
		      struct cm_journal *ret, struct cm_error *err)
{
	struct cm_journal_request out = *request;
	CM_AUTO_FD int execs_fd = -1;
	int fd;

	out.magic = CM_JOURNAL_MAGIC;
	out.version = CM_JOURNAL_VERSION;
	if (out.max_bytes == 0)
		out.max_bytes = CM_JOURNAL_BYTES;
	if (!cm_journal_request_ok(&out, text))
		return cm_error_set(err, CM_E_INVALID, 0,
				    "the request that a journal is to keep is malformed");
	execs_fd = make_execs(state_fd);
	fd = execs_fd < 0 ? execs_fd : make_journal(execs_fd, &out, text);
	if (fd < 0)
		return create_failed(-fd, out.exec_id, err);
	cm_journal_init(ret);
	ret->dir_fd = fd;
	ret->max_bytes = out.max_bytes;
	ret->exec_id = out.exec_id;
	return CM_OK;
}

/* --- its streams --------------------------------------------------------------------------- */

static uint64_t place_of(const struct cm_journal *j, enum cm_journal_stream stream)
{
	return cm_journal_place_of(j->max_bytes, j->at[stream]);
}

/* Where the stream's next byte belongs in its file. */
static uint64_t at_in_file(const struct cm_journal *j, enum cm_journal_stream stream)
{
	return j->at[stream] - cm_journal_place_start(j->max_bytes, place_of(j, stream));
}

/* Open the file of the stream's next byte. 0 and how many fit there, or -errno. */
static int open_place(struct cm_journal *j, enum cm_journal_stream stream, size_t *ret_room)
{
	uint64_t place = place_of(j, stream);
	uint64_t room = cm_journal_place_start(j->max_bytes, place + 1) - j->at[stream];
	char name[CM_JOURNAL_NAME_SIZE];

	if (at_in_file(j, stream) == 0)
		cm_fd_close(&j->fd[stream]);
	/* before its successor is made: on a full disk it gives the room for it */
	if (j->fd[stream] < 0 && place > 2) {
		cm_journal_place_name(stream, place - 2, name);
		(void)unlinkat(j->dir_fd, name, 0);
	}
	if (j->fd[stream] < 0) {
		cm_journal_place_name(stream, place, name);
		j->fd[stream] =
			openat(j->dir_fd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	}
	if (j->fd[stream] < 0)
		return -errno;
	*ret_room = room < SIZE_MAX ? (size_t)room : SIZE_MAX;
	return 0;
}

/* Writes what can be written; the rest is lost. */
static void put(struct cm_journal *j, enum cm_journal_stream stream, const char *data, size_t len)
{
	size_t room = 0;

	while (len > 0 && open_place(j, stream, &room) == 0) {
		ssize_t n = pwrite(j->fd[stream], data, len < room ? len : room,
				   (off_t)at_in_file(j, stream));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		j->at[stream] += (uint64_t)n;
		data += n;
		len -= (size_t)n;
	}
	j->lost[stream] += len;
}

/*
 * As cm_journal_take, and 0 also where the pipe and the file cannot be joined so, or where a file
 * would have to be begun for what may not come.
 */
static ssize_t take_splice(struct cm_journal *j, enum cm_journal_stream stream, int fd, size_t max)
{
	off_t at = (off_t)at_in_file(j, stream);
	size_t room = 0;
	ssize_t n;

	if (at == 0 || open_place(j, stream, &room) < 0)
		return 0;
	do {
		n = splice(fd, NULL, j->fd[stream], &at, max < room ? max : room,
			   SPLICE_F_NONBLOCK);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? -EAGAIN : 0;
	j->at[stream] += (uint64_t)n;
	return n;
}

static ssize_t take_copy(struct cm_journal *j, enum cm_journal_stream stream, int fd, size_t max)
{
	char chunk[CHUNK];
	ssize_t n;

	do {
		n = read(fd, chunk, max < sizeof(chunk) ? max : sizeof(chunk));
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		put(j, stream, chunk, (size_t)n);
	/* of a terminal that nobody has open any more */
	return n >= 0 ? n : errno == EIO ? 0 : -errno;
}

static ssize_t take_some(struct cm_journal *j, enum cm_journal_stream stream, int fd, size_t max)
{
	ssize_t n = take_splice(j, stream, fd, max);

	/*
	 * End of file, a terminal, a full disk; or the command put a page into the pipe that is gone
	 * now, which must not look like the end.
	 */
	return n == 0 ? take_copy(j, stream, fd, max) : n;
}

ssize_t cm_journal_take(struct cm_journal *j, enum cm_journal_stream stream, int fd, size_t max)
{
	size_t total = 0;
	ssize_t n = -EAGAIN;

	if (max > SSIZE_MAX)
		max = SSIZE_MAX;
	while (total < max) {
		n = take_some(j, stream, fd, max - total);
		if (n <= 0)
			break;
		total += (size_t)n;
	}
	return total > 0 ? (ssize_t)total : n;
}

int cm_journal_finish(struct cm_journal *j, const struct cm_journal_result *result)
{
	struct {
		struct cm_journal_result record;
		uint64_t sum;
	} out = { .record = *result };

	out.record.magic = CM_JOURNAL_MAGIC;
	out.record.version = CM_JOURNAL_VERSION;
	out.record.exec_id = j->exec_id;
	memcpy(out.record.bytes, j->at, sizeof(out.record.bytes));
	memcpy(out.record.lost, j->lost, sizeof(out.record.lost));
	out.sum = cm_journal_sum(&out.record, sizeof(out.record), NULL, 0);
	return cm_store_replace(j->dir_fd, CM_JOURNAL_RESULT, CM_JOURNAL_RESULT_NEW, &out,
				sizeof(out), false);
}

/* --- taking them away ---------------------------------------------------------------------- */

static int remove_at(int execs_fd, uint64_t exec_id)
{
	char name[CM_JOURNAL_NAME_SIZE];
	char gone[CM_JOURNAL_NAME_SIZE];
	int r = 0;

	name_of("", exec_id, name);
	name_of(CM_JOURNAL_GONE, exec_id, gone);
	if (renameat(execs_fd, name, execs_fd, gone) < 0)
		r = errno == ENOENT ? 0 : -errno;
	return r == 0 ? cm_remove_tree_at(execs_fd, gone) : r;
}

int cm_journal_remove(int state_fd, uint64_t exec_id)
{
	CM_AUTO_FD int execs_fd = cm_journal_open_execs(state_fd);

	if (execs_fd < 0)
		return execs_fd == -ENOENT ? 0 : execs_fd;
	return remove_at(execs_fd, exec_id);
}

struct ended {
	uint32_t now;
	struct cm_journal_ids ids;
	bool has_failed;
};

static bool has_ended(int execs_fd, const char *name, uint64_t id, uint32_t now)
{
	char path[2 * CM_JOURNAL_NAME_SIZE];

	if (id >> 32 < now)
		return true;
	(void)snprintf(path, sizeof(path), "%s/%s", name, CM_JOURNAL_RESULT);
	return faccessat(execs_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* What one that died left: of the making only that of a keeper before, since one may be at it. */
static void remove_leftover(int execs_fd, const char *name, uint32_t now)
{
	uint64_t id;

	if (strncmp(name, CM_JOURNAL_GONE, strlen(CM_JOURNAL_GONE)) == 0 ||
	    (strncmp(name, CM_JOURNAL_NEW, strlen(CM_JOURNAL_NEW)) == 0 &&
	     cm_exec_id_parse(name + strlen(CM_JOURNAL_NEW), &id, NULL) == CM_OK && id >> 32 < now))
		(void)cm_remove_tree_at(execs_fd, name);
}

static bool look_at(int execs_fd, const char *name, void *data)
{
	struct ended *e = data;
	uint64_t id;

	if (name[0] == '.') {
		remove_leftover(execs_fd, name, e->now);
		return true;
	}
	if (cm_exec_id_parse(name, &id, NULL) != CM_OK || !has_ended(execs_fd, name, id, e->now))
		return true;
	e->has_failed = !cm_journal_ids_add(&e->ids, id);
	return !e->has_failed;
}

void cm_journal_prune(int state_fd, unsigned int keep, uint32_t now)
{
	CM_AUTO_FD int execs_fd = cm_journal_open_execs(state_fd);
	struct ended e = { .now = now };

	if (execs_fd < 0)
		return;
	/* what could not be read now, or put down, is there the next time */
	if (cm_store_each_in(execs_fd, look_at, &e) == 0 && !e.has_failed) {
		cm_journal_ids_sort(&e.ids);
		for (size_t i = 0; i + keep < e.ids.n; i++)
			(void)remove_at(execs_fd, e.ids.v[i]);
	}
	free(e.ids.v);
}
