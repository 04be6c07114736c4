// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/timestamp.h"
#include "base/clock.h"
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LENGTH_MAX 64
#define DAY_NS (86400 * FR_NSEC_PER_SEC)
#define NS_MAX ((uint64_t)INT64_MAX)

struct clock_time {
	int hour, minute, second;
	uint64_t fraction_ns;
};

/* ".123456", at most nine digits, to the end of S. */
static int parse_fraction(const char *s, uint64_t *ret_ns)
{
	uint64_t ns = 0, digit = FR_NSEC_PER_SEC / 10;

	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	for (; isdigit((unsigned char)*s); s++, digit /= 10) {
		if (!digit)
			return -EINVAL;
		ns += (uint64_t)(*s - '0') * digit;
	}
	if (*s)
		return -EINVAL;
	*ret_ns = ns;
	return 0;
}

/* A number of just so many digits. */
static bool digits(const char **s, int n, int *ret)
{
	int v = 0;

	for (int i = 0; i < n; i++, (*s)++) {
		if (!isdigit((unsigned char)**s))
			return false;
		v = v * 10 + (**s - '0');
	}
	*ret = v;
	return true;
}

/* "23:11", "23:11:37", "23:11:37.5". */
static int parse_clock_time(const char *s, struct clock_time *ret)
{
	struct clock_time t = {0};

	if (!digits(&s, 2, &t.hour) || *s++ != ':' || !digits(&s, 2, &t.minute))
		return -EINVAL;
	if (*s == ':') {
		s++;
		if (!digits(&s, 2, &t.second))
			return -EINVAL;
		if (*s == '.') {
			int r = parse_fraction(s + 1, &t.fraction_ns);

			if (r < 0)
				return r;
			s += strlen(s);
		}
	}
	if (*s || t.hour > 23 || t.minute > 59 || t.second > 59)
		return -EINVAL;
	*ret = t;
	return 0;
}

static bool parse_date(const char **s, struct tm *tm)
{
	int year, month, day;
	const char *p = *s;

	if (!digits(&p, 4, &year) || *p++ != '-' || !digits(&p, 2, &month) || *p++ != '-' ||
		!digits(&p, 2, &day) || month < 1 || month > 12 || day < 1 || day > 31)
		return false;
	tm->tm_year = year - 1900;
	tm->tm_mon = month - 1;
	tm->tm_mday = day;
	*s = p;
	return true;
}

/* The calendar's moment; -EINVAL for a day or an hour that the calendar does not have. */
static int to_ns(struct tm *tm, const struct clock_time *t, bool utc, uint64_t *ret)
{
	struct tm normal = *tm;
	time_t seconds;

	normal.tm_hour = t->hour;
	normal.tm_min = t->minute;
	normal.tm_sec = t->second;
	normal.tm_isdst = -1;
	seconds = utc ? timegm(&normal) : mktime(&normal);
	if (normal.tm_mday != tm->tm_mday || normal.tm_mon != tm->tm_mon)
		return -EINVAL;
	if (seconds < 0 || (uint64_t)seconds >= NS_MAX / FR_NSEC_PER_SEC)
		return -ERANGE;
	*ret = (uint64_t)seconds * FR_NSEC_PER_SEC + t->fraction_ns;
	return 0;
}

static void day_of(uint64_t ns, bool utc, struct tm *ret)
{
	time_t seconds = (time_t)(ns / FR_NSEC_PER_SEC);

	if (utc)
		gmtime_r(&seconds, ret);
	else
		localtime_r(&seconds, ret);
}

static int parse_calendar(const char *s, bool utc, uint64_t now_ns, uint64_t *ret)
{
	struct clock_time t = {0};
	struct tm tm = {0};
	bool dated = parse_date(&s, &tm);
	int r;

	if (dated && !*s)
		return to_ns(&tm, &t, utc, ret);
	if (dated && *s != ' ' && *s != 'T')
		return -EINVAL;
	r = parse_clock_time(s + dated, &t);
	if (r < 0)
		return r;
	if (dated)
		return to_ns(&tm, &t, utc, ret);
	day_of(now_ns, utc, &tm);
	r = to_ns(&tm, &t, utc, ret);
	if (r < 0 || *ret <= now_ns)
		return r;
	day_of(now_ns - DAY_NS, utc, &tm);
	return to_ns(&tm, &t, utc, ret);
}

static int parse_epoch(const char *s, uint64_t *ret)
{
	char seconds[LENGTH_MAX];
	const char *point = strchr(s, '.');
	uint64_t whole, fraction = 0;
	int r;

	snprintf(seconds, sizeof(seconds), "%.*s", (int)(point ? point - s : (int)strlen(s)), s);
	r = fr_u64_parse(seconds, &whole);
	if (r == 0 && point)
		r = parse_fraction(point + 1, &fraction);
	if (r < 0)
		return r;
	if (whole >= NS_MAX / FR_NSEC_PER_SEC)
		return -ERANGE;
	*ret = whole * FR_NSEC_PER_SEC + fraction;
	return 0;
}

static bool cut_suffix(char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	if (n <= m || strcmp(s + n - m, suffix))
		return false;
	s[n - m] = '\0';
	return true;
}

static int shift(const char *span, bool back, uint64_t now_ns, uint64_t *ret)
{
	uint64_t ns;
	int r = fr_duration_parse(span, &ns);

	if (r < 0)
		return r;
	if (back ? ns > now_ns : ns > NS_MAX - now_ns)
		return -ERANGE;
	*ret = back ? now_ns - ns : now_ns + ns;
	return 0;
}

static int parse_day_name(const char *s, bool utc, uint64_t now_ns, uint64_t *ret)
{
	const struct clock_time midnight = {0};
	struct tm tm;

	if (!strcmp(s, "today"))
		day_of(now_ns, utc, &tm);
	else if (!strcmp(s, "yesterday"))
		day_of(now_ns - DAY_NS, utc, &tm);
	else
		return -EINVAL;
	return to_ns(&tm, &midnight, utc, ret);
}

int fr_timestamp_parse(const char *s, uint64_t now_ns, uint64_t *ret_ns)
{
	char text[LENGTH_MAX];
	uint64_t ns;
	bool utc;
	int r;

	if (strlen(s) >= sizeof(text))
		return -EINVAL;
	strcpy(text, s);
	if (!strcmp(text, "now")) {
		*ret_ns = now_ns;
		return 0;
	}
	if (*text == '@')
		r = parse_epoch(text + 1, &ns);
	else if (*text == '-' || *text == '+')
		r = shift(text + 1, *text == '-', now_ns, &ns);
	else if (cut_suffix(text, " ago"))
		r = shift(text, true, now_ns, &ns);
	else if (cut_suffix(text, " left"))
		r = shift(text, false, now_ns, &ns);
	else {
		utc = cut_suffix(text, " UTC") || cut_suffix(text, "Z");
		r = parse_day_name(text, utc, now_ns, &ns);
		if (r == -EINVAL)
			r = parse_calendar(text, utc, now_ns, &ns);
	}
	if (r == 0)
		*ret_ns = ns;
	return r;
}
