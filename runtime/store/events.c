/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing events; linked by the keeper.
 *
 * Theory of operation: who holds the lock of events.seq reads from it the number of the last event
 * and where the log ends, writes the next pair there, and then the line. A writer that dies in
 * between leaves a log that does not end where events.seq says; so does a power cut. Who finds
 * that takes away what is no whole line, and goes on from the larger of events.seq and of the last
 * number in the log: none comes twice.
 */
#include "runtime/store/events.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/hash.h"
#include "runtime/store/journal.h"

#define LINE_START "{\"v\":1,\"seq\":"
/* of number and times */
#define START_SIZE 160
#define LOCK_TRIES 10
#define LOCK_PAUSE_NS 2000000L

/* what events.seq has */
struct last {
	uint64_t seq;
	/* of events.ndjson, in bytes */
	uint64_t end;
	/* of the two */
	uint64_t sum;
};

static uint64_t sum_of(const struct last *last)
{
	char bytes[offsetof(struct last, sum)];

	memcpy(bytes, last, sizeof(bytes));
	return cm_hash(CM_HASH_START, bytes, sizeof(bytes));
}

/* --- the last number ----------------------------------------------------------------------- */

/* Of a line as it is written below; 0: it is none. */
static uint64_t seq_of(const char *line, size_t len)
{
	size_t start_len = strlen(LINE_START);
	uint64_t seq = 0;
	size_t i = start_len;

	if (len <= start_len || memcmp(line, LINE_START, start_len) != 0)
		return 0;
	for (; i < len && line[i] >= '0' && line[i] <= '9'; i++) {
		uint64_t digit = (uint64_t)(line[i] - '0');

		if (seq > (UINT64_MAX - digit) / 10)
			return 0;
		seq = seq * 10 + digit;
	}
	return i < len && line[i] == ',' ? seq : 0;
}

/* Of the last whole line in what is the end of a log; and where that line ends. */
static uint64_t last_seq(const char *tail, size_t len, size_t *ret_end)
{
	size_t end = len;

	while (end > 0 && tail[end - 1] != '\n')
		end--;
	*ret_end = end;
	for (size_t at = end; at > 0;) {
		size_t start = at - 1;
		uint64_t seq;

		while (start > 0 && tail[start - 1] != '\n')
			start--;
		seq = seq_of(tail + start, at - start);
		if (seq > 0)
			return seq;
		at = start;
	}
	return 0;
}

/* The same of a file; 0 where there is nothing. With is_cut what is behind its last line goes. */
static uint64_t look_back(int fd, bool is_cut)
{
	char tail[2 * CM_EVENT_MAX];
	struct stat st;
	uint64_t from;
	uint64_t seq;
	size_t end;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size == 0)
		return 0;
	from = (uint64_t)st.st_size > sizeof(tail) ? (uint64_t)st.st_size - sizeof(tail) : 0;
	n = pread(fd, tail, sizeof(tail), (off_t)from);
	if (n <= 0)
		return 0;
	seq = last_seq(tail, (size_t)n, &end);
	/* else the next line stands behind it, and both are damaged */
	if (is_cut && end < (size_t)n)
		(void)!ftruncate(fd, (off_t)(from + end));
	return seq;
}

static void recover(int dir_fd, int fd, struct last *last)
{
	CM_AUTO_FD int old_fd =
		openat(dir_fd, CM_STORE_EVENTS_OLD, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	uint64_t seq = look_back(fd, true);
	uint64_t old_seq = look_back(old_fd, false);

	if (old_seq > seq)
		seq = old_seq;
	if (seq > last->seq)
		last->seq = seq;
}

/* --- writing ------------------------------------------------------------------------------- */

static int lock_seq(int dir_fd)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_NS };
	CM_AUTO_FD int fd = openat(dir_fd, CM_STORE_EVENTS_SEQ,
				   O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	for (int i = 0; fd >= 0 && i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return cm_fd_take(&fd);
		if (errno != EWOULDBLOCK && errno != EINTR)
			break;
		(void)nanosleep(&pause, NULL);
	}
	return -1;
}

static int open_log(int dir_fd)
{
	return openat(dir_fd, CM_STORE_EVENTS,
		      O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
}

/* Less than 0: it cannot be used. */
static off_t end_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? st.st_size : -1;
}

/* Append the line. */
static bool append(int seq_fd, int fd, struct last last, const char *line, size_t len)
{
	struct last next = { .seq = last.seq + 1, .end = last.end + len };
	ssize_t n;

	next.sum = sum_of(&next);
	if (pwrite(seq_fd, &next, sizeof(next), 0) != (ssize_t)sizeof(next))
		return false;
	do {
		n = write(fd, line, len);
	} while (n < 0 && errno == EINTR);
	/* the part that was written the next writer takes away */
	return n == (ssize_t)len;
}

/* What stands before rest, whose '{' it replaces, and a newline behind it. false: too long. */
static bool write_line(struct cm_buf *line, uint64_t seq, const struct cm_buf *rest)
{
	char ts[CM_CLOCK_RFC3339_SIZE];

	cm_clock_rfc3339(cm_clock_real_ms(), ts);
	cm_buf_printf(line, LINE_START "%" PRIu64 ",\"ts\":\"%s\",\"mono\":%" PRId64 ",", seq, ts,
		      cm_clock_mono_ms());
	cm_buf_append(line, rest->data + 1, rest->len - 1);
	cm_buf_putc(line, '\n');
	return cm_buf_status(line) == CM_OK;
}

/* The log's last number and its end, as they are when nobody died; else they are made so. */
static int find_last(int dir_fd, int seq_fd, int fd, struct last *ret)
{
	struct last last;
	off_t end = end_of(fd);

	if (end < 0)
		return -EIO;
	if (pread(seq_fd, &last, sizeof(last), 0) != (ssize_t)sizeof(last) ||
	    last.sum != sum_of(&last))
		last = (struct last){ .end = UINT64_MAX };
	if (last.end != (uint64_t)end) {
		recover(dir_fd, fd, &last);
		end = end_of(fd);
	}
	*ret = (struct last){ .seq = last.seq, .end = (uint64_t)end };
	return end < 0 ? -EIO : 0;
}

static bool write_locked(int dir_fd, int seq_fd, const struct cm_buf *rest)
{
	CM_AUTO_BUF struct cm_buf line = { 0 };
	CM_AUTO_FD int fd = open_log(dir_fd);
	struct last last;

	cm_buf_init(&line, CM_EVENT_MAX);
	if (fd < 0 || find_last(dir_fd, seq_fd, fd, &last) < 0 ||
	    !write_line(&line, last.seq + 1, rest))
		return false;
	if (last.end + line.len > CM_EVENTS_MAX) {
		if (renameat(dir_fd, CM_STORE_EVENTS, dir_fd, CM_STORE_EVENTS_OLD) < 0)
			return false;
		cm_fd_close(&fd);
		fd = open_log(dir_fd);
		last.end = 0;
	}
	return fd >= 0 && append(seq_fd, fd, last, line.data, line.len);
}

void cm_event_begin(struct cm_event *e, struct cm_event_log *log, const char *type,
		    uint64_t exec_id)
{
	char id[CM_EXEC_ID_SIZE];

	*e = (struct cm_event){ .log = log };
	cm_buf_init(&e->text, CM_EVENT_MAX - START_SIZE);
	cm_jw_init(&e->w, &e->text, false);
	cm_jw_object(&e->w);
	cm_jw_kstring(&e->w, "session", log->session);
	cm_jw_kstring(&e->w, "type", type);
	if (exec_id == 0)
		return;
	cm_exec_id_format(exec_id, id);
	cm_jw_kstring(&e->w, "exec", id);
}

void cm_event_end(struct cm_event *e)
{
	struct cm_event_log *log = e->log;
	CM_AUTO_FD int seq_fd = -1;

	if (log->dropped > 0)
		cm_jw_kuint(&e->w, "dropped", log->dropped);
	cm_jw_end_object(&e->w);
	if (log->dir_fd >= 0 && cm_buf_status(&e->text) == CM_OK)
		seq_fd = lock_seq(log->dir_fd);
	if (seq_fd >= 0 && write_locked(log->dir_fd, seq_fd, &e->text))
		log->dropped = 0;
	else
		log->dropped++;
	cm_buf_clear(&e->text);
}
