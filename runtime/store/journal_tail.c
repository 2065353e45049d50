/* SPDX-License-Identifier: Apache-2.0 */
/* Where the last lines of a stream begin: read from its end, which may be far from its beginning. */
#include <errno.h>
#include <string.h>

#include "runtime/store/journal.h"

#define BACK 65536U

/* The n-th newline from the end of what lies at `from`: *offset is behind it. How many are missing. */
static uint64_t scan_back(const char *bytes, size_t len, uint64_t from, uint64_t n,
			  uint64_t *offset)
{
	while (len > 0 && n > 0) {
		if (bytes[--len] != '\n')
			continue;
		if (--n == 0)
			*offset = from + len + 1;
	}
	return n;
}

/*
 * All from *from to `to`, which lie BACK apart at the most; *from is later where what is before was
 * not kept. The number of bytes, or -errno.
 */
static ssize_t read_block(struct cm_journal_reader *journal, enum cm_journal_stream stream,
			  uint64_t *from, uint64_t to, char chunk[BACK])
{
	uint64_t at = *from;
	size_t len = 0;

	while (at < to) {
		uint64_t got = at;
		ssize_t n = cm_journal_read(journal, stream, &got, chunk + len, (size_t)(to - at));

		if (n < 0)
			return n;
		if (n == 0 || got >= to)
			return -ENODATA;
		if ((uint64_t)n > to - got)
			n = (ssize_t)(to - got);
		if (got != at) {
			memmove(chunk, chunk + len, (size_t)n);
			len = 0;
			*from = got;
		}
		len += (size_t)n;
		at = got + (uint64_t)n;
	}
	return (ssize_t)len;
}

int cm_journal_tail(struct cm_journal_reader *journal, enum cm_journal_stream stream,
		    uint64_t n_lines, uint64_t *ret)
{
	char chunk[BACK];
	uint64_t end = cm_journal_end(journal, stream);
	uint64_t at = end;
	uint64_t offset = 0;

	*ret = end;
	while (n_lines > 0 && at > 0) {
		uint64_t want = at > BACK ? at - BACK : 0;
		uint64_t from = want;
		ssize_t len = read_block(journal, stream, &from, at, chunk);

		if (len <= 0)
			return (int)len;
		/* the end of the last line is not the beginning of another */
		if (at == end && chunk[len - 1] == '\n')
			len--;
		n_lines = scan_back(chunk, (size_t)len, from, n_lines, &offset);
		*ret = n_lines == 0 ? offset : from;
		if (from != want)
			break;
		at = from;
	}
	return 0;
}
