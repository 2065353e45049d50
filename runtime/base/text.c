/* SPDX-License-Identifier: Apache-2.0 */
/* Escaping for terminals and shells, UTF-8, patterns, edit distance. */
#include "runtime/base/text.h"

#include <string.h>

/* Longest name that suggestions are made for; anything longer is not a mistyped name. */
#define DISTANCE_MAX_LEN 64

size_t cm_text_utf8_len(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;
	unsigned char low = 0x80;
	unsigned char high = 0xbf;
	size_t need;

	if (len == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	need = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (len < need)
		return 0;
	/* the second byte's range excludes overlong forms, surrogates and above U+10FFFF */
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < need; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	return need;
}

/* What turns the direction of the text after it round, and U+2028 and U+2029, which end lines. */
static bool is_bidi(const unsigned char *p, size_t n)
{
	if (n == 2)
		return p[0] == 0xd8 && p[1] == 0x9c;
	if (n != 3 || p[0] != 0xe2)
		return false;
	return (p[1] == 0x80 && (p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xa8 && p[2] <= 0xae))) ||
	       (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9);
}

static bool is_inert(const unsigned char *p, size_t n, bool keep_newlines)
{
	if (n == 1)
		return (p[0] >= 0x20 && p[0] != 0x7f) ||
		       (keep_newlines && (p[0] == '\n' || p[0] == '\t'));
	/* U+0080 to U+009F: terminals in UTF-8 mode obey them too (U+009D starts an OSC) */
	return n != 0 && !(n == 2 && p[0] == 0xc2 && p[1] < 0xa0) && !is_bidi(p, n);
}

void cm_text_escape(struct cm_buf *out, const char *s, size_t len, bool keep_newlines)
{
	size_t start = 0;
	size_t i = 0;

	while (i < len) {
		const unsigned char *p = (const unsigned char *)s + i;
		size_t n = cm_text_utf8_len(s + i, len - i);

		if (is_inert(p, n, keep_newlines)) {
			i += n;
			continue;
		}
		cm_buf_append(out, s + start, i - start);
		if (n == 0)
			n = 1;
		for (size_t k = 0; k < n; k++)
			cm_buf_printf(out, "\\x%02x", p[k]);
		i += n;
		start = i;
	}
	cm_buf_append(out, s + start, len - start);
}

size_t cm_text_fitting(const char *s, size_t len, size_t columns)
{
	size_t at = 0;

	for (; at < len && columns > 0; columns--) {
		size_t n = cm_text_utf8_len(s + at, len - at);

		at += n > 0 ? n : 1;
	}
	return at;
}

const char *cm_text_trimmed(const char *s, size_t *ret_len)
{
	static const char blanks[] = " \t\n\v\f\r";
	size_t len;

	if (!s)
		return NULL;
	s += strspn(s, blanks);
	len = strlen(s);
	while (len > 0 && strchr(blanks, s[len - 1]))
		len--;
	*ret_len = len;
	return len > 0 ? s : NULL;
}

bool cm_text_has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool cm_text_is_session_id(const char *s)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";
	size_t n = strspn(s, allowed);

	return n > 0 && n <= CM_SESSION_ID_MAX && s[n] == '\0' && s[0] != '.' && s[0] != '-';
}

bool cm_text_matches_len(const char *pattern, const char *s, size_t len)
{
	const char *end = s + len;
	const char *star = NULL;
	const char *resume = NULL;

	/* going back to the last star only keeps hostile patterns at O(n * m) */
	while (s < end) {
		if (*pattern == '*') {
			star = pattern++;
			resume = s;
		} else if (*pattern == '?' || *pattern == *s) {
			pattern++;
			s++;
		} else if (star) {
			pattern = star + 1;
			s = ++resume;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}

bool cm_text_matches(const char *pattern, const char *s)
{
	return cm_text_matches_len(pattern, s, strlen(s));
}

static unsigned int min3(unsigned int a, unsigned int b, unsigned int c)
{
	if (b < a)
		a = b;
	return c < a ? c : a;
}

unsigned int cm_text_distance(const char *a, const char *b, unsigned int max)
{
	unsigned int rows[3][DISTANCE_MAX_LEN + 1];
	size_t len_a = strnlen(a, DISTANCE_MAX_LEN + 1);
	size_t len_b = strnlen(b, DISTANCE_MAX_LEN + 1);
	unsigned int distance;

	if (len_a > DISTANCE_MAX_LEN || len_b > DISTANCE_MAX_LEN)
		return strcmp(a, b) == 0 ? 0 : max + 1;
	for (size_t j = 0; j <= len_b; j++)
		rows[0][j] = (unsigned int)j;
	for (size_t i = 1; i <= len_a; i++) {
		unsigned int *row = rows[i % 3];
		const unsigned int *above = rows[(i - 1) % 3];
		const unsigned int *above2 = rows[(i + 1) % 3];

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= len_b; j++) {
			row[j] = min3(above[j] + 1, row[j - 1] + 1,
				      above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    above2[j - 2] + 1 < row[j])
				row[j] = above2[j - 2] + 1;
		}
	}
	distance = rows[len_a % 3][len_b];
	return distance > max ? max + 1 : distance;
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static bool needs_quotes(const char *s)
{
	size_t name_len = 0;

	if (*s == '\0')
		return true;
	while (is_name_char(s[name_len]))
		name_len++;
	/* "A=b" as a first word would be an assignment and not a command */
	if (name_len > 0 && s[name_len] == '=')
		return true;
	for (; *s; s++) {
		if (!is_name_char(*s) && !strchr("@%+=:,./-", *s))
			return true;
	}
	return false;
}

void cm_text_shell_quote(struct cm_buf *out, const char *s)
{
	if (!needs_quotes(s)) {
		cm_buf_puts(out, s);
		return;
	}
	cm_buf_putc(out, '\'');
	for (; *s; s++) {
		if (*s == '\'')
			cm_buf_puts(out, "'\\''");
		else
			cm_buf_putc(out, *s);
	}
	cm_buf_putc(out, '\'');
}
