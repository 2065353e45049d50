/* SPDX-License-Identifier: Apache-2.0 */
/* What a script said at its end. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "providers/remote/shell.h"

#define VERDICT_STATUS 77
#define SHOWN_MAX 240
static const char verdict_mark[] = "\ncasemate-verdict ";

void cm_shell_end_clear(struct cm_shell_end *end)
{
	cm_buf_clear(&end->out);
	end->exit_code = 0;
	end->tail_len = 0;
	end->tail[0] = '\0';
}

void cm_shell_tail_add(struct cm_shell_end *end, const void *bytes, size_t len)
{
	const char *from = bytes;
	size_t kept = end->tail_len;

	if (len > CM_SHELL_TAIL) {
		from += len - CM_SHELL_TAIL;
		len = CM_SHELL_TAIL;
	}
	if (kept + len > CM_SHELL_TAIL) {
		size_t over = kept + len - CM_SHELL_TAIL;

		memmove(end->tail, end->tail + over, kept - over);
		kept -= over;
	}
	for (size_t i = 0; i < len; i++)
		end->tail[kept + i] = (char)(from[i] == '\0' ? ' ' : from[i]);
	end->tail_len = kept + len;
	end->tail[end->tail_len] = '\0';
}

/* The last line that has something: where it begins; *ret_len may be 0. */
static const char *last_line(const struct cm_shell_end *end, size_t *ret_len)
{
	size_t to = end->tail_len;
	size_t from;

	while (to > 0 && strchr(" \t\r\n", end->tail[to - 1]))
		to--;
	from = to;
	while (from > 0 && end->tail[from - 1] != '\n')
		from--;
	*ret_len = to - from;
	return end->tail + from;
}

bool cm_shell_says(const struct cm_shell_end *end, const char *word)
{
	size_t len = strlen(word);
	size_t mark = sizeof(verdict_mark) - 1;
	const char *at;

	if (end->exit_code != VERDICT_STATUS || end->tail_len < mark + len + 1)
		return false;
	at = end->tail + end->tail_len - (mark + len + 1);
	return memcmp(at, verdict_mark, mark) == 0 && memcmp(at + mark, word, len) == 0 &&
	       at[mark + len] == '\n';
}

const char *cm_shell_verdict(const struct cm_shell_end *end)
{
	size_t len;
	const char *line = last_line(end, &len);
	size_t mark = sizeof(verdict_mark) - 2;

	if (end->exit_code != VERDICT_STATUS || line == end->tail || len <= mark ||
	    memcmp(line, verdict_mark + 1, mark) != 0)
		return NULL;
	return line + mark;
}

int cm_shell_failed(const struct cm_shell_end *end, int code, struct cm_error *err, const char *fmt,
		    ...)
{
	char what[CM_ERROR_MSG_SIZE];
	size_t len;
	const char *line = last_line(end, &len);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (len == 0)
		return cm_error_set(err, code, 0, "%.200s: exit status %d", what, end->exit_code);
	return cm_error_set(err, code, 0, "%.200s: %.*s", what,
			    (int)(len < SHOWN_MAX ? len : SHOWN_MAX), line);
}

bool cm_shell_number(const char *text, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++) {
		unsigned int digit = (unsigned int)(unsigned char)*text - '0';

		if (digit > 9 || v > (UINT64_MAX - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	if (v > max)
		return false;
	*ret = v;
	return true;
}
