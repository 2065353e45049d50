/* SPDX-License-Identifier: Apache-2.0 */
/* Exec ids, names and places of a journal's files; linked by the keeper. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/hash.h"
#include "runtime/store/journal_internal.h"

/* They are written as they are, so they have no holes, and never change. */
_Static_assert(sizeof(struct cm_journal_request) == 56, "a request record is 56 bytes");
_Static_assert(sizeof(struct cm_journal_result) == 112, "a result record is 112 bytes");

/* The digits at *s, up to max, without a leading zero; *s is then behind them. */
static bool scan_number(const char **s, uint64_t max, uint64_t *ret)
{
	const char *p = *s;
	uint64_t v = 0;

	if (*p < '0' || *p > '9' || (p[0] == '0' && p[1] >= '0' && p[1] <= '9'))
		return false;
	for (; *p >= '0' && *p <= '9'; p++) {
		uint64_t digit = (uint64_t)(*p - '0');

		if (v > (max - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	*s = p;
	*ret = v;
	return true;
}

void cm_exec_id_format(uint64_t id, char buf[CM_EXEC_ID_SIZE])
{
	(void)snprintf(buf, CM_EXEC_ID_SIZE, "%" PRIu32 ".%" PRIu32, (uint32_t)(id >> 32),
		       (uint32_t)id);
}

int cm_exec_id_parse(const char *text, uint64_t *ret, struct cm_error *err)
{
	const char *p = text;
	uint64_t generation;
	uint64_t counter;

	if (scan_number(&p, UINT32_MAX, &generation) && *p++ == '.' &&
	    scan_number(&p, UINT32_MAX, &counter) && *p == '\0') {
		*ret = generation << 32 | counter;
		return CM_OK;
	}
	(void)cm_error_set(err, CM_E_INVALID, 0, "'%.100s' is not the id of a command", text);
	cm_error_hint(err, "it is GENERATION.COUNTER, for example 3.17");
	return CM_E_INVALID;
}

static uint64_t head_size(uint64_t max_bytes)
{
	return max_bytes / 4;
}

static uint64_t segment_size(uint64_t max_bytes)
{
	return (max_bytes - head_size(max_bytes)) / 2;
}

uint64_t cm_journal_place_of(uint64_t max_bytes, uint64_t offset)
{
	uint64_t head = head_size(max_bytes);

	return offset < head ? 0 : 1 + (offset - head) / segment_size(max_bytes);
}

uint64_t cm_journal_place_start(uint64_t max_bytes, uint64_t place)
{
	uint64_t head = head_size(max_bytes);
	uint64_t segment = segment_size(max_bytes);

	if (place == 0)
		return 0;
	/* no writer gets there; a file may have any name */
	if (place - 1 > (UINT64_MAX - head) / segment)
		return UINT64_MAX;
	return head + (place - 1) * segment;
}

static const char *stream_name(enum cm_journal_stream stream)
{
	return stream == CM_JOURNAL_ERR ? "err" : "out";
}

void cm_journal_place_name(enum cm_journal_stream stream, uint64_t place,
			   char buf[CM_JOURNAL_NAME_SIZE])
{
	if (place == 0)
		(void)snprintf(buf, CM_JOURNAL_NAME_SIZE, "%s.head", stream_name(stream));
	else
		(void)snprintf(buf, CM_JOURNAL_NAME_SIZE, "%s.%" PRIu64, stream_name(stream),
			       place - 1);
}

bool cm_journal_place_parse(enum cm_journal_stream stream, const char *name, uint64_t *ret)
{
	uint64_t segment;

	if (strncmp(name, stream_name(stream), 3) != 0 || name[3] != '.')
		return false;
	name += 4;
	if (strcmp(name, "head") == 0) {
		*ret = 0;
		return true;
	}
	if (!scan_number(&name, UINT64_MAX - 1, &segment) || *name != '\0')
		return false;
	*ret = segment + 1;
	return true;
}

/* cwd and arguments: that many strings, and nothing behind the last one. */
static bool text_ok(const struct cm_journal_request *request, const char *text)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < request->text_len; i++)
		n += text[i] == '\0';
	return n == UINT64_C(1) + request->n_args && text[request->text_len - 1] == '\0';
}

bool cm_journal_request_ok(const struct cm_journal_request *request, const void *text)
{
	return request->max_bytes >= CM_JOURNAL_MIN && request->max_bytes <= INT64_MAX &&
	       request->n_args > 0 && request->text_len > 0 &&
	       request->text_len <= CM_JOURNAL_TEXT_MAX && (!text || text_ok(request, text));
}

uint64_t cm_journal_sum(const void *record, size_t len, const void *text, size_t text_len)
{
	return cm_hash(cm_hash(CM_HASH_START, record, len), text, text_len);
}

bool cm_journal_ids_add(struct cm_journal_ids *ids, uint64_t id)
{
	size_t capacity = ids->capacity ? ids->capacity * 2 : 64;

	if (ids->n == ids->capacity) {
		uint64_t *v = cm_realloc(ids->v, capacity * sizeof(*v));

		if (!v)
			return false;
		ids->v = v;
		ids->capacity = capacity;
	}
	ids->v[ids->n++] = id;
	return true;
}

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void cm_journal_ids_sort(struct cm_journal_ids *ids)
{
	if (ids->n > 1)
		qsort(ids->v, ids->n, sizeof(*ids->v), compare_ids);
}

int cm_journal_open_execs(int state_fd)
{
	int fd = openat(state_fd, CM_STORE_EXECS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}
