/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading journals, while they are written or later.
 *
 * Theory of operation: nothing is locked. The writer fills a file of a stream before it begins the
 * next, and takes the last but two away; so a file that has another one after it and is not full
 * was cut by a power failure, and an offset whose file is gone is followed by the beginning of
 * the oldest one that is left. A file that is open is read to its end whether it has a name or not.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/store/dir.h"
#include "runtime/store/journal.h"
#include "runtime/store/journal_internal.h"
#include "runtime/store/watch.h"

/* a writer that is that much faster than us is asked again later */
#define MAX_TRIES 16
#define NO_PLACE UINT64_MAX

void cm_journal_reader_init(struct cm_journal_reader *r)
{
	*r = (struct cm_journal_reader){ .dir_fd = -1, .fd = { -1, -1 } };
}

void cm_journal_reader_close(struct cm_journal_reader *r)
{
	for (int i = 0; i < CM_JOURNAL_STREAMS; i++)
		cm_fd_close(&r->fd[i]);
	cm_fd_close(&r->dir_fd);
	free(r->text);
	cm_journal_reader_init(r);
}

/* A regular file of the journal: fd or -errno. */
static int open_file(int dir_fd, const char *name, struct stat *st)
{
	CM_AUTO_FD int fd =
		openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, st) < 0)
		return -errno;
	return S_ISREG(st->st_mode) ? cm_fd_take(&fd) : -EBADMSG;
}

/* --- request and result -------------------------------------------------------------------- */

/* -EBADMSG: damaged. r->text is filled even then, perhaps. */
static int read_request(struct cm_journal_reader *r, uint64_t exec_id)
{
	struct stat st = { 0 };
	CM_AUTO_FD int fd = open_file(r->dir_fd, CM_JOURNAL_REQUEST, &st);
	struct cm_journal_request *request = &r->request;
	uint64_t sum = 0;
	int e = fd < 0 ? fd : cm_read_exact(fd, request, sizeof(*request));

	if (e < 0)
		return e;
	if (request->magic != CM_JOURNAL_MAGIC || request->version != CM_JOURNAL_VERSION ||
	    request->exec_id != exec_id || !cm_journal_request_ok(request, NULL) ||
	    (uint64_t)st.st_size != sizeof(*request) + request->text_len + sizeof(sum))
		return -EBADMSG;
	r->text = cm_malloc(request->text_len);
	if (!r->text)
		return -ENOMEM;
	e = cm_read_exact(fd, r->text, request->text_len);
	if (e == 0)
		e = cm_read_exact(fd, &sum, sizeof(sum));
	if (e < 0)
		return e;
	return sum == cm_journal_sum(request, sizeof(*request), r->text, request->text_len) &&
			       cm_journal_request_ok(request, r->text)
		       ? 0
		       : -EBADMSG;
}

static int open_journal(int state_fd, uint64_t exec_id, struct cm_journal_reader *r)
{
	CM_AUTO_FD int execs_fd = cm_journal_open_execs(state_fd);
	char name[CM_EXEC_ID_SIZE];

	if (execs_fd < 0)
		return execs_fd;
	cm_exec_id_format(exec_id, name);
	r->dir_fd = openat(execs_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return r->dir_fd < 0 ? -errno : read_request(r, exec_id);
}

int cm_journal_open(int state_fd, uint64_t exec_id, struct cm_journal_reader *ret,
		    struct cm_error *err)
{
	struct cm_journal_reader r;
	char name[CM_EXEC_ID_SIZE];
	int e;

	cm_journal_reader_init(&r);
	e = open_journal(state_fd, exec_id, &r);
	if (e == 0) {
		*ret = r;
		return CM_OK;
	}
	cm_journal_reader_close(&r);
	cm_exec_id_format(exec_id, name);
	if (e == -ENOENT)
		return cm_error_set(err, CM_E_NOT_FOUND, 0, "there is no journal of command %s",
				    name);
	if (e == -EBADMSG || e == -EPIPE) {
		(void)cm_error_set(err, CM_E_PROTOCOL, 0, "the journal of command %s is damaged",
				   name);
		cm_error_hint(err, "a power failure or another version of casemate left it so; it "
				   "goes with the session, or with the commands after it");
		return CM_E_PROTOCOL;
	}
	return cm_error_set(err, CM_E_SYS, -e, "cannot read the journal of command %s", name);
}

int cm_journal_result_read(const struct cm_journal_reader *r, struct cm_journal_result *ret)
{
	struct stat st = { 0 };
	CM_AUTO_FD int fd = open_file(r->dir_fd, CM_JOURNAL_RESULT, &st);
	struct {
		struct cm_journal_result record;
		uint64_t sum;
	} in = { 0 };
	int e = fd;

	if (fd == -ENOENT)
		return fstat(r->dir_fd, &st) == 0 && st.st_nlink == 0 ? -ESTALE : 0;
	if (fd >= 0)
		e = st.st_size == sizeof(in) ? cm_read_exact(fd, &in, sizeof(in)) : -EBADMSG;
	if (e < 0)
		return e == -EPIPE ? -EBADMSG : e;
	if (in.record.magic != CM_JOURNAL_MAGIC || in.record.version != CM_JOURNAL_VERSION ||
	    in.record.exec_id != r->request.exec_id ||
	    in.sum != cm_journal_sum(&in.record, sizeof(in.record), NULL, 0))
		return -EBADMSG;
	*ret = in.record;
	return 1;
}

/* --- streams ------------------------------------------------------------------------------- */

struct places {
	enum cm_journal_stream stream;
	uint64_t max_bytes;
	uint64_t from;
	/* at or after from; NO_PLACE: none */
	uint64_t first;
	uint64_t last;
};

static bool note_place(int dir_fd, const char *name, void *data)
{
	struct places *p = data;
	uint64_t place;

	(void)dir_fd;
	if (!cm_journal_place_parse(p->stream, name, &place) || place < p->from ||
	    cm_journal_place_start(p->max_bytes, place) == UINT64_MAX)
		return true;
	if (p->first == NO_PLACE || place < p->first)
		p->first = place;
	if (p->last == NO_PLACE || place > p->last)
		p->last = place;
	return true;
}

/* Which files there are at or after place `from`. 0 or -errno. */
static int find_places(const struct cm_journal_reader *r, enum cm_journal_stream stream,
		       uint64_t from, struct places *ret)
{
	*ret = (struct places){
		.stream = stream,
		.max_bytes = r->request.max_bytes,
		.from = from,
		.first = NO_PLACE,
		.last = NO_PLACE,
	};
	return cm_store_each_in(r->dir_fd, note_place, ret);
}

/* 0, -ENOENT or another -errno. */
static int open_place(struct cm_journal_reader *r, enum cm_journal_stream stream, uint64_t place)
{
	char name[CM_JOURNAL_NAME_SIZE];
	struct stat st;
	int fd;

	cm_journal_place_name(stream, place, name);
	fd = open_file(r->dir_fd, name, &st);
	if (fd < 0)
		return fd;
	cm_fd_close(&r->fd[stream]);
	r->fd[stream] = fd;
	r->fd_from[stream] = cm_journal_place_start(r->request.max_bytes, place);
	return 0;
}

/*
 * Open the first file at or after place. 1, 0 when there is none, or -errno. One that goes between
 * looking and opening was taken away by a writer that has made others since.
 */
static int open_from(struct cm_journal_reader *r, enum cm_journal_stream stream, uint64_t place)
{
	struct places found;
	int e = open_place(r, stream, place);

	for (int i = 0; e == -ENOENT && i < MAX_TRIES; i++) {
		e = find_places(r, stream, place, &found);
		if (e == 0 && found.first == NO_PLACE)
			return 0;
		if (e == 0)
			e = open_place(r, stream, found.first);
	}
	return e == 0 ? 1 : e == -ENOENT ? -EAGAIN : e;
}

/* Bytes of the open file from offset on, none of the next file's. */
static ssize_t read_here(const struct cm_journal_reader *r, enum cm_journal_stream stream,
			 uint64_t offset, uint64_t end, void *buf, size_t size)
{
	ssize_t n;

	if (size > end - offset)
		size = (size_t)(end - offset);
	do {
		n = pread(r->fd[stream], buf, size, (off_t)(offset - r->fd_from[stream]));
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* After the last byte of the open file that offset is in: is there a later file? 1, 0, -errno. */
static int has_later(const struct cm_journal_reader *r, enum cm_journal_stream stream,
		     uint64_t place)
{
	struct places found;
	int e = find_places(r, stream, place + 1, &found);

	return e < 0 ? e : found.first != NO_PLACE;
}

/* As cm_journal_read of one file; 0 with *offset moved on: ask again. */
static ssize_t read_place(struct cm_journal_reader *r, enum cm_journal_stream stream,
			  uint64_t *offset, void *buf, size_t size)
{
	uint64_t max = r->request.max_bytes;
	uint64_t place = cm_journal_place_of(max, *offset);
	uint64_t start = cm_journal_place_start(max, place);
	uint64_t end;
	ssize_t n;
	int e = 1;

	if (r->fd[stream] < 0 || r->fd_from[stream] != start)
		e = open_from(r, stream, place);
	if (e <= 0)
		return e;
	if (r->fd_from[stream] > *offset)
		*offset = r->fd_from[stream];
	place = cm_journal_place_of(max, *offset);
	end = cm_journal_place_start(max, place + 1);
	n = read_here(r, stream, *offset, end, buf, size);
	if (n != 0)
		return n;
	e = has_later(r, stream, place);
	if (e <= 0)
		return e;
	/* the writer was here before it went on to the next file, or died without it on the disk */
	n = read_here(r, stream, *offset, end, buf, size);
	if (n == 0)
		*offset = end;
	return n;
}

ssize_t cm_journal_read(struct cm_journal_reader *r, enum cm_journal_stream stream,
			uint64_t *offset, void *buf, size_t size)
{
	uint64_t at = *offset;
	ssize_t n = 0;

	if (size > SSIZE_MAX)
		size = SSIZE_MAX;
	while (size > 0) {
		uint64_t before = at;

		n = read_place(r, stream, &at, buf, size);
		if (n != 0 || at == before)
			break;
	}
	if (n > 0)
		*offset = at;
	return n == -EAGAIN ? 0 : n;
}

uint64_t cm_journal_end(struct cm_journal_reader *r, enum cm_journal_stream stream)
{
	uint64_t max = r->request.max_bytes;
	char name[CM_JOURNAL_NAME_SIZE];
	struct places found;
	struct stat st;

	for (int i = 0; i < MAX_TRIES; i++) {
		uint64_t start;
		uint64_t size;

		if (find_places(r, stream, 0, &found) < 0 || found.last == NO_PLACE)
			return 0;
		cm_journal_place_name(stream, found.last, name);
		if (fstatat(r->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		start = cm_journal_place_start(max, found.last);
		size = cm_journal_place_start(max, found.last + 1) - start;
		return start + ((uint64_t)st.st_size < size ? (uint64_t)st.st_size : size);
	}
	return 0;
}

int cm_journal_watch(const struct cm_journal_reader *r)
{
	return cm_store_watch(r->dir_fd);
}

void cm_journal_watch_drain(int watch_fd)
{
	cm_store_watch_drain(watch_fd);
}

/* --- which there are ----------------------------------------------------------------------- */

struct list {
	struct cm_journal_ids ids;
	bool has_failed;
};

static bool note_id(int dir_fd, const char *name, void *data)
{
	struct list *list = data;
	uint64_t id;

	(void)dir_fd;
	if (cm_exec_id_parse(name, &id, NULL) != CM_OK)
		return true;
	list->has_failed = !cm_journal_ids_add(&list->ids, id);
	return !list->has_failed;
}

int cm_journal_list(int state_fd, uint64_t **ret, size_t *ret_n, struct cm_error *err)
{
	CM_AUTO_FD int execs_fd = cm_journal_open_execs(state_fd);
	struct list list = { .has_failed = false };
	int e = execs_fd;

	if (execs_fd >= 0)
		e = cm_store_each_in(execs_fd, note_id, &list);
	if (list.has_failed)
		e = -ENOMEM;
	if (e < 0 && e != -ENOENT) {
		free(list.ids.v);
		return cm_error_set(err, e == -ENOMEM ? CM_E_NOMEM : CM_E_SYS, -e,
				    "cannot list the commands of the session");
	}
	cm_journal_ids_sort(&list.ids);
	*ret = list.ids.v;
	*ret_n = list.ids.n;
	return CM_OK;
}
