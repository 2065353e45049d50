/* SPDX-License-Identifier: Apache-2.0 */
/* How journals lie on the disk: what their writing and their reading half share. */
#ifndef CM_RUNTIME_STORE_JOURNAL_INTERNAL_H
#define CM_RUNTIME_STORE_JOURNAL_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/store/journal.h"

/* of the files and directories of a journal */
#define CM_JOURNAL_REQUEST "request"
#define CM_JOURNAL_RESULT "result"
#define CM_JOURNAL_RESULT_NEW "result.new"
/* before an exec id: a journal that is being made, or taken away */
#define CM_JOURNAL_NEW ".new-"
#define CM_JOURNAL_GONE ".gone-"
#define CM_JOURNAL_NAME_SIZE 40

/*
 * The files of a stream have places: 0 is the head, n + 1 is segment n. Each holds the bytes from
 * cm_journal_place_start(place) to cm_journal_place_start(place + 1), and is full when there is
 * a later one.
 */
uint64_t cm_journal_place_of(uint64_t max_bytes, uint64_t offset);
uint64_t cm_journal_place_start(uint64_t max_bytes, uint64_t place);
void cm_journal_place_name(enum cm_journal_stream stream, uint64_t place,
			   char buf[CM_JOURNAL_NAME_SIZE]);
/* false: name is no file of the stream. */
bool cm_journal_place_parse(enum cm_journal_stream stream, const char *name, uint64_t *ret);

/* Is the record one that can be read again? text NULL: it is not looked at. */
bool cm_journal_request_ok(const struct cm_journal_request *request, const void *text);
/* Of a record and of the text behind it: what is written behind both. Not against an adversary. */
uint64_t cm_journal_sum(const void *record, size_t len, const void *text, size_t text_len);

/* Exec ids; v is owned (free). */
struct cm_journal_ids {
	uint64_t *v;
	size_t n;
	size_t capacity;
};
/* false: no memory */
bool cm_journal_ids_add(struct cm_journal_ids *ids, uint64_t id);
void cm_journal_ids_sort(struct cm_journal_ids *ids);

/* <state>/exec: fd or -errno. */
int cm_journal_open_execs(int state_fd);

#endif
