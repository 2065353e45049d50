/* SPDX-License-Identifier: Apache-2.0 */
/* Strict parsing and plain showing of numbers, sizes and durations. */
#include "runtime/base/num.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* 10^6 times the largest unit (2^40) still fits 64 bits, so that fractions need no wide type */
#define MAX_DECIMALS 6
#define BOUND_SIZE 48

struct decimal {
	uint64_t whole;
	/* fraction = part / scale */
	uint64_t part;
	uint64_t scale;
};

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{ "", 1 },
	{ "b", 1 },
	{ "k", 1ULL << 10 },
	{ "kb", 1ULL << 10 },
	{ "kib", 1ULL << 10 },
	{ "m", 1ULL << 20 },
	{ "mb", 1ULL << 20 },
	{ "mib", 1ULL << 20 },
	{ "g", 1ULL << 30 },
	{ "gb", 1ULL << 30 },
	{ "gib", 1ULL << 30 },
	{ "t", 1ULL << 40 },
	{ "tb", 1ULL << 40 },
	{ "tib", 1ULL << 40 },
};

/* Descending: the terms of "1h30m" must be, so that "30m1h" and "1m1m" are typing errors. */
static const struct unit duration_units[] = {
	{ "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 },
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits at *s; false when there is none or they do not fit. */
static bool scan_whole(const char **s, uint64_t *ret)
{
	uint64_t v = 0;

	if (!is_digit(**s))
		return false;
	for (; is_digit(**s); (*s)++) {
		uint64_t digit = (uint64_t)(**s - '0');

		if (v > (UINT64_MAX - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	*ret = v;
	return true;
}

static bool scan_decimal(const char **s, struct decimal *ret)
{
	struct decimal d = { .scale = 1 };
	unsigned int decimals = 0;

	if (!scan_whole(s, &d.whole))
		return false;
	if (**s == '.') {
		(*s)++;
		for (; is_digit(**s) && decimals < MAX_DECIMALS; (*s)++, decimals++) {
			d.part = d.part * 10 + (uint64_t)(**s - '0');
			d.scale *= 10;
		}
		if (decimals == 0)
			return false;
	}
	*ret = d;
	return true;
}

/* A fraction of the smallest unit is a mistake; elsewhere it is rounded down, but not to 0. */
static bool scale_decimal(const struct decimal *d, uint64_t factor, uint64_t *ret)
{
	uint64_t part = d->part * factor / d->scale;

	if (d->scale > 1 && factor == 1)
		return false;
	if (d->whole > (UINT64_MAX - part) / factor)
		return false;
	*ret = d->whole * factor + part;
	if (*ret == 0 && d->part > 0)
		*ret = 1;
	return true;
}

static int bad_value(const char *what, const char *form, const char *s, struct cm_error *err)
{
	if (!s)
		s = "";
	cm_error_set(err, CM_E_INVALID, 0, "%s must be %s, not '%s'", what, form, s);
	cm_error_hint(err, "give %s as %s", what, form);
	return CM_E_INVALID;
}

static int out_of_bounds(const char *what, const char *min, const char *max, const char *s,
			 struct cm_error *err)
{
	cm_error_set(err, CM_E_INVALID, 0, "%s must be %s to %s, not '%s'", what, min, max, s);
	cm_error_hint(err, "give %s a value from %s to %s", what, min, max);
	return CM_E_INVALID;
}

int cm_parse_u64(const char *s, const char *what, uint64_t min, uint64_t max, uint64_t *ret,
		 struct cm_error *err)
{
	char low[BOUND_SIZE];
	char high[BOUND_SIZE];
	const char *end = s;
	uint64_t v;

	/* text that is no number and a number that is too big are the same to a user here */
	if (s && scan_whole(&end, &v) && *end == '\0' && v >= min && v <= max) {
		*ret = v;
		return CM_OK;
	}
	(void)snprintf(low, sizeof(low), "%" PRIu64, min);
	(void)snprintf(high, sizeof(high), "%" PRIu64, max);
	return out_of_bounds(what, low, high, s ? s : "", err);
}

static bool scan_size(const char *s, uint64_t *ret)
{
	struct decimal d;

	if (!scan_decimal(&s, &d))
		return false;
	for (size_t i = 0; i < sizeof(size_units) / sizeof(size_units[0]); i++) {
		if (strcasecmp(s, size_units[i].name) == 0)
			return scale_decimal(&d, size_units[i].factor, ret);
	}
	return false;
}

int cm_parse_size(const char *s, const char *what, uint64_t min, uint64_t max, uint64_t *ret_bytes,
		  struct cm_error *err)
{
	char low[BOUND_SIZE];
	char high[BOUND_SIZE];
	uint64_t v;

	if (!s || !scan_size(s, &v))
		return bad_value(what, "a size such as 512M or 1.5G", s, err);
	if (v < min || v > max) {
		cm_format_size(min, low, sizeof(low));
		cm_format_size(max, high, sizeof(high));
		return out_of_bounds(what, low, high, s, err);
	}
	*ret_bytes = v;
	return CM_OK;
}

/* The unit's index, or a negative number; "ms" is looked at before "m" by length. */
static int scan_duration_unit(const char **s)
{
	size_t len = strcspn(*s, "0123456789.");

	for (size_t i = 0; i < sizeof(duration_units) / sizeof(duration_units[0]); i++) {
		if (strlen(duration_units[i].name) == len &&
		    strncmp(*s, duration_units[i].name, len) == 0) {
			*s += len;
			return (int)i;
		}
	}
	return -1;
}

static bool scan_duration(const char *s, uint64_t *ret)
{
	struct decimal d;
	uint64_t total = 0;
	uint64_t term;
	int last = -1;

	if (!scan_decimal(&s, &d))
		return false;
	if (*s == '\0')
		return scale_decimal(&d, 1000, ret);
	for (;;) {
		int unit = scan_duration_unit(&s);

		if (unit <= last || !scale_decimal(&d, duration_units[unit].factor, &term) ||
		    term > UINT64_MAX - total)
			return false;
		last = unit;
		total += term;
		if (*s == '\0')
			break;
		if (!scan_decimal(&s, &d))
			return false;
	}
	*ret = total;
	return true;
}

int cm_parse_duration(const char *s, const char *what, uint64_t min_ms, uint64_t max_ms,
		      uint64_t *ret_ms, struct cm_error *err)
{
	char low[BOUND_SIZE];
	char high[BOUND_SIZE];
	uint64_t v;

	if (!s || !scan_duration(s, &v))
		return bad_value(what, "a duration such as 90s, 1.5h or 2m30s", s, err);
	if (v < min_ms || v > max_ms) {
		cm_format_duration(min_ms, low, sizeof(low));
		cm_format_duration(max_ms, high, sizeof(high));
		return out_of_bounds(what, low, high, s, err);
	}
	*ret_ms = v;
	return CM_OK;
}

static void format_milli(uint64_t milli, char *buf, size_t size)
{
	unsigned int part = (unsigned int)(milli % 1000);

	if (part == 0)
		(void)snprintf(buf, size, "%" PRIu64, milli / 1000);
	else if (part % 100 == 0)
		(void)snprintf(buf, size, "%" PRIu64 ".%u", milli / 1000, part / 100);
	else if (part % 10 == 0)
		(void)snprintf(buf, size, "%" PRIu64 ".%02u", milli / 1000, part / 10);
	else
		(void)snprintf(buf, size, "%" PRIu64 ".%03u", milli / 1000, part);
}

int cm_parse_milli(const char *s, const char *what, uint64_t min, uint64_t max, uint64_t *ret_milli,
		   struct cm_error *err)
{
	char low[BOUND_SIZE];
	char high[BOUND_SIZE];
	const char *end = s;
	struct decimal d;
	uint64_t v;

	/* finer than a thousandth is refused and not rounded: 0.0004 must not become 0 */
	if (!s || !scan_decimal(&end, &d) || *end != '\0' || d.scale > 1000)
		return bad_value(what, "a number with at most 3 decimals, such as 1.5", s, err);
	if (!scale_decimal(&d, 1000, &v) || v < min || v > max) {
		format_milli(min, low, sizeof(low));
		format_milli(max, high, sizeof(high));
		return out_of_bounds(what, low, high, s, err);
	}
	*ret_milli = v;
	return CM_OK;
}

/* v / unit in tenths, rounded to the nearest. */
static uint64_t tenths_of(uint64_t v, uint64_t unit)
{
	return v / unit * 10 + (v % unit * 10 + unit / 2) / unit;
}

void cm_format_size(uint64_t bytes, char *buf, size_t size)
{
	static const char *const names[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	uint64_t unit = 1024;
	uint64_t tenths;
	size_t i = 0;

	if (bytes < 1024) {
		(void)snprintf(buf, size, "%u B", (unsigned int)bytes);
		return;
	}
	/* by the rounded value, so that "1024 KiB" never shows */
	while ((tenths = tenths_of(bytes, unit)) >= 10235 && i + 1 < 6) {
		unit *= 1024;
		i++;
	}
	if (tenths < 1000)
		(void)snprintf(buf, size, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10,
			       names[i]);
	else
		(void)snprintf(buf, size, "%" PRIu64 " %s", (tenths + 5) / 10, names[i]);
}

void cm_format_duration(uint64_t ms, char *buf, size_t size)
{
	static const struct {
		const char *name;
		uint64_t ms;
		/* in tenths of this unit: from here on the next one is used */
		uint64_t below;
	} units[] = {
		{ "s", 1000, 600 },
		{ "min", 60000, 600 },
		{ "h", 3600000, 720 },
		{ "d", 86400000, UINT64_MAX },
	};
	uint64_t tenths;
	size_t i = 0;

	if (ms < 1000) {
		(void)snprintf(buf, size, "%u ms", (unsigned int)ms);
		return;
	}
	while ((tenths = tenths_of(ms, units[i].ms)) >= units[i].below)
		i++;
	if (tenths % 10 == 0)
		(void)snprintf(buf, size, "%" PRIu64 " %s", tenths / 10, units[i].name);
	else
		(void)snprintf(buf, size, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10,
			       units[i].name);
}
