/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/e2b/texts.h"

#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/text.h"

bool cm_e2b_is_text(const char *s)
{
	size_t left = strlen(s);

	while (left > 0) {
		size_t n = cm_text_utf8_len(s, left);

		if (n == 0)
			return false;
		s += n;
		left -= n;
	}
	return true;
}

static bool is_same_name(const char *a, const char *b)
{
	size_t len = strcspn(a, "=");

	return strcspn(b, "=") == len && memcmp(a, b, len) == 0;
}

static bool is_in(const char *entry, char *const *list)
{
	for (; list && *list; list++) {
		if (is_same_name(entry, *list))
			return true;
	}
	return false;
}

static void write_entry(struct cm_json_writer *w, const char *entry)
{
	size_t len = strcspn(entry, "=");
	CM_AUTO_FREE char *name = cm_asprintf("%.*s", (int)len, entry);

	if (!name)
		w->out->has_failed = true;
	else if (len > 0 && entry[len] == '=')
		cm_jw_kstring(w, name, entry + len + 1);
}

void cm_e2b_write_env(struct cm_json_writer *w, const struct cm_strv *first, char *const *second)
{
	cm_jw_object(w);
	for (size_t i = 0; first && i < first->n; i++) {
		if (!is_in(first->v[i], first->v + i + 1) && !is_in(first->v[i], second))
			write_entry(w, first->v[i]);
	}
	for (; second && *second; second++) {
		if (!is_in(*second, second + 1))
			write_entry(w, *second);
	}
	cm_jw_end_object(w);
}

/* --- numbers in texts ----------------------------------------------------------------------------- */

/* Exactly n digits. */
static bool digits(const char **at, unsigned int n, unsigned int *ret)
{
	*ret = 0;
	for (; n > 0; n--, (*at)++) {
		if (**at < '0' || **at > '9')
			return false;
		*ret = *ret * 10 + (unsigned int)(**at - '0');
	}
	return true;
}

static bool skip(const char **at, char c)
{
	if (**at != c)
		return false;
	(*at)++;
	return true;
}

/* Days from 1970 on, by a calendar that begins in March, so that the odd day is a year's last. */
static int64_t days_of(unsigned int year, unsigned int month, unsigned int day)
{
	int64_t y = (int64_t)year - (month <= 2);
	int64_t era = y / 400;
	int64_t of_era = y - era * 400;
	int64_t of_year = (153 * ((int64_t)month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool read_offset(const char *at, int64_t *ret_s)
{
	unsigned int hours;
	unsigned int minutes;
	bool is_east = *at == '+';

	*ret_s = 0;
	if ((at[0] == 'Z' || at[0] == 'z') && at[1] == '\0')
		return true;
	if (!is_east && *at != '-')
		return false;
	at++;
	if (!digits(&at, 2, &hours) || !skip(&at, ':') || !digits(&at, 2, &minutes) || *at != '\0')
		return false;
	*ret_s = (hours * 60 + minutes) * 60;
	if (!is_east)
		*ret_s = -*ret_s;
	return true;
}

bool cm_e2b_time(const char *text, int64_t *ret_ns)
{
	unsigned int v[6];
	int64_t ns = 0;
	int64_t offset_s = 0;
	int64_t scale = 100000000;
	int64_t seconds;

	if (!text || !digits(&text, 4, &v[0]) || !skip(&text, '-') || !digits(&text, 2, &v[1]) ||
	    !skip(&text, '-') || !digits(&text, 2, &v[2]) ||
	    (!skip(&text, 'T') && !skip(&text, 't')))
		return false;
	if (!digits(&text, 2, &v[3]) || !skip(&text, ':') || !digits(&text, 2, &v[4]) ||
	    !skip(&text, ':') || !digits(&text, 2, &v[5]))
		return false;
	if (skip(&text, '.')) {
		for (; *text >= '0' && *text <= '9'; text++, scale /= 10)
			ns += (*text - '0') * scale;
	}
	/* years whose nanoseconds fit */
	if (v[0] < 1970 || v[0] > 2200 || v[1] < 1 || v[1] > 12 || v[2] < 1 || v[2] > 31 ||
	    v[3] > 23 || v[4] > 59 || v[5] > 60 || !read_offset(text, &offset_s))
		return false;
	seconds = days_of(v[0], v[1], v[2]) * 86400 + (int64_t)v[3] * 3600 + (int64_t)v[4] * 60 +
		  (int64_t)v[5] - offset_s;
	*ret_ns = seconds * 1000000000 + ns;
	return true;
}

bool cm_e2b_is_version(const char *text, unsigned int major, unsigned int minor, unsigned int patch)
{
	const unsigned int wanted[] = { major, minor, patch };

	for (size_t i = 0; text && i < CM_ARRAY_SIZE(wanted); i++) {
		unsigned int n = 0;
		size_t len = strspn(text, "0123456789");

		if (len == 0 || len > 6 || !digits(&text, (unsigned int)len, &n))
			return false;
		if (n != wanted[i])
			return n > wanted[i];
		if (i + 1 < CM_ARRAY_SIZE(wanted) && !skip(&text, '.'))
			return false;
	}
	return text != NULL;
}
