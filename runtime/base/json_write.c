/* SPDX-License-Identifier: Apache-2.0 */
/* JSON writer onto a buffer. */
#include "runtime/base/json_write.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/text.h"

_Static_assert(CM_JSON_WRITE_MAX_DEPTH <= 32, "has_items has one bit a level");

void cm_jw_init(struct cm_json_writer *w, struct cm_buf *out, bool is_pretty)
{
	*w = (struct cm_json_writer){ .out = out, .is_pretty = is_pretty };
}

static uint32_t level_bit(const struct cm_json_writer *w)
{
	return UINT32_C(1) << (w->depth - 1);
}

static void new_line(struct cm_json_writer *w)
{
	if (!w->is_pretty)
		return;
	cm_buf_putc(w->out, '\n');
	for (unsigned int i = 0; i < w->depth; i++)
		cm_buf_puts(w->out, "  ");
}

/* What stands before a value or a key: nothing behind a key, else a comma where one is due. */
static void begin_item(struct cm_json_writer *w)
{
	if (w->after_key) {
		w->after_key = false;
		return;
	}
	if (w->depth == 0)
		return;
	if (w->has_items & level_bit(w))
		cm_buf_putc(w->out, ',');
	w->has_items |= level_bit(w);
	new_line(w);
}

static void begin_container(struct cm_json_writer *w, char c)
{
	begin_item(w);
	if (w->depth >= CM_JSON_WRITE_MAX_DEPTH) {
		/* the document could not be closed correctly: let the caller's check see it */
		w->out->has_failed = true;
		w->out->is_over_max = true;
		return;
	}
	cm_buf_putc(w->out, c);
	w->depth++;
	w->has_items &= ~level_bit(w);
}

static void end_container(struct cm_json_writer *w, char c)
{
	bool has_items;

	if (w->depth == 0)
		return;
	has_items = (w->has_items & level_bit(w)) != 0;
	w->depth--;
	if (has_items)
		new_line(w);
	cm_buf_putc(w->out, c);
}

void cm_jw_object(struct cm_json_writer *w)
{
	begin_container(w, '{');
}

void cm_jw_end_object(struct cm_json_writer *w)
{
	end_container(w, '}');
}

void cm_jw_array(struct cm_json_writer *w)
{
	begin_container(w, '[');
}

void cm_jw_end_array(struct cm_json_writer *w)
{
	end_container(w, ']');
}

/* The escaped form of the sequence of n bytes at p (0: not UTF-8), or NULL when it goes as it is. */
static const char *escape_of(const unsigned char *p, size_t n, char buf[8])
{
	static const char short_names[] = "\b\t\n\f\r\"\\";
	static const char short_escapes[] = "btnfr\"\\";
	const char *found;

	if (n == 0)
		return "\xef\xbf\xbd";
	if (p[0] != '\0' && (found = strchr(short_names, p[0])) != NULL) {
		buf[0] = '\\';
		buf[1] = short_escapes[found - short_names];
		buf[2] = '\0';
		return buf;
	}
	/* DEL and the C1 controls need no escape in JSON, but the text may end on a terminal */
	if (n == 1 && (p[0] < 0x20 || p[0] == 0x7f))
		(void)snprintf(buf, 8, "\\u%04x", p[0]);
	else if (n == 2 && p[0] == 0xc2 && p[1] < 0xa0)
		(void)snprintf(buf, 8, "\\u%04x", p[1]);
	else
		return NULL;
	return buf;
}

static void put_string(struct cm_buf *out, const char *s, size_t len)
{
	size_t start = 0;
	size_t i = 0;

	cm_buf_putc(out, '"');
	while (i < len) {
		char buf[8];
		size_t n = cm_text_utf8_len(s + i, len - i);
		const char *escape = escape_of((const unsigned char *)s + i, n, buf);

		if (!escape) {
			i += n;
			continue;
		}
		cm_buf_append(out, s + start, i - start);
		cm_buf_puts(out, escape);
		i += n ? n : 1;
		start = i;
	}
	cm_buf_append(out, s + start, len - start);
	cm_buf_putc(out, '"');
}

void cm_jw_key(struct cm_json_writer *w, const char *key)
{
	begin_item(w);
	put_string(w->out, key, strlen(key));
	cm_buf_puts(w->out, w->is_pretty ? ": " : ":");
	w->after_key = true;
}

void cm_jw_string_len(struct cm_json_writer *w, const char *s, size_t len)
{
	begin_item(w);
	put_string(w->out, s, len);
}

void cm_jw_string(struct cm_json_writer *w, const char *s)
{
	if (s)
		cm_jw_string_len(w, s, strlen(s));
	else
		cm_jw_null(w);
}

void cm_jw_int(struct cm_json_writer *w, int64_t v)
{
	begin_item(w);
	cm_buf_printf(w->out, "%" PRId64, v);
}

void cm_jw_uint(struct cm_json_writer *w, uint64_t v)
{
	begin_item(w);
	cm_buf_printf(w->out, "%" PRIu64, v);
}

void cm_jw_double(struct cm_json_writer *w, double v)
{
	char buf[40];

	if (!isfinite(v)) {
		cm_jw_null(w);
		return;
	}
	begin_item(w);
	/*
	 * "-0" would be read as an integer, which has no such value; cppcheck does not know that
	 * there are two zeros
	 */
	if (v == 0)
		v = 0; /* cppcheck-suppress duplicateConditionalAssign */
	/* the shortest form that reads back as the same number */
	for (int digits = 15; digits <= 17; digits++) {
		(void)snprintf(buf, sizeof(buf), "%.*g", digits, v);
		if (strtod(buf, NULL) == v)
			break;
	}
	/* a library user's locale may write ',' */
	for (char *p = buf; *p; p++) {
		if (*p == ',')
			*p = '.';
	}
	cm_buf_puts(w->out, buf);
}

void cm_jw_bool(struct cm_json_writer *w, bool v)
{
	begin_item(w);
	cm_buf_puts(w->out, v ? "true" : "false");
}

void cm_jw_null(struct cm_json_writer *w)
{
	begin_item(w);
	cm_buf_puts(w->out, "null");
}

void cm_jw_kstring(struct cm_json_writer *w, const char *key, const char *s)
{
	cm_jw_key(w, key);
	cm_jw_string(w, s);
}

void cm_jw_kint(struct cm_json_writer *w, const char *key, int64_t v)
{
	cm_jw_key(w, key);
	cm_jw_int(w, v);
}

void cm_jw_kuint(struct cm_json_writer *w, const char *key, uint64_t v)
{
	cm_jw_key(w, key);
	cm_jw_uint(w, v);
}

void cm_jw_kbool(struct cm_json_writer *w, const char *key, bool v)
{
	cm_jw_key(w, key);
	cm_jw_bool(w, v);
}

void cm_jw_known_int(struct cm_json_writer *w, const char *key, bool is_known, int64_t v)
{
	cm_jw_key(w, key);
	if (is_known)
		cm_jw_int(w, v);
	else
		cm_jw_null(w);
}

void cm_jw_known_uint(struct cm_json_writer *w, const char *key, bool is_known, uint64_t v)
{
	cm_jw_key(w, key);
	if (is_known)
		cm_jw_uint(w, v);
	else
		cm_jw_null(w);
}

void cm_jw_known_double(struct cm_json_writer *w, const char *key, bool is_known, double v)
{
	cm_jw_key(w, key);
	if (is_known)
		cm_jw_double(w, v);
	else
		cm_jw_null(w);
}

void cm_jw_known_bool(struct cm_json_writer *w, const char *key, bool is_known, bool v)
{
	cm_jw_key(w, key);
	if (is_known)
		cm_jw_bool(w, v);
	else
		cm_jw_null(w);
}

void cm_jw_kstrings(struct cm_json_writer *w, const char *key, const struct cm_strv *v)
{
	cm_jw_key(w, key);
	cm_jw_array(w);
	for (size_t i = 0; i < v->n; i++)
		cm_jw_string(w, v->v[i]);
	cm_jw_end_array(w);
}
