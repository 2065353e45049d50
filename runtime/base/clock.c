/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks, and how a time of day is shown. */
#include "runtime/base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * By the system call. Most programs of ours live for a millisecond and ask once or twice, and the first use
 * of the vDSO (two pages, and its symbols looked through) costs as much as thirty calls.
 */
static struct timespec read_clock(clockid_t id)
{
	struct timespec ts = { 0 };

	/* cannot fail for these ids: all exist since Linux 2.6.39 */
	(void)syscall(SYS_clock_gettime, id, &ts);
	return ts;
}

static int64_t to_ms(struct timespec ts)
{
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t cm_clock_mono_ms(void)
{
	return to_ms(read_clock(CLOCK_MONOTONIC));
}

int64_t cm_clock_mono_us(void)
{
	struct timespec ts = read_clock(CLOCK_MONOTONIC);

	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t cm_clock_boot_ms(void)
{
	return to_ms(read_clock(CLOCK_BOOTTIME));
}

int64_t cm_clock_real_ms(void)
{
	return to_ms(read_clock(CLOCK_REALTIME));
}

/*
 * Not gmtime_r: it fails for years that a record from elsewhere may claim, and takes a lock in
 * glibc.  Days are counted from 0000-03-01, so that the leap day is a year's last.
 */
void cm_clock_rfc3339(int64_t real_ms, char buf[CM_CLOCK_RFC3339_SIZE])
{
	const int64_t day_ms = 86400000;
	int64_t days = real_ms / day_ms;
	int64_t in_day = real_ms % day_ms;
	int64_t era;
	int64_t year;
	unsigned int day_of_era;
	unsigned int year_of_era;
	unsigned int day_of_year;
	unsigned int month;
	unsigned int ms;

	if (in_day < 0) {
		in_day += day_ms;
		days--;
	}
	ms = (unsigned int)in_day;
	days += 719468;
	era = (days >= 0 ? days : days - 146096) / 146097;
	day_of_era = (unsigned int)(days - era * 146097);
	year_of_era =
		(day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
	day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	month = (5 * day_of_year + 2) / 153;
	year = (int64_t)year_of_era + era * 400 + (month >= 10 ? 1 : 0);
	(void)snprintf(buf, CM_CLOCK_RFC3339_SIZE, "%04" PRId64 "-%02u-%02uT%02u:%02u:%02u.%03uZ",
		       year, (month + 2) % 12 + 1, day_of_year - (153 * month + 2) / 5 + 1,
		       ms / 3600000, ms / 60000 % 60, ms / 1000 % 60, ms % 1000);
}
