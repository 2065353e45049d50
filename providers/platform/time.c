/* SPDX-License-Identifier: Apache-2.0 */
/* Times as JSON has them (RFC 3339). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "providers/platform/answers.h"

struct reader {
	const char *at;
	bool is_good;
};

static int digits(struct reader *r, int n)
{
	int value = 0;

	for (; n > 0 && r->is_good; n--, r->at++) {
		r->is_good = *r->at >= '0' && *r->at <= '9';
		if (r->is_good)
			value = value * 10 + (*r->at - '0');
		else
			break;
	}
	return value;
}

static int digits_between(struct reader *r, int low, int high)
{
	int value = digits(r, 2);

	r->is_good = r->is_good && value >= low && value <= high;
	return value;
}

static void character(struct reader *r, char a, char b)
{
	r->is_good = r->is_good && (*r->at == a || *r->at == b);
	if (r->is_good)
		r->at++;
}

/* Days from 1970-01-01, the year beginning with March so that the odd day is its last. */
static int64_t days(int year, int month, int day)
{
	int y = month > 2 ? year : year - 1;
	int m = month > 2 ? month - 3 : month + 9;

	return (int64_t)y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719468;
}

/* ".123456": milliseconds, further digits passed over */
static int fraction(struct reader *r)
{
	int ms = 0;
	int scale = 100;

	if (!r->is_good || *r->at != '.')
		return 0;
	r->at++;
	r->is_good = *r->at >= '0' && *r->at <= '9';
	for (; *r->at >= '0' && *r->at <= '9'; r->at++, scale /= 10)
		ms += (*r->at - '0') * scale;
	return ms;
}

/* "Z", "+01:00": minutes to take away */
static int offset(struct reader *r)
{
	int sign;
	int minutes;

	if (!r->is_good)
		return 0;
	if (*r->at == 'Z' || *r->at == 'z') {
		r->at++;
		return 0;
	}
	sign = *r->at == '-' ? -1 : 1;
	character(r, '+', '-');
	minutes = 60 * digits_between(r, 0, 23);
	character(r, ':', ':');
	minutes += digits_between(r, 0, 59);
	return sign * minutes;
}

int64_t cm_platform_time(const char *text)
{
	struct reader r = { text, true };
	int year = digits(&r, 4);
	int month;
	int day;
	int64_t seconds;
	int ms;

	character(&r, '-', '-');
	month = digits_between(&r, 1, 12);
	character(&r, '-', '-');
	day = digits_between(&r, 1, 31);
	character(&r, 'T', 't');
	seconds = digits_between(&r, 0, 23) * 3600L;
	character(&r, ':', ':');
	seconds += digits_between(&r, 0, 59) * 60L;
	character(&r, ':', ':');
	/* 60: a leap second */
	seconds += digits_between(&r, 0, 60);
	ms = fraction(&r);
	seconds -= offset(&r) * 60L;
	if (!r.is_good || *r.at != '\0' || year < 1970)
		return 0;
	return (days(year, month, day) * 86400 + seconds) * 1000 + ms;
}
