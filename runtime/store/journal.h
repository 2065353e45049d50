/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Journals of detached commands: what each printed and how it ended, in the session's state
 * directory, so that it can be read whoever started it is gone, and the keeper, too.
 *
 *	<state>/sessions/<id>/exec/<exec id>/request	fixed record, then cwd and argv (never the
 *							environment: it may have secrets), a checksum
 *					    /out.head	the first bytes of stdout (of the terminal)
 *					    /out.<n>	the n-th segment after the head; the last two
 *							are kept
 *					    /err.head	the same of stderr
 *					    /result	fixed record and a checksum, when it has ended
 *
 * The head has a quarter of max_bytes, and each segment half of the rest. Offsets count all bytes
 * ever kept of a stream, from 0; names of segments say where they begin, so nothing has to be
 * written beside the bytes, and a file that a dead writer left is what it is.
 *
 * The writing half is linked by the keeper (component cm_store_journal: base only). A struct of
 * this file belongs to one thread.
 */
#ifndef CM_RUNTIME_STORE_JOURNAL_H
#define CM_RUNTIME_STORE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "casemate/error.h"
#include "runtime/base/buf.h"

#define CM_STORE_EXECS "exec"
/* "4294967295.4294967295" */
#define CM_EXEC_ID_SIZE 24
/* what a journal keeps of a stream unless it is told */
#define CM_JOURNAL_BYTES (64UL * 1024 * 1024)
#define CM_JOURNAL_MIN (64UL * 1024)
/* of cwd and arguments: as much as a request to the keeper can have */
#define CM_JOURNAL_TEXT_MAX (4U * 1024 * 1024)
/* how many commands that have ended a session remembers; the oldest go first */
#define CM_JOURNALS_KEPT 256U

/* An exec id is generation << 32 | counter, and printed "GENERATION.COUNTER". */
void cm_exec_id_format(uint64_t id, char buf[CM_EXEC_ID_SIZE]);
/* CM_OK, or CM_E_INVALID with a hint. */
int cm_exec_id_parse(const char *text, uint64_t *ret, struct cm_error *err);

enum cm_journal_stream {
	CM_JOURNAL_OUT = 0,
	CM_JOURNAL_ERR = 1,
	CM_JOURNAL_STREAMS = 2,
};

/* a terminal: stdout has everything, and there is no stderr */
#define CM_JOURNALF_TTY (1U << 0)
/* its stdin can be written to (casemate stdin, attach) */
#define CM_JOURNALF_STDIN (1U << 1)

#define CM_JOURNAL_MAGIC 0x434d4a52U
#define CM_JOURNAL_VERSION 1U

struct cm_journal_request {
	uint32_t magic;
	uint32_t version;
	uint64_t exec_id;
	uint32_t flags;
	uint32_t n_args;
	/* CLOCK_REALTIME */
	int64_t started_ms;
	/* of each stream: what is kept at the most; 0: CM_JOURNAL_BYTES; less than CM_JOURNAL_MIN is
	 * refused */
	uint64_t max_bytes;
	uint64_t timeout_ms;
	/* cwd and argv, each NUL-terminated */
	uint32_t text_len;
	uint32_t reserved_;
};

/* How it ended. The first nine are struct cm_rec_end of the keeper's protocol. */
struct cm_journal_result {
	uint32_t magic;
	uint32_t version;
	uint64_t exec_id;
	uint32_t kind;
	int32_t status;
	uint32_t flags;
	uint32_t detail;
	uint64_t wall_us;
	uint64_t cpu_user_us;
	uint64_t cpu_system_us;
	uint64_t max_rss_bytes;
	uint64_t memory_peak_bytes;
	/* CLOCK_REALTIME */
	int64_t ended_ms;
	/* of each stream: bytes that were journaled until then, and bytes that came and could not be
	 * written (a full disk) */
	uint64_t bytes[CM_JOURNAL_STREAMS];
	uint64_t lost[CM_JOURNAL_STREAMS];
};

/* Writing: the keeper alone, one writer a journal. */
struct cm_journal {
	/* -1: none */
	int dir_fd;
	/* of each stream the file that is written to; -1: none yet */
	int fd[CM_JOURNAL_STREAMS];
	uint64_t at[CM_JOURNAL_STREAMS];
	uint64_t lost[CM_JOURNAL_STREAMS];
	uint64_t max_bytes;
	uint64_t exec_id;
};

void cm_journal_init(struct cm_journal *j);
/*
 * Make the journal of request->exec_id below state_fd, with text (request->text_len bytes). Magic
 * and version are filled in here. CM_E_EXISTS when there is one already; CM_E_INVALID for a request
 * that could not be read again (text is not n_args + 1 strings). All or nothing.
 */
int cm_journal_create(int state_fd, const struct cm_journal_request *request, const void *text,
		      struct cm_journal *ret, struct cm_error *err);
/*
 * Move what there is in fd (a pipe's or a terminal's end, non-blocking) to the stream, max bytes at
 * the most. What cannot be written (a full disk, a quota, RLIMIT_FSIZE: SIGXFSZ is the caller's to
 * block or ignore) is read and counted as lost, so the command goes on, and the next call tries
 * again. > 0: that many came, the lost ones too; 0: end of file, also of a terminal (EIO there);
 * -EAGAIN: nothing there now; else -errno of reading.
 */
ssize_t cm_journal_take(struct cm_journal *j, enum cm_journal_stream stream, int fd, size_t max);
/* Write the result (magic, version, exec id, bytes and lost are filled in here). 0 or -errno, and
 * then it may be called again. */
int cm_journal_finish(struct cm_journal *j, const struct cm_journal_result *result);
void cm_journal_close(struct cm_journal *j);
/*
 * Remove the oldest journals that have a result until at most `keep` of those are left. Those of
 * execs that have none and are older than generation `now` count as ended. Also what a writer of an
 * earlier generation left half made. Reads the directory.
 */
void cm_journal_prune(int state_fd, unsigned int keep, uint32_t now);

/* Reading: anybody who may open the state directory, any number at once, at any time. */
struct cm_journal_reader {
	int dir_fd;
	struct cm_journal_request request;
	/* cwd and argv, NUL-separated; owned */
	char *text;
	/* the file of each stream that was read last (-1: none), and the offset of its first byte */
	int fd[CM_JOURNAL_STREAMS];
	uint64_t fd_from[CM_JOURNAL_STREAMS];
};

void cm_journal_reader_init(struct cm_journal_reader *r);
/* CM_E_NOT_FOUND: no such journal, or it is being made. CM_E_PROTOCOL: damaged. Nothing follows a
 * link. */
int cm_journal_open(int state_fd, uint64_t exec_id, struct cm_journal_reader *ret,
		    struct cm_error *err);
void cm_journal_reader_close(struct cm_journal_reader *r);
/* 1: it has ended and *ret says how; 0: there is no result (yet); -EBADMSG: it is damaged, or of
 * another version; -ESTALE: the journal was removed; else -errno. */
int cm_journal_result_read(const struct cm_journal_reader *r, struct cm_journal_result *ret);
/*
 * Bytes from *offset on: > 0 and *offset is where they begin, which is later than what was asked
 * for where bytes in between are gone; 0: there is nothing after it now; -errno.
 */
ssize_t cm_journal_read(struct cm_journal_reader *r, enum cm_journal_stream stream,
			uint64_t *offset, void *buf, size_t size);
/* Of a stream: where it ends now; 0 where nothing is kept or the directory cannot be read. */
uint64_t cm_journal_end(struct cm_journal_reader *r, enum cm_journal_stream stream);
/*
 * Where the last n_lines lines begin that there are now, or what is kept of them: 0; or -errno, and
 * then *ret is where they end.
 */
int cm_journal_tail(struct cm_journal_reader *journal, enum cm_journal_stream stream,
		    uint64_t n_lines, uint64_t *ret);
/* Readable when something may have changed since it was made or was last drained
 * (cm_journal_watch_drain): inotify on the directory. fd or -errno; the caller closes it. */
int cm_journal_watch(const struct cm_journal_reader *r);
void cm_journal_watch_drain(int watch_fd);
/* Exec ids that have a journal, ascending; *ret is owned (free), n of them. */
int cm_journal_list(int state_fd, uint64_t **ret, size_t *ret_n, struct cm_error *err);
/* 0, also when there is none; -errno. */
int cm_journal_remove(int state_fd, uint64_t exec_id);

#endif
